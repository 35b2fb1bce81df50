/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The stack of the calling thread, as frames of the profile.
 */
#ifndef _MW_HEAP_UNWIND_H
#define _MW_HEAP_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

struct mw_thread;

/*
 * Writes up to @max frames, innermost first, without those of this library, and with those of
 * Python between them, together at most MW_HEAP_DEPTH_MAX. Returns how many there are; *ret_flags
 * gets MW_HEAP_STACK_*. Counts the health of the walk in the profile. The thread has been prepared,
 * and is marked as busy.
 */
uint32_t mw_unwind(const struct mw_thread *thread, uint64_t *frames, uint32_t max,
		   uint32_t *ret_flags);

/*
 * The same for the site of an event: @max frames behind those of operator new and delete, which are
 * kept, without those of Python. Counts nothing.
 */
uint32_t mw_unwind_site(const struct mw_thread *thread, uint64_t *frames, uint32_t max,
			uint32_t *ret_flags);

/* Whether @pc is in this library. */
bool mw_unwind_is_ours(uintptr_t pc);

#endif
