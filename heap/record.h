/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The slow paths: what happens when a countdown expires, and when an address that passed the
 * filter is freed. The entry points (entry.c, operators.c) call these functions last and directly,
 * around the call of the next allocator.
 */
#ifndef _MW_HEAP_RECORD_H
#define _MW_HEAP_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile-format.h"

/*
 * The countdown of this thread has wrapped by @size. Puts it right, and returns true if the
 * allocation is to be sampled: then mw_record_allocation() follows if it succeeded; if it
 * failed, nothing does, because an object that does not exist does not use up the countdown.
 */
bool mw_record_due(size_t size);

/*
 * The sampled allocation succeeded. Leaves errno alone. False if there is no sample of it, because
 * there was no room, or the process was forked meanwhile.
 */
bool mw_record_allocation(const void *address, size_t size, enum mw_heap_source source);

/* @address is about to be freed and passed the filter. False: do not free it (bootstrap heap). */
bool mw_record_free(const void *address);

#define MW_RECORD_NOT_MOVING UINT64_MAX

/*
 * @address is about to be reallocated and passed the filter: takes its sample aside, and returns
 * what names it, or MW_RECORD_NOT_MOVING. mw_record_moved() follows, when it is known what
 * happened.
 */
uint64_t mw_record_moving(const void *address);
void mw_record_moved(uint64_t moving, bool freed);

/*
 * The same for a mapping of which only @size bytes at @address are left. False if it has no sample
 * any more.
 */
bool mw_record_shrunk(uint64_t moving, const void *address, size_t size);

#endif
