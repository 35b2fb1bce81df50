/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * State and arithmetic of the relay, shared by the BPF programs, the library (which reads
 * the maps) and the unit test on the host. Therefore nothing here calls a BPF helper or
 * uses a type of the kernel.
 */
#ifndef _MW_RELAY_H
#define _MW_RELAY_H

#include <linux/types.h>
#include <linux/memwatch.h>

/*
 * MW_GLOBAL: the verifier checks a global function once, for any arguments, and not again
 * on each path that calls it.
 */
#ifdef __bpf__
#define MW_INLINE static __attribute__((always_inline)) inline
#define MW_GLOBAL __attribute__((noinline))
#else
#define MW_INLINE static inline
#define MW_GLOBAL static inline
#endif

/* When samples are sent. */
enum mw_relay_mode {
	MW_RELAY_SLOT = 0,   /* at the tick, one for each RMID that ran */
	MW_RELAY_SWITCH = 1, /* one at each context switch */
};

/*
 * How many samples a batch can have. When so many owners have run on a CPU between two ticks and
 * one more runs, all samples are sent before the tick. This bounds the time that a flush takes
 * with interrupts off.
 */
#define MW_RELAY_SAMPLES_MAX 32

/*
 * How many owners can have unsent sums: more than in a batch while the ring is full. When one
 * more runs, the sums are lost.
 */
#define MW_RELAY_BATCHES_MAX 16
#define MW_RELAY_TOUCHED_MAX (MW_RELAY_BATCHES_MAX * MW_RELAY_SAMPLES_MAX)

/*
 * Keys of the map "failures", which counts per CPU what went wrong. The stream shows each
 * failure as well: records that were not sent are in @dropped of struct mw_relay_cpu, and
 * a counter that was not read is in the status of the sample.
 */
enum mw_relay_failure {
	MW_RELAY_FAIL_OUTPUT_FULL = 0,	  /* the ring was full */
	MW_RELAY_FAIL_OUTPUT_NO_RING = 1, /* this CPU has no ring */
	MW_RELAY_FAIL_OUTPUT = 2,	  /* any other error of bpf_perf_event_output() */
	MW_RELAY_FAIL_RECORD_READ = 3,	  /* a record of the module is not readable */
	MW_RELAY_FAIL_RECORD_INVALID = 4, /* a record of the module has a wrong type or size */
	MW_RELAY_FAIL_OWNER = 5,	  /* the owner changed but no switch was seen */
	MW_RELAY_FAIL_RMID_RANGE = 6,	  /* RMID out of range: sent without accumulation */
	MW_RELAY_FAIL_CLOCK = 7,	  /* a time is before the previous one */
	MW_RELAY_FAIL_COUNTER_BACK = 8,	  /* a counter went backwards */
	MW_RELAY_FAIL_EARLY = 9,	  /* not a failure: samples were sent before the tick */
	MW_RELAY_FAIL_HELD = 10,     /* not a failure: batches waited until the CPU had a ring */
	MW_RELAY_FAIL_IDENTITY = 11, /* there was no room for a thread or a process */
	MW_RELAY_FAIL_READ = 12,     /* + enum memwatch_counter: it was not readable */
	MW_RELAY_FAIL_MAX = MW_RELAY_FAIL_READ + MEMWATCH_COUNTER_MAX,
};

/*
 * bpf_perf_event_read() returns an error as a count from here on.
 */
#define MW_RELAY_ERROR_FIRST ((__u64)-4095)

/*
 * How many batches of a CPU can wait until it has a ring, and their size. They cover the time
 * that the library needs to open a ring for a CPU that comes online: a batch for each tick.
 */
#define MW_RELAY_HELD_MAX   128
#define MW_RELAY_HELD_BYTES 560

/* A reading of a counter, or the difference of two, as struct bpf_perf_event_value. */
struct mw_relay_reading {
	__u64 counter;
	__u64 enabled;
	__u64 running;
};

/* What the counters gained while one owner ran without interruption. */
struct mw_relay_piece {
	struct mw_relay_reading delta[MEMWATCH_COUNTER_MAX];
	__u8 status[MEMWATCH_COUNTER_MAX];
	__u32 reserved;
};

/* The sum of the pieces of one owner since @begin_ns; unused while @used is 0. */
struct mw_relay_sum {
	__u64 owner;
	__u64 begin_ns;
	__u64 run_ns;
	struct mw_relay_piece piece;
	__u64 used;
};

/**
 * struct mw_relay_batch - the records that one call sends
 * @unsent: padding that aligns the rest; not sent
 * @records: how many records follow
 * @sample: the records, packed, all with the same time
 *
 * A batch contains samples, a tick, or samples and then a tick. Between samples and tick there
 * may be one RDT record. Both are shorter than a sample, and use the last elements. Every other
 * record is a batch of its own.
 *
 * perf writes 12 bytes before the data of a program and pads the whole to a multiple of
 * 8. Thus @records takes no additional space, and it aligns the records in the ring, so
 * that the library can read them in place.
 */
struct mw_relay_batch {
	__u32 unsent;
	__u32 records;
	struct memwatch_record_sample sample[MW_RELAY_SAMPLES_MAX + 2];
};

/**
 * struct mw_relay_held - a batch that waits until the CPU has a ring
 * @unsent: as in struct mw_relay_batch
 * @records: how many records follow
 * @bytes: the records
 * @size: their size
 */
struct mw_relay_held {
	__u32 unsent;
	__u32 records;
	__u8 bytes[MW_RELAY_HELD_BYTES];
	__u64 size;
};

/**
 * struct mw_relay_cpu - state of one CPU
 * @produced: records sent, including those that were dropped
 * @dropped: records that could not be sent
 * @owner: who runs now
 * @last_ns: time up to which everything has been charged, and time of @last
 * @begin_ns: start of the interval of sums that begin now
 * @last: the counters at @last_ns
 * @have: @last is valid, for each counter
 * @exact: read the times of the counters at each switch: a counter was not on the hardware all
 *	the time
 * @uneven: bit N: @slot of counter N applies to all samples of the slot
 * @active: the time of this CPU is charged
 * @touched_count: number of owners with an unsent sum
 * @held: number of batches that wait, see struct mw_relay_held
 * @held_records: number of records in them
 * @touched: the places of their sums
 * @rdt_waits: @rdt waits for the tick
 * @rdt: the last RDT record of a tick
 * @slot: the times of the counters between the last two readings that included them
 * @piece: scratch: what was read last
 * @alone: scratch: the sum of a sample that is not accumulated
 * @samples: scratch: the number of samples in @batch
 * @tick: scratch: the tick record
 * @batch: scratch: what is sent
 *
 * Only on_switch, on_tick and on_cpu_state write to it. They run with interrupts off on
 * that CPU and so never interrupt each other. @produced and @dropped are changed by the
 * other programs as well, with atomic instructions.
 *
 * Charging moves @last_ns and @last together, so no time is lost or counted twice.
 */
struct mw_relay_cpu {
	__u64 produced;
	__u64 dropped;
	__u64 owner;
	__u64 last_ns;
	__u64 begin_ns;
	struct mw_relay_reading last[MEMWATCH_COUNTER_MAX];
	__u8 have[MEMWATCH_COUNTER_MAX];
	__u32 active;
	__u32 touched_count;
	__u32 exact;
	__u32 uneven;
	__u32 held;
	__u64 held_records;
	__u64 rdt_waits;
	struct memwatch_record_rdt rdt;
	struct mw_relay_reading slot[MEMWATCH_COUNTER_MAX];
	__u32 touched[MW_RELAY_TOUCHED_MAX];
	/* scratch: not valid from one program to the next */
	struct mw_relay_piece piece;
	struct mw_relay_sum alone;
	__u64 samples;
	struct memwatch_record_tick tick;
	struct mw_relay_batch batch;
};

MW_INLINE __u32 mw_relay_rmid(__u64 owner)
{
	return (__u32)owner;
}

MW_INLINE __u32 mw_relay_generation(__u64 owner)
{
	return (__u32)(owner >> 32);
}

/*
 * Where the sum of @owner is, out of @places. An RMID has a place of its own. Owners that have a
 * generation only share places, except that generation 0 has one of its own.
 */
MW_INLINE __u32 mw_relay_place(__u64 owner, __u32 places)
{
	__u32 rmid = mw_relay_rmid(owner), generation = mw_relay_generation(owner);

	return rmid || !generation ? rmid : 1 + generation % (places - 1);
}

/* The status of an empty sum. */
#define MW_RELAY_STATUS_NONE 0xff

/*
 * The status of a sum of status @a to which a part of status @b is added. For the statuses
 * that the relay makes, it is the same as memwatch_status_worst() of the library.
 */
MW_INLINE __u8 mw_relay_status_add(__u8 a, __u8 b)
{
	if (a == b || a == MW_RELAY_STATUS_NONE)
		return b;
	if (a == MEMWATCH_STATUS_ERROR || b == MEMWATCH_STATUS_ERROR)
		return MEMWATCH_STATUS_ERROR;
	/* FIRST means that a baseline was taken; the parts after it are complete */
	if (a == MEMWATCH_STATUS_FIRST)
		return b;
	if (b == MEMWATCH_STATUS_FIRST)
		return a;
	/* one part was measured and the other one was not: the sum is a lower bound */
	return MEMWATCH_STATUS_ESTIMATED;
}

/*
 * The difference of the readings @last and @now. perf extends hardware counters to 64 bits,
 * so a smaller value is not an overflow: the counter was reset or replaced, and the
 * difference is not valid.
 */
MW_INLINE __u8 mw_relay_delta(const struct mw_relay_reading *last,
			      const struct mw_relay_reading *now, struct mw_relay_reading *delta)
{
	delta->counter = 0;
	delta->enabled = 0;
	delta->running = 0;
	if (now->counter < last->counter || now->enabled < last->enabled ||
	    now->running < last->running)
		return MEMWATCH_STATUS_ERROR;
	delta->counter = now->counter - last->counter;
	delta->enabled = now->enabled - last->enabled;
	delta->running = now->running - last->running;
	return MEMWATCH_STATUS_OK;
}

MW_INLINE void mw_relay_sum_start(struct mw_relay_sum *sum, __u64 owner, __u64 begin_ns)
{
	int i;

	sum->owner = owner;
	sum->begin_ns = begin_ns;
	sum->run_ns = 0;
	for (i = 0; i < MEMWATCH_COUNTER_MAX; i++) {
		sum->piece.delta[i].counter = 0;
		sum->piece.delta[i].enabled = 0;
		sum->piece.delta[i].running = 0;
		sum->piece.status[i] = MW_RELAY_STATUS_NONE;
	}
	sum->used = 1;
}

/*
 * Adds raw increments, which are scaled once when the sum is sent. This avoids divisions at
 * a switch. A piece during which the counter was not on the hardware is extrapolated from
 * the other pieces.
 */
MW_INLINE void mw_relay_sum_add(struct mw_relay_sum *sum, __u64 run_ns,
				const struct mw_relay_piece *piece)
{
	int i;

	sum->run_ns += run_ns;
	for (i = 0; i < MEMWATCH_COUNTER_MAX; i++) {
		sum->piece.delta[i].counter += piece->delta[i].counter;
		sum->piece.delta[i].enabled += piece->delta[i].enabled;
		sum->piece.delta[i].running += piece->delta[i].running;
	}
	/* Usually all statuses are OK. */
	if (!__builtin_memcmp(sum->piece.status, piece->status, sizeof(piece->status)))
		return;
	for (i = 0; i < MEMWATCH_COUNTER_MAX; i++)
		sum->piece.status[i] = mw_relay_status_add(sum->piece.status[i], piece->status[i]);
}

/*
 * The difference of a count that was read without the times of its event. It is taken to have
 * been on the hardware during all of @run_ns; mw_relay_check_times() finds out if it was not.
 */
MW_INLINE __u8 mw_relay_count(struct mw_relay_reading *last, __u64 now, __u64 run_ns,
			      struct mw_relay_reading *delta)
{
	__u8 status = now < last->counter ? MEMWATCH_STATUS_ERROR : MEMWATCH_STATUS_OK;

	delta->counter = status == MEMWATCH_STATUS_OK ? now - last->counter : 0;
	delta->enabled = run_ns;
	delta->running = run_ns;
	last->counter = now;
	return status;
}

/*
 * perf and the module read different clocks. In an interval shorter than this, a working
 * event may have been enabled for no time at all.
 */
#define MW_RELAY_CLOCK_SLACK_NS 10000

/*
 * @delta is the difference of two readings with times, at the beginning and at the end of a slot
 * in which counter @i was read without them. If it was on the hardware all the time, the sums of
 * the slot are right. If not, the ratio of the times applies to all of them.
 */
MW_INLINE void mw_relay_check_times(struct mw_relay_cpu *cpu, int i, __u64 slot_ns,
				    const struct mw_relay_reading *delta)
{
	if (delta->running >= delta->enabled &&
	    (delta->enabled || slot_ns <= MW_RELAY_CLOCK_SLACK_NS))
		return;
	cpu->slot[i] = *delta;
	cpu->uneven |= 1U << i;
}

/*
 * Before the sample of @sum is made: applies what mw_relay_check_times() found. The ratio is not
 * that of a sum which began in an earlier slot, because there was no room for its sample: such a
 * sum is a lower bound.
 */
MW_INLINE void mw_relay_apply_times(const struct mw_relay_cpu *cpu, struct mw_relay_sum *sum)
{
	int i;

	for (i = 0; i < MEMWATCH_COUNTER_MAX; i++) {
		if (!(cpu->uneven & (1U << i)))
			continue;
		if (sum->begin_ns < cpu->begin_ns) {
			sum->piece.status[i] = mw_relay_status_add(sum->piece.status[i],
								   MEMWATCH_STATUS_ESTIMATED);
			continue;
		}
		sum->piece.delta[i].enabled = cpu->slot[i].enabled;
		sum->piece.delta[i].running = cpu->slot[i].running;
	}
}

/*
 * Multiplies @a and @b; returns 0 if the product does not fit into 64 bits. BPF has neither
 * a 128-bit product nor a builtin for overflow, so 32-bit halves are multiplied.
 */
MW_INLINE int mw_relay_multiply(__u64 a, __u64 b, __u64 *product)
{
	__u64 ah = a >> 32, al = (__u32)a, bh = b >> 32, bl = (__u32)b;
	__u64 low = al * bl, cross;

	if (ah && bh)
		return 0;
	cross = ah * bl + al * bh + (low >> 32);
	if (cross >> 32)
		return 0;
	*product = (cross << 32) | (__u32)low;
	return 1;
}

/* a * b / c for a < c, exact: by long division if the product does not fit into 64 bits. */
MW_GLOBAL __u64 mw_relay_share(__u64 a, __u64 b, __u64 c)
{
	__u64 product, quotient = 0, rest = 0;
	int bit;

	if (a >= c)
		return b;
	if (mw_relay_multiply(a, b, &product))
		return product / c;
	for (bit = 0; bit < 64; bit++) {
		quotient <<= 1;
		/* compare 2 * rest with c without overflow */
		if (rest >= c - rest) {
			rest -= c - rest;
			quotient++;
		} else {
			rest += rest;
		}
		if (b >> 63) {
			if (rest >= c - a) {
				rest -= c - a;
				quotient++;
			} else {
				rest += a;
			}
		}
		b <<= 1;
	}
	return quotient;
}

/*
 * Scales a counter that was on the hardware for a part of the time: counter * enabled /
 * running, rounded down. Returns the status of the value:
 *
 * OK: the counter was on the hardware all the time; @ppm is not changed.
 * MULTIPLEXED: the value is scaled; @ppm is set to running * 1000000 / enabled.
 * UNAVAILABLE: the counter was never on the hardware; @ppm is set to 0.
 * ERROR: the scaled value does not fit into 64 bits; @ppm is set to 0.
 */
MW_INLINE __u8 mw_relay_scale(const struct mw_relay_reading *raw, __u64 run_ns, __u64 *value,
			      __u32 *ppm)
{
	__u64 enabled = raw->enabled, running = raw->running, whole, part;

	*value = raw->counter;
	if (running >= enabled) {
		/* The enabled time did not advance, because the CPU was offline. */
		if (!enabled && !raw->counter && run_ns > MW_RELAY_CLOCK_SLACK_NS) {
			*ppm = 0;
			return MEMWATCH_STATUS_UNAVAILABLE;
		}
		return MEMWATCH_STATUS_OK;
	}

	*value = 0;
	*ppm = 0;
	if (!running)
		return MEMWATCH_STATUS_UNAVAILABLE;
	if (!mw_relay_multiply(raw->counter / running, enabled, &whole))
		return MEMWATCH_STATUS_ERROR;
	part = mw_relay_share(raw->counter % running, enabled, running);
	if (whole > ~0ULL - part)
		return MEMWATCH_STATUS_ERROR;
	*value = whole + part;
	*ppm = (__u32)mw_relay_share(running, 1000000, enabled);
	return MEMWATCH_STATUS_MULTIPLEXED;
}

/*
 * Makes the sample of a sum. A counter with status ERROR has the sum of the parts that could
 * be measured; one with status UNAVAILABLE or FIRST has the value 0.
 */
MW_INLINE void mw_relay_sample(struct memwatch_record_sample *rec, const struct mw_relay_sum *sum,
			       __u16 cpu, __u64 end_ns)
{
	__u32 ppm, least = 1000000;
	__u8 status, scaled;
	__u64 value;
	int i;

	rec->h.time_ns = end_ns;
	rec->h.type = MEMWATCH_RECORD_SAMPLE;
	rec->h.size = sizeof(*rec);
	rec->h.cpu = cpu;
	rec->h.flags = 0;
	rec->rmid = mw_relay_rmid(sum->owner);
	rec->generation = mw_relay_generation(sum->owner);
	rec->begin_ns = sum->begin_ns;
	rec->run_ns = sum->run_ns;
	for (i = 0; i < MEMWATCH_COUNTER_MAX; i++) {
		value = 0;
		status = sum->piece.status[i];
		if (status != MEMWATCH_STATUS_UNAVAILABLE && status != MEMWATCH_STATUS_FIRST) {
			ppm = 1000000;
			scaled = mw_relay_scale(&sum->piece.delta[i], sum->run_ns, &value, &ppm);
			if (ppm < least)
				least = ppm;
			if (status == MEMWATCH_STATUS_OK || scaled == MEMWATCH_STATUS_ERROR)
				status = scaled;
		}
		MEMWATCH_SAMPLE_COUNTER(rec, i) = value;
		MEMWATCH_SAMPLE_STATUS(rec, i) = status;
	}
	rec->running_ppm = least;
}

#endif /* _MW_RELAY_H */
