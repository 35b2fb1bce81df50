/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Slots: time in equal parts, and in each part who did what.
 *
 * A measurement covers an interval. Where that crosses slot boundaries, it is
 * split in proportion to time, in integers, so that the parts add up to the
 * whole exactly. Bandwidth counters, which run from the allocation on, become
 * differences between two readings, split the same way; occupancy is a level,
 * and a slot has the last reading in it.
 *
 * A slot closes when the stream has moved @window slots beyond its end. What
 * comes for a closed slot is not lost and not put elsewhere: it appears in a
 * slot flagged MEMWATCH_SLOT_LATE. So over everything memwatch_slots_next()
 * gives, each sum equals the sum over the records that were fed.
 */
#ifndef MEMWATCH_SLOTS_H
#define MEMWATCH_SLOTS_H

#include <stddef.h>

#include <linux/memwatch.h>
#include <memwatch/ctx.h>
#include <memwatch/tracker.h>
#include <memwatch/value.h>

#ifdef __cplusplus
extern "C" {
#endif

struct memwatch_slots;

#define MEMWATCH_SLOTS_PER_CPU	(1U << 0) /* one entry for each CPU, not for all together */
#define MEMWATCH_SLOTS_ESTIMATE (1U << 1) /* bandwidth from LLC misses, where RDT has none */

/* Bytes that an LLC miss moves: a cache line. */
#define MEMWATCH_LINE_BYTES	     64

#define MEMWATCH_SLOT_DEFAULT_NS     1000000ULL
#define MEMWATCH_SLOT_WINDOW_DEFAULT 32

/* memwatch_slot_entry.cpu if it is not for one CPU */
#define MEMWATCH_CPU_ANY 0xffffffffU

/**
 * struct memwatch_slots_opts - options of memwatch_slots_new()
 * @sz: sizeof(struct memwatch_slots_opts)
 * @flags: MEMWATCH_SLOTS_*
 * @window: slots that stay open behind the newest; default 32, so that readings
 *	ten ticks apart are split among open slots; at most 4096
 * @slot_ns: length of a slot, default 1 ms, at least 1 us. Slots start at
 *	multiples of it.
 */
struct memwatch_slots_opts {
	size_t sz;
	__u32 flags;
	__u32 window;
	__u64 slot_ns;
};

/**
 * memwatch_slots_new - create an aggregator
 * @ctx: context
 * @tracker: where identities come from; a reference is taken. NULL: it makes
 *	its own.
 * @opts: options or NULL
 * @ret: the aggregator; caller frees with memwatch_slots_unref()
 *
 * Returns: 0, -EINVAL, -ENOMEM, -E2BIG.
 * Since: 0.1
 */
int memwatch_slots_new(struct memwatch_ctx *ctx, struct memwatch_tracker *tracker,
		       const struct memwatch_slots_opts *opts, struct memwatch_slots **ret);

/**
 * memwatch_slots_unref - free
 * @slots: aggregator or NULL
 *
 * Returns: NULL.
 * Since: 0.1
 */
struct memwatch_slots *memwatch_slots_unref(struct memwatch_slots *slots);

/**
 * memwatch_slots_tracker - the tracker in use
 * @slots: aggregator
 *
 * It is at the time of the slot that memwatch_slots_next() gave last.
 *
 * Returns: owned by @slots; take a reference to keep it.
 * Since: 0.1
 */
struct memwatch_tracker *memwatch_slots_tracker(struct memwatch_slots *slots);

/**
 * memwatch_slots_feed - take one record
 * @slots: aggregator
 * @record: in stream order; passed on to the tracker, so do not do that too
 *
 * Ends the validity of the last slot given.
 *
 * Returns: number of slots that wait for memwatch_slots_next(); take them, at
 * 1024 it returns -ENOBUFS and has not taken the record. -EINVAL, the record
 * makes no sense: counted, ignored. -ENOMEM.
 * Since: 0.1
 */
int memwatch_slots_feed(struct memwatch_slots *slots, const struct memwatch_record_header *record);

/**
 * memwatch_slots_finish - close all slots
 * @slots: aggregator
 *
 * After the last record. Feeding may go on later; what is then too old is late.
 *
 * Returns: number of slots that wait for memwatch_slots_next(), or -ENOMEM.
 * Since: 0.1
 */
int memwatch_slots_finish(struct memwatch_slots *slots);

/**
 * struct memwatch_slot_entry - what one RMID did in one slot
 * @rmid: RMID; 0 is everything unassigned
 * @generation: its generation
 * @cpu: CPU, or MEMWATCH_CPU_ANY; RDT values are never for one CPU
 * @samples: parts of samples in it
 * @process: whose RMID it is; NULL for RMID 0 and if nothing said so. Valid as
 *	long as the slot.
 * @run_ns: CPU time in the slot
 * @counter: increments, indexed by &enum memwatch_counter
 * @rdt: indexed by &enum memwatch_rdt_event: occupancy, the last reading of
 *	each L3 domain, added up; traffic in this slot. With
 *	MEMWATCH_SLOTS_ESTIMATE, total traffic of an entry without a reading is
 *	its LLC misses times MEMWATCH_LINE_BYTES, and ESTIMATED: what the hardware
 *	fetches or writes back without a miss of this process is not in it.
 * @residue: bytes that earlier owners of the RMID had left in the cache when it
 *	was given to this one; in one slot of each generation whose beginning was
 *	seen. No part of the occupancy: it goes as others need the room.
 */
struct memwatch_slot_entry {
	__u32 rmid;
	__u32 generation;
	__u32 cpu;
	__u32 samples;
	const struct memwatch_process *process;
	__u64 run_ns;
	struct memwatch_value counter[MEMWATCH_COUNTER_MAX];
	struct memwatch_value rdt[MEMWATCH_RDT_MAX];
	struct memwatch_value residue;
};

#define MEMWATCH_SLOT_LATE (1U << 0) /* came after its slot was closed */

/**
 * struct memwatch_slot - a closed slot
 * @begin_ns: first nanosecond
 * @end_ns: first nanosecond after it. For a LATE one: the bounds of what is in
 *	it, which may span several slots.
 * @flags: MEMWATCH_SLOT_*
 * @nr_entries: how many; a slot in which nothing ran is not given
 * @entries: sorted by rmid, generation, cpu
 * @lost: records known to be lost, whose gap ends in this slot
 */
struct memwatch_slot {
	__u64 begin_ns;
	__u64 end_ns;
	__u32 flags;
	__u32 nr_entries;
	const struct memwatch_slot_entry *entries;
	__u64 lost;
};

/**
 * memwatch_slots_next - take the next closed slot
 * @slots: aggregator
 * @ret: the slot, in order of time but for LATE ones; valid until the next
 *	call with this aggregator
 *
 * Returns: 1; 0, none is closed; a negative errno.
 * Since: 0.1
 */
int memwatch_slots_next(struct memwatch_slots *slots, const struct memwatch_slot **ret);

/**
 * struct memwatch_slots_stats - counts
 * @sz: in: sizeof(struct memwatch_slots_stats)
 * @samples: SAMPLE records taken
 * @late: records of which at least a part came for a closed slot
 * @late_run_ns: how much CPU time that was
 * @split: samples that spanned slots
 * @slots: closed and given out or waiting, without LATE ones
 * @unknown: entries of an RMID other than 0 that no assignment is known for
 * @invalid: records that made no sense
 * @lost: sum of MEMWATCH_RECORD_LOST counts
 */
struct memwatch_slots_stats {
	size_t sz;
	__u64 samples;
	__u64 late;
	__u64 late_run_ns;
	__u64 split;
	__u64 slots;
	__u64 unknown;
	__u64 invalid;
	__u64 lost;
};

/**
 * memwatch_slots_stats - counts
 * @slots: aggregator
 * @ret: filled in up to ret->sz
 *
 * Returns: 0 or -EINVAL.
 * Since: 0.1
 */
int memwatch_slots_stats(const struct memwatch_slots *slots, struct memwatch_slots_stats *ret);

#ifdef __cplusplus
}
#endif

#endif /* MEMWATCH_SLOTS_H */
