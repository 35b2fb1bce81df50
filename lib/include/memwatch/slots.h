/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Slots: time is cut into slots of equal length, and the measurements of each slot are added
 * up for each RMID.
 *
 * A measurement covers an interval. If the interval spans several slots, the measurement is
 * split in proportion to time. The parts are integers and add up to the whole exactly.
 * Bandwidth counters run from the allocation on, so the difference of two readings is split in
 * the same way. Occupancy is a level: a slot has the last reading in it, and a summary weights it
 * by time.
 *
 * A slot is closed when the stream has moved @window slots beyond its end. A measurement that
 * comes for a closed slot is delivered in a slot with the flag MEMWATCH_SLOT_LATE. So the sum
 * over all slots of memwatch_slots_next() equals the sum over the records that were fed.
 *
 * Where records were lost, entries may be missing, and what the others say is a lower bound: a
 * slot that overlaps a loss has the flag MEMWATCH_SLOT_LOSSY, and in its entries, or in those of
 * the CPU that lost the records, values with the status OK become ESTIMATED. A process of which
 * all was lost in a slot has no entry there; memwatch_slot_loss_at() says when that may be so.
 * A sample for which there was no room is not lost, but goes on until there is: its sum is right,
 * and what each of its slots gets of it is ESTIMATED.
 *
 * A record costs at most @window + 4 entries, whatever its times are. Memory is bounded by
 * @entries_max.
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

#define MEMWATCH_SLOTS_PER_CPU	(1U << 0) /* one entry for each CPU instead of one for all */
#define MEMWATCH_SLOTS_ESTIMATE (1U << 1) /* estimate bandwidth from LLC misses; not beside RDT */

/* Bytes that a miss of the last-level cache moves: one cache line. */
#define MEMWATCH_LINE_BYTES	     64

#define MEMWATCH_SLOT_DEFAULT_NS     1000000ULL
#define MEMWATCH_SLOT_WINDOW_DEFAULT 32

/*
 * memwatch_slot_entry.rmid of the entry, with generation 0, for all measurements that found no
 * place of their own because there were entries_max
 */
#define MEMWATCH_RMID_OTHER 0xffffffffU

/* memwatch_slot_entry.cpu of an entry for all CPUs */
#define MEMWATCH_CPU_ANY 0xffffffffU

/**
 * struct memwatch_slots_opts - options of memwatch_slots_new()
 * @sz: sizeof(struct memwatch_slots_opts)
 * @flags: MEMWATCH_SLOTS_*
 * @window: how many slots before the newest stay open; default 32, so that the difference of
 *	two RDT readings ten ticks apart still finds its slots open; at most 4096
 * @slot_ns: length of a slot, default 1 ms, at least 1 us. Slots start at
 *	multiples of it.
 * @entries_max: how many entries all slots that are open or wait for memwatch_slots_next()
 *	may have together; measurements that would need more are added to an entry of
 *	MEMWATCH_RMID_OTHER, one in each slot. An entry needs some 250 bytes. Default 262144.
 * @reserved: 0
 * @from_ns: begin of the range of which a summary is made; default 0
 * @to_ns: its end; default: none. What comes late is in one slot, or in one for the time before
 *	the range, one for the range, and one for the time behind it, so that the summary is exact.
 */
struct memwatch_slots_opts {
	size_t sz;
	__u32 flags;
	__u32 window;
	__u64 slot_ns;
	__u32 entries_max;
	__u32 reserved;
	__u64 from_ns;
	__u64 to_ns;
};

/**
 * memwatch_slots_new - create an aggregator
 * @ctx: context
 * @tracker: the tracker that knows the processes; a reference is taken. NULL: the
 *	aggregator makes its own.
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
 * It has been advanced to the end of the slot that memwatch_slots_next() gave last, and has
 * forgotten assignments that were freed more than 60 s before that slot.
 *
 * Returns: owned by @slots; take a reference to keep it.
 * Since: 0.1
 */
struct memwatch_tracker *memwatch_slots_tracker(struct memwatch_slots *slots);

/**
 * memwatch_slots_feed - take one record
 * @slots: aggregator
 * @record: the next record of the stream; it is passed on to the tracker, so the caller
 *	must not feed it to the tracker again
 *
 * The slot that memwatch_slots_next() gave last is not valid after this call.
 *
 * Returns: the number of slots that wait for memwatch_slots_next(); -ENOBUFS, 1024 slots wait
 * and the record was not taken; -EINVAL, the record is invalid: it is counted and otherwise
 * ignored; -ENOMEM.
 * Since: 0.1
 */
int memwatch_slots_feed(struct memwatch_slots *slots, const struct memwatch_record_header *record);

/**
 * memwatch_slots_finish - close all slots
 * @slots: aggregator
 *
 * To be called after the last record. More records may be fed later; those for closed slots
 * are late.
 *
 * Returns: number of slots that wait for memwatch_slots_next(), or -ENOMEM.
 * Since: 0.1
 */
int memwatch_slots_finish(struct memwatch_slots *slots);

/**
 * struct memwatch_slot_entry - what one RMID did in one slot; from memwatch_slot_entry_at()
 * @rmid: RMID; 0 with generation 0 is everything unassigned, MEMWATCH_RMID_OTHER what found no
 *	place. Without the module, every process has RMID 0 with a generation of its own.
 * @generation: its generation
 * @cpu: CPU, or MEMWATCH_CPU_ANY; RDT values are never for one CPU, only what is estimated
 * @samples: how many samples, or parts of samples, were added
 * @process: the process that has the RMID; NULL for RMID 0, generation 0, and if no record has
 *	named it. Valid as long as the slot.
 * @cpu_time_ns: CPU time in the slot
 * @residue: residual occupancy: bytes that earlier owners of the RMID still occupied in the
 *	cache when it was allocated. It is in one slot of each generation whose allocation
 *	was seen, and is not a part of the occupancy.
 *
 * Only the library makes entries. memwatch_slot_counter_at() and memwatch_slot_rdt_at() give the
 * other values. An RMID that was freed in the slot may have an entry without any value.
 */
struct memwatch_slot_entry {
	__u32 rmid;
	__u32 generation;
	__u32 cpu;
	__u32 samples;
	const struct memwatch_process *process;
	struct memwatch_value cpu_time_ns;
	struct memwatch_value residue;
};

/**
 * memwatch_slot_counter_at - increment of a hardware counter in a slot
 * @entry: entry
 * @counter: &enum memwatch_counter
 *
 * Returns: valid as long as the slot; NULL: the library knows no such counter.
 * Since: 0.1
 */
const struct memwatch_value *memwatch_slot_counter_at(const struct memwatch_slot_entry *entry,
						      unsigned int counter);

/**
 * memwatch_slot_rdt_at - what RDT has measured in a slot
 * @entry: entry
 * @event: &enum memwatch_rdt_event: the occupancy is the sum of the last readings of all L3
 *	domains; the bandwidths are bytes moved in this slot. With MEMWATCH_SLOTS_ESTIMATE, the
 *	total bandwidth of an entry without a reading is its LLC misses times MEMWATCH_LINE_BYTES
 *	with the status ESTIMATED; prefetches and write-backs are missing in it.
 *
 * Returns: valid as long as the slot; NULL: the library knows no such event.
 * Since: 0.1
 */
const struct memwatch_value *memwatch_slot_rdt_at(const struct memwatch_slot_entry *entry,
						  unsigned int event);

#define MEMWATCH_SLOT_LATE  (1U << 0) /* measurements that came after their slots were closed */
#define MEMWATCH_SLOT_LOSSY (1U << 1) /* records of the time of this slot were lost */

/**
 * struct memwatch_loss - an interval in which records were lost; from memwatch_slot_loss_at()
 * @cpu: the CPU that lost them; MEMWATCH_CPU_ANY if several losses had to be put together
 * @reserved: 0
 * @begin_ns: what the CPU measured before is complete
 * @end_ns: first time known to be after the loss
 */
struct memwatch_loss {
	__u32 cpu;
	__u32 reserved;
	__u64 begin_ns;
	__u64 end_ns;
};

/**
 * struct memwatch_slot - a closed slot; only the library makes slots
 * @begin_ns: first nanosecond
 * @end_ns: first nanosecond after it. A late slot begins with its earliest part and ends
 *	with its last one, so it may span several slots.
 * @flags: MEMWATCH_SLOT_*
 * @nr_entries: number of entries; slots without entries and losses are not delivered
 * @lost: number of records in losses that begin in this slot
 * @nr_losses: number of losses that begin in this slot; each loss is in one slot, also if it goes
 *	on in later ones. In a late slot they may begin anywhere: slots that were given before
 *	overlap them.
 * @reserved: 0
 */
struct memwatch_slot {
	__u64 begin_ns;
	__u64 end_ns;
	__u32 flags;
	__u32 nr_entries;
	__u64 lost;
	__u32 nr_losses;
	__u32 reserved;
};

/**
 * memwatch_slot_entry_at - an entry of a slot
 * @slot: slot
 * @index: counted from 0; entries are sorted by rmid, generation, cpu
 *
 * Returns: valid as long as the slot; NULL past the last entry.
 * Since: 0.1
 */
const struct memwatch_slot_entry *memwatch_slot_entry_at(const struct memwatch_slot *slot,
							 unsigned int index);

/**
 * memwatch_slot_loss_at - a loss that begins in a slot
 * @slot: slot
 * @index: counted from 0
 *
 * Returns: valid as long as the slot; NULL past the last loss.
 * Since: 0.1
 */
const struct memwatch_loss *memwatch_slot_loss_at(const struct memwatch_slot *slot,
						  unsigned int index);

/**
 * memwatch_slots_next - take the next closed slot
 * @slots: aggregator
 * @ret: the slot; slots come in order of time except for late ones; valid until the next
 *	call with this aggregator
 *
 * Returns: 1; 0, none is closed; a negative errno.
 * Since: 0.1
 */
int memwatch_slots_next(struct memwatch_slots *slots, const struct memwatch_slot **ret);

/**
 * struct memwatch_slots_stats - statistics of an aggregator
 * @sz: in: sizeof(struct memwatch_slots_stats)
 * @samples: SAMPLE records taken
 * @late: records of which at least a part came for a closed slot
 * @late_run_ns: CPU time in these parts
 * @split: samples that spanned several slots
 * @slots: slots that were closed, without late ones
 * @unknown: entries without a known assignment, other than RMID 0 with generation 0
 * @invalid: invalid records
 * @lost: sum of the counts of all LOST records
 * @other: how many parts of measurements were added to an entry of MEMWATCH_RMID_OTHER
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
	__u64 other;
};

/**
 * memwatch_slots_get_stats - read the statistics
 * @slots: aggregator
 * @ret: filled in up to ret->sz
 *
 * Returns: 0 or -EINVAL.
 * Since: 0.1
 */
int memwatch_slots_get_stats(const struct memwatch_slots *slots, struct memwatch_slots_stats *ret);

#ifdef __cplusplus
}
#endif

#endif /* MEMWATCH_SLOTS_H */
