// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What does order cost? 128 rings, opened by libbpf's own perf_buffer, get the
 * same records and are read twice: by perf_buffer__consume(), which orders
 * nothing, and by the merge. The budget is for full rings; besides, they are
 * filled to a quarter: that much wakes the live reader (bpf-relay.c). Both
 * hand every record to the same consumer, which reads all of it: one that looks
 * at nothing is no use to compare with.
 * Nobody may write into a perf ring but the kernel, so a BPF program does that,
 * with records made here. They lie as the relay lays them: at each tick a CPU
 * sends its samples and the tick itself as one parcel with one stamp, and no two
 * CPUs tick in the same moment. Prints one line per budget: NAME value unit
 * budget ok|over; and as notes, "# ...", streams that the relay does not make in
 * its usual mode.
 *
 * Needs the right to open perf events and to load a BPF program.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "merge/merge.h"
#include "base/timemath.h"

#define RINGS	     128
#define RING_PAGES   64
#define WAKEUP_SHARE 4 /* part of a ring that wakes its reader */
#define RECORD_BYTES 64
#define CHUNK	     64 /* records per run of the program */
#define CHUNK_BYTES  (CHUNK * (RECORD_BYTES + 2 * sizeof(__u32)))
#define REPEATS	     15
#define TICK_RECORDS 8 /* samples of a tick, and the tick */
#define PERIOD_NS    1000000ULL
#define JITTER_NS    20000ULL
#define GRACE_NS     2000000ULL
#define SILENT_NS    50000000ULL

/* A sample without its counters' tail: 64 bytes, as the budget says. */
struct bench_record {
	struct memwatch_record_header h;
	__u64 fill[(RECORD_BYTES - sizeof(struct memwatch_record_header)) / 8];
};

enum layout {
	TICKS,	    /* as the relay */
	WOKEN,	    /* the same, as much as a reader finds that comes when it is woken */
	SCATTERED,  /* each record at its own time: rings interleave record by record */
	DISORDERED, /* so, and within a ring one in 16 is early */
	LAYOUTS,
};

static const char *const layout_names[LAYOUTS] = { "ticks", "when woken", "scattered",
						   "disordered" };

/* Records sent at once. */
static const unsigned int parcel_records[LAYOUTS] = { TICK_RECORDS, TICK_RECORDS, 1, 1 };

struct bench {
	struct perf_buffer *buffer;
	struct perf_event_mmap_page *page[RINGS];
	struct mw_merge *merge;
	char *chunk; /* what the programs send: parcels, each as struct mw_relay_parcel */
	int program[LAYOUTS];
	int online;
	__u64 records[LAYOUTS]; /* in each ring */
	__u64 base_ns;
	__u64 newest_ns;
	__u64 sum;
	__u64 seen;
};

static __u64 next_random(__u64 *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* From one parcel to the next in the chunk. */
static int stride(enum layout layout)
{
	return (int)(2 * sizeof(__u32) + parcel_records[layout] * RECORD_BYTES);
}

/*
 * The program, unrolled: for each parcel of the chunk,
 * bpf_perf_event_output(ctx, rings, ctx[0], parcel, its size).
 */
static int load_program(int rings, int chunk, enum layout layout)
{
	int parcels = CHUNK / (int)parcel_records[layout];
	int unsent = sizeof(__u32);
	static struct bpf_insn code[2 + CHUNK * 8 + 2];
	struct bpf_insn *at = code;

	*at++ = (struct bpf_insn){ BPF_ALU64 | BPF_MOV | BPF_X, 6, 1, 0, 0 };
	*at++ = (struct bpf_insn){ BPF_LDX | BPF_DW | BPF_MEM, 7, 1, 0, 0 };
	for (int i = 0; i < parcels; i++) {
		*at++ = (struct bpf_insn){ BPF_ALU64 | BPF_MOV | BPF_X, 1, 6, 0, 0 };
		*at++ = (struct bpf_insn){ BPF_LD | BPF_DW | BPF_IMM, 2, BPF_PSEUDO_MAP_FD, 0,
					   rings };
		*at++ = (struct bpf_insn){ 0, 0, 0, 0, 0 };
		*at++ = (struct bpf_insn){ BPF_ALU64 | BPF_MOV | BPF_X, 3, 7, 0, 0 };
		*at++ = (struct bpf_insn){ BPF_LD | BPF_DW | BPF_IMM, 4, BPF_PSEUDO_MAP_VALUE, 0,
					   chunk };
		*at++ = (struct bpf_insn){ 0, 0, 0, 0, i * stride(layout) + unsent };
		*at++ = (struct bpf_insn){ BPF_ALU64 | BPF_MOV | BPF_K, 5, 0, 0,
					   stride(layout) - unsent };
		*at++ = (struct bpf_insn){ BPF_JMP | BPF_CALL, 0, 0, 0,
					   BPF_FUNC_perf_event_output };
	}
	*at++ = (struct bpf_insn){ BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0 };
	*at++ = (struct bpf_insn){ BPF_JMP | BPF_EXIT, 0, 0, 0, 0 };
	return bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "bench", "GPL", code,
			     (size_t)(at - code), NULL);
}

static __u64 next_time(__u64 before_ns, __u64 base_ns, __u64 i, enum layout layout, __u64 *state)
{
	if (parcel_records[layout] == 1)
		return before_ns + next_random(state) % (2 * PERIOD_NS / TICK_RECORDS);
	if (i % TICK_RECORDS)
		return before_ns;
	return base_ns + i / TICK_RECORDS * PERIOD_NS + next_random(state) % JITTER_NS;
}

/* Where record @i of a chunk lies; the number of records is before the first. */
static struct bench_record *place(struct bench *bench, __u64 i, enum layout layout)
{
	__u64 records = parcel_records[layout];
	char *parcel = bench->chunk + i / records * (__u64)stride(layout);

	((__u32 *)parcel)[1] = (__u32)records;
	return (struct bench_record *)(parcel + 2 * sizeof(__u32)) + i % records;
}

/* Records of one CPU, in whatever layout as many in a second. */
static int fill_ring(struct bench *bench, unsigned int cpu, __u64 seed, enum layout layout)
{
	__u64 state = seed * 0x9e3779b97f4a7c15ULL + cpu + 1;
	__u64 time_ns = bench->base_ns;
	__u64 args[1] = { cpu };
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = args, .ctx_size_in = sizeof(args),
		    .flags = BPF_F_TEST_RUN_ON_CPU, .cpu = cpu % (unsigned int)bench->online);

	for (__u64 i = 0; i < bench->records[layout]; i++) {
		struct bench_record *record = place(bench, i % CHUNK, layout);
		bool tick = parcel_records[layout] > 1 && i % TICK_RECORDS == TICK_RECORDS - 1;

		time_ns = next_time(time_ns, bench->base_ns, i, layout, &state);
		record->h = (struct memwatch_record_header){
			.time_ns = time_ns,
			.type = tick ? MEMWATCH_RECORD_TICK : 1000,
			.size = RECORD_BYTES,
			.cpu = (__u16)cpu,
		};
		if (layout == DISORDERED && next_random(&state) % 16 == 0)
			record->h.time_ns -= 150000;
		for (size_t j = 0; j < sizeof(record->fill) / sizeof(*record->fill); j++)
			record->fill[j] = i * j;
		if (i % CHUNK == CHUNK - 1 && bpf_prog_test_run_opts(bench->program[layout], &run))
			return -errno;
	}
	if (time_ns > bench->newest_ns)
		bench->newest_ns = time_ns;
	return 0;
}

static int fill(struct bench *bench, __u64 seed, enum layout layout)
{
	bench->base_ns = bench->newest_ns + 1000000000ULL;
	bench->seen = 0;
	bench->sum = 0;
	for (unsigned int i = 0; i < RINGS; i++) {
		int err = fill_ring(bench, i, seed, layout);

		if (err)
			return err;
	}
	return 0;
}

/* What both sides do with a record: read it. It is aligned in the ring. */
static inline void consume(struct bench *bench, const void *record)
{
	const __u64 *words = record;

	bench->sum += words[0] + words[1] + words[2] + words[3] + words[4] + words[5] + words[6] +
		      words[7];
	bench->seen++;
}

/*
 * libbpf gives out what was sent at once. Parcels make this side faster too: a
 * call for eight records and not for one. So the ratio says less than the rate
 * about what parcels are worth, and it is the ratio that the budget is about.
 */
static enum bpf_perf_event_ret on_event(void *ctx, int cpu, struct perf_event_header *event)
{
	const struct mw_frame *frame = (const struct mw_frame *)event;
	const char *record = (const char *)(frame + 1);

	(void)cpu;
	for (__u32 i = 0; i < frame->records; i++) {
		consume(ctx, record);
		record += ((const struct memwatch_record_header *)record)->size;
	}
	return LIBBPF_PERF_EVENT_CONT;
}

static int open_rings(struct bench *bench)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_BPF_OUTPUT,
		.sample_type = PERF_SAMPLE_RAW,
		.sample_period = 1,
		.wakeup_events = 1U << 30,
	};
	LIBBPF_OPTS(perf_buffer_raw_opts, opts, .cpu_cnt = RINGS);
	LIBBPF_OPTS(bpf_map_create_opts, chunk_opts, .map_flags = BPF_F_MMAPABLE);
	int cpus[RINGS], keys[RINGS];
	int map, chunk;

	bench->online = (int)sysconf(_SC_NPROCESSORS_ONLN);
	for (int i = 0; i < RINGS; i++) {
		cpus[i] = i % bench->online;
		keys[i] = i;
	}
	opts.cpus = cpus;
	opts.map_keys = keys;
	map = bpf_map_create(BPF_MAP_TYPE_PERF_EVENT_ARRAY, "bench", 4, 4, RINGS, NULL);
	if (map < 0)
		return map;
	bench->buffer = perf_buffer__new_raw(map, RING_PAGES, &attr, on_event, bench, &opts);
	if (!bench->buffer)
		return -errno;
	for (int i = 0; i < RINGS; i++) {
		size_t size;
		void *base;

		if (perf_buffer__buffer(bench->buffer, i, &base, &size))
			return -EINVAL;
		bench->page[i] = base;
	}
	chunk = bpf_map_create(BPF_MAP_TYPE_ARRAY, "chunk", 4, CHUNK_BYTES, 1, &chunk_opts);
	if (chunk < 0)
		return chunk;
	bench->chunk = mmap(NULL, CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, chunk, 0);
	if (bench->chunk == MAP_FAILED)
		return -errno;
	for (enum layout i = 0; i < LAYOUTS; i++) {
		__u64 frame = sizeof(struct mw_frame) + parcel_records[i] * RECORD_BYTES;

		bench->program[i] = load_program(map, chunk, i);
		if (bench->program[i] < 0)
			return bench->program[i];
		bench->records[i] = (__u64)RING_PAGES * (__u64)getpagesize() / frame *
				    parcel_records[i] / (i == WOKEN ? WAKEUP_SHARE : 1);
		bench->records[i] -= bench->records[i] % CHUNK;
	}
	return 0;
}

static double run_libbpf(struct bench *bench)
{
	__u64 start = mw_clock(CLOCK_THREAD_CPUTIME_ID);

	if (perf_buffer__consume(bench->buffer) < 0)
		return 0;
	return (double)bench->seen * 1e9 / (double)(mw_clock(CLOCK_THREAD_CPUTIME_ID) - start);
}

static int drain(struct bench *bench, __u64 now_ns)
{
	struct mw_merge_run run;
	__u64 last = 0;
	int err;

	for (;;) {
		while (mw_merge_next_run(bench->merge, &run)) {
			if (run.at->time_ns < last && !(run.at->flags & MEMWATCH_RECORD_F_LATE))
				return -EBADMSG;
			last = run.at->time_ns;
			for (struct mw_merge_run rest = run; rest.left;)
				consume(bench, mw_merge_run_next(&rest));
		}
		err = mw_merge_round(bench->merge, now_ns);
		if (err <= 0)
			return err;
	}
}

static int open_merge(struct bench *bench)
{
	struct mw_merge_opts opts = { .grace_ns = GRACE_NS, .silent_ns = SILENT_NS };
	struct mw_ring ring;
	int err;

	err = mw_merge_new(&opts, &bench->merge);
	for (unsigned int i = 0; i < RINGS && err >= 0; i++) {
		mw_ring_init_perf(&ring, bench->page[i], (size_t)getpagesize(),
				  (size_t)RING_PAGES * (size_t)getpagesize());
		err = mw_merge_ring_add(bench->merge, i, &ring);
	}
	return err < 0 ? err : 0;
}

/* All that is in the rings, in order; the last ones as after a stop. */
static double run_merge(struct bench *bench, __u64 records)
{
	__u64 start;

	if (open_merge(bench))
		return 0;
	start = mw_clock(CLOCK_THREAD_CPUTIME_ID);
	if (drain(bench, bench->newest_ns))
		return 0;
	mw_merge_finish(bench->merge, bench->newest_ns);
	if (drain(bench, bench->newest_ns))
		return 0;
	start = mw_clock(CLOCK_THREAD_CPUTIME_ID) - start;
	bench->merge = mw_merge_free(bench->merge);
	return bench->seen == records ? (double)bench->seen * 1e9 / (double)start : 0;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values)
{
	qsort(values, REPEATS, sizeof(*values), by_value);
	return values[REPEATS / 2];
}

static bool report(const char *name, double value, const char *unit, double budget)
{
	printf("%s %.3f %s %.3f %s\n", name, value, unit, budget, value >= budget ? "ok" : "over");
	return value >= budget;
}

/* One round: the two, one after the other, of the same records; the sums must agree. */
static int measure(struct bench *bench, __u64 seed, enum layout layout, double *plain,
		   double *merged)
{
	__u64 sum;
	int err;

	err = fill(bench, seed, layout);
	if (err)
		return err;
	*plain = run_libbpf(bench);
	sum = bench->sum;
	/* the same times again, or the sums would differ */
	bench->newest_ns = bench->base_ns - 1000000000ULL;
	err = fill(bench, seed, layout);
	if (err)
		return err;
	*merged = run_merge(bench, bench->records[layout] * RINGS);
	return *plain > 0 && *merged > 0 && sum == bench->sum ? 0 : -EBADMSG;
}

int main(void)
{
	static double plain[LAYOUTS][REPEATS], merged[LAYOUTS][REPEATS], ratio[LAYOUTS][REPEATS];
	static struct bench bench;
	bool ok;
	int err;

	err = open_rings(&bench);
	/* memory that was used once is used again: the start is not what is measured */
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	if (err) {
		fprintf(stderr, "merge-bench: cannot open rings: %s\n", strerror(-err));
		return 4;
	}
	for (int i = 0; i < REPEATS * LAYOUTS && !err; i++) {
		double *a = &plain[i % LAYOUTS][i / LAYOUTS];
		double *b = &merged[i % LAYOUTS][i / LAYOUTS];

		err = measure(&bench, (__u64)i + 1, (enum layout)(i % LAYOUTS), a, b);
		ratio[i % LAYOUTS][i / LAYOUTS] = err ? 0 : *b / *a;
	}
	if (err) {
		fprintf(stderr, "merge-bench: cannot measure: %s\n", strerror(-err));
		return 4;
	}
	ok = report("merge_records_per_second", median(merged[TICKS]), "1/s", 15e6);
	ok &= report("merge_vs_libbpf_perf_buffer", median(ratio[TICKS]), "ratio", 0.5);
	ok &= report("merge_vs_libbpf_when_woken", median(ratio[WOKEN]), "ratio", 0.5);
	for (int i = 0; i < LAYOUTS; i++)
		fprintf(stderr, "# %s: %.1f M/s, libbpf alone %.1f M/s, ratio %.2f\n",
			layout_names[i], median(merged[i]) / 1e6, median(plain[i]) / 1e6,
			median(ratio[i]));
	perf_buffer__free(bench.buffer);
	return ok ? 0 : 1;
}
