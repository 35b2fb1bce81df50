/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What it costs the CPUs of a large machine to read RDT counters. The plan of readings,
 * compiled for user space, is run by simulated CPUs of one L3 domain that all tick at the
 * same time. Each access to a register takes its time, and so does each cache line that
 * comes from another CPU; a line is changed by one CPU at a time. A simulated CPU does
 * what rdt-bout.c and rdt-read.c do in a tick, in steps that other CPUs may come between.
 *
 * Prints TAP. An argument is the seed.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../kmod/rdt-plan.h"
#include "../prng.h"
#include "../tap.h"

/* The cache line that an atomic operation of the plan takes for itself. */
static void note_store(const volatile void *at);

#define __atomic_store_n(at, ...)    (note_store(at), __atomic_store_n(at, __VA_ARGS__))
#define __atomic_exchange_n(at, ...) (note_store(at), __atomic_exchange_n(at, __VA_ARGS__))
#define __atomic_fetch_or(at, ...)   (note_store(at), __atomic_fetch_or(at, __VA_ARGS__))
#define __atomic_fetch_and(at, ...)  (note_store(at), __atomic_fetch_and(at, __VA_ARGS__))
#define __atomic_compare_exchange_n(at, ...)                                                       \
	(note_store(at), __atomic_compare_exchange_n(at, __VA_ARGS__))

#include "../../kmod/rdt-plan.c"

#define MS	 1000000ULL
#define SLOTS	 120
#define RMIDS	 512
#define CPUS_MAX 512
#define RAN_MAX	 48
#define NONE	 ~0U
#define NEVER	 ~0ULL

/* As in rdt-bout.c. */
#define BUDGET	    48
#define TIME_NS	    30000
#define INTERVAL_NS 250000
#define REPORT_NS   (TIME_NS / 4)

/*
 * Costs in ns. A pair of accesses to EVTSEL and CTR takes 1.1 us, and an RMID has three
 * events. TICK is what a tick does beside reading, RECORD sends a record, MOVE brings a
 * cache line from another CPU, LOOK searches one that is there, ATOMIC changes one that
 * no other CPU has. A search for which several lines have to come waits for them together.
 */
#define READ_NS	  (3 * 1100)
#define TICK_NS	  3000
#define RECORD_NS 700
#define MOVE_NS	  80
#define LOOK_NS	  4
#define ATOMIC_NS 15

/* Cache lines: each word of the plan, the times of 8 RMIDs each, and what is about the slot. */
#define TIME_LINE(rmid) (MW_RDT_WORDS + (rmid) / 8)
#define SLOT_LINE	(MW_RDT_WORDS + MW_RDT_RMIDS / 8)
#define LINES		(SLOT_LINE + 1)

enum step { TICK, OWN, ANNOUNCE, QUEUE, END_READ, REPORT };

struct cpu {
	enum step step, phase;
	u64 now;	    /* when the next step begins */
	u64 due, rest;	    /* its tick; until when it does not read for others */
	u64 begin, longest; /* of this bout, as in rdt-bout.c */
	u32 left, most, cursor;
	u32 rmid, at, reports;
	u32 nr_ran, ran[RAN_MAX];
	bool own, kept;	      /* reads what ran on it, too; something did not fit */
	u64 off, longest_off; /* interrupts off */
	u64 reading, waiting; /* sums: registers; cache lines */
};

static struct cpu cpus[CPUS_MAX];
static struct mw_rdt_plan plan;
static u64 line_free[LINES], seen[CPUS_MAX][LINES];
static const struct cpu *line_of[LINES]; /* who changed it, if nobody has looked since */
static bool stored[LINES];		 /* the plan has changed it, and nobody has paid for it */
static u64 announced[MW_RDT_RMIDS];	 /* slot since which a run waits to be read */
static u32 oldest;			 /* slots */
static u64 period = MS;
static u32 nr_cpus, share, per_bout, cursor;
static bool shared;
static struct prng prng = { .state = 1 };

/* ---- Costs ---- */

static void spend(struct cpu *c, u64 until)
{
	c->waiting += until - c->now;
	c->now = until;
}

static void change_line(struct cpu *c, u32 line)
{
	u64 begin = line_free[line] > c->now ? line_free[line] : c->now;

	spend(c, begin + (line_of[line] == c ? ATOMIC_NS : MOVE_NS));
	line_free[line] = seen[c - cpus][line] = c->now;
	line_of[line] = c;
}

static void look_at_lines(struct cpu *c, u32 from, u32 n, u32 wrap)
{
	u64 cost = 0;
	u32 i;

	for (i = 0; i < n; i++) {
		u32 line = (from + i) % wrap;
		bool here = line_of[line] == c || line_free[line] <= seen[c - cpus][line];

		cost += here ? LOOK_NS : cost < MOVE_NS ? MOVE_NS : MOVE_NS / 4;
		if (line_of[line] != c)
			line_of[line] = NULL;
		seen[c - cpus][line] = c->now;
	}
	spend(c, c->now + cost);
}

static void note_store(const volatile void *at)
{
	const char *from = (const char *)&plan, *to = (const char *)(uintptr_t)at;
	size_t words = offsetof(struct mw_rdt_plan, word),
	       times = offsetof(struct mw_rdt_plan, ran_ns);
	size_t offset = to - from;

	if (offset < words)
		stored[SLOT_LINE] = true;
	else if (offset < times)
		stored[(offset - words) / sizeof(struct mw_rdt_word)] = true;
	else
		stored[TIME_LINE((offset - times) / sizeof(u64))] = true;
}

/* A CPU has used a line: it has changed it, or looked at it. */
static void touch_line(struct cpu *c, u32 line)
{
	if (stored[line])
		change_line(c, line);
	else
		look_at_lines(c, line, 1, LINES);
	stored[line] = false;
}

/* The line of the slot is looked at all the time; only changes cost something. */
static void touch_slot(struct cpu *c)
{
	if (stored[SLOT_LINE])
		touch_line(c, SLOT_LINE);
}

/* ---- The steps of a CPU ---- */

static void end_bout(struct cpu *c, bool again)
{
	if (c->now - c->off > c->longest_off)
		c->longest_off = c->now - c->off;
	c->step = QUEUE;
	c->now = again ? c->begin + INTERVAL_NS : NEVER;
	c->begin = NEVER;
}

static void begin_bout(struct cpu *c)
{
	c->begin = c->now;
	c->longest = 0;
	c->most = per_bout < c->left ? per_bout : c->left;
}

static bool fits(const struct cpu *c)
{
	return c->most && (!c->longest || c->now + c->longest <= c->begin + TIME_NS);
}

static void do_tick(struct cpu *c)
{
	u64 before;
	u32 i, n, rmid;
	bool first;

	c->off = c->now;
	c->now += TICK_NS;
	first = mw_rdt_plan_slot(&plan, c->due, &before);
	touch_line(c, SLOT_LINE);
	if (first) {
		n = mw_rdt_plan_due(&plan, before, c->due, MW_RDT_ROTATION_NS, &rmid);
		for (; n; n--, rmid = (rmid + 1) % plan.nr)
			mw_rdt_plan_add(&plan, rmid);
		for (i = 0; i * MW_RDT_GROUP < plan.nr; i++)
			touch_line(c, i);
		touch_slot(c);
	}
	c->own = !shared;
	c->kept = false;
	c->at = 0;
	c->left = share;
	begin_bout(c);
	if (shared)
		c->step = ANNOUNCE;
	else
		c->step = c->phase = first || mw_rdt_plan_is_crowded(&plan) ? QUEUE : OWN;
}

static void read_taken(struct cpu *c)
{
	mw_rdt_plan_ran_since(&plan, c->rmid);
	touch_line(c, TIME_LINE(c->rmid));
	c->now += READ_NS;
	c->reading += READ_NS;
	c->step = END_READ;
}

/* Read what ran on this CPU. */
static void do_own(struct cpu *c)
{
	u32 i = c->at;

	if (i == c->nr_ran || !fits(c)) {
		c->kept |= i != c->nr_ran;
		c->at = 0;
		c->step = ANNOUNCE;
		return;
	}
	c->at++;
	c->rmid = c->ran[i];
	if (!mw_rdt_plan_take_one(&plan, c->rmid)) {
		touch_line(c, c->rmid / MW_RDT_GROUP);
		return;
	}
	touch_line(c, c->rmid / MW_RDT_GROUP);
	c->ran[i] = NONE;
	read_taken(c);
}

static void announce(struct cpu *c, u32 rmid)
{
	mw_rdt_plan_ran(&plan, rmid, c->due - period);
	touch_line(c, TIME_LINE(rmid));
	touch_line(c, rmid / MW_RDT_GROUP);
	touch_slot(c);
	if (!announced[rmid])
		announced[rmid] = c->due;
}

static void report_or_continue(struct cpu *c)
{
	if (c->left && c->begin + INTERVAL_NS + TIME_NS <= c->due + period) {
		end_bout(c, true);
		return;
	}
	c->reports = per_bout;
	c->step = REPORT;
}

static void do_announce(struct cpu *c)
{
	while (c->at < c->nr_ran && c->ran[c->at] == NONE)
		c->at++;
	if (c->at < c->nr_ran) {
		announce(c, c->ran[c->at++]);
	} else if (c->own && c->kept) {
		report_or_continue(c);
	} else if (c->own ||
		   (shared && !mw_rdt_plan_elect(&plan, c->due, period, nr_cpus, &c->rest))) {
		end_bout(c, false);
	} else {
		c->left *= nr_cpus;
		begin_bout(c);
		c->step = c->phase = QUEUE;
	}
}

/* Take an RMID of the queue and begin to read it. */
static void do_queue(struct cpu *c)
{
	u32 *at = shared ? &cursor : &c->cursor;
	u32 words = (plan.nr + MW_RDT_GROUP - 1) / MW_RDT_GROUP, from = *at / MW_RDT_GROUP;

	if (c->begin == NEVER) { /* the timer */
		c->off = c->now;
		c->own = false;
		c->phase = QUEUE;
		begin_bout(c);
	}
	if (!fits(c) && c->own) {
		c->kept = true;
		c->step = c->phase = OWN;
	} else if (!fits(c)) {
		report_or_continue(c);
	} else if (!mw_rdt_plan_take(&plan, at, &c->rmid)) {
		look_at_lines(c, from, words, words);
		c->step = c->phase = OWN;
		if (c->own)
			return;
		/* CPUs that tick a little later add to the queue. */
		end_bout(c, shared && c->begin < c->due + INTERVAL_NS);
	} else {
		look_at_lines(c, from, (c->rmid / MW_RDT_GROUP + words - from) % words, words);
		touch_line(c, c->rmid / MW_RDT_GROUP);
		read_taken(c);
	}
}

static void do_end_read(struct cpu *c)
{
	u32 age = announced[c->rmid] ? (c->now - announced[c->rmid]) / period : 0;

	oldest = age > oldest ? age : oldest;
	announced[c->rmid] = 0;
	mw_rdt_plan_release(&plan, c->rmid, true);
	touch_line(c, c->rmid / MW_RDT_GROUP);
	touch_slot(c);
	c->now += RECORD_NS;
	c->longest = READ_NS + RECORD_NS + MOVE_NS;
	c->left--;
	c->most--;
	c->step = c->phase;
}

static void do_report(struct cpu *c)
{
	u32 rmid;

	if (!c->reports-- || c->now >= c->begin + TIME_NS + REPORT_NS ||
	    !mw_rdt_plan_take_stale(&plan, c->cursor, &rmid)) {
		end_bout(c, false);
		return;
	}
	mw_rdt_plan_release(&plan, rmid, false);
	touch_line(c, rmid / MW_RDT_GROUP);
	touch_slot(c);
	c->now += RECORD_NS;
}

/* ---- The machine ---- */

static void add_run(struct cpu *c, u32 rmid)
{
	if (c->nr_ran < RAN_MAX)
		c->ran[c->nr_ran++] = rmid;
}

/* Before the next tick @n RMIDs run, each on one CPU, or on all; RMID 0 on all. */
static void choose_runs(u32 n, bool everywhere)
{
	static u32 order[RMIDS];
	u32 i, j, t;

	for (i = 0; i < nr_cpus; i++) {
		cpus[i].nr_ran = 0;
		add_run(&cpus[i], 0);
		for (j = 1; everywhere && j <= n; j++)
			add_run(&cpus[i], j);
	}
	for (i = 0; i < RMIDS; i++)
		order[i] = i + 1;
	for (i = 0; !everywhere && i < n; i++) {
		j = i + prng_below(&prng, RMIDS - i);
		t = order[i];
		order[i] = order[j];
		order[j] = t;
		add_run(&cpus[prng_below(&prng, nr_cpus)], order[i]);
	}
}

/* The CPU that is first in time takes the next step, until all wait for the next tick. */
static void run_slot(u64 slot)
{
	static void (*const steps[])(struct cpu *) = {
		[TICK] = do_tick,   [OWN] = do_own,	      [ANNOUNCE] = do_announce,
		[QUEUE] = do_queue, [END_READ] = do_end_read, [REPORT] = do_report,
	};
	struct cpu *first;
	u32 i;

	for (i = 0; i < nr_cpus; i++) {
		/* A CPU is late by some 100 ns, and now and then by much more. */
		u64 late = prng_below(&prng, 500);

		if (!prng_below(&prng, 100))
			late = prng_below(&prng, 100000);
		cpus[i].due = slot;
		cpus[i].now = slot + late;
		cpus[i].step = TICK;
	}
	for (;;) {
		for (first = &cpus[0], i = 1; i < nr_cpus; i++)
			if (cpus[i].now < first->now)
				first = &cpus[i];
		if (first->now == NEVER)
			return;
		steps[first->step](first);
	}
}

/**
 * struct figures - of one machine
 * @reading: percent of a CPU that the registers take, on average
 * @worst: the same for the CPU that reads most, with what it waits for cache lines
 * @waiting: percent of a CPU that waits for cache lines, on average
 * @off_us: longest time with interrupts off
 * @slots: between the slot in which a run was announced and that in which it was read
 */
struct figures {
	double reading, worst, waiting, off_us;
	u32 slots;
};

static void machine_init(u32 n, bool one_evtsel)
{
	u32 i;

	/* What a CPU may read in a slot grows with the period, but not what it reads in one go. */
	nr_cpus = n;
	shared = one_evtsel;
	share = mw_rdt_plan_share(RMIDS + 1, BUDGET, 6, period);
	per_bout = mw_rdt_plan_share(RMIDS + 1, BUDGET, 6, 0);
	memset(cpus, 0, sizeof(cpus));
	memset(line_free, 0, sizeof(line_free));
	memset(line_of, 0, sizeof(line_of));
	memset(seen, 0, sizeof(seen));
	memset(stored, 0, sizeof(stored));
	memset(announced, 0, sizeof(announced));
	oldest = 0;
	mw_rdt_plan_init(&plan, RMIDS + 1, period);
	for (i = 0; i < n; i++)
		cpus[i].cursor = i * MW_RDT_GROUP % plan.nr;
}

static struct figures simulate(u32 n, u32 rmids, bool everywhere, bool one_evtsel)
{
	struct figures f = { 0 };
	u64 slot;
	u32 i;

	machine_init(n, one_evtsel);
	for (slot = 2 * period; slot < (2 + SLOTS) * period; slot += period) {
		choose_runs(rmids, everywhere);
		run_slot(slot);
	}
	for (i = 0; i < n; i++) {
		double percent = 100.0 / (SLOTS * period), off = cpus[i].longest_off / 1e3;
		double both = (cpus[i].reading + cpus[i].waiting) * percent;

		f.reading += cpus[i].reading * percent / n;
		f.waiting += cpus[i].waiting * percent / n;
		f.worst = both > f.worst ? both : f.worst;
		f.off_us = off > f.off_us ? off : f.off_us;
	}
	f.slots = oldest;
	tap_note("%3u CPUs, %s, %3u RMIDs per slot of %llu ms%s: reading %.2f %% of a CPU, waiting "
		 "%.2f %%, "
		 "worst CPU %.2f %% in all; interrupts off %.1f us; oldest run %u slots",
		 n, one_evtsel ? "one EVTSEL" : "EVTSEL each", rmids,
		 (unsigned long long)(period / MS), everywhere ? " on every CPU" : "", f.reading,
		 f.waiting, f.worst, f.off_us, f.slots);
	return f;
}

static void test_own_evtsel(void)
{
	static const u32 sizes[] = { 16, 64, 112, 128, 256, 512 }, runs[] = { 5, 100, 300 };
	double off = 0, reading = 0, waiting = 0, few = 0;
	u32 i, j, slots = 0;

	for (i = 0; i < 6; i++)
		for (j = 0; j < 3; j++) {
			struct figures f = simulate(sizes[i], runs[j], false, false);

			off = f.off_us > off ? f.off_us : off;
			if (sizes[i] < 64)
				continue;
			slots = f.slots > slots ? f.slots : slots;
			if (sizes[i] < 112)
				continue;
			reading = f.reading > reading ? f.reading : reading;
			waiting = f.waiting > waiting ? f.waiting : waiting;
			if (!j)
				few = f.waiting > few ? f.waiting : few;
		}
	tap_ok(off <= 50, "interrupts are off for at most 50 us: %.1f us", off);
	tap_ok(slots <= 1, "64 CPUs and more: a run is read in its slot or the next: %u", slots);
	tap_ok(reading <= 1, "112 CPUs and more: reading takes at most 1 %% of a CPU: %.2f %%",
	       reading);
	tap_ok(waiting <= 0.25, "112 CPUs and more: at most 0.25 %% of a CPU waits: %.2f %%",
	       waiting);
	/* One CPU alone searches the queue; if all did, twice as much of their time would pass. */
	tap_ok(few <= 0.045, "112 CPUs and more, few RMIDs: at most 0.045 %% waits: %.3f %%", few);
}

/* Processes with a thread on each CPU, so that all CPUs want to read the same RMIDs. */
static void test_same_rmids(void)
{
	double off = 0, waiting = 0;
	u32 n;

	for (n = 16; n <= CPUS_MAX; n *= 2) {
		struct figures f = simulate(n, 20, true, false);

		off = f.off_us > off ? f.off_us : off;
		waiting = f.waiting > waiting ? f.waiting : waiting;
	}
	tap_ok(off <= 50,
	       "RMIDs that run everywhere: interrupts are off for at most 50 us: %.1f us", off);
	tap_ok(waiting <= 1, "RMIDs that run everywhere: at most 1 %% of a CPU waits: %.2f %%",
	       waiting);
}

static void test_shared_evtsel(void)
{
	static const u32 sizes[] = { 8, 16, 32, 64 }, runs[] = { 5, 100, 300 };
	double off = 0, worst = 0;
	u32 i, j, slots = 0;

	for (i = 0; i < 4; i++)
		for (j = 0; j < 3; j++) {
			struct figures f = simulate(sizes[i], runs[j], false, true);

			off = f.off_us > off ? f.off_us : off;
			slots = f.slots > slots ? f.slots : slots;
			if (sizes[i] >= 16 && f.worst > worst)
				worst = f.worst;
		}
	tap_ok(off <= 50, "one EVTSEL: interrupts are off for at most 50 us: %.1f us", off);
	tap_ok(slots <= 20, "one EVTSEL: a run is read within 20 slots: %u", slots);
	tap_ok(worst <= 1, "one EVTSEL, 16 CPUs and more: at most 1 %% of any CPU: %.2f %%", worst);
}

/* All 512 RMIDs run in each slot of 100 ms, and few CPUs read them. */
static void test_long_period(bool one_evtsel, const char *title)
{
	struct figures f;

	period = 100 * MS;
	f = simulate(16, RMIDS, false, one_evtsel);
	tap_ok(f.off_us <= 50, "%s: interrupts are off for at most 50 us: %.1f us", title,
	       f.off_us);
	tap_ok(f.slots <= 1, "%s: a run is read in its slot or the next: %u", title, f.slots);
	period = MS;
}

int main(int argc, char **argv)
{
	if (argc > 1)
		prng.state = strtoull(argv[1], NULL, 0);
	tap_start();
	tap_note("seed %llu", (unsigned long long)prng.state);
	test_own_evtsel();
	test_same_rmids();
	test_shared_evtsel();
	test_long_period(false, "slots of 100 ms");
	test_long_period(true, "slots of 100 ms, one EVTSEL");
	return tap_done();
}
