// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Writes the recordings that the tests of memwatchctl read, so that the tree need not hold
 * any: of a simulated machine, or of a few records whose sums can be checked by hand.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <memwatch/memwatch.h>

#define BASE 1000000000ULL /* a slot boundary */
#define MS   1000000ULL

static int print_failure(struct memwatch_ctx *ctx, const char *what, int err)
{
	fprintf(stderr, "generate: %s: %d %s\n", what, err, memwatch_ctx_error(ctx));
	return 1;
}

static int recording_copy(struct memwatch_ctx *ctx, struct memwatch_stream *stream,
			  const char *path)
{
	MEMWATCH_OPTS(memwatch_recording_opts, opts,
		      .flags = MEMWATCH_RECORDING_NO_SYNC | MEMWATCH_RECORDING_OVERWRITE,
		      .block_bytes = 65536);
	const struct memwatch_record_header *record;
	struct memwatch_recording *recording;
	int rc = memwatch_recording_create(ctx, path, memwatch_stream_get_info(stream), &opts,
					   &recording);

	if (rc)
		return print_failure(ctx, path, rc);
	while ((rc = memwatch_stream_next(stream, &record)) == 1)
		if (memwatch_recording_write(recording, record))
			return print_failure(ctx, path, -1);
	if (rc)
		return print_failure(ctx, "stream", rc);
	rc = memwatch_recording_close(recording);
	return rc ? print_failure(ctx, path, rc) : 0;
}

/* @counters: whether the machine has a PMU and RDT. */
static int recording_of_machine(struct memwatch_ctx *ctx, const char *path, int counters)
{
	MEMWATCH_OPTS(memwatch_null_opts, opts, .seed = 7, .cpus = 2, .processes = 6,
		      .duration_ns = 400 * MS, .pmu = (__u8)counters, .rdt = (__u8)counters);
	struct memwatch_stream *stream;
	int rc = memwatch_stream_open_null(ctx, &opts, &stream);

	if (rc)
		return print_failure(ctx, "generator", rc);
	rc = recording_copy(ctx, stream, path);
	memwatch_stream_unref(stream);
	return rc;
}

/*
 * What a stranger may send: some kilobytes that decode to 52000 samples, each of another RMID
 * and over all slots of the window.
 */
static int recording_of_stranger(struct memwatch_ctx *ctx, const char *path)
{
	MEMWATCH_OPTS(memwatch_recording_opts, opts, .flags = MEMWATCH_RECORDING_OVERWRITE,
		      .block_bytes = 2 << 20, .level = 19, .block_ns = UINT64_MAX);
	MEMWATCH_OPTS(memwatch_stream_info, info, .hostname = "h", .kernel = "k", .backend = "b");
	struct memwatch_record_sample s = {
		.h = { .type = MEMWATCH_RECORD_SAMPLE, .size = sizeof(s) },
		.generation = 1,
		.run_ns = 1000,
		.running_ppm = 1000000,
	};
	struct memwatch_recording *recording;
	int rc = memwatch_recording_create(ctx, path, &info, &opts, &recording);

	if (rc)
		return print_failure(ctx, path, rc);
	for (__u32 i = 1; i <= 52000 && !rc; i++) {
		s.rmid = i;
		s.begin_ns = BASE;
		s.h.time_ns = BASE + 40 * MS;
		rc = memwatch_recording_write(recording, &s.h);
	}
	rc = memwatch_recording_close(recording) ? -1 : rc;
	return rc ? print_failure(ctx, path, rc) : 0;
}

/* ---- Records whose sums can be checked by hand ---- */

static struct memwatch_recording *out;
static int write_failed;

static void record_write(void *record, __u16 type, __u16 size, __u64 time_ns, __u16 cpu)
{
	struct memwatch_record_header *h = record;

	h->time_ns = time_ns;
	h->type = type;
	h->size = size;
	h->cpu = cpu;
	write_failed |= memwatch_recording_write(out, h);
}

static void write_owner(__u16 type, __u64 time_ns, __u32 rmid, __u32 generation, __u32 tgid,
			const char *comm)
{
	struct memwatch_record_rmid r = {
		.rmid = rmid,
		.generation = generation,
		.tgid = tgid,
		.parent_tgid = 1,
		.start_time_ns = tgid * 1000,
		.alloc_time_ns = BASE,
		.cgroup_id = 40 + tgid % 2,
		.uid = 1000,
		.reason = type == MEMWATCH_RECORD_RMID_FREE ? MEMWATCH_REASON_EXIT
							    : MEMWATCH_REASON_FORK,
	};

	strncpy(r.comm, comm, sizeof(r.comm) - 1);
	record_write(&r, type, sizeof(r), time_ns, 0);
}

static void write_long_sample(__u64 begin_ns, __u64 end_ns, __u16 cpu, __u32 rmid, __u32 generation,
			      __u64 run_ns, __u64 counts, __u8 status)
{
	struct memwatch_record_sample s = {
		.rmid = rmid,
		.generation = generation,
		.begin_ns = begin_ns,
		.run_ns = run_ns,
		.counter = { 2 * counts, counts, 0, counts / 10 },
		.status = { status, status, MEMWATCH_STATUS_UNAVAILABLE, status },
		.running_ppm = 1000000,
	};

	record_write(&s, MEMWATCH_RECORD_SAMPLE, sizeof(s), end_ns, cpu);
}

static void write_sample(__u64 end_ns, __u16 cpu, __u32 rmid, __u32 generation, __u64 run_ns,
			 __u64 counts, __u8 status)
{
	write_long_sample(end_ns - MS, end_ns, cpu, rmid, generation, run_ns, counts, status);
}

static void write_tick(__u64 time_ns, __u16 cpu)
{
	struct memwatch_record_tick t = { .expected_ns = time_ns, .period_ns = MS };

	record_write(&t, MEMWATCH_RECORD_TICK, sizeof(t), time_ns, cpu);
}

/*
 * Three milliseconds on one CPU. Process 100 runs for 0.5 and 1 ms, process 101 for 0.5 ms
 * with a multiplexed counter; the rest belongs to RMID 0 and to RMID 9, of which no process
 * is known. The name of process 101 has an invalid byte. RMID 2 had residue when it was
 * allocated. Three records are lost in the last millisecond.
 */
static void write_small(void)
{
	struct memwatch_record_lost lost = { .end_ns = BASE + 3 * MS, .count = 3 };
	struct memwatch_record_rdt rdt = {
		.rmid = 1,
		.generation = 1,
		.status = { MEMWATCH_STATUS_OK, MEMWATCH_STATUS_UNAVAILABLE,
			    MEMWATCH_STATUS_ERROR },
		.value = { 4096, 0, 0 },
	};
	struct memwatch_record_rdt residue = {
		.rmid = 2,
		.generation = 1,
		.status = { MEMWATCH_STATUS_FIRST, MEMWATCH_STATUS_FIRST, MEMWATCH_STATUS_FIRST },
		.value = { 8192, 0, 0 },
		.age_ns = 5 * MS,
	};

	write_owner(MEMWATCH_RECORD_RMID_ALLOC, BASE, 1, 1, 100, "stream");
	write_owner(MEMWATCH_RECORD_RMID_ALLOC, BASE, 2, 1, 101, "bad\xff\",=");
	record_write(&residue, MEMWATCH_RECORD_RDT, sizeof(residue), BASE, 0);
	write_sample(BASE + MS, 0, 1, 1, MS / 2, 500, MEMWATCH_STATUS_OK);
	write_sample(BASE + MS, 0, 2, 1, MS / 2, 70, MEMWATCH_STATUS_MULTIPLEXED);
	write_tick(BASE + MS, 0);
	record_write(&rdt, MEMWATCH_RECORD_RDT, sizeof(rdt), BASE + MS + 10, 0);
	write_sample(BASE + 2 * MS, 0, 1, 1, MS, 1000, MEMWATCH_STATUS_OK);
	write_tick(BASE + 2 * MS, 0);
	write_owner(MEMWATCH_RECORD_RMID_FREE, BASE + 2 * MS, 2, 1, 101, "bad\xff\",=");
	record_write(&lost, MEMWATCH_RECORD_LOST, sizeof(lost), BASE + 2 * MS, 0);
	write_sample(BASE + 3 * MS, 0, 0, 0, MS / 2, 5, MEMWATCH_STATUS_OK);
	write_sample(BASE + 3 * MS, 0, 9, 4, MS / 2, 5, MEMWATCH_STATUS_UNAVAILABLE);
	write_tick(BASE + 3 * MS, 0);
}

static void write_growth(__u64 time_ns, __u32 tgid, __u32 what, __u8 verdict, __u64 slope,
			 __u32 eta_s)
{
	struct memwatch_record_growth r = {
		.start_time_ns = tgid * 1000,
		.tgid = tgid,
		.what = what,
		.verdict = verdict,
		.eta_s = eta_s,
		.slope = slope,
	};

	record_write(&r, MEMWATCH_RECORD_GROWTH, sizeof(r), time_ns, 0);
}

/*
 * What a growth monitor reports: 101 stops growing, 100 starts to grow and leaks. No other
 * record names process 999.
 */
static void write_growing(void)
{
	write_growth(BASE, 101, MEMWATCH_GROWTH_STATE, MEMWATCH_GROWTH_GROWING, 5000, ~0U);
	write_growth(BASE, 100, MEMWATCH_GROWTH_STATE, MEMWATCH_GROWTH_GROWING, 0, ~0U);
	write_growth(BASE + MS, 100, MEMWATCH_GROWTH_STATE, MEMWATCH_GROWTH_GROWING, 900000, 4000);
	write_growth(BASE + MS, 101, MEMWATCH_GROWTH_STATE, MEMWATCH_GROWTH_STABLE, 0, ~0U);
	write_growth(BASE + 2 * MS, 100, MEMWATCH_GROWTH_ALERTED, MEMWATCH_GROWTH_LEAK, 1000000,
		     120);
	write_growth(BASE + 2 * MS, 999, MEMWATCH_GROWTH_ALERTED, MEMWATCH_GROWTH_LEAK, 1000000,
		     120);
}

/*
 * Process 100 has an RMID from the start. Process 101 had waited for one, and had run for
 * 1.5 ms meanwhile. Both run for half of one millisecond. @lossy: in its second half two records
 * are lost.
 */
static void write_shared(bool lossy)
{
	struct memwatch_record_lost lost = { .end_ns = BASE + MS, .count = 2 };
	struct memwatch_record_rmid late = {
		.rmid = 2,
		.generation = 5,
		.tgid = 101,
		.parent_tgid = 1,
		.start_time_ns = 101000,
		.alloc_time_ns = BASE,
		.cgroup_id = 41,
		.uid = 1000,
		.reason = MEMWATCH_REASON_PROMOTED,
		.comm = "waiter",
		.unmeasured_ns = 3 * MS / 2,
	};

	write_owner(MEMWATCH_RECORD_RMID_ALLOC, BASE, 1, 1, 100, "owner");
	record_write(&late, MEMWATCH_RECORD_RMID_ALLOC, sizeof(late), BASE, 0);
	if (lossy)
		record_write(&lost, MEMWATCH_RECORD_LOST, sizeof(lost), BASE + MS / 2, 0);
	write_sample(BASE + MS, 0, 1, 1, MS / 2, 500, MEMWATCH_STATUS_OK);
	write_sample(BASE + MS, 0, 2, 5, MS / 2, 500, MEMWATCH_STATUS_OK);
	write_tick(BASE + MS, 0);
}

/* Processes 2000, 2001 and so on, which have these names and run for 10 us each. */
static void write_named(int nr, char **names)
{
	for (int i = 0; i < nr; i++) {
		__u32 rmid = 10 + (__u32)i, tgid = 2000 + (__u32)i;
		struct memwatch_record_growth growth = {
			.start_time_ns = tgid * 1000,
			.tgid = tgid,
			.what = MEMWATCH_GROWTH_ALERTED,
			.verdict = MEMWATCH_GROWTH_LEAK,
			.eta_s = 60,
		};

		write_owner(MEMWATCH_RECORD_RMID_ALLOC, BASE, rmid, 1, tgid, names[i]);
		write_sample(BASE + MS, 0, rmid, 1, MS / 100, 5, MEMWATCH_STATUS_OK);
		strncpy(growth.comm, names[i], sizeof(growth.comm) - 1);
		record_write(&growth, MEMWATCH_RECORD_GROWTH, sizeof(growth), BASE + MS, 0);
	}
	write_tick(BASE + MS, 0);
}

/*
 * Records of 20000 processes whose start times follow from their ids. @key is multiplied by
 * the id: with the right one, a hash of the form (id * key ^ start) is the same for all.
 */
static void write_many(__u64 key)
{
	for (__u32 tgid = 1; tgid <= 20000; tgid++) {
		struct memwatch_record_growth r = {
			.start_time_ns = tgid * key,
			.tgid = tgid,
			.what = MEMWATCH_GROWTH_STATE,
			.verdict = MEMWATCH_GROWTH_GROWING,
		};

		record_write(&r, MEMWATCH_RECORD_GROWTH, sizeof(r), BASE, 0);
	}
}

#define SLOW_PERIOD (10 * MS)

/*
 * Two CPUs that tick each 10 ms, for 1.2 s. One runs process 100 all the time. The other one,
 * @sleeper, does nothing, and sleeps without a tick from 0.1 s until @wakes_ms.
 */
static void write_sleeper(__u16 sleeper, __u64 wakes_ms)
{
	__u64 wakes = BASE + wakes_ms * MS;
	struct memwatch_record_cpu state = { .state = MEMWATCH_CPU_IDLE };

	write_owner(MEMWATCH_RECORD_RMID_ALLOC, BASE, 1, 1, 100, "busy");
	for (__u64 at = BASE + SLOW_PERIOD; at <= BASE + 1200 * MS; at += SLOW_PERIOD) {
		/* Of records with one time, those of CPU 0 come first. */
		for (__u16 cpu = 0; cpu < 2; cpu++) {
			__u64 begin = cpu == sleeper && at == wakes ? BASE + 100 * MS
								    : at - SLOW_PERIOD;

			if (cpu == sleeper && at > BASE + 100 * MS && at < wakes)
				continue;
			write_long_sample(begin, at, cpu, cpu != sleeper, cpu != sleeper,
					  at - begin, cpu == sleeper ? 0 : 1000,
					  MEMWATCH_STATUS_OK);
			write_tick(at, cpu);
			if (cpu == sleeper && at == BASE + 100 * MS)
				record_write(&state, MEMWATCH_RECORD_CPU_STATE, sizeof(state), at,
					     cpu);
		}
	}
}

enum content { EMPTY, SMALL, SHARED, LOSSY, GROWING, MANY, COLLIDING, SLEEPER, WAKER, STOPPED };

/* With names, the machine of the recording has the first one, and its processes have all. */
static int recording_by_hand(struct memwatch_ctx *ctx, const char *path, enum content content,
			     int nr_names, char **names)
{
	MEMWATCH_OPTS(memwatch_recording_opts, opts,
		      .flags = MEMWATCH_RECORDING_NO_SYNC | MEMWATCH_RECORDING_OVERWRITE);
	bool sleeps = content == SLEEPER || content == WAKER || content == STOPPED;
	struct memwatch_stream_info info = {
		.sz = sizeof(info),
		.schema = MEMWATCH_SCHEMA,
		.nr_cpus = sleeps ? 2 : 1,
		.nr_rmids = 8,
		.backend = "emulated",
		.backend_reason = "CPUID leaf 0xf is absent",
		.hostname = "paper",
		.kernel = "6.1.0",
		.version = "0.1.0",
		.period_ns = sleeps ? SLOW_PERIOD : MS,
		.start_monotonic_ns = BASE,
	};
	int rc;

	if (nr_names)
		info.backend = info.backend_reason = info.hostname = info.kernel = info.version =
			names[0];
	for (int i = 0; i < MEMWATCH_COUNTER_MAX; i++)
		info.counter[i] = (struct memwatch_availability){ .status = MEMWATCH_STATUS_OK,
								  .reason = "" };
	info.counter[MEMWATCH_COUNTER_LLC_REFERENCES] = (struct memwatch_availability){
		.reason = nr_names ? names[0] : "no such counter"
	};
	for (int i = 0; i < MEMWATCH_RDT_MAX; i++)
		info.rdt[i] = (struct memwatch_availability){ .reason = "no RDT" };
	rc = memwatch_recording_create(ctx, path, &info, &opts, &out);
	if (rc)
		return print_failure(ctx, path, rc);
	if (content == GROWING)
		write_growing();
	if (content == MANY || content == COLLIDING)
		write_many(content == MANY ? 1 : 0x9e3779b97f4a7c15ULL);
	if (nr_names)
		write_named(nr_names, names);
	else if (content == SHARED || content == LOSSY)
		write_shared(content == LOSSY);
	else if (sleeps)
		write_sleeper(content != WAKER, content == SLEEPER ? 1000
						: content == WAKER ? 1030
								   : 1200);
	else if (content != EMPTY)
		write_small();
	rc = memwatch_recording_close(out);
	return rc || write_failed ? print_failure(ctx, path, rc) : 0;
}

int main(int argc, char **argv)
{
	struct memwatch_ctx *ctx;
	int rc = 2;

	if (argc < 3 || memwatch_ctx_new(NULL, &ctx)) {
		fprintf(stderr,
			"usage: generate "
			"machine|plain|small|empty|shared|lossy|growing|many|colliding|sleeper|"
			"waker|stopped|stranger FILE\n"
			"       generate named FILE NAME...\n");
		return 2;
	}
	if (!strcmp(argv[1], "machine") || !strcmp(argv[1], "plain"))
		rc = recording_of_machine(ctx, argv[2], argv[1][0] == 'm');
	else if (!strcmp(argv[1], "small") || !strcmp(argv[1], "empty"))
		rc = recording_by_hand(ctx, argv[2], argv[1][0] == 'e' ? EMPTY : SMALL, 0, NULL);
	else if (!strcmp(argv[1], "shared"))
		rc = recording_by_hand(ctx, argv[2], SHARED, 0, NULL);
	else if (!strcmp(argv[1], "lossy"))
		rc = recording_by_hand(ctx, argv[2], LOSSY, 0, NULL);
	else if (!strcmp(argv[1], "sleeper") || !strcmp(argv[1], "waker"))
		rc = recording_by_hand(ctx, argv[2], argv[1][0] == 's' ? SLEEPER : WAKER, 0, NULL);
	else if (!strcmp(argv[1], "stopped"))
		rc = recording_by_hand(ctx, argv[2], STOPPED, 0, NULL);
	else if (!strcmp(argv[1], "growing"))
		rc = recording_by_hand(ctx, argv[2], GROWING, 0, NULL);
	else if (!strcmp(argv[1], "many") || !strcmp(argv[1], "colliding"))
		rc = recording_by_hand(ctx, argv[2], argv[1][0] == 'm' ? MANY : COLLIDING, 0, NULL);
	else if (!strcmp(argv[1], "named"))
		rc = recording_by_hand(ctx, argv[2], EMPTY, argc - 3, argv + 3);
	else if (!strcmp(argv[1], "stranger"))
		rc = recording_of_stranger(ctx, argv[2]);
	memwatch_ctx_unref(ctx);
	return rc;
}
