/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Arithmetic and state of the relay: one file for BPF, for the library (which
 * reads the maps) and for the unit test on the host. No helper is called here
 * and no kernel type is used: what goes in and comes out is numbers.
 */
#ifndef _MW_RELAY_H
#define _MW_RELAY_H

#include <linux/types.h>
#include <linux/memwatch.h>

/*
 * MW_GLOBAL is a function that the verifier checks once by itself, for any
 * arguments, and not again on each path that leads to it.
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
	MW_RELAY_SLOT = 0,   /* one per RMID that ran, at the tick */
	MW_RELAY_SWITCH = 1, /* one per switch */
};

/*
 * RMIDs that one CPU can hold back between two ticks. When one more runs, all
 * are sent early. It bounds the time a flush takes with interrupts off, if they
 * have to be sent one by one, and the work of the verifier.
 */
#define MW_RELAY_TOUCHED_MAX 32

/*
 * What can go wrong in the relay, one counter per CPU each. All are keys of
 * the map "failures". None of them is silent: a record that was not sent is in
 * @dropped of struct mw_relay_cpu too, a counter that was not read is in the
 * status of the sample.
 */
enum mw_relay_failure {
	MW_RELAY_FAIL_OUTPUT_FULL = 0,	  /* the ring had no room */
	MW_RELAY_FAIL_OUTPUT_NO_RING = 1, /* no ring for this CPU */
	MW_RELAY_FAIL_OUTPUT = 2,	  /* any other error of the output */
	MW_RELAY_FAIL_READ_CYCLES = 3,	  /* order of enum memwatch_counter */
	MW_RELAY_FAIL_READ_INSTRUCTIONS = 4,
	MW_RELAY_FAIL_READ_LLC_REFS = 5,
	MW_RELAY_FAIL_READ_LLC_MISSES = 6,
	MW_RELAY_FAIL_RECORD_READ = 7,	  /* the module's record is not readable */
	MW_RELAY_FAIL_RECORD_INVALID = 8, /* or not what it says it is */
	MW_RELAY_FAIL_OWNER = 9,	  /* the owner changed and nobody told */
	MW_RELAY_FAIL_RMID_RANGE = 10,	  /* beyond the RMIDs of the module: sent unsummed */
	MW_RELAY_FAIL_CLOCK = 11,	  /* a stamp before the one before it */
	MW_RELAY_FAIL_COUNTER_BACK = 12,  /* a counter went backwards */
	MW_RELAY_FAIL_EARLY = 13,	  /* not a failure: samples sent before the tick */
	MW_RELAY_FAIL_MAX = 14,
};

/* A reading of a counter, or the difference of two: struct bpf_perf_event_value. */
struct mw_relay_reading {
	__u64 counter;
	__u64 enabled;
	__u64 running;
};

/* What was read over one stretch that one owner ran. */
struct mw_relay_piece {
	struct mw_relay_reading delta[MEMWATCH_COUNTER_MAX];
	__u8 status[MEMWATCH_COUNTER_MAX];
	__u32 reserved;
};

/* Sum of the pieces of one RMID since the last flush. Free while @used is 0. */
struct mw_relay_sum {
	__u64 owner;
	__u64 run_ns;
	struct mw_relay_piece piece;
	__u64 used;
};

/*
 * What is sent at once: the number of records, then the records, one behind the
 * other, all with the same time. Several are samples, with a tick as the last
 * one or without; every other record is alone.
 *
 * In a perf ring 12 bytes precede what a program sends, and its length is padded
 * so that with them it is a multiple of 8. So the number costs no room, and it
 * is why the records are aligned in the ring: they can be read where they are.
 *
 * @unsent: for the alignment of what follows
 * @sample: the tick is shorter than a sample and takes the last place
 */
struct mw_relay_parcel {
	__u32 unsent;
	__u32 records;
	struct memwatch_record_sample sample[MW_RELAY_TOUCHED_MAX + 1];
};

/*
 * State of one CPU. Written by on_switch, on_tick and on_cpu_state only, which
 * run with interrupts off on that CPU and so never inside each other; except
 * @produced and @dropped, which the other programs change as well, by one
 * atomic instruction.
 *
 * @last_ns is the moment up to which all time has been charged to somebody and
 * the moment of @last: charging moves both, so no time is lost or counted twice.
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
	__u32 reserved;
	__u32 touched[MW_RELAY_TOUCHED_MAX];
	/* Scratch, of no meaning between two programs. */
	struct mw_relay_piece piece;
	struct mw_relay_sum alone;
	struct memwatch_record_tick tick;
	struct mw_relay_parcel parcel;
};

MW_INLINE __u32 mw_relay_rmid(__u64 owner)
{
	return (__u32)owner;
}

MW_INLINE __u32 mw_relay_generation(__u64 owner)
{
	return (__u32)(owner >> 32);
}

/* Status of a sum without a part. */
#define MW_RELAY_STATUS_NONE 0xff

/*
 * Status of a sum that had @a and gets a part of status @b: what
 * memwatch_status_worst() of the library says, for those that a relay makes.
 */
MW_INLINE __u8 mw_relay_status_add(__u8 a, __u8 b)
{
	if (a == b || a == MW_RELAY_STATUS_NONE)
		return b;
	if (a == MEMWATCH_STATUS_ERROR || b == MEMWATCH_STATUS_ERROR)
		return MEMWATCH_STATUS_ERROR;
	/* A counter has to start somewhere; what follows is complete. */
	if (a == MEMWATCH_STATUS_FIRST)
		return b;
	if (b == MEMWATCH_STATUS_FIRST)
		return a;
	/* One part measured and one not: a lower bound. */
	return MEMWATCH_STATUS_ESTIMATED;
}

/*
 * From the reading @last to @now. perf extends hardware counters to 64 bits,
 * so a smaller value is a counter that was reset or replaced, not one that
 * wrapped: its difference means nothing.
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

MW_INLINE void mw_relay_sum_start(struct mw_relay_sum *sum, __u64 owner)
{
	int i;

	sum->owner = owner;
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
 * Raw increments are added up and scaled once, when the sum is sent: no
 * division at a switch, and a piece during which the counter was not on the
 * hardware at all is made up for by those during which it was.
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
		sum->piece.status[i] = mw_relay_status_add(sum->piece.status[i], piece->status[i]);
	}
}

/* perf and the stamps read different clocks: below this, "no time" is possible. */
#define MW_RELAY_CLOCK_SLACK_NS 10000

/*
 * The product of @a and @b, or false if it takes more than 64 bits. By halves,
 * because BPF has no wider product to compare with and no builtin for this.
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

/*
 * a * b / c for a < c, by long division when the product is too wide: exact.
 */
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
		/* rest < c: the sum is below 2 * c, and is compared without forming it. */
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
 * counter * enabled / running, rounded down; an error if that takes more than
 * 64 bits. @ppm is the share running / enabled; it is left alone when the
 * counter was on the hardware all the time.
 */
MW_INLINE __u8 mw_relay_scale(const struct mw_relay_reading *raw, __u64 run_ns, __u64 *value,
			      __u32 *ppm)
{
	__u64 enabled = raw->enabled, running = raw->running, whole, part;

	*value = raw->counter;
	if (running >= enabled) {
		/* An event whose clock stands still is not counting (CPU went away). */
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

/* Of an error the parts that were measured are told, of nothing measured nothing. */
MW_INLINE void mw_relay_sample(struct memwatch_record_sample *rec, const struct mw_relay_sum *sum,
			       __u16 cpu, __u64 begin_ns, __u64 end_ns)
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
	rec->begin_ns = begin_ns;
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
		rec->counter[i] = value;
		rec->status[i] = status;
	}
	rec->running_ppm = least;
}

#endif /* _MW_RELAY_H */
