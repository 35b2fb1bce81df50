/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Decides when each RMID of an L3 domain is read. A tick does not read all of
 * them. The CPUs of the domain divide the RMIDs that ran since they were last
 * read among themselves, with a limit for each tick and CPU. In addition, all
 * RMIDs in use are read slowly, one after the other. This file uses no MSR, no
 * lock and no clock. It is also built in user space, where it is tested.
 *
 * All ticks of one period are due at the same time and form a slot. The first
 * CPU that ticks in a new slot begins it. Each CPU reads what ran on it, as far as
 * its share goes, and puts the rest into the queue of the domain. An RMID that was
 * read in this slot is not read again when another CPU reports it; that CPU's part
 * is read in the next slot. The CPU that begins a slot reads the queue first; if
 * that is too much for one CPU, all of them do.
 *
 * All CPUs of a domain tick at the same time, so none of them may wait for
 * another. The state of some RMIDs is in one word, which is changed by atomic
 * operations. A CPU takes an RMID before it reads it: then it alone may access
 * what belongs to the RMID. An RMID that another CPU has taken is passed over.
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

/* The state of so many RMIDs is in one word. */
#define MW_RDT_GROUP 16
#define MW_RDT_WORDS (MW_RDT_RMIDS / MW_RDT_GROUP)

/*
 * Each RMID in use is queued within this time, so that it is read within a second even
 * if reading is delayed.
 */
#define MW_RDT_ROTATION_NS 800000000ULL

/* Each word has a cache line of its own, because all CPUs change them at the same time. */
struct mw_rdt_word {
	u64 marks;
} __attribute__((__aligned__(64)));

/**
 * struct mw_rdt_plan - the plan of one L3 domain
 * @slot_ns: time at which the ticks of this slot were due
 * @nr: the RMIDs are 0 to @nr - 1
 * @reader_ns: the last slot for which a reader was elected
 * @crowded: at the beginning of this slot the queue was too long for one CPU
 * @busy: bit N is set if word N has marks; it may be set longer, but a mark whose bit is not
 *	yet set is not found
 * @word: the state of the RMIDs
 * @ran_ns: by RMID: it did not run between its last reading and this time, as far
 * 	as was reported; 0 if no run was reported since
 */
struct mw_rdt_plan {
	u64 slot_ns;
	u64 reader_ns;
	u32 nr;
	bool crowded;
	u64 busy;
	struct mw_rdt_word word[MW_RDT_WORDS];
	u64 ran_ns[MW_RDT_RMIDS];
};

void mw_rdt_plan_init(struct mw_rdt_plan *plan, u32 nr, u64 now);
bool mw_rdt_plan_slot(struct mw_rdt_plan *plan, u64 slot_ns, u64 *before);
u32 mw_rdt_plan_due(const struct mw_rdt_plan *plan, u64 from, u64 to, u64 cycle_ns, u32 *first);
void mw_rdt_plan_ran(struct mw_rdt_plan *plan, u32 rmid, u64 since);
u64 mw_rdt_plan_ran_since(struct mw_rdt_plan *plan, u32 rmid);
void mw_rdt_plan_add(struct mw_rdt_plan *plan, u32 rmid);
bool mw_rdt_plan_elect(struct mw_rdt_plan *plan, u64 slot_ns, u64 period_ns, u32 cpus,
		       u64 *rest_ns);
bool mw_rdt_plan_is_crowded(const struct mw_rdt_plan *plan);
bool mw_rdt_plan_done(const struct mw_rdt_plan *plan);
u32 mw_rdt_plan_share(u32 nr, u32 budget, u32 cost, u64 period_ns);

/* What is taken must be released. */
bool mw_rdt_plan_take(struct mw_rdt_plan *plan, u32 *cursor, u32 *rmid);
bool mw_rdt_plan_take_stale(struct mw_rdt_plan *plan, u32 cursor, u32 *rmid);
bool mw_rdt_plan_take_one(struct mw_rdt_plan *plan, u32 rmid);
bool mw_rdt_plan_take_always(struct mw_rdt_plan *plan, u32 rmid);
void mw_rdt_plan_release(struct mw_rdt_plan *plan, u32 rmid, bool was_read);

#endif /* _MW_RDT_PLAN_H */
