// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reading traces: lines that are no events, traces that are shuffled, larger than the memory for
 * sorting, read from a pipe, or cut off at any byte.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>

#include "stale-kit.h"

#include "../../selftests/prng.h"
#include "../../selftests/tap.h"

#define SEED 20261123

static struct memwatch_ctx *ctx;

static const struct {
	const char *text, *why;
} bad_lines[] = {
	{ "m 1 1 0x10 8 s\nx 1 1 0x10 8 s\n", "line 2 does not begin with m, f or a" },
	{ "m -1 1 0x10 8 s\n", "line 1 has no time in nanoseconds" },
	{ "m 1 4294967296 0x10 8 s\n", "line 1 has no thread number" },
	{ "m 1 1 ffee 8 s\n", "line 1 has no address; a hexadecimal one begins with 0x" },
	{ "m 1 1 0x10000000000000000 8 s\n",
	  "line 1 has no address; a hexadecimal one begins with 0x" },
	{ "m 1 1 0x10 1e6 s\n", "line 1 has no size" },
	{ "m 1 1 0x10 1000000000000000 s\n", "line 1 has an impossible size" },
	{ "m 1 1 0xffffffffffffffff 1 s\n", "line 1 has an impossible size" },
	{ "m 1 1 0x10 8\n", "line 1 has no site" },
	{ "a 1 1 0x10\n", "line 1 has no place" },
	{ "f 1 1 0x10 s t\n", "line 1 has too many fields" },
	{ "# c\n\nm 18446744073709551616 1 0x10 8 s\n", "line 3 has no time in nanoseconds" },
};

static void test_bad_lines(void)
{
	struct memwatch_stale *stale;
	char *line = calloc(1, 5001);

	for (size_t i = 0; i < sizeof(bad_lines) / sizeof(*bad_lines); i++) {
		const char *text = bad_lines[i].text;
		int err = replay_text(ctx, NULL, text, strlen(text), &stale);

		if (err != -EBADMSG)
			tap_note("%d for line %zu", err, i);
		tap_str_eq(err == -EBADMSG ? memwatch_ctx_error(ctx) : "no error", bad_lines[i].why,
			   "a bad line is refused: %s", bad_lines[i].why);
		memwatch_stale_unref(stale);
	}
	memset(line, 'm', 5000);
	tap_eq(replay_text(ctx, NULL, line, 5000, &stale), -EBADMSG, "a long line is refused");
	memwatch_stale_unref(stale);
	tap_eq(replay_text(ctx, NULL, "m 1 1 0x10 8 s\0t\n", 18, &stale), -EBADMSG,
	       "a NUL byte is refused");
	memwatch_stale_unref(stale);
	free(line);
}

static void test_good_lines(void)
{
	static const char text[] = "# comment\r\n\r\n  m\t5  1 4096 0x10 a+0x1\r\n"
				   "a 6 2 0x1008 b\r\na 7 2 0x1010 c\r\nf 8 1 0 x\r\n";
	MEMWATCH_OPTS(memwatch_stale_object, object);
	MEMWATCH_OPTS(memwatch_stale_info, info);
	MEMWATCH_OPTS(memwatch_stale_place, place);
	MEMWATCH_OPTS(memwatch_stale_site, site);
	struct memwatch_stale *stale;

	tap_eq(replay_text(ctx, NULL, text, sizeof(text) - 1, &stale), 0,
	       "blanks, tabs, comments, empty lines and carriage returns are accepted");
	memwatch_stale_get_info(stale, &info);
	tap_ok(info.allocations == 1 && info.accesses == 2 && info.misses == 1 &&
		       info.unmatched_frees == 0 && info.live_bytes == 16,
	       "the events are counted, and a free of NULL is no double free");
	tap_ok(memwatch_stale_get_object(stale, 0, &object) == 1 && object.address == 4096 &&
		       object.size == 16 && object.tid == 1 && object.allocated_ns == 5 &&
		       object.staleness_ns == 2 && object.accesses == 1,
	       "an object has its address, size, thread, and time since the last access");
	tap_str_eq(object.last_access, "b", "an object has the place of its last access");
	memwatch_stale_get_site(stale, object.site, &site);
	tap_str_eq(site.site, "a+0x1", "a site may be any word");
	tap_ok(memwatch_stale_get_place(stale, MEMWATCH_STALE_OBJECT_ACCESS, 0, 0, &place) == 1 &&
		       place.count == 1 &&
		       memwatch_stale_get_place(stale, MEMWATCH_STALE_OBJECT_ACCESS, 0, 1,
						&place) == 0,
	       "an object has a list of the places of its accesses");
	memwatch_stale_unref(stale);
}

/* A heap with some thousand objects; each line has a time of its own. */
static void write_heap(struct trace *trace, int events)
{
	struct prng prng = { SEED };
	static uint64_t size[4096];

	memset(size, 0, sizeof(size));
	trace_begin(trace);
	for (int i = 0; i < events; i++) {
		uint64_t slot = prng_below(&prng, 4096), address = 0x10000 + slot * 256;

		if (!size[slot]) {
			size[slot] = 1 + prng_below(&prng, 256);
			trace_line(trace, "m %d %d %#lx %lu site%lu", 1000 * i, i % 3, address,
				   size[slot], slot % 7);
		} else if (prng_below(&prng, 3)) {
			trace_line(trace, "a %d 1 %#lx place%lu", 1000 * i,
				   address + prng_below(&prng, size[slot]), slot % 11);
		} else {
			trace_line(trace, "f %d 1 %#lx end%lu", 1000 * i, address, slot % 5);
			size[slot] = 0;
		}
	}
	trace_end(trace);
}

/* A number that depends on all results. */
static uint64_t digest(const struct memwatch_stale *stale)
{
	MEMWATCH_OPTS(memwatch_stale_object, object);
	MEMWATCH_OPTS(memwatch_stale_site, site);
	uint64_t sum = 0;

	for (uint64_t i = 0; memwatch_stale_get_object(stale, i, &object) == 1; i++)
		sum = sum * 31 + object.address + object.size * 7 + object.staleness_ns +
		      object.leak + object.accesses + object.tid +
		      (object.last_access ? (uint64_t)object.last_access[5] : 0);
	for (uint32_t i = 0; memwatch_stale_get_site(stale, i, &site) == 1; i++)
		sum = sum * 31 + site.allocated_bytes + site.freed_objects + site.leak +
		      (uint64_t)site.site[4] + (uint64_t)site.threshold_ns;
	return sum;
}

/* The lines of @text in random order. */
static char *shuffle_lines(const char *text, size_t len)
{
	size_t count = 0, used = 0;
	const char **lines = calloc(len, sizeof(*lines));
	struct prng prng = { SEED };
	char *out = malloc(len);

	for (const char *at = text; at < text + len; at = strchr(at, '\n') + 1)
		lines[count++] = at;
	for (size_t i = count; i > 1; i--) {
		size_t j = prng_below(&prng, i);
		const char *other = lines[j];

		lines[j] = lines[i - 1];
		lines[i - 1] = other;
	}
	for (size_t i = 0; i < count; i++) {
		size_t n = (size_t)(strchr(lines[i], '\n') + 1 - lines[i]);

		memcpy(out + used, lines[i], n);
		used += n;
	}
	free(lines);
	return out;
}

static void test_order(void)
{
	MEMWATCH_OPTS(memwatch_stale_opts, small, .sort_bytes = 1, .directory = "/tmp");
	MEMWATCH_OPTS(memwatch_stale_opts, nowhere, .sort_bytes = 1, .directory = "/nowhere");
	MEMWATCH_OPTS(memwatch_stale_info, info);
	struct memwatch_stale *stale;
	struct trace trace;
	uint64_t expected;
	char *shuffled;

	write_heap(&trace, 50000);
	shuffled = shuffle_lines(trace.text, trace.len);
	tap_eq(replay_text(ctx, NULL, trace.text, trace.len, &stale), 0, "a trace is replayed");
	memwatch_stale_get_info(stale, &info);
	tap_ok(!info.sorted && !info.overlaps && !info.unmatched_frees && info.live_objects > 1000,
	       "its frees and objects fit together");
	expected = digest(stale);
	memwatch_stale_unref(stale);
	tap_eq(replay_text(ctx, NULL, shuffled, trace.len, &stale), 0,
	       "a trace whose lines are in any order is replayed");
	memwatch_stale_get_info(stale, &info);
	tap_ok(info.sorted && digest(stale) == expected,
	       "a trace in any order gives the same result");
	memwatch_stale_unref(stale);
	tap_eq(replay_text(ctx, &small, shuffled, trace.len, &stale), 0,
	       "a trace is sorted in a file if the memory is too small");
	tap_ok(digest(stale) == expected && stale->import.sorter.size > 4 * 4096 * 48,
	       "sorting in a file gives the same result");
	memwatch_stale_unref(stale);
	tap_eq(replay_text(ctx, &nowhere, shuffled, trace.len, &stale), -ENOENT,
	       "a folder for sorting that does not exist is an error");
	memwatch_stale_unref(stale);
	free(shuffled);
	free(trace.text);
}

/* It is read twice, because its lines are not in order. */
static void test_position(void)
{
	static const char text[] = "not a trace\nm 5 1 0x10 8 s\nm 3 1 0x20 8 s\n";
	int fd = memory_file(text, strlen(text));
	MEMWATCH_OPTS(memwatch_stale_info, info);
	struct memwatch_stale *stale;

	lseek(fd, 12, SEEK_SET);
	tap_eq(replay_fd(ctx, NULL, fd, &stale), 0, "a trace is read from its position on");
	memwatch_stale_get_info(stale, &info);
	tap_eq(info.allocations, 2, "both of its events are read");
	memwatch_stale_unref(stale);
}

static void test_pipe(void)
{
	struct memwatch_stale *stale;
	uint64_t expected;
	struct trace trace;
	int fds[2];

	write_heap(&trace, 5000);
	replay_text(ctx, NULL, trace.text, trace.len, &stale);
	expected = digest(stale);
	memwatch_stale_unref(stale);
	if (pipe2(fds, O_CLOEXEC))
		exit(EXIT_FAILURE);
	if (!fork()) {
		ssize_t n = 1;

		close(fds[0]);
		for (size_t at = 0; at < trace.len && n > 0; at += (size_t)n)
			n = write(fds[1], trace.text + at,
				  trace.len - at < 1000 ? trace.len - at : 1000);
		_exit(0);
	}
	close(fds[1]);
	tap_ok(!replay_fd(ctx, NULL, fds[0], &stale) && digest(stale) == expected,
	       "a pipe gives the same result as a file");
	memwatch_stale_unref(stale);
	wait(NULL);
	free(trace.text);
}

static void test_cut(void)
{
	MEMWATCH_OPTS(memwatch_stale_info, info);
	struct memwatch_stale *stale;
	int wrong = 0, cut_off = 0;
	struct trace trace;
	uint64_t lines = 0;

	write_heap(&trace, 300);
	for (size_t len = 0; len <= trace.len; len++) {
		uint64_t events;

		if (replay_text(ctx, NULL, trace.text, len, &stale))
			wrong++;
		memwatch_stale_get_info(stale, &info);
		events = info.allocations + info.frees + info.accesses;
		lines += len && trace.text[len - 1] == '\n';
		wrong += events != lines && events != lines + 1;
		cut_off += info.cut_off;
		memwatch_stale_unref(stale);
	}
	tap_eq(wrong, 0, "a trace that is cut at any of %zu bytes has all events before",
	       trace.len);
	tap_ok(cut_off > (int)trace.len / 2, "lines that are cut off are told");
	tap_ok(!info.cut_off, "a whole trace is not cut off");
	free(trace.text);
}

static void test_last_line(void)
{
	static const char known[] = "m 1 1 0x10 8 site\nm 2 1 0x20 8 site";
	static const char unknown[] = "m 1 1 0x10 8 site\nm 2 1 0x20 8 sit";
	MEMWATCH_OPTS(memwatch_stale_info, info);
	struct memwatch_stale *stale;

	replay_text(ctx, NULL, known, sizeof(known) - 1, &stale);
	memwatch_stale_get_info(stale, &info);
	tap_eq(info.allocations, 2, "a last line without a newline counts if its site is known");
	memwatch_stale_unref(stale);
	replay_text(ctx, NULL, unknown, sizeof(unknown) - 1, &stale);
	memwatch_stale_get_info(stale, &info);
	tap_ok(info.allocations == 1 && info.cut_off, "otherwise it is left out");
	memwatch_stale_unref(stale);
}

static void test_misuse(void)
{
	MEMWATCH_OPTS(memwatch_stale_opts, scheme, .scheme = 3);
	MEMWATCH_OPTS(memwatch_stale_opts, fence, .fence = -1);
	MEMWATCH_OPTS(memwatch_stale_opts, share, .share = 2);
	MEMWATCH_OPTS(memwatch_stale_object, object);
	struct memwatch_stale *stale;

	tap_eq(memwatch_stale_new(ctx, &scheme, &stale), -EINVAL, "an unknown scheme is refused");
	tap_eq(memwatch_stale_new(ctx, &fence, &stale), -EINVAL, "a negative fence is refused");
	tap_eq(memwatch_stale_new(ctx, &share, &stale), -EINVAL, "a share above 1 is refused");
	memwatch_stale_new(ctx, NULL, &stale);
	tap_eq(memwatch_stale_step(stale), -EINVAL, "there is no step without a trace");
	tap_eq(memwatch_stale_judge(stale), -EINVAL, "there is no judgement without a trace");
	tap_eq(memwatch_stale_get_object(stale, 0, &object), -EINVAL,
	       "there are no results without a trace");
	tap_eq(memwatch_stale_open(stale, "/nowhere"), -ENOENT, "a missing file is an error");
	memwatch_stale_unref(stale);
}

int main(void)
{
	tap_start();
	if (memwatch_ctx_new(NULL, &ctx))
		return EXIT_FAILURE;
	test_bad_lines();
	test_good_lines();
	test_order();
	test_position();
	test_pipe();
	test_cut();
	test_last_line();
	test_misuse();
	memwatch_ctx_unref(ctx);
	return tap_done();
}
