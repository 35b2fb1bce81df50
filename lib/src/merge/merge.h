/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The merge: many rings in, one stream in time order out. The promises are in
 * <memwatch/stream.h>; this is how they are kept.
 *
 * It works in rounds, and with frames: what a CPU sent at once, as the samples
 * of a tick and the tick, all with one time. A round looks at the start of some
 * new frames of each ring (what it keeps is 16 bytes a frame), computes the
 * watermark, takes the frames that are older, sorts these, and hands them out as
 * runs of records, where they lie: there is no allocation per record and no copy,
 * but of a frame that wraps or whose records have to be flagged. The rings are
 * memory that no cache knows. They are read one after the other, a piece of each,
 * which is what memory is good at; and a round is so small that a cache still has
 * the pieces when their records are handed out in order of time.
 *
 * The frontier of a ring is the time up to which it is complete:
 *
 *	newest - grace			while it has something unread
 *	max(newest, read_at) - grace	empty, and its CPU said it is away
 *	max(newest - grace,		empty, and its CPU said nothing;
 *	    read_at - silent)		the second term is a guess: FORCED
 *
 * read_at is taken BEFORE the heads are loaded: that a ring is empty proves
 * nothing about what was written while we looked. A detached ring that is
 * empty has no frontier. The watermark is the smallest frontier, and only
 * records strictly older are taken: one with an equal time may still come.
 *
 * Bounds: pending frames MW_MERGE_PENDING_MAX a ring; one batch of at most all of
 * them; a copy of one frame. A ring that reaches a bound stops waiting for the
 * others.
 */
#ifndef MW_MERGE_H
#define MW_MERGE_H

#include "merge/ring.h"

#include <memwatch/stream.h>

struct mw_merge;

#define MW_MERGE_PENDING_MAX 8192
#define MW_MERGE_RINGS_MAX   65535

/* A record from so far in the future is malformed; no clock steps like that. */
#define MW_MERGE_FUTURE_NS 10000000000ULL

/**
 * struct mw_merge_opts - options
 * @grace_ns: as given; 0 is 0 here
 * @silent_ns: as given; must be larger than @grace_ns to make sense
 * @quantum: bytes of a ring looked at in a round, to the end of a frame; 0: chosen
 *	by number of rings
 */
struct mw_merge_opts {
	uint64_t grace_ns;
	uint64_t silent_ns;
	uint32_t quantum;
};

int mw_merge_new(const struct mw_merge_opts *opts, struct mw_merge **ret);
struct mw_merge *mw_merge_free(struct mw_merge *merge);

/*
 * Adds a ring, at any time. @ring is copied; what it points to must stay until
 * mw_merge_ring_drained() or mw_merge_free(). Among equal times the ring of
 * the smaller @cpu comes first, whatever the order of adding. Returns its
 * index >= 0, or -ENOMEM, -ENOSPC.
 */
int mw_merge_ring_add(struct mw_merge *merge, uint32_t cpu, const struct mw_ring *ring);

/* The writer is gone: what is left in the ring is delivered, nothing waits for it. */
void mw_merge_ring_detach(struct mw_merge *merge, unsigned int index);

/* A detached ring of which nothing is used any more: it may be unmapped. */
bool mw_merge_ring_drained(const struct mw_merge *merge, unsigned int index);

/*
 * @count records of this ring were lost that the kernel did not tell about: it
 * does so with the next record only, and after the last one there is none; and
 * not at all of what found no ring. They are placed behind what is in the ring
 * now, so nobody may be writing into it.
 */
void mw_merge_lost_add(struct mw_merge *merge, unsigned int index, uint64_t count);

/*
 * struct mw_merge_run - records that were sent at once
 * @at: the next one
 * @left: records, @at included
 * @ahead: from here to a run that comes some runs later, in bytes: with each
 *	record of this one a line of that one is asked for, since all at once is
 *	more than a CPU can ask for
 * @unseen: from here to what the next round looks at; asked for in the same way
 *
 * They are of one CPU and one time and lie one behind the other, in a ring as a
 * rule: valid until the next call of mw_merge_next_run() or mw_merge_round().
 */
struct mw_merge_run {
	const struct memwatch_record_header *at;
	uint32_t left;
	ptrdiff_t ahead;
	ptrdiff_t unseen;
};

/* There must be one. */
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
 * The next run of the batch: 1 and @ret, at least one record; 0: the batch is at
 * its end, mw_merge_round() for more.
 */
int mw_merge_next_run(struct mw_merge *merge, struct mw_merge_run *ret);

/*
 * Record by record: 1 and @ret, valid until the next call here or of
 * mw_merge_round(); 0 as above. Use the one or the other.
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
 * Prepares the next batch; the last one must be at its end. @now_ns is
 * CLOCK_MONOTONIC, read immediately before this call; MW_TIME_MAX if there is
 * no clock (then an empty ring waits for nobody and nobody for it). Returns 1,
 * there is a batch; 0, nothing may be delivered yet; -ENOMEM.
 *
 * So a consumer is
 *
 *	while (!mw_merge_next(m, &record)) {
 *		err = mw_merge_round(m, mw_clock(CLOCK_MONOTONIC));
 *		if (err <= 0)
 *			return err ? err : -EAGAIN;
 *	}
 */
int mw_merge_round(struct mw_merge *merge, uint64_t now_ns);

/*
 * The writers are gone, all of them: from now on rounds deliver everything that
 * is left, waiting for nothing, and 0 from mw_merge_round() is the end.
 * @now_ns closes the gap of losses that no record follows.
 */
void mw_merge_finish(struct mw_merge *merge, uint64_t now_ns);

/* The time at which a round may deliver more although no ring changes; MW_TIME_MAX: never. */
uint64_t mw_merge_deadline(const struct mw_merge *merge);

/* Fills in all but @produced if no tick said so. */
void mw_merge_stats(const struct mw_merge *merge, struct memwatch_stream_stats *ret);

/* 1, or 0 if @index is past the last. */
int mw_merge_cpu_stats(const struct mw_merge *merge, unsigned int index,
		       struct memwatch_stream_cpu_stats *ret);

#endif /* MW_MERGE_H */
