/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Recognises the functions of allocators, which are the innermost frames of the stacks that
 * they record and of no interest to anybody who asks which function allocated.
 */
#ifndef MW_HEAP_ALLOCATOR_H
#define MW_HEAP_ALLOCATOR_H

#include <stdbool.h>

/* Whether a frame with this function, or "", in this module belongs to an allocator. */
bool mw_allocator_has(const char *function, const char *module);

#endif /* MW_HEAP_ALLOCATOR_H */
