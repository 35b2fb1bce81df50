/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Bringing pages into memory as a write to each of them would, without a change of their content.
 */
#ifndef _MW_HEAP_POPULATE_H
#define _MW_HEAP_POPULATE_H

#include <stddef.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE /* since glibc 2.35 */
#define MADV_POPULATE_WRITE 23
#endif

/* Returns 0, or -1 with errno: EINVAL before Linux 5.14. */
static inline int mw_populate(void *address, size_t bytes)
{
	return madvise(address, bytes, MADV_POPULATE_WRITE);
}

#endif
