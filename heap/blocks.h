/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Disk blocks for files that are mapped.
 */
#ifndef _MW_HEAP_BLOCKS_H
#define _MW_HEAP_BLOCKS_H

#include <stdint.h>

/*
 * Allocates the blocks of a range of a file: a store to a mapped page that finds no block raises
 * SIGBUS. A file system that copies on write may need another one for the store all the same. On a
 * file system that cannot allocate, the range is overwritten with zeros. Returns 0, -EFBIG beyond
 * the limit of the process for files, or another negative errno.
 */
int mw_blocks_allocate(int fd, uint64_t offset, uint64_t bytes);

#endif
