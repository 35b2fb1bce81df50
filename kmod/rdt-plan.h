/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Which RMIDs of an L3 domain are read when. Not all at each tick: those that
 * ran since they were read last, shared among the CPUs of the domain, at most
 * so many per tick and CPU; and all that are in use, slowly, in turn. It knows
 * nothing of MSRs, locks and clocks, and compiles in user space, where it is
 * tested.
 *
 * All ticks of one period have the same due time, the slot. The first CPU that
 * comes with a new one turns the page; each CPU tells what ran on it, and takes
 * its share. An RMID that was read in this slot already is not read again for
 * the sake of another CPU: what it did there since is for the next slot.
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

/* RMIDs have ten bits in PQR_ASSOC. */
#define MW_RDT_RMIDS 1024
#define MW_RDT_WORDS (MW_RDT_RMIDS / 64)

/* The rotation comes by every RMID in this time; the rest to a second is for the queue. */
#define MW_RDT_ROTATION_NS 800000000ULL

/**
 * struct mw_rdt_plan - of one L3 domain
 * @slot_ns: due time of the ticks of this slot
 * @nr: RMIDs are 0 to @nr - 1
 * @cursor: where in @todo to go on
 * @turn: where the rotation is
 * @turn_ns: up to when it has been paid
 * @next: ran after it was read in this slot: to be read in the next
 * @todo: to be read now
 * @told: not read in this slot, and a record said so
 */
struct mw_rdt_plan {
	u64 slot_ns;
	u32 nr;
	u32 cursor;
	u32 turn;
	u64 turn_ns;
	u64 next[MW_RDT_WORDS];
	u64 todo[MW_RDT_WORDS];
	u64 told[MW_RDT_WORDS];
};

void mw_rdt_plan_init(struct mw_rdt_plan *plan, u32 nr, u64 now);
void mw_rdt_plan_slot(struct mw_rdt_plan *plan, u64 slot_ns);
void mw_rdt_plan_ran(struct mw_rdt_plan *plan, u32 rmid, u64 read_ns);
void mw_rdt_plan_add(struct mw_rdt_plan *plan, u32 rmid);
bool mw_rdt_plan_turn(struct mw_rdt_plan *plan, u64 now, u32 *rmid);
bool mw_rdt_plan_take(struct mw_rdt_plan *plan, u32 *rmid);
bool mw_rdt_plan_tell(struct mw_rdt_plan *plan, u32 *rmid);
bool mw_rdt_plan_done(const struct mw_rdt_plan *plan);
u32 mw_rdt_plan_share(u32 nr, u32 budget, u32 cost, u64 period_ns);

#endif /* _MW_RDT_PLAN_H */
