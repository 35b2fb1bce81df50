// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Compares the merge with perf_buffer__consume() of libbpf, which does not sort. 128 rings,
 * opened by perf_buffer, are filled with the same records twice, and read once by each of
 * the two. Both pass each record to the same consumer, which reads all of it. The rings are
 * full, and in another measurement a quarter full, which is when the live stream wakes its
 * reader (loader/relay.c).
 *
 * Only the kernel may write to a perf ring, so a BPF program sends records that are made
 * here. They have the layout of the relay: at each tick, a CPU sends its samples and the tick
 * as one batch with one time, and no two CPUs tick at the same time.
 *
 * Prints one line per budget: NAME value unit budget ok|over. Lines that start with "#" are
 * for information. The ratio to libbpf is among them and has no budget, because it depends on
 * the memory of the machine: the same build gave 0.36 on one and 0.64 on another.
 *
 * Needs the permission to open perf events and to load a BPF program.
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

#include "../prng.h"
#include "merge/merge.h"
#include "base/timemath.h"

#define RINGS	     128
#define RING_PAGES   64
#define WAKEUP_SHARE 4 /* a ring wakes its reader when 1 / WAKEUP_SHARE of it is filled */
#define RECORD_BYTES 64
#define CHUNK	     64 /* records per run of the program */
#define CHUNK_BYTES  (CHUNK * (RECORD_BYTES + 2 * sizeof(__u32)))
#define REPEATS	     15
#define TICK_RECORDS 8 /* samples of a tick, and the tick */
#define PERIOD_NS    1000000ULL
#define JITTER_NS    20000ULL
#define GRACE_NS     2000000ULL
#define SILENT_NS    50000000ULL

/* The budget is for records of 64 bytes; a sample with its counters is larger. */
struct bench_record {
	struct memwatch_record_header h;
	__u64 fill[(RECORD_BYTES - sizeof(struct memwatch_record_header)) / 8];
};

enum layout {
	TICKS,	    /* as the relay sends them, in full rings */
	WOKEN,	    /* the same, in rings that are filled as far as wakes the reader */
	SCATTERED,  /* each record has a time of its own, so that the rings alternate */
	DISORDERED, /* the same, and one record in 16 has an earlier time */
	LAYOUTS,
};

static const char *const layout_names[LAYOUTS] = { "ticks", "when woken", "scattered",
						   "disordered" };

/* Records in a batch. */
static const unsigned int batch_records[LAYOUTS] = { TICK_RECORDS, TICK_RECORDS, 1, 1 };

struct bench {
	struct perf_buffer *buffer;
	struct perf_event_mmap_page *page[RINGS];
	struct mw_merge *merge;
	char *chunk; /* what the programs send: batches, each as struct mw_relay_batch */
	int program[LAYOUTS];
	int online;
	__u64 records[LAYOUTS]; /* records for each ring */
	__u64 base_ns;
	__u64 newest_ns;
	__u64 sum;
	__u64 seen;
};

/* Bytes of a batch in the chunk. */
static int batch_stride(enum layout layout)
{
	return (int)(2 * sizeof(__u32) + batch_records[layout] * RECORD_BYTES);
}

/*
 * Loads a program that calls bpf_perf_event_output(ctx, rings, ctx[0], batch, size) for each
 * batch of the chunk.
 */
static int load_program(int rings, int chunk, enum layout layout)
{
	int batches = CHUNK / (int)batch_records[layout];
	int unsent = sizeof(__u32);
	static struct bpf_insn code[2 + CHUNK * 8 + 2];
	struct bpf_insn *at = code;

	*at++ = (struct bpf_insn){ BPF_ALU64 | BPF_MOV | BPF_X, 6, 1, 0, 0 };
	*at++ = (struct bpf_insn){ BPF_LDX | BPF_DW | BPF_MEM, 7, 1, 0, 0 };
	for (int i = 0; i < batches; i++) {
		*at++ = (struct bpf_insn){ BPF_ALU64 | BPF_MOV | BPF_X, 1, 6, 0, 0 };
		*at++ = (struct bpf_insn){ BPF_LD | BPF_DW | BPF_IMM, 2, BPF_PSEUDO_MAP_FD, 0,
					   rings };
		*at++ = (struct bpf_insn){ 0, 0, 0, 0, 0 };
		*at++ = (struct bpf_insn){ BPF_ALU64 | BPF_MOV | BPF_X, 3, 7, 0, 0 };
		*at++ = (struct bpf_insn){ BPF_LD | BPF_DW | BPF_IMM, 4, BPF_PSEUDO_MAP_VALUE, 0,
					   chunk };
		*at++ = (struct bpf_insn){ 0, 0, 0, 0, i * batch_stride(layout) + unsent };
		*at++ = (struct bpf_insn){ BPF_ALU64 | BPF_MOV | BPF_K, 5, 0, 0,
					   batch_stride(layout) - unsent };
		*at++ = (struct bpf_insn){ BPF_JMP | BPF_CALL, 0, 0, 0,
					   BPF_FUNC_perf_event_output };
	}
	*at++ = (struct bpf_insn){ BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0 };
	*at++ = (struct bpf_insn){ BPF_JMP | BPF_EXIT, 0, 0, 0, 0 };
	return bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "bench", "GPL", code,
			     (size_t)(at - code), NULL);
}

static __u64 next_time(__u64 before_ns, __u64 base_ns, __u64 i, enum layout layout,
		       struct prng *prng)
{
	if (batch_records[layout] == 1)
		return before_ns + prng_below(prng, 2 * PERIOD_NS / TICK_RECORDS);
	if (i % TICK_RECORDS)
		return before_ns;
	return base_ns + i / TICK_RECORDS * PERIOD_NS + prng_below(prng, JITTER_NS);
}

/* The place of record @i of the chunk; sets the number of records of its batch. */
static struct bench_record *chunk_record(struct bench *bench, __u64 i, enum layout layout)
{
	__u64 records = batch_records[layout];
	char *batch = bench->chunk + i / records * (__u64)batch_stride(layout);

	((__u32 *)batch)[1] = (__u32)records;
	return (struct bench_record *)(batch + 2 * sizeof(__u32)) + i % records;
}

/* Fills one ring. In all layouts, a CPU sends the same number of records per second. */
static int fill_ring(struct bench *bench, unsigned int cpu, __u64 seed, enum layout layout)
{
	struct prng prng = { seed << 16 | cpu };
	__u64 time_ns = bench->base_ns;
	__u64 args[1] = { cpu };
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = args, .ctx_size_in = sizeof(args),
		    .flags = BPF_F_TEST_RUN_ON_CPU, .cpu = cpu % (unsigned int)bench->online);

	for (__u64 i = 0; i < bench->records[layout]; i++) {
		struct bench_record *record = chunk_record(bench, i % CHUNK, layout);
		bool tick = batch_records[layout] > 1 && i % TICK_RECORDS == TICK_RECORDS - 1;

		time_ns = next_time(time_ns, bench->base_ns, i, layout, &prng);
		record->h = (struct memwatch_record_header){
			.time_ns = time_ns,
			.type = tick ? MEMWATCH_RECORD_TICK : 1000,
			.size = RECORD_BYTES,
			.cpu = (__u16)cpu,
		};
		if (layout == DISORDERED && !prng_below(&prng, 16))
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

static int fill_rings(struct bench *bench, __u64 seed, enum layout layout)
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

/* Both sides read each record, which is aligned in the ring. */
static inline void read_record(struct bench *bench, const void *record)
{
	const __u64 *words = record;

	bench->sum += words[0] + words[1] + words[2] + words[3] + words[4] + words[5] + words[6] +
		      words[7];
	bench->seen++;
}

/*
 * libbpf calls this once per frame, so batches make its side of the comparison faster as
 * well.
 */
static enum bpf_perf_event_ret on_event(void *ctx, int cpu, struct perf_event_header *event)
{
	const struct mw_frame *frame = (const struct mw_frame *)event;
	const char *record = (const char *)(frame + 1);

	(void)cpu;
	for (__u32 i = 0; i < frame->records; i++) {
		read_record(ctx, record);
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
		__u64 frame = sizeof(struct mw_frame) + batch_records[i] * RECORD_BYTES;

		bench->program[i] = load_program(map, chunk, i);
		if (bench->program[i] < 0)
			return bench->program[i];
		bench->records[i] = (__u64)RING_PAGES * (__u64)getpagesize() / frame *
				    batch_records[i] / (i == WOKEN ? WAKEUP_SHARE : 1);
		bench->records[i] -= bench->records[i] % CHUNK;
	}
	return 0;
}

/* Records per second of CPU time; 0 on failure. */
static double run_libbpf(struct bench *bench)
{
	__u64 start = mw_clock(CLOCK_THREAD_CPUTIME_ID);

	if (perf_buffer__consume(bench->buffer) < 0)
		return 0;
	return (double)bench->seen * 1e9 / (double)(mw_clock(CLOCK_THREAD_CPUTIME_ID) - start);
}

static int read_merge(struct bench *bench, __u64 now_ns)
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
				read_record(bench, mw_merge_run_next(&rest));
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

/* Records per second of CPU time; 0 on failure. Reads to the end, as after a stop. */
static double run_merge(struct bench *bench, __u64 records)
{
	__u64 start;

	if (open_merge(bench))
		return 0;
	start = mw_clock(CLOCK_THREAD_CPUTIME_ID);
	if (read_merge(bench, bench->newest_ns))
		return 0;
	mw_merge_finish(bench->merge, bench->newest_ns);
	if (read_merge(bench, bench->newest_ns))
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

static double find_median(double *values)
{
	qsort(values, REPEATS, sizeof(*values), by_value);
	return values[REPEATS / 2];
}

static bool print_rate(const char *name, double value, double budget)
{
	printf("%s %.0f 1/s %.0f %s\n", name, value, budget, value >= budget ? "ok" : "over");
	return value >= budget;
}

/* Measures libbpf and then the merge with the same records; their sums must agree. */
static int measure_both(struct bench *bench, __u64 seed, enum layout layout, double *plain,
			double *merged)
{
	__u64 sum;
	int err;

	err = fill_rings(bench, seed, layout);
	if (err)
		return err;
	*plain = run_libbpf(bench);
	sum = bench->sum;
	/* use the same times again, because they are part of the sum */
	bench->newest_ns = bench->base_ns - 1000000000ULL;
	err = fill_rings(bench, seed, layout);
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
	/* keep freed memory, so that page faults at the start are not measured */
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	if (err) {
		fprintf(stderr, "merge-bench: cannot open rings: %s\n", strerror(-err));
		return 4;
	}
	for (int i = 0; i < REPEATS * LAYOUTS && !err; i++) {
		double *a = &plain[i % LAYOUTS][i / LAYOUTS];
		double *b = &merged[i % LAYOUTS][i / LAYOUTS];

		err = measure_both(&bench, (__u64)i + 1, (enum layout)(i % LAYOUTS), a, b);
		ratio[i % LAYOUTS][i / LAYOUTS] = err ? 0 : *b / *a;
	}
	if (err) {
		fprintf(stderr, "merge-bench: cannot measure: %s\n", strerror(-err));
		return 4;
	}
	ok = print_rate("merge_records_per_second", find_median(merged[TICKS]), 15e6);
	ok &= print_rate("merge_records_per_second_when_woken", find_median(merged[WOKEN]), 15e6);
	for (int i = 0; i < LAYOUTS; i++)
		fprintf(stderr, "# %s: %.1f M/s, libbpf alone %.1f M/s, ratio %.2f\n",
			layout_names[i], find_median(merged[i]) / 1e6, find_median(plain[i]) / 1e6,
			find_median(ratio[i]));
	perf_buffer__free(bench.buffer);
	return ok ? 0 : 1;
}
