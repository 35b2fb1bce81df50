/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The state of a merge, shared by merge.c (rings and rounds), scan.c (new frames),
 * watermark.c, out.c (delivery) and stats.c.
 */
#ifndef MW_MERGE_STATE_H
#define MW_MERGE_STATE_H

#include "merge/merge.h"
#include "merge/sort.h"

/* Gaps per ring that are pending at a time; further losses are added to a later gap. */
#define MW_GAPS_MAX 64

/* The length of a frame is a 16-bit multiple of 8. */
#define MW_FRAME_BYTES_MAX 65528

/* How many frames before its delivery a frame is prefetched. */
#define MW_FRAMES_AHEAD 6

/* A loss between two records of one ring. An open one ends at @end_ns at the earliest. */
struct mw_gap {
	uint64_t begin_ns;
	uint64_t end_ns;
	uint64_t count;
};

/**
 * struct mw_source - a ring of the merge
 * @ring: copy of the caller's structure
 * @pending: frames that were scanned and not delivered yet, in order of arrival
 * @nr_pending: number of pending entries
 * @max_pending: capacity of @pending
 * @in_order: the times in @pending do not decrease
 * @away: the CPU announced that it is offline, idle or stopped
 * @detached: the ring has no writer any more
 * @tail_stale: @tail has to be computed again
 * @cpu: number of the CPU
 * @state: last &enum memwatch_cpu_state that was seen
 * @scanned: position up to which frames were scanned
 * @limit: the writer's position when it was last loaded
 * @tail: position up to which nothing is in use any more
 * @released: the reader's position as last stored for the writer
 * @model: start of a frame that mw_ring_parse_plain() accepted; of size 0: none
 * @newest_ns: largest time that was scanned
 * @complete_ns: everything that the CPU measured before this time has been scanned or lost
 * @open: a loss after which no record has been scanned yet
 * @reported: records that mw_merge_lost_add() reported as lost
 * @reported_at: position behind which these were lost
 * @reported_ns: time before which they were lost
 * @gaps: MW_GAPS_MAX losses that are pending; NULL before the first loss
 * @gaps_used: bit mask of the used elements of @gaps
 * @late: records that were delivered late
 * @lost: lost records
 * @malformed: invalid records and frames
 */
struct mw_source {
	struct mw_ring ring;
	struct mw_merge_entry *pending;
	uint32_t nr_pending;
	uint32_t max_pending;
	bool in_order;
	bool away;
	bool detached;
	bool tail_stale;
	uint32_t cpu;
	uint32_t state;
	uint64_t scanned;
	uint64_t limit;
	uint64_t tail;
	uint64_t released;
	struct mw_frame_start model;
	uint64_t newest_ns;
	uint64_t complete_ns;
	struct mw_gap open;
	uint64_t reported;
	uint64_t reported_at;
	uint64_t reported_ns;
	struct mw_gap *gaps;
	uint64_t gaps_used;
	uint64_t late;
	uint64_t lost;
	uint64_t malformed;
};

/*
 * The part of a source that delivery uses. It is apart from struct mw_source to need
 * fewer cache lines, because consecutive ready frames come from different sources.
 */
struct mw_output {
	const uint8_t *data;
	uint64_t size;
	uint64_t delivered;
	uint64_t produced;
};

/*
 * What the frames of ticks have in common on all CPUs: any number of samples of one
 * size, perhaps an RDT record, then the tick. Learned from a frame whose records were all valid;
 * the sizes are 0 before that. @first and @last are the second words of the headers with the CPU
 * masked out.
 */
struct mw_shape {
	uint64_t first; /* of all records but the last one */
	uint64_t last;
	uint32_t first_size;
	uint32_t last_size;
};

/**
 * struct mw_merge - a merge
 * @run: the run that mw_merge_next() reads; must be the first member
 * @opts: options
 * @sources: the rings
 * @outputs: the parts of the rings that delivery uses, same order as @sources
 * @by_cpu: indices of @sources, sorted by CPU
 * @nr_sources: number of rings
 * @max_sources: capacity of the three arrays
 * @ready: frames to be delivered in this round, sorted by time
 * @scratch: memory for the sort, same capacity as @ready
 * @ready_at: index of the next entry to deliver
 * @ready_count: number of entries in @ready
 * @ready_max: capacity of @ready
 * @natural_ns: records of this round from this time on are FORCED
 * @read_at_ns: time of the round
 * @future_ns: records from this time on are malformed
 * @delivered_ns: largest time that was delivered
 * @first_ns: time of the record that was delivered first
 * @forced: records that were delivered with the flag FORCED
 * @finish_ns: as given to mw_merge_finish()
 * @finishing: mw_merge_finish() was called
 * @shape: what the frames of ticks have in common
 * @quantum: bytes of each ring to scan in a round
 * @source: source of the run that was delivered last
 * @first: first record of that run
 * @produced: count of @source before that run
 * @record: buffer for a record of a loss
 * @frame: buffer for a frame that cannot be delivered in place
 */
struct mw_merge {
	struct mw_merge_run run;
	struct mw_merge_opts opts;
	struct mw_source *sources;
	struct mw_output *outputs;
	uint16_t *by_cpu;
	uint32_t nr_sources;
	uint32_t max_sources;

	struct mw_merge_entry *ready;
	struct mw_merge_entry *scratch;
	size_t ready_at;
	size_t ready_count;
	size_t ready_max;
	uint64_t natural_ns;

	uint64_t read_at_ns;
	uint64_t future_ns;
	uint64_t delivered_ns;
	uint64_t first_ns;
	uint64_t forced;
	uint64_t finish_ns;
	bool finishing;

	struct mw_shape shape;
	uint64_t quantum;

	uint32_t source;
	const struct memwatch_record_header *first;
	uint64_t produced;

	uint64_t record[sizeof(struct memwatch_record_lost) / 8];
	uint8_t frame[MW_FRAME_BYTES_MAX] __attribute__((aligned(64)));
};

/* Everything that is known to be in the ring has been scanned. */
static inline bool mw_source_is_empty(const struct mw_source *source)
{
	return source->scanned == source->limit;
}

/* No more frames can be pending. */
static inline bool mw_source_is_full(const struct mw_source *source)
{
	return source->nr_pending >= MW_MERGE_PENDING_MAX;
}

/* The ring is three quarters full. */
static inline bool mw_source_fills_up(const struct mw_source *source)
{
	return source->limit - source->tail >= source->ring.size / 4 * 3;
}

#endif /* MW_MERGE_STATE_H */
