// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The readers of heap profiles: what they accept, how they unsample it, and what they refuse.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memwatch/heap.h>

#include "heap/wire.h"
#include "../../selftests/tap.h"
#include "pprof-kit.h"

static struct memwatch_ctx *ctx;

/* A heap with the one profile @bytes, or NULL; @error is the result of the addition. */
static struct memwatch_heap *read_bytes(const void *bytes, size_t len, int *error)
{
	struct memwatch_heap *heap = NULL;
	int fd = memfd_create("profile", MFD_CLOEXEC);

	if (fd < 0 || write(fd, bytes, len) != (ssize_t)len || lseek(fd, 0, SEEK_SET) ||
	    memwatch_heap_new(ctx, NULL, &heap))
		exit(EXIT_FAILURE);
	*error = memwatch_heap_add_fd(heap, fd, "profile");
	close(fd);
	return *error < 0 ? memwatch_heap_unref(heap) : heap;
}

static struct memwatch_heap *read_text(const char *text)
{
	int error;
	struct memwatch_heap *heap = read_bytes(text, strlen(text), &error);

	if (!heap) {
		tap_note("%s", memwatch_ctx_error(ctx));
		exit(EXIT_FAILURE);
	}
	return heap;
}

static struct memwatch_heap_row total_of(struct memwatch_heap *heap, uint32_t metric)
{
	MEMWATCH_OPTS(memwatch_heap_view_opts, opts, .metric = metric);
	MEMWATCH_OPTS(memwatch_heap_row, row);
	struct memwatch_heap_view *view;

	if (memwatch_heap_view_new(heap, &opts, &view))
		exit(EXIT_FAILURE);
	memwatch_heap_view_get_total(view, &row);
	memwatch_heap_view_unref(view);
	return row;
}

static void test_jemalloc(void)
{
	struct memwatch_heap *heap = read_text("heap_v2/1000\n"
					       "  t*: 3: 2100 [0: 0]\n"
					       "@ 0x401001 0x401101\n"
					       "  t*: 2: 2000 [0: 0]\n"
					       "  t3: 2: 2000 [0: 0]\n"
					       "@ 0x401001 0x402001\n"
					       "  t*: 1: 100 [0: 0]\n"
					       "\nMAPPED_LIBRARIES:\n"
					       "400000-401000 r--p 00000000 08:01 1 /a b\n"
					       "401000-402000 r-xp 00001000 08:01 1 /a b\n");
	MEMWATCH_OPTS(memwatch_heap_info, info);
	MEMWATCH_OPTS(memwatch_heap_frame, frame);
	MEMWATCH_OPTS(memwatch_heap_row, row);
	struct memwatch_heap_view *view;
	double large = 1 - exp(-1.0), small = 1 - exp(-0.1);

	memwatch_heap_get_info(heap, 0, &info);
	tap_eq(info.format, MEMWATCH_HEAP_JEMALLOC, "heap_v2 is a profile of jemalloc");
	tap_eq(info.rate_bytes, 1000, "the rate is in the first line");
	tap_eq(info.metrics, 3, "without accumulated numbers there are no allocated ones");
	tap_eq(info.samples, 2, "the lines of single threads are no samples of their own");
	row = total_of(heap, MEMWATCH_HEAP_LIVE_BYTES);
	tap_ok(fabs(row.flat[0].value - (2000 / large + 100 / small)) < 1e-6,
	       "bytes are unsampled as jeprof does it");
	tap_ok(fabs(row.flat[1].value - (2 / large + 1 / small)) < 1e-6,
	       "objects are unsampled as jeprof does it");
	tap_ok(row.flat[0].low < row.flat[0].value && row.flat[0].high > row.flat[0].value,
	       "an estimate has an interval");
	tap_eq(memwatch_heap_view_new(heap, NULL, &view), 0, "a profile of jemalloc has a view");
	tap_eq(memwatch_heap_view_get_frame(view, 0, 1, &frame), 1, "a site has its outer frames");
	tap_str_eq(frame.module, "/a b", "a frame has its module");
	tap_eq(frame.address, 0x1100, "an address is that of the call, in the file");
	memwatch_heap_view_unref(view);
	memwatch_heap_unref(heap);
}

static void test_gperftools(void)
{
	struct memwatch_heap *heap;
	MEMWATCH_OPTS(memwatch_heap_info, info);
	struct memwatch_heap_row row;

	heap = read_text("heap profile:  3: 300 [ 5: 900] @ heapprofile\n"
			 "  2: 200 [ 4: 800] @ 0x401001 0x401101\n"
			 "  1: 100 [ 1: 100] @\n"
			 "\nMAPPED_LIBRARIES:\n");
	memwatch_heap_get_info(heap, 0, &info);
	tap_eq(info.format, MEMWATCH_HEAP_GPERFTOOLS, "heap profile is one of gperftools");
	tap_eq(info.metrics, 15, "allocated numbers are read");
	row = total_of(heap, MEMWATCH_HEAP_ALLOCATED_BYTES);
	tap_eq(row.flat[0].value, 300, "a profile of all allocations is not unsampled");
	tap_eq(row.flat[2].value, 900, "allocated bytes are in brackets");
	tap_eq(row.flat[0].high, 300, "an exact value has no error");
	memwatch_heap_unref(heap);

	heap = read_text("heap profile: 1: 100 [ 1: 100] @ heap_v2/1000\n"
			 "1: 100 [ 1: 100] @ 0x401001\n");
	row = total_of(heap, MEMWATCH_HEAP_LIVE_OBJECTS);
	tap_ok(fabs(row.flat[1].value - 1 / (1 - exp(-0.1))) < 1e-9,
	       "heap_v2 is unsampled as google-pprof does it");
	memwatch_heap_unref(heap);

	heap = read_text("heap profile: 1: 100 [ 1: 100] @ heap/1000\n"
			 "1: 100 [ 1: 100] @ 0x401001\n"
			 "1: 800 [ 1: 800] @ 0x401002\n");
	row = total_of(heap, MEMWATCH_HEAP_LIVE_BYTES);
	tap_ok(fabs(row.flat[0].value - 1300) < 1e-9,
	       "the old sampling is unsampled as google-pprof does it");
	memwatch_heap_unref(heap);
}

/* Appends a message of integers: pairs of field and value, ended by field 0. */
static void put_numbers(struct mw_wire_out *out, uint32_t field, const uint64_t *pairs)
{
	struct mw_wire_out inner = { 0 };

	for (; *pairs; pairs += 2)
		mw_wire_put(&inner, (uint32_t)pairs[0], pairs[1]);
	mw_wire_put_message(out, field, &inner);
	mw_wire_out_uninit(&inner);
}

/* A location whose lines are pairs of the id of a function and a number, ended by function 0. */
static void put_lines(struct mw_wire_out *out, uint64_t id, uint64_t mapping, const uint64_t *pairs)
{
	struct mw_wire_out inner = { 0 }, innermost = { 0 };

	mw_wire_put(&inner, 1, id);
	mw_wire_put(&inner, 2, mapping);
	for (; *pairs; pairs += 2) {
		mw_wire_put(&innermost, 1, pairs[0]);
		mw_wire_put(&innermost, 2, pairs[1]);
		mw_wire_put_message(&inner, 4, &innermost);
	}
	mw_wire_put_message(out, 4, &inner);
	mw_wire_out_uninit(&inner);
	mw_wire_out_uninit(&innermost);
}

/* A location whose one line is in the function with the same id. */
static void put_location(struct mw_wire_out *out, uint64_t id, uint64_t line)
{
	put_lines(out, id, 1, (uint64_t[]){ id, line, 0 });
}

static void put_strings(struct mw_wire_out *out, const char *const *strings)
{
	for (; *strings; strings++)
		mw_wire_put_bytes(out, 6, *strings, strlen(*strings));
}

static void build_go_profile(struct mw_wire_out *out)
{
	static const char *const strings[] = {
		"",	     "alloc_objects", "count",	     "alloc_space",
		"bytes",     "inuse_objects", "inuse_space", "space",
		"main.leak", "/src/main.go",  "main.main",   "/bin/prog",
		NULL
	};

	put_numbers(out, 1, (uint64_t[]){ 1, 1, 2, 2, 0 });
	put_numbers(out, 1, (uint64_t[]){ 1, 3, 2, 4, 0 });
	put_numbers(out, 1, (uint64_t[]){ 1, 5, 2, 2, 0 });
	put_numbers(out, 1, (uint64_t[]){ 1, 6, 2, 4, 0 });
	/* locations 7 and 8, values 40, 4000, 10, 1000: not packed */
	put_numbers(out, 2, (uint64_t[]){ 1, 7, 1, 8, 2, 40, 2, 4000, 2, 10, 2, 1000, 0 });
	put_location(out, 7, 12);
	put_location(out, 8, 20);
	put_numbers(out, 3, (uint64_t[]){ 1, 1, 2, 0x400000, 3, 0x500000, 5, 11, 0 });
	put_numbers(out, 5, (uint64_t[]){ 1, 7, 2, 8, 4, 9, 0 });
	put_numbers(out, 5, (uint64_t[]){ 1, 8, 2, 10, 4, 9, 0 });
	put_strings(out, strings);
	put_numbers(out, 11, (uint64_t[]){ 1, 7, 2, 4, 0 });
	mw_wire_put(out, 12, 1000);
	mw_wire_put(out, 9, 1700000000000000000);
}

static void check_go_profile(struct memwatch_heap *heap, const char *what)
{
	MEMWATCH_OPTS(memwatch_heap_view_opts, opts, .by = MEMWATCH_HEAP_BY_LINE);
	MEMWATCH_OPTS(memwatch_heap_info, info);
	MEMWATCH_OPTS(memwatch_heap_row, row);
	struct memwatch_heap_view *view;

	memwatch_heap_get_info(heap, 0, &info);
	tap_eq(info.format, MEMWATCH_HEAP_PPROF, "%s: is a profile of pprof", what);
	tap_eq(info.rate_bytes, 1000, "%s: the period is the rate", what);
	tap_eq(info.end_ns, 1700000000000000000, "%s: has its time", what);
	if (!tap_eq(memwatch_heap_view_new(heap, &opts, &view), 0, "%s: has a view", what))
		return;
	tap_eq(memwatch_heap_view_get_row(view, 0, &row), 1, "%s: has lines", what);
	tap_str_eq(row.frame->function, "main.leak", "%s: the leaf comes first", what);
	tap_str_eq(row.frame->file, "/src/main.go", "%s: a line has its file", what);
	tap_str_eq(row.frame->module, "/bin/prog", "%s: a line has its module", what);
	tap_eq(row.frame->line, 12, "%s: a line has its number", what);
	tap_eq(row.flat[MEMWATCH_HEAP_LIVE_BYTES].value, 1000, "%s: live bytes", what);
	tap_eq(row.flat[MEMWATCH_HEAP_LIVE_OBJECTS].value, 10, "%s: live objects", what);
	tap_eq(row.flat[MEMWATCH_HEAP_ALLOCATED_BYTES].value, 4000, "%s: allocated bytes", what);
	tap_eq(row.flat[MEMWATCH_HEAP_ALLOCATED_OBJECTS].value, 40, "%s: allocated objects", what);
	tap_ok(row.flat[0].low < 1000 && row.flat[0].high > 1000,
	       "%s: the interval follows from the mean size and the rate", what);
	tap_eq(memwatch_heap_view_get_row(view, 1, &row), 1, "%s: has the caller", what);
	tap_eq(row.cum[0].value, 1000, "%s: the caller has the cumulative value", what);
	tap_eq(row.flat[0].value, 0, "%s: the caller has no flat value", what);
	memwatch_heap_view_unref(view);
}

static void test_pprof(void)
{
	struct mw_wire_out out = { 0 };
	struct memwatch_heap *heap, *again = NULL;
	int error, fd = memfd_create("written", MFD_CLOEXEC);

	build_go_profile(&out);
	heap = read_bytes(out.bytes, out.len, &error);
	if (!tap_ok(heap != NULL, "a profile of pprof is read"))
		exit(EXIT_FAILURE);
	check_go_profile(heap, "as Go writes it");
	tap_eq(memwatch_heap_write_pprof(heap, 0, fd), 0, "a profile can be written");
	if (lseek(fd, 0, SEEK_SET) || memwatch_heap_new(ctx, NULL, &again))
		exit(EXIT_FAILURE);
	if (tap_eq(memwatch_heap_add_fd(again, fd, "written"), 0, "what was written can be read"))
		check_go_profile(again, "written and read again");
	memwatch_heap_unref(again);
	memwatch_heap_unref(heap);
	close(fd);
	for (size_t len = 0; len < out.len; len++) {
		heap = read_bytes(out.bytes, len, &error);
		if (!heap && error != -EBADMSG && error != -ENOMSG)
			tap_eq(error, -EBADMSG, "a profile that is cut off at %zu bytes", len);
		memwatch_heap_unref(heap);
	}
	mw_wire_out_uninit(&out);
}

/* Functions 1 and 2, of which only the first one has a file, in four mappings. */
static void build_mappings(struct mw_wire_out *out)
{
	static const char *const strings[] = { "",	   "inuse_space", "bytes", "f",
					       "/src/f.c", "g",		  NULL };

	put_numbers(out, 1, (uint64_t[]){ 1, 1, 2, 2, 0 });
	put_numbers(out, 2, (uint64_t[]){ 1, 1, 1, 2, 1, 3, 1, 4, 1, 5, 2, 100, 0 });
	for (uint64_t id = 1; id <= 4; id++)
		put_numbers(out, 3, (uint64_t[]){ 1, id, 2, id << 20, 3, (id + 1) << 20, 0 });
	put_lines(out, 1, 1, (uint64_t[]){ 1, 12, 0 });
	put_lines(out, 2, 1, (uint64_t[]){ 0 });
	put_lines(out, 3, 2, (uint64_t[]){ 2, 0, 0 });
	put_lines(out, 4, 3, (uint64_t[]){ 0 });
	put_lines(out, 5, 4, (uint64_t[]){ 1, 12, 2, 0, 0 });
	put_numbers(out, 5, (uint64_t[]){ 1, 1, 2, 3, 4, 4, 0 });
	put_numbers(out, 5, (uint64_t[]){ 1, 2, 2, 5, 0 });
	put_strings(out, strings);
}

/* What is known of a mapping is said in it. Otherwise pprof replaces the symbols by its own. */
static void test_written_symbols(void)
{
	static const struct {
		uint64_t functions, files, lines, inlines;
		const char *what;
	} expected[] = {
		{ 1, 1, 1, 0, "a mapping in which some addresses have a function and a line" },
		{ 1, 0, 0, 0, "a mapping with the name of a function alone" },
		{ 0, 0, 0, 0, "a mapping without symbols" },
		{ 1, 1, 1, 1, "a mapping with an inlined function" },
	};
	struct mw_wire_out out = { 0 };
	struct memwatch_heap *heap;
	int error;

	build_mappings(&out);
	heap = read_bytes(out.bytes, out.len, &error);
	for (uint32_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		const char *what = expected[i].what;
		struct pprof_kit_mapping m;

		tap_ok(pprof_kit_mapping(ctx, heap, i, &m), "%s: is written", what);
		tap_eq(m.fields[MW_PPROF_MAPPING_HAS_FUNCTIONS], expected[i].functions,
		       "%s: whether it has functions", what);
		tap_eq(m.fields[MW_PPROF_MAPPING_HAS_FILES], expected[i].files,
		       "%s: whether it has files", what);
		tap_eq(m.fields[MW_PPROF_MAPPING_HAS_LINES], expected[i].lines,
		       "%s: whether it has lines", what);
		tap_eq(m.fields[MW_PPROF_MAPPING_HAS_INLINES], expected[i].inlines,
		       "%s: whether it has inlined functions", what);
	}
	memwatch_heap_unref(heap);
	mw_wire_out_uninit(&out);
}

static void test_goroutines(void)
{
	static const char *const strings[] = { "", "goroutineleak", "count", "f", NULL };
	struct mw_wire_out out = { 0 };
	MEMWATCH_OPTS(memwatch_heap_info, info);
	struct memwatch_heap_row row;
	struct memwatch_heap *heap;
	int error;

	put_numbers(&out, 1, (uint64_t[]){ 1, 1, 2, 2, 0 });
	put_numbers(&out, 2, (uint64_t[]){ 1, 1, 2, 3, 0 });
	put_location(&out, 1, 5);
	put_numbers(&out, 5, (uint64_t[]){ 1, 1, 2, 3, 0 });
	put_strings(&out, strings);
	heap = read_bytes(out.bytes, out.len, &error);
	memwatch_heap_get_info(heap, 0, &info);
	tap_eq(info.metrics, 1 << MEMWATCH_HEAP_LIVE_OBJECTS, "goroutines are live objects");
	tap_str_eq(info.objects, "goroutineleak", "objects are called what the profile calls them");
	row = total_of(heap, MEMWATCH_HEAP_LIVE_OBJECTS);
	tap_eq(row.flat[MEMWATCH_HEAP_LIVE_OBJECTS].value, 3, "goroutines are counted");
	tap_ok(isnan(row.flat[MEMWATCH_HEAP_LIVE_OBJECTS].low),
	       "without a rate there is no interval");
	memwatch_heap_unref(heap);
	mw_wire_out_uninit(&out);
}

static void test_refused(void)
{
	static const struct {
		const char *text;
		int error;
		const char *why;
	} bad[] = {
		{ "", -ENOMSG, "" },
		{ "hello, this is no profile\n", -ENOMSG, "" },
		{ "\x1f\x8b\x08 cut off", -EBADMSG, "profile: the compressed data" },
		{ "heap_v2/x\n", -EBADMSG, "line 1: the sampling rate" },
		{ "heap_v2/1\n@ 0x1\n t*: 1 2\n", -EBADMSG, "line 3: does not have the form" },
		{ "heap_v2/1\n@ 0x1 zz\n", -EBADMSG, "line 2: a stack has something" },
		{ "heap_v2/1\n@ 0x11112222333344445\n", -EBADMSG, "line 2: a stack has something" },
		{ "heap_v2/1\nx\n", -EBADMSG, "line 2: is neither" },
		{ "heap profile: 1: 1 [1: 1]\n", -EBADMSG, "line 1: has no type" },
		{ "heap profile: 1: 1 [1: 1] @ cpu\n", -EBADMSG, "line 1: the type" },
		{ "heap profile: 1: 1 [1: 1] @ heapprofile\n1: 1 [1: 1]\n", -EBADMSG,
		  "line 2: has no stack" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char error_text[128];
		int error;

		read_bytes(bad[i].text, strlen(bad[i].text), &error);
		tap_eq(error, bad[i].error, "bad profile %zu is refused", i);
		snprintf(error_text, sizeof(error_text), "%.*s", (int)strlen(bad[i].why),
			 memwatch_ctx_error(ctx));
		tap_str_eq(error_text, bad[i].why, "bad profile %zu: the error says why", i);
	}
}

/* Mappings, locations and functions of profile.proto, each twice with the id 7. */
static void test_repeated_ids(void)
{
	static const char head[] = "\x0a\x04\x08\x01\x10\x02"
				   "\x32\x00\x32\x0binuse_space\x32\x05"
				   "bytes";
	static const char tags[] = { 3 << 3 | 2, 4 << 3 | 2, 5 << 3 | 2 };
	char profile[sizeof(head) - 1 + 8];

	memcpy(profile, head, sizeof(head) - 1);
	for (size_t i = 0; i < sizeof(tags); i++) {
		char message[] = { tags[i], 2, 1 << 3, 7 };
		int error;

		memcpy(profile + sizeof(head) - 1, message, 4);
		message[3] = 8;
		memcpy(profile + sizeof(head) + 3, message, 4);
		memwatch_heap_unref(read_bytes(profile, sizeof(profile), &error));
		tap_eq(error, 0, "field %d of pprof: two ids are read", tags[i] >> 3);
		profile[sizeof(profile) - 1] = 7;
		memwatch_heap_unref(read_bytes(profile, sizeof(profile), &error));
		tap_eq(error, -EBADMSG, "field %d of pprof: an id that is repeated is refused",
		       tags[i] >> 3);
		tap_str_eq(memwatch_ctx_error(ctx), "pprof profile: an id is repeated",
			   "field %d of pprof: the error says why", tags[i] >> 3);
	}
}

static void test_limit(void)
{
	MEMWATCH_OPTS(memwatch_heap_opts, opts, .max_bytes = 10);
	struct memwatch_heap *heap = NULL;
	int fd = memfd_create("profile", MFD_CLOEXEC);

	if (write(fd, "heap_v2/1000\n", 13) != 13 || lseek(fd, 0, SEEK_SET) ||
	    memwatch_heap_new(ctx, &opts, &heap))
		exit(EXIT_FAILURE);
	tap_eq(memwatch_heap_add_fd(heap, fd, "profile"), -EFBIG,
	       "a file that is larger than the limit is refused");
	memwatch_heap_unref(heap);
	close(fd);
}

int main(void)
{
	tap_start();
	if (memwatch_ctx_new(NULL, &ctx))
		return EXIT_FAILURE;
	test_jemalloc();
	test_gperftools();
	test_pprof();
	test_written_symbols();
	test_goroutines();
	test_refused();
	test_repeated_ids();
	test_limit();
	memwatch_ctx_unref(ctx);
	return tap_done();
}
