/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Anonymous memory that the program maps itself (MEMWATCH_HEAP_MMAP=1). It is sampled like
 * objects of the heap. What an allocator maps for its objects does not count.
 */
#ifndef _MW_HEAP_MAPPINGS_H
#define _MW_HEAP_MAPPINGS_H

/* After a fork. */
void mw_mappings_clear(void);

#endif
