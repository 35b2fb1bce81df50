/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The table of distinct stacks in the profile. Stacks are never removed.
 */
#ifndef _MW_HEAP_STACKS_H
#define _MW_HEAP_STACKS_H

#include <stdint.h>

#include "profile-format.h"

/*
 * The index of the stack with these frames; it is added if it is new. 0, which stands for all
 * stacks that found no room, if there is none.
 */
uint32_t mw_stack_intern(const uint64_t *frames, uint32_t depth, uint32_t flags, uint64_t now);

/* The sums of a stack; NULL if not even stack 0 could be made. */
struct mw_heap_stack *mw_stack_at(uint32_t index);

/* After a fork. */
void mw_stacks_clear(void);

#endif
