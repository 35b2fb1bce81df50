// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Losses. A small machine runs processes on three CPUs, and its records are known; in random
 * intervals, the records of a CPU are not fed. Whatever is summed up must be exact or have the
 * status ESTIMATED, and what no loss concerns must be exact and OK.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <memwatch/slots.h>
#include <memwatch/summary.h>

#include "../../selftests/prng.h"
#include "../../selftests/tap.h"

#define MS	  1000000ULL
#define CPUS	  3
#define SLOTS	  300
#define BASE	  1000 /* number of the first slot */
#define PROCESSES 14
#define LOSSES	  4
#define ROUNDS	  10

struct life {
	uint64_t first, last; /* slots in which it may run, counted from BASE */
	uint32_t cpu;	      /* of the records of its allocation and end */
};

/* A loss: the samples of @cpu of the slots from @first to @last. */
struct gap {
	uint32_t cpu;
	uint64_t first, last;
};

static struct {
	struct life life[PROCESSES];
	struct gap gap[LOSSES];
	int runs[SLOTS][CPUS]; /* process, or -1 for RMID 0 */
	bool late;	       /* losses are reported at their end */
} machine;

static struct memwatch_ctx *ctx;
static struct memwatch_slots *slots;
static struct memwatch_summary *summary;
static struct prng random_state;

static uint64_t pick(uint64_t n)
{
	return prng_below(&random_state, n);
}

static void machine_make(uint64_t seed, bool late)
{
	random_state = (struct prng){ seed };
	memset(&machine, 0, sizeof(machine));
	machine.late = late;
	for (int p = 0; p < PROCESSES; p++) {
		struct life *life = &machine.life[p];

		life->first = pick(SLOTS - 1);
		life->last = life->first + pick(SLOTS - life->first);
		life->cpu = (uint32_t)pick(CPUS);
	}
	for (int i = 0; i < LOSSES; i++) {
		struct gap *gap = &machine.gap[i];

		/* At most one loss in each quarter, so that those of a CPU are separate. */
		gap->cpu = (uint32_t)pick(CPUS);
		gap->first = (uint64_t)i * SLOTS / LOSSES + 2 + pick(10);
		gap->last = gap->first + pick(SLOTS / LOSSES - 20);
	}
	for (int s = 0; s < SLOTS; s++) {
		for (int c = 0; c < CPUS; c++) {
			int p = (int)pick(PROCESSES);
			const struct life *life = &machine.life[p];
			bool alive = (uint64_t)s >= life->first && (uint64_t)s <= life->last;

			machine.runs[s][c] = alive ? p : -1;
		}
	}
}

static bool is_lost(uint32_t cpu, uint64_t slot)
{
	for (int i = 0; i < LOSSES; i++)
		if (machine.gap[i].cpu == cpu && slot >= machine.gap[i].first &&
		    slot <= machine.gap[i].last)
			return true;
	return false;
}

/* Whether a loss of @cpu, or of any one if it is CPUS, concerns the slots @first to @last. */
static bool overlaps(uint32_t cpu, uint64_t first, uint64_t last)
{
	for (int i = 0; i < LOSSES; i++)
		/* The end of a loss is the end of the first sample after it. */
		if ((cpu == CPUS || machine.gap[i].cpu == cpu) &&
		    first <= machine.gap[i].last + 1 && last >= machine.gap[i].first)
			return true;
	return false;
}

/* -------------------------------------------------------------- records */

static uint64_t slot_ns(uint64_t slot)
{
	return (BASE + slot) * MS;
}

static void feed(const struct memwatch_record_header *record)
{
	const struct memwatch_slot *slot;

	memwatch_slots_feed(slots, record);
	while (summary && memwatch_slots_next(slots, &slot) == 1)
		memwatch_summary_feed(summary, slot);
}

static void feed_rmid(uint16_t type, int p, uint64_t time_ns)
{
	const struct life *life = &machine.life[p];
	struct memwatch_record_rmid r = {
		.h = { time_ns, type, sizeof(r), (uint16_t)life->cpu, 0 },
		.rmid = (uint32_t)p + 1,
		.generation = 1,
		.tgid = 500 + (uint32_t)p,
		.start_time_ns = 77,
		.alloc_time_ns = slot_ns(life->first) + 10,
		.cgroup_id = 9 + (uint32_t)p % 2,
		.reason = type == MEMWATCH_RECORD_RMID_FREE ? MEMWATCH_REASON_EXIT
							    : MEMWATCH_REASON_FORK,
	};

	/* The records of a slot are lost together with its sample. */
	if (!is_lost(life->cpu, type == MEMWATCH_RECORD_RMID_FREE ? life->last : life->first))
		feed(&r.h);
}

static void feed_sample(uint32_t cpu, uint64_t slot)
{
	int p = machine.runs[slot][cpu];
	struct memwatch_record_sample s = {
		.h = { slot_ns(slot + 1), MEMWATCH_RECORD_SAMPLE, sizeof(s), (uint16_t)cpu, 0 },
		.rmid = p < 0 ? 0 : (uint32_t)p + 1,
		.generation = p >= 0,
		.begin_ns = slot_ns(slot),
		.run_ns = MS,
		.counter = { 1000 },
		.status = { MEMWATCH_STATUS_OK },
		.running_ppm = 1000000,
	};

	if (!is_lost(cpu, slot))
		feed(&s.h);
}

static void feed_gap(const struct gap *gap)
{
	uint64_t begin_ns = slot_ns(gap->first), end_ns = slot_ns(gap->last + 2);
	/* As recordings had it before: the record is at the end, and says when the loss began. */
	bool at_end = machine.late && gap->cpu % 2;
	struct memwatch_record_lost r = {
		.h = { at_end ? end_ns : begin_ns, MEMWATCH_RECORD_LOST, sizeof(r),
		       (uint16_t)gap->cpu, machine.late && !at_end ? MEMWATCH_RECORD_F_LATE : 0 },
		.end_ns = at_end ? begin_ns : end_ns,
		.count = gap->last - gap->first + 1,
	};

	feed(&r.h);
}

static void feed_slot(uint64_t slot)
{
	for (int i = 0; i < LOSSES; i++)
		if ((machine.late ? machine.gap[i].last + 2 : machine.gap[i].first) == slot)
			feed_gap(&machine.gap[i]);
	for (int p = 0; p < PROCESSES; p++)
		if (machine.life[p].first == slot)
			feed_rmid(MEMWATCH_RECORD_RMID_ALLOC, p, slot_ns(slot) + 10);
	for (int p = 0; p < PROCESSES; p++)
		if (machine.life[p].last == slot)
			feed_rmid(MEMWATCH_RECORD_RMID_FREE, p, slot_ns(slot + 1) - 10);
	for (uint32_t c = 0; c < CPUS; c++)
		feed_sample(c, slot);
}

static void start_with(uint32_t by, uint32_t rows_max)
{
	MEMWATCH_OPTS(memwatch_slots_opts, opts, .window = 4,
		      .flags = by == MEMWATCH_BY_CPU ? MEMWATCH_SLOTS_PER_CPU : 0);
	MEMWATCH_OPTS(memwatch_summary_opts, summary_opts, .by = by, .rows_max = rows_max);

	memwatch_slots_new(ctx, NULL, &opts, &slots);
	memwatch_summary_new(ctx, &summary_opts, &summary);
}

static void start(uint32_t by)
{
	start_with(by, 0);
}

static void finish(void)
{
	const struct memwatch_slot *slot;

	memwatch_slots_finish(slots);
	while (summary && memwatch_slots_next(slots, &slot) == 1)
		memwatch_summary_feed(summary, slot);
}

static void stop(void)
{
	slots = memwatch_slots_unref(slots);
	summary = memwatch_summary_unref(summary);
}

/* ----------------------------------------------------------------- truth */

/* How long @p, or everything if it is PROCESSES, ran on @cpu (CPUS: all) in these slots. */
static uint64_t true_time(int p, uint32_t cpu, uint64_t first, uint64_t last)
{
	uint64_t time = 0;

	for (uint64_t s = first; s <= last; s++)
		for (uint32_t c = 0; c < CPUS; c++)
			if ((p == PROCESSES || machine.runs[s][c] == p) &&
			    (cpu == CPUS || cpu == c))
				time += MS;
	return time;
}

static struct {
	uint64_t wrong;	   /* not exact, and OK */
	uint64_t needless; /* exact, and no loss concerns it, but not OK */
	uint64_t marked;   /* ESTIMATED */
	uint64_t ok;
} count;

static void judge(const struct memwatch_value *value, uint64_t truth, bool concerned)
{
	bool ok = value->status == MEMWATCH_STATUS_OK;

	count.ok += ok;
	count.marked += value->status == MEMWATCH_STATUS_ESTIMATED;
	count.wrong += ok && value->value != truth;
	count.needless += !concerned && (!ok || value->value != truth);
}

/* The end is known if its record is not lost, be there a sample of the process or not. */
static bool is_end_known(int p)
{
	return !is_lost(machine.life[p].cpu, machine.life[p].last);
}

/* Compares a row of the slots @first to @last. */
static void judge_row(uint32_t by, const struct memwatch_summary_row *row, uint64_t first,
		      uint64_t last)
{
	int p = row->tgid ? (int)row->tgid - 500 : -1;
	uint64_t slot;

	/* What a process did is in two rows if its name became known with the record of its end. */
	if (row->flags & MEMWATCH_ROW_UNKNOWN)
		return;
	if (by == MEMWATCH_BY_CPU) {
		judge(&row->cpu_time_ns, true_time(PROCESSES, row->cpu, first, last),
		      overlaps(row->cpu, first, last));
	} else if (by == MEMWATCH_BY_SLOT && !(row->flags & MEMWATCH_ROW_LATE)) {
		slot = row->first_ns / MS - BASE;
		judge(&row->cpu_time_ns, true_time(PROCESSES, CPUS, slot, slot),
		      overlaps(CPUS, slot, slot));
	} else if (by == MEMWATCH_BY_PROCESS || by == MEMWATCH_BY_RMID) {
		uint64_t from = p < 0 || machine.life[p].first < first ? first
								       : machine.life[p].first;
		uint64_t to = p < 0 || machine.life[p].last > last ? last : machine.life[p].last;

		if (p >= 0 && !is_end_known(p))
			to = last;
		/* If the record of its allocation is lost, it was unknown for a time. */
		judge(&row->cpu_time_ns, true_time(p, CPUS, first, last),
		      overlaps(CPUS, from, to) ||
			      (p >= 0 && is_lost(machine.life[p].cpu, machine.life[p].first)));
	}
}

static void judge_summary(uint32_t by, uint64_t first, uint64_t last)
{
	const struct memwatch_summary_row *row;
	size_t position = 0;

	while (memwatch_summary_next(summary, &position, &row) == 1)
		judge_row(by, row, first, last);
	memwatch_summary_get_total(summary, &row);
	judge(&row->cpu_time_ns, true_time(PROCESSES, CPUS, first, last),
	      overlaps(CPUS, first, last));
	judge(memwatch_summary_counter_at(row, 0), true_time(PROCESSES, CPUS, first, last) / 1000,
	      overlaps(CPUS, first, last));
}

static void report(const char *what)
{
	tap_eq(count.wrong, 0, "%s: what is not exact is not OK", what);
	tap_eq(count.needless, 0, "%s: what no loss concerns is exact and OK", what);
	tap_ok(count.ok && count.marked, "%s: %llu values are OK, %llu are estimated", what,
	       (unsigned long long)count.ok, (unsigned long long)count.marked);
	memset(&count, 0, sizeof(count));
}

static void test_rows(uint32_t by, const char *what, bool late)
{
	char title[64];

	for (uint64_t round = 1; round <= ROUNDS; round++) {
		machine_make(round, late);
		start(by);
		for (uint64_t s = 0; s < SLOTS; s++)
			feed_slot(s);
		finish();
		judge_summary(by, 0, SLOTS - 1);
		stop();
	}
	snprintf(title, sizeof(title), "rows by %s%s", what,
		 late ? ", losses that are noticed late" : "");
	report(title);
}

/* As top does it: the rows of one interval after the other, from one summary. */
static void test_intervals(void)
{
	for (uint64_t round = 1; round <= ROUNDS; round++) {
		machine_make(round, false);
		start(MEMWATCH_BY_PROCESS);
		for (uint64_t s = 0, first = 0; s < SLOTS; s++) {
			feed_slot(s);
			/* Four slots are open, and the one in which the last sample ends. */
			if (s < first + 29)
				continue;
			judge_summary(MEMWATCH_BY_PROCESS, first, s - 4);
			memwatch_summary_reset(summary);
			first = s - 3;
		}
		stop();
	}
	report("rows of an interval");
}

/* Nothing runs, and no gap in the records is drawn. */
static void clear_machine(void)
{
	memset(&machine, 0, sizeof(machine));
	for (int i = 0; i < LOSSES; i++)
		machine.gap[i].cpu = CPUS;
}

static void feed_loss(void)
{
	struct memwatch_record_lost lost = {
		.h = { slot_ns(10), MEMWATCH_RECORD_LOST, sizeof(lost), 1, 0 },
		.end_ns = slot_ns(20),
		.count = 9,
	};

	feed(&lost.h);
}

/* A process that did not run during the loss, as far as the stream says, may have run then. */
static void test_silent(void)
{
	const struct memwatch_summary_row *row;
	size_t position = 0;

	clear_machine();
	for (int p = 0; p < PROCESSES; p++)
		machine.life[p] = (struct life){ 0, p == 1 ? 9 : 30, 0 };
	machine.runs[0][1] = 1;
	start(MEMWATCH_BY_PROCESS);
	for (int p = 0; p < 2; p++)
		feed_rmid(MEMWATCH_RECORD_RMID_ALLOC, p, slot_ns(0));
	feed_sample(0, 0);
	feed_sample(1, 0);
	feed_rmid(MEMWATCH_RECORD_RMID_FREE, 1, slot_ns(1) - 10);
	feed_loss();
	machine.runs[29][0] = -1;
	feed_sample(0, 29);
	finish();
	while (memwatch_summary_next(summary, &position, &row) == 1) {
		if (row->tgid == 500)
			tap_eq(row->cpu_time_ns.status, MEMWATCH_STATUS_ESTIMATED,
			       "a process without any sample near the loss is estimated");
		if (row->tgid == 501)
			tap_eq(row->cpu_time_ns.status, MEMWATCH_STATUS_OK,
			       "a process that ended before the loss is OK");
	}
	tap_eq(position, 3, "there are two processes and RMID 0");
	stop();
}

/* The row of all that found no place: one of its processes ends, and the others go on. */
static void test_rest(void)
{
	const struct memwatch_summary_row *row;
	size_t position = 0;

	clear_machine();
	start_with(MEMWATCH_BY_PROCESS, 1);
	for (int p = 0; p < 3; p++) {
		machine.life[p] = (struct life){ (uint64_t)p, p == 2 ? 5 : 30, 0 };
		machine.runs[p][0] = p;
		feed_rmid(MEMWATCH_RECORD_RMID_ALLOC, p, slot_ns((uint64_t)p) + 10);
		feed_sample(0, (uint64_t)p);
	}
	feed_rmid(MEMWATCH_RECORD_RMID_FREE, 2, slot_ns(3) - 10);
	feed_loss();
	machine.runs[29][0] = 1;
	feed_sample(0, 29);
	finish();
	while (memwatch_summary_next(summary, &position, &row) == 1)
		if (row->flags & MEMWATCH_ROW_OTHER)
			tap_eq(row->cpu_time_ns.status, MEMWATCH_STATUS_ESTIMATED,
			       "the end of one process does not end the row of several");
	tap_eq(position, 2, "the first process has a row, and the others share one");
	stop();
}

/* ----------------------------------------------------------------- slots */

static void judge_slot(const struct memwatch_slot *slot, uint64_t *losses)
{
	uint64_t number = slot->begin_ns / MS - BASE;
	bool concerned = overlaps(CPUS, number, number);

	*losses += slot->nr_losses;
	count.wrong += !(slot->flags & MEMWATCH_SLOT_LOSSY) != !concerned;
	for (uint32_t i = 0; i < slot->nr_entries; i++) {
		const struct memwatch_slot_entry *entry = memwatch_slot_entry_at(slot, i);
		int p = (int)entry->rmid - 1;
		uint32_t cpu = entry->cpu == MEMWATCH_CPU_ANY ? CPUS : entry->cpu;

		/* An entry without samples tells that an RMID was freed, and has no value. */
		if (entry->samples)
			judge(&entry->cpu_time_ns, true_time(p, cpu, number, number),
			      overlaps(cpu, number, number));
		else
			count.wrong += entry->cpu_time_ns.parts != 0;
	}
}

static void test_slots(uint32_t by, const char *what)
{
	const struct memwatch_slot *slot;
	uint64_t losses = 0;

	for (uint64_t round = 1; round <= ROUNDS; round++) {
		machine_make(round, false);
		start(by);
		summary = memwatch_summary_unref(summary);
		for (uint64_t s = 0; s <= SLOTS; s++) {
			if (s < SLOTS)
				feed_slot(s);
			else
				finish();
			while (memwatch_slots_next(slots, &slot) == 1)
				judge_slot(slot, &losses);
		}
		stop();
	}
	report(what);
	tap_eq(losses, ROUNDS * LOSSES, "%s: each loss is in one slot", what);
}

/* ------------------------------------------------------------------- RDT */

static void feed_rdt(uint64_t slot, uint64_t total)
{
	struct memwatch_record_rdt r = {
		.h = { slot_ns(slot), MEMWATCH_RECORD_RDT, sizeof(r), 0, 0 },
		.rmid = 1,
		.generation = 1,
		.status = { MEMWATCH_STATUS_OK, MEMWATCH_STATUS_OK, MEMWATCH_STATUS_UNAVAILABLE },
		.value = { 4096, total, 0 },
	};

	feed(&r.h);
}

/*
 * The bandwidth counter of a process reads 1000 more in each slot. Readings are lost, and with
 * them the record of the allocation (@lost & 1) or of readings in the middle (@lost & 2). The
 * record of the end says when the allocation was.
 */
static void test_rdt(unsigned int lost)
{
	struct memwatch_record_lost gap = {
		.h = { slot_ns(lost & 1 ? 1 : 20), MEMWATCH_RECORD_LOST, sizeof(gap), 0, 0 },
		.end_ns = slot_ns(lost & 1 ? 10 : 30),
		.count = 9,
	};
	const struct memwatch_summary_row *total;

	memset(&machine, 0, sizeof(machine));
	machine.life[0] = (struct life){ 2, 50, 0 };
	machine.life[1] = (struct life){ 0, 60, 0 };
	for (int i = 0; i < LOSSES; i++)
		machine.gap[i].cpu = CPUS;
	start(MEMWATCH_BY_PROCESS);
	feed_rmid(MEMWATCH_RECORD_RMID_ALLOC, 1, slot_ns(0) + 10);
	if (lost & 1)
		feed(&gap.h);
	else
		feed_rmid(MEMWATCH_RECORD_RMID_ALLOC, 0, slot_ns(2) + 10);
	for (uint64_t s = 10; s < 50; s++) {
		if (s == 20 && !(lost & 1))
			feed(&gap.h);
		if (s < 20 || s >= 30 || lost & 1)
			feed_rdt(s, s * 1000);
	}
	feed_rmid(MEMWATCH_RECORD_RMID_FREE, 0, slot_ns(50));
	feed_rdt(51, 51000);
	finish();
	memwatch_summary_get_total(summary, &total);
	tap_eq(total->mbm_total.value, 51000, "the bandwidth is the last reading, although %s lost",
	       lost & 1 ? "the record of the allocation was" : "readings were");
	tap_eq(total->mbm_total.status, MEMWATCH_STATUS_ESTIMATED,
	       "the bandwidth is estimated if %s lost",
	       lost & 1 ? "the record of the allocation was" : "readings were");
	stop();
}

/* Any number of losses, of any CPUs and times, needs little memory and marks too much at most. */
static void test_many(void)
{
	const struct memwatch_summary_row *total;
	struct memwatch_record_lost lost = {
		.h = { .type = MEMWATCH_RECORD_LOST, .size = sizeof(lost) },
	};
	struct memwatch_record_sample sample = {
		.h = { slot_ns(10), MEMWATCH_RECORD_SAMPLE, sizeof(sample), 7, 0 },
		.begin_ns = slot_ns(9),
		.run_ns = MS,
	};

	start(MEMWATCH_BY_CPU);
	feed(&sample.h);
	for (uint64_t i = 0; i < 200000; i++) {
		lost.h.time_ns = slot_ns(20) + i * 1000;
		lost.h.cpu = (uint16_t)(i * 7919);
		lost.end_ns = i % 5 ? lost.h.time_ns + 300 : 0;
		lost.count = 1;
		feed(&lost.h);
	}
	sample.h.time_ns = slot_ns(300);
	sample.begin_ns = slot_ns(299);
	feed(&sample.h);
	finish();
	memwatch_summary_get_total(summary, &total);
	tap_eq(total->cpu_time_ns.value, 2 * MS, "losses do not change the sums");
	tap_eq(total->cpu_time_ns.status, MEMWATCH_STATUS_ESTIMATED,
	       "with 200000 losses, the total is estimated");
	stop();
}

int main(void)
{
	tap_start();
	memwatch_ctx_new(NULL, &ctx);
	for (int late = 0; late < 2; late++) {
		test_rows(MEMWATCH_BY_PROCESS, "process", late);
		test_rows(MEMWATCH_BY_RMID, "RMID", late);
		test_rows(MEMWATCH_BY_CPU, "CPU", late);
		test_rows(MEMWATCH_BY_SLOT, "slot", late);
	}
	test_intervals();
	test_silent();
	test_rest();
	test_slots(MEMWATCH_BY_PROCESS, "entries of slots");
	test_slots(MEMWATCH_BY_CPU, "entries of slots by CPU");
	test_rdt(1);
	test_rdt(2);
	test_many();
	memwatch_ctx_unref(ctx);
	return tap_done();
}
