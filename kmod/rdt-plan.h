/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Decides when each RMID of an L3 domain is read. A tick does not read all of
 * them. The CPUs of the domain divide the RMIDs that ran since they were last
 * read among themselves, with a limit for each tick and CPU. In addition, all
 * RMIDs in use are read slowly, one after the other. This file uses no MSR, no lock and no clock.
 * It is also built in user space, where it is tested.
 *
 * All ticks of one period are due at the same time and form a slot. The first
 * CPU that ticks in a new slot begins it. Each CPU reports which RMIDs ran on
 * it, and reads its share. An RMID that was read in this slot is not read again
 * when another CPU reports it; that CPU's part is read in the next slot.
 */
#ifndef _MW_RDT_PLAN_H
#define _MW_RDT_PLAN_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stdint.h>
typedef uint64_t u64;
typedef uint32_t u32;
#endif

/* An RMID has ten bits in PQR_ASSOC. */
#define MW_RDT_RMIDS 1024
#define MW_RDT_WORDS (MW_RDT_RMIDS / 64)

/*
 * Each RMID in use is queued within this time, so that it is read within a second even
 * if reading is delayed.
 */
#define MW_RDT_ROTATION_NS 800000000ULL

/**
 * struct mw_rdt_plan - the plan of one L3 domain
 * @slot_ns: time at which the ticks of this slot were due
 * @nr: the RMIDs are 0 to @nr - 1
 * @cursor: where in @todo the next read continues
 * @turn: RMID at which the rotation continues
 * @turn_ns: time up to which the rotation has advanced
 * @next: bitmap of RMIDs that ran after they were read in this slot, and are to be
 * 	read in the next
 * @todo: bitmap of RMIDs to be read now
 * @stale: bitmap of RMIDs in @todo that were reported as stale in this slot
 */
struct mw_rdt_plan {
	u64 slot_ns;
	u32 nr;
	u32 cursor;
	u32 turn;
	u64 turn_ns;
	u64 next[MW_RDT_WORDS];
	u64 todo[MW_RDT_WORDS];
	u64 stale[MW_RDT_WORDS];
};

void mw_rdt_plan_init(struct mw_rdt_plan *plan, u32 nr, u64 now);
void mw_rdt_plan_slot(struct mw_rdt_plan *plan, u64 slot_ns);
void mw_rdt_plan_ran(struct mw_rdt_plan *plan, u32 rmid, u64 read_ns);
void mw_rdt_plan_add(struct mw_rdt_plan *plan, u32 rmid);
bool mw_rdt_plan_turn(struct mw_rdt_plan *plan, u64 now, u32 *rmid);
bool mw_rdt_plan_take(struct mw_rdt_plan *plan, u32 *rmid);
bool mw_rdt_plan_take_stale(struct mw_rdt_plan *plan, u32 *rmid);
bool mw_rdt_plan_done(const struct mw_rdt_plan *plan);
u32 mw_rdt_plan_share(u32 nr, u32 budget, u32 cost, u64 period_ns);

#endif /* _MW_RDT_PLAN_H */
