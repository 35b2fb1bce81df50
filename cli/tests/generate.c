// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Makes the recordings that the tests read, so that none has to be kept: a
 * generated machine, or a few records whose sums can be done by hand.
 */
#include <stdio.h>
#include <string.h>

#include <memwatch/memwatch.h>

#define BASE 1000000000ULL /* a slot boundary */
#define MS   1000000ULL

static int fail(struct memwatch_ctx *ctx, const char *what, int err)
{
	fprintf(stderr, "generate: %s: %d %s\n", what, err, memwatch_ctx_error(ctx));
	return 1;
}

static int copy(struct memwatch_ctx *ctx, struct memwatch_stream *stream, const char *path)
{
	MEMWATCH_OPTS(memwatch_recording_opts, opts,
		      .flags = MEMWATCH_RECORDING_NO_SYNC | MEMWATCH_RECORDING_OVERWRITE,
		      .block_bytes = 65536);
	const struct memwatch_record_header *record;
	struct memwatch_recording *recording;
	int rc = memwatch_recording_create(ctx, path, memwatch_stream_info(stream), &opts,
					   &recording);

	if (rc)
		return fail(ctx, path, rc);
	while ((rc = memwatch_stream_next(stream, &record)) == 1)
		if (memwatch_recording_write(recording, record))
			return fail(ctx, path, -1);
	if (rc)
		return fail(ctx, "stream", rc);
	rc = memwatch_recording_close(recording);
	return rc ? fail(ctx, path, rc) : 0;
}

static int machine(struct memwatch_ctx *ctx, const char *path, int has)
{
	MEMWATCH_OPTS(memwatch_null_opts, opts, .seed = 7, .cpus = 2, .processes = 6,
		      .duration_ns = 400 * MS, .pmu = (__u8)has, .rdt = (__u8)has);
	struct memwatch_stream *stream;
	int rc = memwatch_stream_open_null(ctx, &opts, &stream);

	if (rc)
		return fail(ctx, "generator", rc);
	rc = copy(ctx, stream, path);
	memwatch_stream_unref(stream);
	return rc;
}

/* ------------------------------------------------------- records by hand */

static struct memwatch_recording *out;
static int bad;

static void put(void *record, __u16 type, __u16 size, __u64 time_ns, __u16 cpu)
{
	struct memwatch_record_header *h = record;

	h->time_ns = time_ns;
	h->type = type;
	h->size = size;
	h->cpu = cpu;
	bad |= memwatch_recording_write(out, h);
}

static void owner(__u16 type, __u64 time_ns, __u32 rmid, __u32 generation, __u32 tgid,
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
	put(&r, type, sizeof(r), time_ns, 0);
}

static void sample(__u64 end_ns, __u16 cpu, __u32 rmid, __u32 generation, __u64 run_ns,
		   __u64 counts, __u8 status)
{
	struct memwatch_record_sample s = {
		.rmid = rmid,
		.generation = generation,
		.begin_ns = end_ns - MS,
		.run_ns = run_ns,
		.counter = { 2 * counts, counts, 0, counts / 10 },
		.status = { status, status, MEMWATCH_STATUS_UNAVAILABLE, status },
		.running_ppm = 1000000,
	};

	put(&s, MEMWATCH_RECORD_SAMPLE, sizeof(s), end_ns, cpu);
}

static void tick(__u64 time_ns, __u16 cpu)
{
	struct memwatch_record_tick t = { .expected_ns = time_ns, .period_ns = MS };

	put(&t, MEMWATCH_RECORD_TICK, sizeof(t), time_ns, cpu);
}

/*
 * Three milliseconds on one CPU. "bad" and an invalid byte is a name; 100 ran
 * 0.5 + 1 ms, 101 ran 0.5 ms with a shared counter, RMID 0 the rest; RMID 9 is
 * of nobody known. RMID 2 was not clean. Three records were lost in the last one.
 */
static void by_hand(void)
{
	struct memwatch_record_lost lost = { .begin_ns = BASE + 2 * MS, .count = 3 };
	struct memwatch_record_rdt rdt = {
		.rmid = 1,
		.generation = 1,
		.status = { MEMWATCH_STATUS_OK, MEMWATCH_STATUS_UNAVAILABLE,
			    MEMWATCH_STATUS_ERROR },
		.value = { 4096, 0, 0 },
	};
	struct memwatch_record_rdt dirt = {
		.rmid = 2,
		.generation = 1,
		.status = { MEMWATCH_STATUS_FIRST, MEMWATCH_STATUS_FIRST, MEMWATCH_STATUS_FIRST },
		.value = { 8192, 0, 0 },
		.age_ns = 5 * MS,
	};

	owner(MEMWATCH_RECORD_RMID_ALLOC, BASE, 1, 1, 100, "stream");
	owner(MEMWATCH_RECORD_RMID_ALLOC, BASE, 2, 1, 101, "bad\xff\",=");
	put(&dirt, MEMWATCH_RECORD_RDT, sizeof(dirt), BASE, 0);
	sample(BASE + MS, 0, 1, 1, MS / 2, 500, MEMWATCH_STATUS_OK);
	sample(BASE + MS, 0, 2, 1, MS / 2, 70, MEMWATCH_STATUS_MULTIPLEXED);
	tick(BASE + MS, 0);
	put(&rdt, MEMWATCH_RECORD_RDT, sizeof(rdt), BASE + MS + 10, 0);
	sample(BASE + 2 * MS, 0, 1, 1, MS, 1000, MEMWATCH_STATUS_OK);
	tick(BASE + 2 * MS, 0);
	owner(MEMWATCH_RECORD_RMID_FREE, BASE + 2 * MS, 2, 1, 101, "bad\xff\",=");
	sample(BASE + 3 * MS, 0, 0, 0, MS / 2, 5, MEMWATCH_STATUS_OK);
	sample(BASE + 3 * MS, 0, 9, 4, MS / 2, 5, MEMWATCH_STATUS_UNAVAILABLE);
	put(&lost, MEMWATCH_RECORD_LOST, sizeof(lost), BASE + 3 * MS, 0);
	tick(BASE + 3 * MS, 0);
}

static void growth(__u64 time_ns, __u32 tgid, __u32 what, __u8 verdict, __u64 slope, __u32 eta_s)
{
	struct memwatch_record_growth r = {
		.start_time_ns = tgid * 1000,
		.tgid = tgid,
		.what = what,
		.verdict = verdict,
		.eta_s = eta_s,
		.slope = slope,
	};

	put(&r, MEMWATCH_RECORD_GROWTH, sizeof(r), time_ns, 0);
}

/* What a monitor said: 101 stopped growing, 100 began to and leaks; nobody knows 999. */
static void growing(void)
{
	growth(BASE, 101, MEMWATCH_GROWTH_STATE, MEMWATCH_GROWTH_GROWING, 5000, ~0U);
	growth(BASE + MS, 100, MEMWATCH_GROWTH_STATE, MEMWATCH_GROWTH_GROWING, 900000, 4000);
	growth(BASE + MS, 101, MEMWATCH_GROWTH_STATE, MEMWATCH_GROWTH_STABLE, 0, ~0U);
	growth(BASE + 2 * MS, 100, MEMWATCH_GROWTH_ALERTED, MEMWATCH_GROWTH_LEAK, 1000000, 120);
	growth(BASE + 2 * MS, 999, MEMWATCH_GROWTH_ALERTED, MEMWATCH_GROWTH_LEAK, 1000000, 120);
}

enum { EMPTY, SMALL, GROWING };

static int small(struct memwatch_ctx *ctx, const char *path, int how)
{
	MEMWATCH_OPTS(memwatch_recording_opts, opts,
		      .flags = MEMWATCH_RECORDING_NO_SYNC | MEMWATCH_RECORDING_OVERWRITE);
	struct memwatch_stream_info info = {
		.sz = sizeof(info),
		.schema = MEMWATCH_SCHEMA,
		.nr_cpus = 1,
		.nr_rmids = 8,
		.backend = "emulated",
		.backend_reason = "CPUID leaf 0xf is absent",
		.hostname = "paper",
		.kernel = "6.1.0",
		.version = "0.1.0",
		.period_ns = MS,
		.start_monotonic_ns = BASE,
	};
	int rc;

	for (int i = 0; i < MEMWATCH_COUNTER_MAX; i++)
		info.counter[i] = (struct memwatch_availability){ .status = MEMWATCH_STATUS_OK,
								  .reason = "" };
	info.counter[MEMWATCH_COUNTER_LLC_REFERENCES] = (struct memwatch_availability){
		.reason = "no such counter"
	};
	for (int i = 0; i < MEMWATCH_RDT_MAX; i++)
		info.rdt[i] = (struct memwatch_availability){ .reason = "no RDT" };
	rc = memwatch_recording_create(ctx, path, &info, &opts, &out);
	if (rc)
		return fail(ctx, path, rc);
	if (how == GROWING)
		growing();
	if (how != EMPTY)
		by_hand();
	rc = memwatch_recording_close(out);
	return rc || bad ? fail(ctx, path, rc) : 0;
}

int main(int argc, char **argv)
{
	struct memwatch_ctx *ctx;
	int rc = 2;

	if (argc != 3 || memwatch_ctx_new(NULL, &ctx)) {
		fprintf(stderr, "usage: generate machine|plain|small|empty|growing FILE\n");
		return 2;
	}
	if (!strcmp(argv[1], "machine") || !strcmp(argv[1], "plain"))
		rc = machine(ctx, argv[2], argv[1][0] == 'm');
	else if (!strcmp(argv[1], "small") || !strcmp(argv[1], "empty"))
		rc = small(ctx, argv[2], argv[1][0] == 'e' ? EMPTY : SMALL);
	else if (!strcmp(argv[1], "growing"))
		rc = small(ctx, argv[2], GROWING);
	memwatch_ctx_unref(ctx);
	return rc;
}
