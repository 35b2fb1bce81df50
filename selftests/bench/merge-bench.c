// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What does order cost? 128 rings, opened by libbpf's own perf_buffer, are
 * filled with the same records and read twice: by perf_buffer__consume(), which
 * orders nothing, and by the merge. Nobody may write into a perf ring but the
 * kernel, so a BPF program does that, with records made here. Prints one line
 * per budget: NAME value unit budget ok|over.
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

#include "../../lib/src/merge.h"
#include "../../lib/src/timemath.h"

#define RINGS	     128
#define RING_PAGES   64
#define RECORD_BYTES 64
#define CHUNK	     64 /* records per run of the program */
#define REPEATS	     15
#define GRACE_NS     2000000ULL
#define SILENT_NS    50000000ULL

/* A sample without its counters' tail: 64 bytes, as the budget says. */
struct bench_record {
	struct memwatch_record_header h;
	__u64 fill[(RECORD_BYTES - sizeof(struct memwatch_record_header)) / 8];
};

struct frame {
	struct perf_event_header header;
	__u32 raw_size;
	struct bench_record record;
	__u32 pad; /* as the kernel does */
} __attribute__((packed));

struct bench {
	struct perf_buffer *buffer;
	struct perf_event_mmap_page *page[RINGS];
	struct mw_merge *merge;
	struct bench_record *chunk; /* what the program sends */
	int program;
	int online;
	__u64 frames; /* in each ring */
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

/*
 * The program, unrolled: for each record of the chunk,
 * bpf_perf_event_output(ctx, rings, ctx[0], record, sizeof(record)).
 */
static int load_program(int rings, int chunk)
{
	static struct bpf_insn code[2 + CHUNK * 8 + 2];
	struct bpf_insn *at = code;

	*at++ = (struct bpf_insn){ BPF_ALU64 | BPF_MOV | BPF_X, 6, 1, 0, 0 };
	*at++ = (struct bpf_insn){ BPF_LDX | BPF_DW | BPF_MEM, 7, 1, 0, 0 };
	for (int i = 0; i < CHUNK; i++) {
		*at++ = (struct bpf_insn){ BPF_ALU64 | BPF_MOV | BPF_X, 1, 6, 0, 0 };
		*at++ = (struct bpf_insn){ BPF_LD | BPF_DW | BPF_IMM, 2, BPF_PSEUDO_MAP_FD, 0,
					   rings };
		*at++ = (struct bpf_insn){ 0, 0, 0, 0, 0 };
		*at++ = (struct bpf_insn){ BPF_ALU64 | BPF_MOV | BPF_X, 3, 7, 0, 0 };
		*at++ = (struct bpf_insn){ BPF_LD | BPF_DW | BPF_IMM, 4, BPF_PSEUDO_MAP_VALUE, 0,
					   chunk };
		*at++ = (struct bpf_insn){ 0, 0, 0, 0, i * RECORD_BYTES };
		*at++ = (struct bpf_insn){ BPF_ALU64 | BPF_MOV | BPF_K, 5, 0, 0, RECORD_BYTES };
		*at++ = (struct bpf_insn){ BPF_JMP | BPF_CALL, 0, 0, 0,
					   BPF_FUNC_perf_event_output };
	}
	*at++ = (struct bpf_insn){ BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0 };
	*at++ = (struct bpf_insn){ BPF_JMP | BPF_EXIT, 0, 0, 0, 0 };
	return bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "bench", "GPL", code,
			     (size_t)(at - code), NULL);
}

/* Records of one CPU: one in 100 us on average; with @disorder, some swapped. */
static int fill_ring(struct bench *bench, unsigned int cpu, __u64 seed, bool disorder)
{
	__u64 state = seed * 0x9e3779b97f4a7c15ULL + cpu + 1;
	__u64 time_ns = bench->base_ns;
	__u64 args[1] = { cpu };
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = args, .ctx_size_in = sizeof(args),
		    .flags = BPF_F_TEST_RUN_ON_CPU, .cpu = cpu % (unsigned int)bench->online);

	for (__u64 i = 0; i < bench->frames; i++) {
		struct bench_record *record = &bench->chunk[i % CHUNK];

		time_ns += next_random(&state) % 200000;
		record->h = (struct memwatch_record_header){
			.time_ns = time_ns, .type = 1000, .size = RECORD_BYTES, .cpu = (__u16)cpu,
		};
		if (disorder && next_random(&state) % 16 == 0)
			record->h.time_ns -= 150000;
		record->fill[0] = i;
		if (i % CHUNK == CHUNK - 1 && bpf_prog_test_run_opts(bench->program, &run))
			return -errno;
	}
	if (time_ns > bench->newest_ns)
		bench->newest_ns = time_ns;
	return 0;
}

static int fill(struct bench *bench, __u64 seed, bool disorder)
{
	bench->base_ns = bench->newest_ns + 1000000000ULL;
	bench->seen = 0;
	for (unsigned int i = 0; i < RINGS; i++) {
		int err = fill_ring(bench, i, seed, disorder);

		if (err)
			return err;
	}
	return 0;
}

static enum bpf_perf_event_ret on_event(void *ctx, int cpu, struct perf_event_header *event)
{
	struct bench *bench = ctx;
	struct frame *frame = (struct frame *)event;

	(void)cpu;
	bench->sum += frame->record.h.time_ns + frame->record.fill[0];
	bench->seen++;
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
	chunk = bpf_map_create(BPF_MAP_TYPE_ARRAY, "chunk", 4, CHUNK * RECORD_BYTES, 1,
			       &chunk_opts);
	if (chunk < 0)
		return chunk;
	bench->chunk = mmap(NULL, CHUNK * RECORD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, chunk,
			    0);
	if (bench->chunk == MAP_FAILED)
		return -errno;
	bench->program = load_program(map, chunk);
	if (bench->program < 0)
		return bench->program;
	bench->frames = (__u64)RING_PAGES * (__u64)getpagesize() / sizeof(struct frame);
	bench->frames -= bench->frames % CHUNK;
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
	const struct memwatch_record_header *header;
	__u64 last = 0;
	int err;

	for (;;) {
		while (mw_merge_next(bench->merge, &header)) {
			if (header->time_ns < last && !(header->flags & MEMWATCH_RECORD_F_LATE))
				return -EBADMSG;
			last = header->time_ns;
			bench->sum += last + ((const struct bench_record *)header)->fill[0];
			bench->seen++;
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

/* All that is in the rings, in order; the last ones by time-out, as on a machine that fell silent. */
static double run_merge(struct bench *bench)
{
	__u64 start;

	if (open_merge(bench))
		return 0;
	start = mw_clock(CLOCK_THREAD_CPUTIME_ID);
	if (drain(bench, bench->newest_ns) || drain(bench, bench->newest_ns + SILENT_NS + 1))
		return 0;
	start = mw_clock(CLOCK_THREAD_CPUTIME_ID) - start;
	bench->merge = mw_merge_free(bench->merge);
	return bench->seen == bench->frames * RINGS ? (double)bench->seen * 1e9 / (double)start : 0;
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

int main(void)
{
	static double plain[REPEATS], merged[REPEATS], mixed[REPEATS], ratio[REPEATS];
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
	for (int i = 0; i < REPEATS && !err; i++) {
		err = fill(&bench, (__u64)i + 1, false);
		plain[i] = run_libbpf(&bench);
		err = err ? err : fill(&bench, (__u64)i + 1, false);
		merged[i] = run_merge(&bench);
		err = err ? err : fill(&bench, (__u64)i + 1, true);
		mixed[i] = run_merge(&bench);
		ratio[i] = plain[i] > 0 ? merged[i] / plain[i] : 0;
	}
	if (err) {
		fprintf(stderr, "merge-bench: cannot fill rings: %s\n", strerror(-err));
		return 4;
	}
	ok = report("merge_records_per_second", median(merged), "1/s", 15e6);
	ok &= report("merge_disordered_records_per_second", median(mixed), "1/s", 15e6);
	ok &= report("merge_vs_libbpf_perf_buffer", median(ratio), "ratio", 0.5);
	fprintf(stderr, "merge-bench: libbpf alone: %.1f M/s\n", median(plain) / 1e6);
	perf_buffer__free(bench.buffer);
	return ok ? 0 : 1;
}
