/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The merge reads many rings and delivers one stream in time order. What it
 * guarantees is described in <memwatch/stream.h>; this is how it works.
 *
 * The merge works in rounds. Each round
 *
 *   1. scans the start of some new frames of each ring and keeps an entry of
 *	16 bytes for each of them; these frames are pending,
 *   2. computes the watermark,
 *   3. moves the pending frames that are older than the watermark to the list
 *	of ready frames and sorts this list by time,
 *   4. delivers the ready frames as runs of records, in place: nothing is
 *	allocated per record, and a frame is copied only if it wraps around the
 *	end of the ring or if its records need flags.
 *
 * The kernel has just written the rings on other CPUs, so they are not in this
 * CPU's cache. Scanning therefore reads each ring sequentially, and a round is
 * small enough that the frames are still in the cache when they are delivered.
 *
 * The frontier of a ring is the time up to which it is complete:
 *
 *	newest - grace			the ring has unread frames
 *	max(newest, read_at) - grace	the ring is empty and its CPU announced
 *					that it is offline, idle or stopped
 *	max(newest - grace,		the ring is empty without announcement;
 *	    read_at - silent)		records that only the second term
 *					releases are flagged FORCED
 *
 * read_at is taken before the heads are loaded, because a record may be written
 * between the two. A detached empty ring has no frontier. The watermark is the
 * smallest frontier. Only strictly older records are delivered, because another
 * record with a time equal to the watermark may still arrive.
 *
 * Memory: at most MW_MERGE_PENDING_MAX pending frames per ring, a list of ready
 * frames of at most all of them, and one copy of a frame. A ring that reaches its
 * limit no longer waits for the others.
 */
#ifndef MW_MERGE_MERGE_H
#define MW_MERGE_MERGE_H

#include "merge/ring.h"

#include <memwatch/stream.h>

struct mw_merge;

#define MW_MERGE_PENDING_MAX 8192
#define MW_MERGE_RINGS_MAX   65535

/* A record whose time is further in the future is malformed. */
#define MW_MERGE_FUTURE_NS 10000000000ULL

/**
 * struct mw_merge_opts - options
 * @grace_ns: see above; 0 means no grace, not the default
 * @silent_ns: see above; should be larger than @grace_ns
 * @quantum: bytes of each ring to scan in a round, rounded up to a whole frame;
 *	0: depends on the number of rings
 */
struct mw_merge_opts {
	uint64_t grace_ns;
	uint64_t silent_ns;
	uint32_t quantum;
};

int mw_merge_new(const struct mw_merge_opts *opts, struct mw_merge **ret);
struct mw_merge *mw_merge_free(struct mw_merge *merge);

/* Changes the option, from the next round on. */
void mw_merge_set_silent(struct mw_merge *merge, uint64_t silent_ns);

/*
 * Adds a ring, at any time. @ring is copied; the memory it points to must stay
 * valid until mw_merge_ring_drained() returns true or mw_merge_free(). Of records
 * with equal times, those of the smaller @cpu are delivered first. Returns the
 * index of the ring, or -ENOMEM, -ENOSPC.
 */
int mw_merge_ring_add(struct mw_merge *merge, uint32_t cpu, const struct mw_ring *ring);

/*
 * Adds a CPU whose ring cannot be opened yet: it delivers nothing and delays nothing. What it loses
 * from now on can be reported with mw_merge_lost_add(). Returns as mw_merge_ring_add().
 */
int mw_merge_cpu_add(struct mw_merge *merge, uint32_t cpu);

/* Gives such a CPU its ring, as mw_merge_ring_add(). */
void mw_merge_ring_attach(struct mw_merge *merge, unsigned int index, const struct mw_ring *ring);

/* The ring has no writer any more: deliver what is left in it, but do not wait for it. */
void mw_merge_ring_detach(struct mw_merge *merge, unsigned int index);

/* The ring is detached and nothing in it is in use: it may be unmapped. */
bool mw_merge_ring_drained(const struct mw_merge *merge, unsigned int index);

/*
 * Reports @count lost records that the kernel does not report itself. The kernel
 * reports a loss with the next record that fits, so losses after the last record
 * are missing, and so are records of a CPU that had no ring. The loss is placed
 * behind the present content of the ring; nobody may write to the ring meanwhile. It ends
 * with the next record of the ring, but not before @until_ns: what a CPU without a ring has
 * kept is older than what it has lost, and comes behind it.
 */
void mw_merge_lost_add(struct mw_merge *merge, unsigned int index, uint64_t count,
		       uint64_t until_ns);

/*
 * struct mw_merge_run - the records of one frame
 * @at: the next record
 * @left: number of records left, @at included
 * @ahead: distance in bytes to a run that is delivered some runs later. Each
 *	record that is read prefetches one cache line of that run: prefetching
 *	the whole run at once would exceed what a CPU can have in flight.
 * @unseen: distance in bytes to what the next round scans; prefetched likewise
 *
 * The records are of one CPU and one time and follow each other in memory, usually
 * in the ring. They are valid until the next call of mw_merge_next_run() or
 * mw_merge_round().
 */
struct mw_merge_run {
	const struct memwatch_record_header *at;
	uint32_t left;
	ptrdiff_t ahead;
	ptrdiff_t unseen;
};

/* The next record of a run; @run->left must not be 0. */
static inline const struct memwatch_record_header *mw_merge_run_next(struct mw_merge_run *run)
{
	const struct memwatch_record_header *header = run->at;

	__builtin_prefetch((const uint8_t *)header + run->ahead);
	__builtin_prefetch((const uint8_t *)header + run->unseen, 0, 2);
	run->at = (const struct memwatch_record_header *)((const uint8_t *)header + header->size);
	run->left--;
	return header;
}

/*
 * The next run of this round. Returns 1 and a run of at least one record in @ret,
 * or 0 at the end of the round: call mw_merge_round().
 */
int mw_merge_next_run(struct mw_merge *merge, struct mw_merge_run *ret);

/*
 * The next record of this round. Returns 1 and the record in @ret, valid until the
 * next call of this function or of mw_merge_round(); or 0 as mw_merge_next_run().
 * Do not mix the two on one merge.
 */
static inline int mw_merge_next(struct mw_merge *merge, const struct memwatch_record_header **ret)
{
	struct mw_merge_run *run = (struct mw_merge_run *)merge;

	if (!run->left && !mw_merge_next_run(merge, run))
		return 0;
	*ret = mw_merge_run_next(run);
	return 1;
}

/*
 * Runs a round; everything of the previous round must have been read. @now_ns is
 * CLOCK_MONOTONIC, read immediately before this call, or MW_TIME_MAX if there is
 * no clock: then an empty ring never delays the others. Returns 1 if there are
 * records to read, 0 if nothing may be delivered yet, or -ENOMEM.
 *
 * A consumer looks like this:
 *
 *	while (!mw_merge_next(m, &record)) {
 *		err = mw_merge_round(m, mw_clock(CLOCK_MONOTONIC));
 *		if (err <= 0)
 *			return err ? err : -EAGAIN;
 *	}
 */
int mw_merge_round(struct mw_merge *merge, uint64_t now_ns);

/*
 * There are no writers any more: from now on, rounds deliver everything that is
 * left without waiting, and mw_merge_round() returns 0 at the end. @now_ns becomes
 * the end of losses that no record follows.
 */
void mw_merge_finish(struct mw_merge *merge, uint64_t now_ns);

/* When a round may deliver more even if no ring changes; MW_TIME_MAX: never. */
uint64_t mw_merge_deadline(const struct mw_merge *merge);

/* Fills in @ret, which the caller has zeroed. @produced is what the delivered ticks say. */
void mw_merge_stats(const struct mw_merge *merge, struct memwatch_stream_stats *ret);

/* Returns 1, or 0 if @index is past the last ring. */
int mw_merge_cpu_stats(const struct mw_merge *merge, unsigned int index,
		       struct memwatch_stream_cpu_stats *ret);

#endif /* MW_MERGE_MERGE_H */
