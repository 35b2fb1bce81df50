/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Which RMIDs of an L3 domain have bandwidth counters, where there are fewer counters
 * than RMIDs and software assigns them (AMD's ABMC). This file uses no MSR, no lock and
 * no clock. It is also built in user space, where it is tested.
 *
 * The counters are divided into sets with one counter for each bandwidth event. An RMID
 * that begins to run takes a free set at once, so that nothing is missed. The tick keeps
 * some sets free: it takes them from RMIDs without an owner, and from those that have
 * not run for a while, beginning with those that hold the least cache, which may still be
 * written back. Such a set is free when all CPUs could have reported that its RMID ran. It
 * counts on, and an RMID that runs before its set was given away keeps it.
 * If all sets belong to RMIDs that run, those that wait take turns with them.
 */
#ifndef _MW_RDT_ASSIGN_H
#define _MW_RDT_ASSIGN_H

#include "rdt-plan.h"

/* The number of a counter has five bits. */
#define MW_RDT_COUNTERS 32

/* Words of a bitmap of RMIDs. */
#define MW_RDT_BITMAP (MW_RDT_RMIDS / 64)

/* The RMID of a set that was never assigned. */
#define MW_RDT_NO_RMID (~0U)

/**
 * enum mw_rdt_set_state - who may use a set
 * @MW_RDT_SET_FREE: any RMID that begins to run
 * @MW_RDT_SET_HELD: the RMID that has it
 * @MW_RDT_SET_LEAVING: the same, but it becomes free after its next reading
 */
enum mw_rdt_set_state {
	MW_RDT_SET_FREE,
	MW_RDT_SET_HELD,
	MW_RDT_SET_LEAVING,
};

/**
 * struct mw_rdt_set - one counter for each bandwidth event
 * @rmid: the RMID for which it counts, also while it is free
 * @state: &enum mw_rdt_set_state
 * @fresh: it was set to 0 for @rmid and has not been read since
 * @since_ns: when @state or @rmid last changed
 * @ran_ns: when @rmid was last known to run
 * @level: bytes of cache that @rmid held when it was last read
 */
struct mw_rdt_set {
	u32 rmid;
	u32 state;
	bool fresh;
	u64 since_ns;
	u64 ran_ns;
	u64 level;
};

/**
 * struct mw_rdt_assign - the sets of one L3 domain
 * @nr: number of sets; the first one belongs to RMID 0 for ever
 * @nr_free: how many of them are free
 * @nr_leaving: how many of them are leaving
 * @next: where the search for an RMID that waits continues
 * @turns: how often a set was taken from an RMID that runs
 * @held: bitmap of the RMIDs that have a set and keep it
 * @waiting: bitmap of the RMIDs that ran without a set
 * @set: the sets
 */
struct mw_rdt_assign {
	u32 nr;
	u32 nr_free;
	u32 nr_leaving;
	u32 next;
	u64 turns;
	u64 held[MW_RDT_BITMAP];
	u64 waiting[MW_RDT_BITMAP];
	struct mw_rdt_set set[MW_RDT_COUNTERS];
};

/**
 * enum mw_rdt_run - what happens when an RMID begins to run
 * @MW_RDT_RUN_UNCOUNTED: it has no set, and none is free
 * @MW_RDT_RUN_KEEPS: it still has a set, and keeps it
 * @MW_RDT_RUN_GIVEN: it gets a set, whose counters must be set up for it
 */
enum mw_rdt_run {
	MW_RDT_RUN_UNCOUNTED,
	MW_RDT_RUN_KEEPS,
	MW_RDT_RUN_GIVEN,
};

/* Does this RMID have an owner? */
typedef bool (*mw_rdt_owned_fn)(u32 rmid);

void mw_rdt_assign_init(struct mw_rdt_assign *assign, u32 nr, u64 now);
struct mw_rdt_set *mw_rdt_assign_find(struct mw_rdt_assign *assign, u32 rmid);
void mw_rdt_assign_ran(struct mw_rdt_assign *assign, const unsigned long *ran, u64 now);
enum mw_rdt_run mw_rdt_assign_run(struct mw_rdt_assign *assign, u32 rmid, u64 now, u32 *at,
				  u32 *before);
bool mw_rdt_assign_choose(struct mw_rdt_assign *assign, u64 now, u64 settle_ns,
			  mw_rdt_owned_fn owned, u32 *at);
bool mw_rdt_assign_pass(struct mw_rdt_assign *assign, u32 at, u64 now, mw_rdt_owned_fn owned);

#endif /* _MW_RDT_ASSIGN_H */
