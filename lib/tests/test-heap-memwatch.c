// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The reader of memwatch's own heap profiles, on files that are built here: what it finds in
 * a good one, and what it says about damaged ones.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memwatch/heap.h>

#include "../../selftests/prng.h"
#include "../../selftests/tap.h"
#include "heap-header.h"
#include "pprof-kit.h"

#define CHUNK 4096
#define START 1700000000000000000ULL

static struct memwatch_ctx *ctx;

/* A small profile: chunks of one page, in the order of their kinds. */
struct file {
	struct mw_heap_header header;
	char rest_of_header[MW_HEAP_PAGE_BYTES - sizeof(struct mw_heap_header)];
	struct mw_heap_chunk directory[MW_HEAP_PAGE_BYTES / sizeof(struct mw_heap_chunk)];
	struct mw_heap_sample samples[CHUNK / sizeof(struct mw_heap_sample)];
	struct mw_heap_stack stacks[CHUNK / sizeof(struct mw_heap_stack)];
	uint64_t frames[CHUNK / sizeof(uint64_t)];
	struct mw_heap_module modules[CHUNK / sizeof(struct mw_heap_module)];
	char strings[CHUNK];
	struct mw_heap_code code[CHUNK / sizeof(struct mw_heap_code)];
	char code_bytes[CHUNK];
};

static void fill_header(struct file *f)
{
	struct mw_heap_header *h = &f->header;

	heap_header_begin(h);
	h->pid = 1234;
	strcpy(h->comm, "worker");
	h->created_ns = 1000000000;
	h->created_realtime_ns = START;
	h->state = MW_HEAP_STATE_ACTIVE;
	h->began = MW_HEAP_BEGAN_PROCESS_START;
	h->began_ns = 1000000000;
	h->rate_bytes = 1000;
	h->unwinder.stacks = 10;
	h->unwinder.stacks_fp_only = 3;
	h->unwinder.stacks_truncated = 1;
	h->counters.samples = 5;
	h->counters.lost_samples = 2;
	h->counters.peak_live_ns = 11000000000;
	for (uint32_t i = 0; i < 7; i++)
		f->directory[i] = (struct mw_heap_chunk){
			.offset = MW_HEAP_CHUNKS_OFFSET + i * CHUNK, .kind = i + 1, .bytes = CHUNK
		};
}

/* Two live samples of one stack: a native function that an interpreted one called. */
static struct file *build_file(void)
{
	struct file *f = calloc(1, sizeof(*f));

	fill_header(f);
	f->samples[1] = (struct mw_heap_sample){ .state = 1 << 2 | MW_HEAP_SAMPLE_LIVE,
						 .address = 0x1000,
						 .size = 1000,
						 .rate = 1000,
						 .time_ns = 3000000000,
						 .stack = 1 };
	f->samples[2] = f->samples[1];
	f->samples[2].address = 0x2000;
	f->samples[2].time_ns = 9000000000;
	f->samples[3] = f->samples[1];
	f->samples[3].state = 1 << 2 | MW_HEAP_SAMPLE_WRITING;
	f->samples[4] = f->samples[1];
	f->samples[4].stack = 99;
	f->stacks[0].ready = 1;
	f->stacks[1] = (struct mw_heap_stack){ .ready = 1,
					       .depth = 2,
					       .frames = 7,
					       .alloc_samples = 4,
					       .alloc_bytes = 6000,
					       .alloc_objects = 6,
					       .alloc_bytes_variance = 100,
					       .free_samples = 2 };
	f->stacks[1].lifetime[20] = 2;
	f->frames[7] = 1ULL << 48 | 0x4321;
	f->frames[8] = 0xffffULL << 48 | 0 << 24 | 17;
	strcpy(f->strings + 100, "/usr/bin/worker");
	strcpy(f->code_bytes + 200, "run");
	strcpy(f->code_bytes + 300, "/srv/job.py");
	memcpy(f->code_bytes + 400, "\xd0\x09\x0a\xe8\x06", 5);
	f->modules[0] = (struct mw_heap_module){ .ready = 1,
						 .bias = 0x55550000,
						 .start = 0x55550000,
						 .end = 0x55560000,
						 .path = 100,
						 .path_bytes = 15,
						 .build_id_bytes = 2,
						 .build_id = { 0xab, 0xcd } };
	f->code[0] = (struct mw_heap_code){
		.ready = 1, .file = 300, .file_bytes = 11, .name = 200, .name_bytes = 3
	};
	return f;
}

static struct memwatch_heap *read_file(const void *bytes, size_t len, int *error)
{
	struct memwatch_heap *heap = NULL;
	int fd = memfd_create("profile", MFD_CLOEXEC);

	if (write(fd, bytes, len) != (ssize_t)len || lseek(fd, 0, SEEK_SET) ||
	    memwatch_heap_new(ctx, NULL, &heap))
		exit(EXIT_FAILURE);
	*error = memwatch_heap_add_fd(heap, fd, "profile");
	close(fd);
	return *error < 0 ? memwatch_heap_unref(heap) : heap;
}

static void check_info(struct memwatch_heap *heap)
{
	MEMWATCH_OPTS(memwatch_heap_info, info);

	memwatch_heap_get_info(heap, 0, &info);
	tap_eq(info.format, MEMWATCH_HEAP_MEMWATCH, "it is a profile of memwatch");
	tap_eq(info.pid, 1234, "it has the process");
	tap_str_eq(info.comm, "worker", "it has the name of the process");
	tap_eq(info.from_start, 1, "it says whether it began with the process");
	tap_eq(info.samples, 2, "it has the live samples whose stacks exist");
	tap_eq(info.state, MEMWATCH_HEAP_STATE_ACTIVE, "it has the state");
	tap_eq(info.start_ns, START, "it has the time of its start");
	tap_eq(info.end_ns, START + 10000000000, "its end is the latest time in it");
	tap_eq(info.frame_pointer, 3, "it counts stacks of frame pointers");
	tap_eq(info.unwound, 7, "it counts stacks that were unwound");
	tap_eq(info.truncated, 1, "it counts truncated stacks");
	tap_eq(info.lost, 2, "it counts lost samples");
}

static void test_good_file(void)
{
	struct file *f = build_file();
	struct memwatch_heap_view *view;
	struct memwatch_heap *heap;
	MEMWATCH_OPTS(memwatch_heap_frame, frame);
	MEMWATCH_OPTS(memwatch_heap_row, row);
	double p = 1 - exp(-1.0);
	int error;

	heap = read_file(f, sizeof(*f), &error);
	if (!tap_eq(error, 0, "a profile is read")) {
		tap_note("%s", memwatch_ctx_error(ctx));
		exit(EXIT_FAILURE);
	}
	check_info(heap);
	if (memwatch_heap_view_new(heap, NULL, &view))
		exit(EXIT_FAILURE);
	tap_eq(memwatch_heap_view_get_row(view, 0, &row), 1, "it has a site");
	tap_ok(fabs(row.flat[0].value - 2000 / p) < 1e-6, "a sample stands for size / p bytes");
	tap_ok(fabs(row.flat[1].value - 2 / p) < 1e-6, "a sample stands for 1 / p objects");
	tap_eq(row.flat[2].value, 6000, "allocated bytes are those of the stack");
	tap_eq(row.flat[3].value, 6, "allocated objects are those of the stack");
	tap_ok(fabs(row.age_seconds[0] - 2) < 1e-9, "the median age is that of one of two samples");
	tap_ok(fabs(row.age_seconds[1] - 8) < 1e-9, "the 90th percentile is that of the older one");
	tap_ok(row.lifetime_seconds[0] > 0.53 && row.lifetime_seconds[0] < 1.08,
	       "the lifetime is in its bin");
	tap_eq(memwatch_heap_view_get_frame(view, 0, 0, &frame), 1, "it has an innermost frame");
	tap_str_eq(frame.module, "/usr/bin/worker", "a frame has its module");
	tap_eq(frame.address, 0x4321, "a frame has its address in the file");
	tap_eq(memwatch_heap_view_get_frame(view, 0, 1, &frame), 1, "it has an interpreted frame");
	tap_str_eq(frame.function, "run", "an interpreted frame has its function");
	tap_str_eq(frame.file, "/srv/job.py", "an interpreted frame has its file");
	tap_eq(frame.line, 17, "an interpreted frame has its line");
	tap_str_eq(frame.module, "/srv/job.py", "the module of an interpreted frame is its file");
	memwatch_heap_view_unref(view);
	memwatch_heap_unref(heap);
	free(f);
}

/* The line of the interpreted frame of a file. */
static uint32_t interpreted_line(const struct file *f)
{
	MEMWATCH_OPTS(memwatch_heap_frame, frame);
	struct memwatch_heap_view *view;
	struct memwatch_heap *heap;
	int error;

	heap = read_file(f, sizeof(*f), &error);
	if (error || memwatch_heap_view_new(heap, NULL, &view))
		exit(EXIT_FAILURE);
	if (memwatch_heap_view_get_frame(view, 0, 1, &frame) != 1)
		exit(EXIT_FAILURE);
	memwatch_heap_view_unref(view);
	memwatch_heap_unref(heap);
	return frame.line;
}

/* A code object with a table: instructions 0 and 1 are in lines 50 and 53. */
static void test_lines(void)
{
	struct file *f = build_file();
	int error;

	f->code[0].first_line = 50;
	f->code[0].lines = 400;
	f->code[0].lines_bytes = 5;
	f->frames[8] = 0xffffULL << 48 | 0 << 24 | 1;
	tap_eq(interpreted_line(f), 50, "the line of an instruction is looked up");
	f->frames[8]++;
	tap_eq(interpreted_line(f), 53, "the next instruction is in another line");
	f->frames[8] = 0xffffULL << 48 | 0 << 24 | 0;
	tap_eq(interpreted_line(f), 50, "a function that has not begun is in its first line");
	f->frames[8] = 0xffffULL << 48 | 0 << 24 | 99;
	tap_eq(interpreted_line(f), 0, "an instruction that does not exist has no line");
	f->frames[8] = 0xffffULL << 48 | 9ULL << 24 | 1;
	tap_eq(interpreted_line(f), 0, "a code object that does not exist has no line");
	f->code[0].lines_bytes = UINT32_MAX;
	read_file(f, sizeof(*f), &error);
	tap_eq(error, -EBADMSG, "tables of lines that are larger than the file are refused");
	free(f);
}

/* Mapped memory is told apart from the heap; a copy says what time it shows. */
static void test_mappings(void)
{
	struct file *f = build_file();
	struct memwatch_heap_view *view;
	struct memwatch_heap *heap;
	MEMWATCH_OPTS(memwatch_heap_frame, frame);
	MEMWATCH_OPTS(memwatch_heap_info, info);
	int error;

	f->stacks[1].flags = MW_HEAP_STACK_MMAP;
	f->header.snapshot_ns = f->header.created_ns + 60000000000;
	heap = read_file(f, sizeof(*f), &error);
	if (error || memwatch_heap_view_new(heap, NULL, &view))
		exit(EXIT_FAILURE);
	memwatch_heap_get_info(heap, 0, &info);
	tap_eq(info.end_ns, START + 60000000000, "a copy ends when it was made");
	tap_eq(memwatch_heap_view_get_frame(view, 0, 0, &frame), 1, "mapped memory has a frame");
	tap_str_eq(frame.function, "[mmap]", "mapped memory has its own innermost frame");
	tap_eq(memwatch_heap_view_get_frame(view, 0, 1, &frame), 1, "its caller is the next frame");
	tap_eq(frame.address, 0x4321, "the caller's frame has its address");
	memwatch_heap_view_unref(view);
	memwatch_heap_unref(heap);
	free(f);
}

/* A library was seen before the program, which is the first mapping of pprof all the same. */
static void test_written_program(void)
{
	struct file *f = build_file();
	struct pprof_kit_mapping mapping;
	struct memwatch_heap *heap;
	int error;

	f->modules[1] = f->modules[0];
	f->modules[1].flags = MW_HEAP_MODULE_EXE;
	f->modules[1].start = 0x400000;
	f->frames[8] = 2ULL << 48 | 0x1234;
	for (int used = 1; used >= 0; used--) {
		const char *title = used ? "a program with samples" : "a program without samples";

		f->stacks[1].depth = 1 + (uint32_t)used;
		heap = read_file(f, sizeof(*f), &error);
		tap_ok(pprof_kit_mapping(ctx, heap, 0, &mapping) &&
			       mapping.fields[MW_PPROF_MAPPING_START] == 0x400000,
		       "%s is the first mapping of pprof", title);
		tap_ok(pprof_kit_mapping(ctx, heap, 1, &mapping) &&
			       mapping.fields[MW_PPROF_MAPPING_START] == 0x55550000,
		       "%s: the library is the second mapping", title);
		tap_ok(!pprof_kit_mapping(ctx, heap, 2, &mapping),
		       "%s: there are no other mappings", title);
		memwatch_heap_unref(heap);
	}
	free(f);
}

/* Another program that copies a file that is being written may miss frames and samples of it. */
static void test_missing_frames(void)
{
	struct file *f = build_file();
	struct memwatch_heap_view *view;
	struct memwatch_heap *heap;
	MEMWATCH_OPTS(memwatch_heap_row, row);
	int error;

	f->stacks[1].frames = CHUNK / 8 - 1;
	heap = read_file(f, sizeof(*f), &error);
	if (!tap_eq(error, 0, "a profile that lacks frames is read"))
		return;
	if (memwatch_heap_view_new(heap, NULL, &view))
		exit(EXIT_FAILURE);
	tap_eq(memwatch_heap_view_get_row(view, 0, &row), 1, "its samples are shown");
	tap_eq(row.frames, 0, "a stack whose frames are missing is an unknown stack");
	memwatch_heap_view_unref(view);
	memwatch_heap_unref(heap);
	free(f);
}

static void test_damaged_files(void)
{
	struct file *f = build_file(), *bad = malloc(sizeof(*bad));
	static const char *const titles[] = {
		"a newer version",
		"an impossible size of samples",
		"a chunk beyond the file",
		"chunks that overlap",
		"a stack that is too deep",
		"sums that are no numbers",
		"a header that is too large",
	};
	static const int errors[] = { -EPROTO,	-EBADMSG, -EBADMSG, -EBADMSG,
				      -EBADMSG, -EBADMSG, -EBADMSG };

	for (int i = 0; i < 7; i++) {
		int error;

		*bad = *f;
		if (i == 0)
			bad->header.version++;
		else if (i == 1)
			bad->header.sample_bytes = 0;
		else if (i == 2)
			bad->directory[5].offset = sizeof(*f) - 1;
		else if (i == 3)
			bad->directory[7] = bad->directory[0];
		else if (i == 4)
			bad->stacks[1].depth = MW_HEAP_DEPTH_MAX + 1;
		else if (i == 5)
			bad->stacks[1].alloc_objects = NAN;
		else
			bad->header.header_bytes = MW_HEAP_PAGE_BYTES + 1;
		read_file(bad, sizeof(*bad), &error);
		tap_eq(error, errors[i], "%s: refused (%s)", titles[i], memwatch_ctx_error(ctx));
	}
	free(bad);
	free(f);
}

/* Whatever is in the file, it is read or refused, and the sanitizers find nothing. */
static void test_random_damage(void)
{
	struct file *f = build_file(), *bad = malloc(sizeof(*bad));
	struct prng prng = { 42 };
	unsigned int good = 0, cut_off = 0, refused = 0;

	for (int i = 0; i < 2000; i++) {
		struct memwatch_heap *heap;
		int error;

		*bad = *f;
		for (uint64_t n = prng_below(&prng, 8) + 1; n > 0; n--) {
			static const uint64_t values[] = { 0, 1, UINT64_MAX, 1ULL << 63, 4096 };
			size_t at = prng_below(&prng, sizeof(*bad) / 8) * 8;

			/* Most of the file is empty; aim at the header and the first elements. */
			if (prng_below(&prng, 4))
				at = at / CHUNK * CHUNK + at % 512;
			memcpy((char *)bad + at, &values[prng_below(&prng, 5)], 8);
		}
		heap = read_file(bad, sizeof(*bad), &error);
		good += heap != NULL;
		memwatch_heap_unref(heap);
	}
	tap_note("%u of 2000 damaged files were still readable", good);
	tap_ok(good > 0 && good < 2000, "damaged files are read or refused");
	for (size_t len = 0; len < sizeof(*f); len += 509) {
		int error;

		read_file(f, len, &error);
		refused += error == -EBADMSG || error == -ENOMSG;
		cut_off++;
	}
	tap_eq(refused, cut_off, "files that are cut off are refused");
	free(bad);
	free(f);
}

int main(void)
{
	tap_start();
	if (memwatch_ctx_new(NULL, &ctx))
		return EXIT_FAILURE;
	test_good_file();
	test_lines();
	test_mappings();
	test_written_program();
	test_missing_frames();
	test_damaged_files();
	test_random_damage();
	memwatch_ctx_unref(ctx);
	return tap_done();
}
