// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Which RMIDs are read when, see rdt-plan.h.
 */
#include "rdt-plan.h"

#define REST_NS (1000000000ULL - MW_RDT_ROTATION_NS)

/*
 * What a word says about each of its RMIDs. Mark N of all of them together is a
 * field of MW_RDT_GROUP bits that begins at bit N * MW_RDT_GROUP.
 */
enum mark {
	MARK_TODO,  /* is to be read */
	MARK_TAKEN, /* a CPU has it */
	MARK_READ,  /* was read in this slot */
	MARK_STALE, /* was reported as stale in this slot */
};

/*
 * The CPU that begins a slot reads the queue alone if so many RMIDs are in it, and if
 * so few of them should have been read in the slot before.
 */
#define QUEUE_MOST 8
#define LATE_MOST  2

_Static_assert(MW_RDT_WORDS <= 64, "a set of words is one u64");

#define FIELD_MASK ((1ULL << MW_RDT_GROUP) - 1)

static u64 plan_mark(enum mark mark, u32 rmid)
{
	return 1ULL << (mark * MW_RDT_GROUP + rmid % MW_RDT_GROUP);
}

static u64 plan_field(u64 marks, enum mark mark)
{
	return marks >> mark * MW_RDT_GROUP & FIELD_MASK;
}

static u64 plan_load(const struct mw_rdt_word *word)
{
	return __atomic_load_n(&word->marks, __ATOMIC_RELAXED);
}

/* Writes only if there is something to change: then the line need not move to this CPU. */
static void plan_change(struct mw_rdt_word *word, u64 clear, u64 set)
{
	u64 old = plan_load(word);

	while (((old & ~clear) | set) != old &&
	       !__atomic_compare_exchange_n(&word->marks, &old, (old & ~clear) | set, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
}

static u64 plan_load_busy(const struct mw_rdt_plan *plan)
{
	return __atomic_load_n(&plan->busy, __ATOMIC_SEQ_CST);
}

/* Word @i has got a mark. */
static void plan_set_busy(struct mw_rdt_plan *plan, u32 i)
{
	if (!(plan_load_busy(plan) >> i & 1))
		__atomic_fetch_or(&plan->busy, 1ULL << i, __ATOMIC_SEQ_CST);
}

/*
 * Word @i had no marks. Another CPU that sets one now either finds the bit cleared and sets it
 * again, or its mark is found here.
 */
static void plan_clear_busy(struct mw_rdt_plan *plan, u32 i)
{
	__atomic_fetch_and(&plan->busy, ~(1ULL << i), __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&plan->word[i].marks, __ATOMIC_SEQ_CST))
		plan_set_busy(plan, i);
}

static void plan_set_mark(struct mw_rdt_plan *plan, enum mark mark, u32 rmid)
{
	if (rmid >= plan->nr)
		return;
	plan_change(&plan->word[rmid / MW_RDT_GROUP], 0, plan_mark(mark, rmid));
	plan_set_busy(plan, rmid / MW_RDT_GROUP);
}

/* Take the lowest one out of a set of words. */
static u32 plan_next_word(u64 *set)
{
	u32 i = __builtin_ctzll(*set);

	*set &= *set - 1;
	return i;
}

void mw_rdt_plan_init(struct mw_rdt_plan *plan, u32 nr, u64 now)
{
	u32 i;

	plan->nr = nr;
	plan->slot_ns = now;
	plan->reader_ns = 0;
	plan->crowded = false;
	plan->busy = 0;
	for (i = 0; i < MW_RDT_WORDS; i++)
		plan->word[i].marks = 0;
	for (i = 0; i < MW_RDT_RMIDS; i++)
		plan->ran_ns[i] = 0;
}

/* The RMIDs of a word that are to be read in this slot. */
static u64 plan_find_late(u64 marks)
{
	return plan_field(marks, MARK_TODO) & ~plan_field(marks, MARK_READ);
}

static u32 plan_count_bits(u64 bits)
{
	u32 n = 0;

	for (; bits; bits &= bits - 1)
		n++;
	return n;
}

/**
 * mw_rdt_plan_slot - a CPU has a tick
 * @plan: plan of its domain
 * @slot_ns: when the tick was due
 * @before: set to the slot before, if this CPU has begun a new slot
 *
 * Return: true if this is the first tick of a new slot
 */
bool mw_rdt_plan_slot(struct mw_rdt_plan *plan, u64 slot_ns, u64 *before)
{
	u32 i, queued = 0, late = 0;
	bool crowded;
	u64 busy;

	*before = __atomic_load_n(&plan->slot_ns, __ATOMIC_RELAXED);
	if (slot_ns <= *before ||
	    !__atomic_compare_exchange_n(&plan->slot_ns, before, slot_ns, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_RELAXED))
		return false;
	busy = plan_load_busy(plan);
	while (busy) {
		u64 marks;

		i = plan_next_word(&busy);
		marks = plan_load(&plan->word[i]);
		if (!marks)
			plan_clear_busy(plan, i);
		queued += plan_count_bits(plan_field(marks, MARK_TODO));
		late += plan_count_bits(plan_find_late(marks));
		plan_change(&plan->word[i],
			    FIELD_MASK << MARK_READ * MW_RDT_GROUP |
				    FIELD_MASK << MARK_STALE * MW_RDT_GROUP,
			    0);
	}
	crowded = queued > QUEUE_MOST || late > LATE_MOST;
	if (mw_rdt_plan_is_crowded(plan) != crowded)
		__atomic_store_n(&plan->crowded, crowded, __ATOMIC_RELAXED);
	return true;
}

bool mw_rdt_plan_is_crowded(const struct mw_rdt_plan *plan)
{
	return __atomic_load_n(&plan->crowded, __ATOMIC_RELAXED);
}

/**
 * mw_rdt_plan_due - whose turn it is, if each RMID has its turn once in a while
 * @plan: the plan
 * @from: time up to which this was asked before
 * @to: present time
 * @cycle_ns: each RMID has its turn once in this time, or a little earlier
 * @first: set to the first of these RMIDs; RMID 0 follows the last RMID
 *
 * Return: number of RMIDs, each of them once
 */
u32 mw_rdt_plan_due(const struct mw_rdt_plan *plan, u64 from, u64 to, u64 cycle_ns, u32 *first)
{
	u64 step = cycle_ns / plan->nr, last = to / step, n = last - from / step;

	if (n > plan->nr)
		n = plan->nr;
	*first = (last - n + 1) % plan->nr;
	return n;
}

/*
 * @rmid ran at some time after @since on the CPU that ticks. Runs are not lost
 * if the RMID is being read: the mark is set after the run, and taken back
 * before the counters are read.
 */
void mw_rdt_plan_ran(struct mw_rdt_plan *plan, u32 rmid, u64 since)
{
	u64 old;

	if (rmid >= plan->nr)
		return;
	since |= !since;
	old = __atomic_load_n(&plan->ran_ns[rmid], __ATOMIC_RELAXED);
	while ((!old || since < old) &&
	       !__atomic_compare_exchange_n(&plan->ran_ns[rmid], &old, since, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
	plan_set_mark(plan, MARK_TODO, rmid);
}

/* For the CPU that has taken @rmid, before it reads. The next reading begins a new time. */
u64 mw_rdt_plan_ran_since(struct mw_rdt_plan *plan, u32 rmid)
{
	if (!__atomic_load_n(&plan->ran_ns[rmid], __ATOMIC_RELAXED))
		return 0;
	return __atomic_exchange_n(&plan->ran_ns[rmid], 0, __ATOMIC_SEQ_CST);
}

void mw_rdt_plan_add(struct mw_rdt_plan *plan, u32 rmid)
{
	plan_set_mark(plan, MARK_TODO, rmid);
}

/*
 * Take one RMID of a word, of those that @mask selects: one in the queue. @stale: one
 * that was not reported as stale; it stays in the queue.
 */
static bool plan_take_from(struct mw_rdt_word *word, bool stale, u64 mask, u32 *bit)
{
	u64 old = plan_load(word), new, found;

	/* Most words have nothing in the queue. */
	if (!plan_field(old, MARK_TODO))
		return false;
	do {
		found = plan_find_late(old) & ~plan_field(old, MARK_TAKEN) & mask;
		if (stale)
			found &= ~plan_field(old, MARK_STALE);
		if (!found)
			return false;
		*bit = __builtin_ctzll(found);
		new = old | plan_mark(MARK_TAKEN, *bit);
		if (stale)
			new |= plan_mark(MARK_STALE, *bit);
		else
			new &= ~plan_mark(MARK_TODO, *bit);
	} while (!__atomic_compare_exchange_n(&word->marks, &old, new, false, __ATOMIC_SEQ_CST,
					      __ATOMIC_RELAXED));
	return true;
}

/* Take the first such RMID at or after @from, cyclically. */
static bool plan_take_next(struct mw_rdt_plan *plan, bool stale, u32 from, u32 *rmid)
{
	u32 at = from / MW_RDT_GROUP, i;
	u64 busy = plan_load_busy(plan), after = busy & ~0ULL << at, mask;
	u64 before = busy & ~(~0ULL << at << 1);

	/* The word of @from is searched twice: first from there on, and last from its start. */
	while (after || before) {
		mask = FIELD_MASK;
		if (after >> at & 1)
			mask <<= from % MW_RDT_GROUP;
		i = plan_next_word(after ? &after : &before);
		if (plan_take_from(&plan->word[i], stale, mask, rmid)) {
			*rmid += i * MW_RDT_GROUP;
			return true;
		}
	}
	return false;
}

/*
 * Take the next RMID of the queue. A cursor, which only one CPU moves at a time, makes
 * sure that each RMID gets its turn.
 */
bool mw_rdt_plan_take(struct mw_rdt_plan *plan, u32 *cursor, u32 *rmid)
{
	if (!plan_take_next(plan, false, *cursor, rmid))
		return false;
	*cursor = *rmid + 1 < plan->nr ? *rmid + 1 : 0;
	return true;
}

/* Take an RMID that was not read in time and was not yet reported as stale. */
bool mw_rdt_plan_take_stale(struct mw_rdt_plan *plan, u32 cursor, u32 *rmid)
{
	return plan_take_next(plan, true, cursor, rmid);
}

/* Take @rmid, queued or not. Returns false if another CPU has it or has read it in this slot. */
bool mw_rdt_plan_take_one(struct mw_rdt_plan *plan, u32 rmid)
{
	struct mw_rdt_word *word = &plan->word[rmid / MW_RDT_GROUP];
	u64 taken = plan_mark(MARK_TAKEN, rmid), todo = plan_mark(MARK_TODO, rmid);
	u64 old = plan_load(word);

	do {
		if (old & (taken | plan_mark(MARK_READ, rmid)))
			return false;
	} while (!__atomic_compare_exchange_n(&word->marks, &old, (old & ~todo) | taken, false,
					      __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
	return true;
}

/* Take @rmid even if it was read in this slot. Returns false if another CPU has it. */
bool mw_rdt_plan_take_always(struct mw_rdt_plan *plan, u32 rmid)
{
	u64 taken = plan_mark(MARK_TAKEN, rmid);

	return !(
		__atomic_fetch_or(&plan->word[rmid / MW_RDT_GROUP].marks, taken, __ATOMIC_SEQ_CST) &
		taken);
}

void mw_rdt_plan_release(struct mw_rdt_plan *plan, u32 rmid, bool was_read)
{
	struct mw_rdt_word *word = &plan->word[rmid / MW_RDT_GROUP];
	u64 taken = plan_mark(MARK_TAKEN, rmid);

	plan_change(word, taken, was_read ? plan_mark(MARK_READ, rmid) : 0);
	plan_set_busy(plan, rmid / MW_RDT_GROUP);
}

/**
 * mw_rdt_plan_elect - shall this CPU read for all CPUs of its domain?
 * @plan: plan of the domain
 * @slot_ns: when the tick was due
 * @period_ns: period of the ticks
 * @cpus: number of CPUs of the domain
 * @rest_ns: until when this CPU leaves reading to the others; 0 at first
 *
 * Where the CPUs of a domain cannot read at the same time, one of them reads in each
 * slot. It then rests until each of the others may have had its turn. If nobody
 * read in the slot before, some CPUs do not tick, and the others rest less.
 */
bool mw_rdt_plan_elect(struct mw_rdt_plan *plan, u64 slot_ns, u64 period_ns, u32 cpus, u64 *rest_ns)
{
	u64 last = __atomic_load_n(&plan->reader_ns, __ATOMIC_RELAXED);

	if (slot_ns <= last || (slot_ns < *rest_ns && slot_ns <= last + period_ns))
		return false;
	if (!__atomic_compare_exchange_n(&plan->reader_ns, &last, slot_ns, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_RELAXED))
		return false;
	*rest_ns = slot_ns + cpus * period_ns;
	return true;
}

/* Has every RMID that ran been read? */
bool mw_rdt_plan_done(const struct mw_rdt_plan *plan)
{
	u64 busy = plan_load_busy(plan);

	while (busy)
		if (plan_field(plan_load(&plan->word[plan_next_word(&busy)]), MARK_TODO))
			return false;
	return true;
}

/**
 * mw_rdt_plan_share - how many RMIDs a CPU may read in a tick
 * @nr: number of RMIDs
 * @budget: register operations per tick and CPU
 * @cost: register operations per RMID
 * @period_ns: period of the ticks
 *
 * Return: as many as the budget allows, and at least one; with long periods more, so
 * that one CPU alone can read all RMIDs in what the rotation leaves of a second; at most
 * all of them
 */
u32 mw_rdt_plan_share(u32 nr, u32 budget, u32 cost, u64 period_ns)
{
	u32 least = (nr * period_ns + REST_NS - 1) / REST_NS;
	u32 share = cost ? budget / cost : 0;

	if (share < least)
		share = least;
	if (share > nr)
		share = nr;
	return share ? share : 1;
}
