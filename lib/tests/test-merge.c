// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Compares the merge with a simple sort. The test simulates a machine with some CPUs: times
 * out of order within a limit, equal times, CPUs that go offline, idle or silent, rings that
 * overflow, and a reader that is sometimes slow. Each record that the merge delivers is
 * compared with what was written.
 *
 *	test-merge [SEED [ROUNDS]]
 */
#include <stdio.h>

#include "../../selftests/prng.h"
#include "../../selftests/tap.h"
#include "merge/merge.h"
#include "rings.h"
#include "base/timemath.h"

#define CPUS_MAX    12
#define RECORDS_MAX 60000
#define GRACE_NS    2000
#define SILENT_NS   50000

/* A record that was written, or that did not fit. */
struct written {
	uint64_t time_ns;
	uint32_t cpu;
	uint32_t number;
	bool lost;
	bool seen;
};

struct record {
	struct memwatch_record_header h;
	uint64_t number;
	uint64_t more[6];
};

/*
 * The simulated machine. The first members say what may happen: @disorder of times within the
 * grace, CPU @states, @silence without a state, @overflow of rings, @delay beyond the grace.
 */
struct machine {
	bool disorder, states, silence, overflow, delay;

	struct prng prng;
	uint64_t now_ns;
	unsigned int cpus;
	struct writer writers[CPUS_MAX];
	bool silent[CPUS_MAX];	     /* writes nothing, without a CPU state */
	bool away[CPUS_MAX];	     /* writes nothing, after a CPU state */
	uint64_t held_ns[CPUS_MAX];  /* time of a record that is not written yet, or 0 */
	uint64_t produced[CPUS_MAX]; /* records written or lost */
	bool stopped;		     /* nothing is written any more */
	struct mw_merge *merge;

	/* what the merge delivered; @bad counts records that were wrong */
	uint64_t max_ns, late, forced, delivered, lost, bad;
	bool sorted, counted;
};

static struct written written[RECORDS_MAX];
static uint32_t nr_written;
static struct written expected[RECORDS_MAX];
static uint32_t order[RECORDS_MAX], nr_order;

static uint64_t random_below(struct machine *machine, uint64_t n)
{
	return prng_below(&machine->prng, n);
}

/* True with a probability of 1 / @n. */
static bool one_in(struct machine *machine, uint64_t n)
{
	return !random_below(machine, n);
}

static void write_record(struct machine *machine, unsigned int cpu, uint64_t time_ns, uint16_t type,
			 uint32_t state)
{
	struct record record = { .h = { .time_ns = time_ns, .type = type, .cpu = (uint16_t)cpu } };
	bool done;

	if (nr_written == RECORDS_MAX)
		return;
	record.h.size = type == MEMWATCH_RECORD_CPU_STATE
				? sizeof(struct memwatch_record_cpu)
				: (uint16_t)(24 + 8 * random_below(machine, 6));
	if (type == MEMWATCH_RECORD_CPU_STATE)
		record.number = (uint64_t)nr_written << 32 | state; /* in "reserved" */
	else
		record.number = (uint64_t)nr_written << 32;
	machine->produced[cpu]++;
	done = writer_output(&machine->writers[cpu], &record, record.h.size);
	written[nr_written] = (struct written){ time_ns, cpu, nr_written, !done, false };
	nr_written++;
}

/*
 * Writes a batch as the relay does: records of one size and a longer last one, or records of
 * random sizes. If the batch does not fit, the first record is lost and each of the others is
 * written as a batch of its own.
 */
static void write_batch(struct machine *machine, unsigned int cpu, uint64_t time_ns)
{
	uint32_t count = 2 + (uint32_t)random_below(machine, 6);
	struct record records[8];
	uint8_t bytes[sizeof(records)];
	uint16_t size = 0;
	bool all, same_size = one_in(machine, 2);

	if (nr_written + count > RECORDS_MAX)
		return;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t more = same_size ? 4 + (i == count - 1) : random_below(machine, 6);

		records[i] = (struct record){
			.h = { .time_ns = time_ns,
			       .type = 1000,
			       .cpu = (uint16_t)cpu,
			       .size = (uint16_t)(24 + 8 * more) },
			.number = (uint64_t)(nr_written + i) << 32,
		};
		memcpy(bytes + size, &records[i], records[i].h.size);
		size = (uint16_t)(size + records[i].h.size);
	}
	machine->produced[cpu] += count;
	all = writer_batch(&machine->writers[cpu], count, bytes, size);
	for (uint32_t i = 0; i < count; i++) {
		bool done = all || (i && writer_output(&machine->writers[cpu], &records[i],
						       records[i].h.size));

		written[nr_written] = (struct written){ time_ns, cpu, nr_written, !done, false };
		nr_written++;
	}
}

static void set_state(struct machine *machine, unsigned int cpu, bool away)
{
	uint32_t state = away ? (one_in(machine, 2) ? MEMWATCH_CPU_IDLE : MEMWATCH_CPU_OFFLINE)
			      : MEMWATCH_CPU_BUSY;

	machine->away[cpu] = away;
	write_record(machine, cpu, machine->now_ns, MEMWATCH_RECORD_CPU_STATE, state);
}

/* What one CPU does at one time. */
static void play_cpu(struct machine *machine, unsigned int cpu)
{
	unsigned int count = (unsigned int)random_below(machine, 4);

	if (machine->away[cpu]) {
		if (one_in(machine, 50))
			set_state(machine, cpu, false);
		return;
	}
	if (machine->silent[cpu]) {
		machine->silent[cpu] = !one_in(machine, 200);
		return;
	}
	/* the interrupted code writes its record: within the grace, or far beyond it */
	if (machine->held_ns[cpu] && (!machine->delay || one_in(machine, 100))) {
		write_record(machine, cpu, machine->held_ns[cpu], 1000, 0);
		machine->held_ns[cpu] = 0;
	}
	if (one_in(machine, 4))
		write_batch(machine, cpu, machine->now_ns);
	while (count--)
		write_record(machine, cpu,
			     machine->now_ns - (one_in(machine, 3) ? 0 : random_below(machine, 2)),
			     1000, 0);
	if (machine->disorder && !machine->held_ns[cpu] && one_in(machine, 5))
		machine->held_ns[cpu] = machine->now_ns;
	/* a CPU does not go away while it has a record to write */
	if (!machine->held_ns[cpu] && machine->states && one_in(machine, 100))
		set_state(machine, cpu, true);
	else if (!machine->held_ns[cpu] && machine->silence && one_in(machine, 400))
		machine->silent[cpu] = true;
}

static void check_lost(struct machine *machine, const struct memwatch_record_lost *lost)
{
	uint64_t found = 0;

	machine->lost += lost->count;
	if (lost->h.time_ns > lost->end_ns)
		machine->bad++;
	/*
	 * The times of the lost records are in the interval of the loss, give or take the
	 * disorder of a ring, which may also exchange the ends of two consecutive losses.
	 */
	for (uint32_t i = 0; i < nr_written && found < lost->count; i++) {
		struct written *w = &written[i];

		if (!w->lost || w->seen || w->cpu != lost->h.cpu)
			continue;
		if (!machine->delay && (w->time_ns + GRACE_NS < lost->h.time_ns ||
					w->time_ns > lost->end_ns + GRACE_NS))
			continue;
		w->seen = true;
		found++;
	}
	if (found != lost->count)
		machine->bad++;
}

static void check_record(struct machine *machine, const struct memwatch_record_header *header)
{
	const struct record *record = (const struct record *)header;
	bool late = header->time_ns < machine->max_ns;
	uint32_t number;

	if (late != !!(header->flags & MEMWATCH_RECORD_F_LATE))
		machine->bad++;
	machine->max_ns = mw_max_u64(machine->max_ns, header->time_ns);
	if (header->type == MEMWATCH_RECORD_LOST) {
		check_lost(machine, (const struct memwatch_record_lost *)header);
		return;
	}
	machine->delivered++;
	machine->late += late;
	machine->forced += !!(header->flags & MEMWATCH_RECORD_F_FORCED);
	number = (uint32_t)(record->number >> 32);
	if (number >= nr_written || written[number].seen || written[number].lost ||
	    written[number].time_ns != header->time_ns || written[number].cpu != header->cpu) {
		machine->bad++;
		return;
	}
	written[number].seen = true;
	order[nr_order++] = number;
}

/* Time advances, and each CPU may write. */
static void play_step(struct machine *machine)
{
	machine->now_ns += random_below(machine, GRACE_NS / 4);
	for (unsigned int i = 0; i < machine->cpus; i++)
		play_cpu(machine, i);
}

/* Reads all that the merge delivers; the CPUs also write between two rounds. */
static int read_all(struct machine *machine)
{
	const struct memwatch_record_header *header;
	int err;

	for (;;) {
		while (mw_merge_next(machine->merge, &header))
			check_record(machine, header);
		if (!machine->stopped && one_in(machine, 3))
			play_step(machine);
		err = mw_merge_round(machine->merge, machine->now_ns);
		if (err <= 0)
			return err;
	}
}

/* The expected order: by time, by CPU, by order of writing. */
static int compare_written(const void *a, const void *b)
{
	const struct written *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? -1 : 1;
	return x->number < y->number ? -1 : 1;
}

static bool same_as_sorted(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < nr_written; i++) {
		if (!written[i].lost)
			expected[count++] = written[i];
	}
	qsort(expected, count, sizeof(*expected), compare_written);
	if (count != nr_order)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		if (expected[i].number != order[i])
			return false;
	}
	return true;
}

static bool is_equal(const char *what, uint64_t got, uint64_t want)
{
	if (got != want)
		tap_note("%s: %llu, expected %llu", what, (unsigned long long)got,
			 (unsigned long long)want);
	return got == want;
}

/* The statistics of the merge agree with what was written and delivered. */
static bool counts_agree(const struct machine *machine)
{
	struct memwatch_stream_stats stats = { .sz = sizeof(stats) };
	uint64_t tried = 0, lost = 0, not_written = 0, unseen = 0;
	bool ok = true;

	mw_merge_stats(machine->merge, &stats);
	for (unsigned int i = 0; i < machine->cpus; i++) {
		struct memwatch_stream_cpu_stats cpu = { .sz = sizeof(cpu) };

		mw_merge_cpu_stats(machine->merge, i, &cpu);
		ok &= is_equal("records of a CPU", cpu.delivered + cpu.lost + cpu.malformed,
			       machine->produced[cpu.cpu]);
		tried += machine->produced[cpu.cpu];
		lost += cpu.lost;
	}
	for (uint32_t i = 0; i < nr_written; i++) {
		not_written += written[i].lost;
		unseen += !written[i].seen;
	}
	ok &= is_equal("records that were never delivered", unseen, 0);
	ok &= is_equal("delivered", stats.delivered, machine->delivered);
	ok &= is_equal("late", stats.late, machine->late);
	ok &= is_equal("forced", stats.forced, machine->forced);
	ok &= is_equal("lost", stats.lost, lost);
	ok &= is_equal("records of losses", machine->lost, lost);
	ok &= is_equal("records that did not fit", not_written, lost);
	ok &= is_equal("malformed", stats.malformed, 0);
	ok &= is_equal("delivered and lost", stats.delivered + lost, tried);
	return ok && stats.watermark_ns <= machine->max_ns;
}

static void open_machine(struct machine *machine, uint64_t seed)
{
	struct mw_merge_opts opts = { .grace_ns = GRACE_NS, .silent_ns = SILENT_NS };
	size_t size;

	nr_written = 0;
	nr_order = 0;
	machine->prng.state = seed;
	machine->cpus = 1 + (unsigned int)random_below(machine, CPUS_MAX);
	machine->now_ns = 1000000;
	if (one_in(machine, 3))
		opts.quantum = 1 + (uint32_t)random_below(machine, 2000);
	size = machine->overflow ? 512U << random_below(machine, 4) : 1U << 22;
	mw_merge_new(&opts, &machine->merge);
	/* add the rings in reverse order: equal times are sorted by CPU, not by ring */
	for (unsigned int i = machine->cpus; i-- > 0;) {
		writer_init(&machine->writers[i], size);
		mw_merge_ring_add(machine->merge, i, &machine->writers[i].ring);
	}
}

static void read_rest(struct machine *machine)
{
	for (unsigned int i = 0; i < machine->cpus; i++) {
		/* the kernel reports a loss with the next record, which does not exist */
		if (machine->writers[i].lost)
			mw_merge_lost_add(machine->merge, machine->cpus - 1 - i,
					  machine->writers[i].lost, 0);
	}
	read_all(machine);
	mw_merge_finish(machine->merge, machine->now_ns);
	read_all(machine);
}

static void play_scenario(struct machine *machine, uint64_t seed)
{
	unsigned int pause = 0;

	open_machine(machine, seed);
	while (nr_written < RECORDS_MAX / 4) {
		play_step(machine);
		/* the reader reads rarely, or pauses for long */
		if (pause)
			pause--;
		else if (machine->overflow && one_in(machine, 300))
			pause = 200;
		else if (one_in(machine, 3))
			read_all(machine);
	}
	machine->stopped = true;
	for (unsigned int i = 0; i < machine->cpus; i++) {
		if (machine->held_ns[i])
			write_record(machine, i, machine->held_ns[i], 1000, 0);
	}
	read_rest(machine);
	machine->sorted = same_as_sorted();
	machine->counted = counts_agree(machine);
	mw_merge_free(machine->merge);
	for (unsigned int i = 0; i < machine->cpus; i++)
		writer_free(&machine->writers[i]);
}

/* @exact: the delivered records are the sorted input, and none is late. */
struct scenario {
	const char *name;
	struct machine may;
	bool exact;
};

static const struct scenario scenarios[] = {
	{ "times in order", { 0 }, true },
	{ "disorder within the grace", { .disorder = true }, true },
	{ "idle and offline CPUs", { .disorder = true, .states = true }, true },
	{ "silent CPUs", { .disorder = true, .silence = true, .states = true }, true },
	{ "overflowing rings", { .overflow = true }, false },
	{ "overflow, disorder and silence",
	  { .disorder = true, .overflow = true, .silence = true, .states = true },
	  false },
	{ "disorder beyond the grace", { .disorder = true, .delay = true, .states = true }, false },
	{ "everything at once",
	  { .disorder = true, .overflow = true, .silence = true, .states = true, .delay = true },
	  false },
};

static void test_scenario(const struct scenario *scenario, uint64_t seed, unsigned int rounds)
{
	uint64_t late = 0, forced = 0, lost = 0, bad = 0;
	bool sorted = true, counted = true;

	for (unsigned int i = 0; i < rounds && sorted && counted && !bad; i++) {
		struct machine machine = scenario->may;

		play_scenario(&machine, seed + i);
		late += machine.late;
		forced += machine.forced;
		lost += machine.lost;
		bad += machine.bad;
		counted &= machine.counted;
		sorted &= machine.sorted || !scenario->exact;
		if (!sorted || !counted || bad)
			tap_note("%s: seed %llu", scenario->name, (unsigned long long)seed + i);
	}
	tap_eq(bad, 0, "%s: no record is wrong", scenario->name);
	tap_ok(counted, "%s: the statistics are exact", scenario->name);
	if (scenario->exact) {
		tap_ok(sorted, "%s: the stream is the sorted input", scenario->name);
		tap_eq(late, 0, "%s: no record is late", scenario->name);
	}
	/* a scenario in which nothing of this kind happened would prove nothing */
	if (scenario->may.overflow)
		tap_ok(lost > 0, "%s: records are lost", scenario->name);
	if (scenario->may.delay)
		tap_ok(late > 0, "%s: records are late", scenario->name);
	if (scenario->may.silence)
		tap_ok(forced > 0, "%s: records are forced", scenario->name);
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	unsigned int rounds = argc > 2 ? (unsigned int)atoi(argv[2]) : 12;

	tap_start();
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(*scenarios); i++)
		test_scenario(&scenarios[i], seed, rounds);
	return tap_done();
}
