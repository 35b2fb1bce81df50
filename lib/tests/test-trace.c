// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The reader of growth traces: what it accepts, and what it refuses with which message.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "growth/trace.h"

#include "cost-kit.h"

#define COLUMNS "time_s,pid,comm,anon_kb,file_kb,shmem_kb,swap_kb,vsz_kb,limit_kb"
#define HEADER	COLUMNS "\n"

static struct memwatch_ctx *ctx;

/* The number of samples in a trace, or an error; @last gets the last sample. */
static int read_trace(const char *text, struct memwatch_growth_sample *last)
{
	FILE *file = fmemopen((void *)text, strlen(text), "r");
	struct memwatch_trace *trace;
	int err = mw_trace_open_file(ctx, file, "test", &trace), n = 0;

	if (err)
		return err;
	while ((err = memwatch_trace_next(trace, last)) == 1)
		n++;
	memwatch_trace_close(trace);
	return err ? err : n;
}

static void test_good_traces(void)
{
	MEMWATCH_OPTS(memwatch_growth_sample, s);

	tap_eq(read_trace(HEADER "1.25,2,\"a,\"\"b\",1,2,3,4,5,6,more\r\n\n2,2,x,1,2,3,4,5,", &s),
	       2, "a trace may have quotes, further columns, empty lines and no last newline");
	tap_eq(read_trace(HEADER "1.25,2,\"a,\"\"b\",1,2,3,4,5,6\n", &s), 1,
	       "a trace with one sample is read");
	tap_eq(s.time_ns, 1250000000, "time_s is read with its fraction");
	tap_eq(s.tgid, 2, "pid is read");
	tap_str_eq(s.comm, "a,\"b", "comm is unquoted");
	tap_eq(s.anon_bytes, 1024, "anon_kb is read");
	tap_eq(s.file_bytes, 2048, "file_kb is read");
	tap_eq(s.shmem_bytes, 3072, "shmem_kb is read");
	tap_eq(s.swap_bytes, 4096, "swap_kb is read");
	tap_eq(s.vsz_bytes, 5120, "vsz_kb is read");
	tap_eq(s.limit_bytes, 6144, "limit_kb is read");
}

/* The name of a cgroup may have bytes that a recorder writes as \xNN. */
static void test_long_path(void)
{
	static char text[32768];
	MEMWATCH_OPTS(memwatch_growth_sample, s);
	size_t len = (size_t)snprintf(text, sizeof(text), "%s",
				      COLUMNS ",cgroup\n1,0,,1,2,3,4,5,,/");

	for (int i = 1; i < 4095; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "\\x01");
	snprintf(text + len, sizeof(text) - len, "\n2,0,,1,2,3,4,5,,/\n");
	tap_eq(read_trace(text, &s), 2, "a trace may have a path of 4095 escaped bytes");
}

static void test_bad_traces(void)
{
	static const struct {
		const char *text, *error;
	} bad[] = {
		{ "", "line 1" },
		{ "a,b\n", "line 1" },
		{ HEADER "1,2,x,1,2,3,4,5\n", "line 2: limit_kb is missing" },
		{ HEADER "1,2,x,1,2,3,4,5,\n0,2,x,1,2,3,4,5,\n", "line 3: time_s" },
		{ HEADER "-1,2,x,1,2,3,4,5,\n", "line 2: time_s" },
		{ HEADER "1e9,2,x,1,2,3,4,5,\n", "line 2: time_s" },
		{ HEADER "nan,2,x,1,2,3,4,5,\n", "line 2: time_s" },
		{ HEADER "1,-2,x,1,2,3,4,5,\n", "line 2: pid" },
		{ HEADER "1,4294967296,x,1,2,3,4,5,\n", "line 2: pid" },
		{ HEADER "1,2,x,99999999999999999999,2,3,4,5,\n", "line 2: anon_kb" },
		{ HEADER "1,2,x,1,2,3,4,5,x\n", "line 2: limit_kb" },
		{ HEADER "1,2,\"x,1,2,3,4,5,\n", "line 2: comm has a quote" },
		{ HEADER "1,2,\"x\"y,1,2,3,4,5,\n", "line 2: comm has text" },
	};
	MEMWATCH_OPTS(memwatch_growth_sample, s);

	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char error[128];

		tap_eq(read_trace(bad[i].text, &s), -EBADMSG, "bad trace %u is refused", i + 1);
		snprintf(error, sizeof(error), "%.*s", (int)strlen(bad[i].error),
			 memwatch_ctx_error(ctx));
		tap_str_eq(error, bad[i].error, "the error of bad trace %u: %s", i + 1,
			   memwatch_ctx_error(ctx));
	}
}

/* Process ids whose hashes began with the same bits in earlier versions. */
static uint32_t chosen_ids[32000];

static void choose_ids(void)
{
	const uint64_t first = 0x9e3779b97f4a7c15ULL, second = 0xff51afd7ed558ccdULL;
	uint32_t tgid = 0;

	for (size_t i = 0; i < sizeof(chosen_ids) / sizeof(chosen_ids[0]); tgid++) {
		uint64_t hash = (tgid * first ^ 0x632be59bd9b4e019ULL) * second;

		if (!(hash >> 32 & 0xffff))
			chosen_ids[i++] = tgid;
	}
}

/* One sample of each. */
static void read_chosen_ids(uint32_t n)
{
	MEMWATCH_OPTS(memwatch_growth_sample, sample, .comm = "x");
	struct memwatch_growth *growth;

	if (memwatch_growth_new(ctx, &growth))
		abort();
	for (uint32_t i = 0; i < n; i++) {
		sample.tgid = chosen_ids[i];
		if (memwatch_growth_feed(growth, &sample) < 0)
			abort();
	}
	memwatch_growth_unref(growth);
}

/* A line without an end, fields without an end, and quotes in quotes. */
static void read_long_lines(uint32_t n)
{
	static const char *const lines[] = { "1,2,x,1,2,3,4,5,6,", "1,2,\"", "1" };
	MEMWATCH_OPTS(memwatch_growth_sample, sample);

	for (unsigned int i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		size_t head = strlen(HEADER), len = strlen(lines[i]);
		char *text = malloc(head + len + n + 1);

		if (!text)
			abort();
		memcpy(text, HEADER, head);
		memcpy(text + head, lines[i], len);
		memset(text + head + len, i == 1 ? '"' : ',', n);
		text[head + len + n] = '\0';
		read_trace(text, &sample);
		free(text);
	}
}

int main(void)
{
	tap_start();
	if (memwatch_ctx_new(NULL, &ctx))
		return EXIT_FAILURE;
	test_good_traces();
	test_long_path();
	test_bad_traces();
	choose_ids();
	expect_proportional(read_chosen_ids, 8000, "process ids that collided");
	expect_proportional(read_long_lines, 1000000, "lines without an end");
	memwatch_ctx_unref(ctx);
	return tap_done();
}
