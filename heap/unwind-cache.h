/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What is known about each pc that was met in a stack: its frame in the profile, and how to get
 * to the caller. It is shared by all threads and never locked.
 *
 * An entry is three words and their exclusive or. Threads may write the same entry at once; a
 * mixture of two entries has a wrong check word and is taken for a miss.
 */
#ifndef _MW_HEAP_UNWIND_CACHE_H
#define _MW_HEAP_UNWIND_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#define MW_RULE_CFA_FP	0x01u /* the CFA is relative to the frame pointer, not the stack pointer */
#define MW_RULE_END	0x02u /* the first frame of a thread */
#define MW_RULE_SIGNAL	0x04u /* the caller was interrupted: its pc is exact */
#define MW_RULE_COMPLEX 0x08u /* does not fit into a rule: interpret the CFI each time */
#define MW_RULE_NONE	0x10u /* no CFI */
#define MW_RULE_BAD	0x20u /* CFI that cannot be used */
#define MW_RULE_RA_SAME 0x40u /* the return address is still in its register */

/* Offsets are divided by 8. */
struct mw_unwind_rule {
	uint8_t flags;
	uint8_t unused;
	int16_t fp_offset; /* where the caller's frame pointer is, from the CFA; 0: unchanged */
	int16_t ra_offset; /* where the return address is, from the CFA */
	uint16_t cfa_offset;
};

struct mw_unwind_known {
	struct mw_unwind_rule rule;
	uint64_t frame;
};

bool mw_unwind_cache_find(uintptr_t pc, uint32_t epoch, struct mw_unwind_known *ret);
void mw_unwind_cache_store(uintptr_t pc, uint32_t epoch, const struct mw_unwind_known *known);

#endif
