// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What a program did when it ran before: a process that grows from its start on has an alert
 * only near its limit, unless an earlier process of its name had one, and did not stop growing.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <memwatch/growth.h>

#include "../../selftests/tap.h"

#define MIB    (1ULL << 20)
#define SECOND 1000000000ULL
#define LIMIT  (60 * MIB)
#define HOUR   3600U
#define NEVER  UINT32_MAX
/* Bytes a second, and the seconds after which the limit is reached. */
#define RATE   (MIB / 2)
#define KILLED (uint32_t)(LIMIT / RATE - 2)

/* The first run of a service. */
#define FIRST                                                                                      \
	{                                                                                          \
		"leaks", 10, NEVER, KILLED, 0                                                      \
	}

static struct memwatch_ctx *ctx;

/* A process that grows from its start on. */
struct run {
	const char *comm;
	uint32_t starts, grows, lasts; /* seconds */
	uint64_t limit;		       /* bytes; 0: LIMIT */
};

/* The percentage of the limit that was used at the first alert; 100: there was none. */
static unsigned int used_at_alert(struct memwatch_growth *growth, const struct run *run, __u32 tgid,
				  __u32 *ret_flags)
{
	MEMWATCH_OPTS(memwatch_growth_sample, sample, .tgid = tgid,
		      .limit_bytes = run->limit ? run->limit : LIMIT);
	MEMWATCH_OPTS(memwatch_growth_row, row);
	unsigned int used = 100;

	strcpy(sample.comm, run->comm);
	/* Touch follows it, and cannot tell yet. */
	sample.untouched_ns = 60 * SECOND;
	for (uint32_t t = 0; t < run->lasts; t++) {
		int event;

		sample.time_ns = (run->starts + t) * SECOND;
		sample.anon_bytes = MIB + RATE * (t < run->grows ? t : run->grows);
		event = memwatch_growth_feed(growth, &sample);
		if (event & MEMWATCH_GROWTH_ALERT && used == 100)
			used = (unsigned int)(sample.anon_bytes * 100 / sample.limit_bytes);
	}
	for (unsigned int i = 0; memwatch_growth_get_row(growth, i, &row) > 0; i++)
		if (row.tgid == tgid)
			*ret_flags = row.flags;
	return used;
}

/* The same for the last of some processes, which have other process ids. */
static unsigned int used_by_last(const struct run *runs, unsigned int count, __u32 *ret_flags)
{
	struct memwatch_growth *growth;
	unsigned int used = 0;

	if (memwatch_growth_new(ctx, &growth))
		exit(EXIT_FAILURE);
	for (unsigned int i = 0; i < count; i++)
		used = used_at_alert(growth, &runs[i], 100 + i, ret_flags);
	memwatch_growth_unref(growth);
	return used;
}

static void test_known(void)
{
	const struct run runs[] = { FIRST, { "leaks", 150, NEVER, KILLED, 0 } };
	__u32 flags;
	unsigned int used;

	used = used_by_last(runs, 1, &flags);
	tap_ok(used > 90 && used < 100,
	       "a process that grows from its start on has an alert near its limit only: at %u %%",
	       used);
	tap_eq(flags & MEMWATCH_GROWTH_F_KNOWN, 0, "nothing is known of its program");
	used = used_by_last(runs, 2, &flags);
	tap_ok(used < 55,
	       "the next process of this program has its alert when half of its limit is left: "
	       "at %u %%",
	       used);
	tap_eq(flags & MEMWATCH_GROWTH_F_KNOWN, MEMWATCH_GROWTH_F_KNOWN,
	       "it is said that its program has reached its limit before");
}

/* An alert that is early because of what is known does not make that known for longer. */
static void test_not_renewed(void)
{
	/* A job that uses nearly all once, and a half from then on; the last one an hour later. */
	const struct run runs[] = { FIRST,
				    { "leaks", 300, NEVER, KILLED / 2, 0 },
				    { "leaks", 3000, NEVER, KILLED / 2, 0 },
				    { "leaks", 4500, NEVER, KILLED, 0 } };
	unsigned int used;
	__u32 flags;

	tap_ok(used_by_last(runs, 3, &flags) < 55,
	       "a job that came near its limit has early alerts for an hour");
	used = used_by_last(runs, 4, &flags);
	tap_ok(used > 90 && used < 100,
	       "it has none any more if it has not come near it again since then");
}

/* Cases in which the last process is judged as if nothing was known. */
static void test_not_known(void)
{
	static const struct {
		const char *what;
		struct run runs[3];
		unsigned int count;
	} cases[] = {
		{ "a process of another name", { FIRST, { "leak", 150, NEVER, KILLED, 0 } }, 2 },
		{ "a process with a limit that is a third higher",
		  { FIRST, { "leaks", 150, NEVER, KILLED + KILLED / 3, LIMIT + LIMIT / 3 } },
		  2 },
		{ "a process that begins two hours after the alert",
		  { FIRST, { "leaks", 2 * HOUR, NEVER, KILLED, 0 } },
		  2 },
		{ "a process whose program did not grow beyond a half when it ran before",
		  { { "leaks", 10, KILLED / 2, KILLED * 2, 0 },
		    { "leaks", 500, NEVER, KILLED, 0 } },
		  2 },
		{ "a process whose program stopped growing just below its limit",
		  { { "leaks", 10, KILLED - 1, KILLED * 6, 0 },
		    { "leaks", 1000, NEVER, KILLED, 0 } },
		  2 },
		{ "a process whose program was killed, and then stopped growing at a quarter",
		  { FIRST,
		    { "leaks", 150, KILLED / 4, KILLED * 2, 0 },
		    { "leaks", 600, NEVER, KILLED, 0 } },
		  3 },
	};

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		__u32 flags;
		unsigned int used = used_by_last(cases[i].runs, cases[i].count, &flags);

		tap_ok(used > 90 && used < 100, "%s may be one that starts: its alert is at %u %%",
		       cases[i].what, used);
		tap_eq(flags & MEMWATCH_GROWTH_F_KNOWN, 0, "%s is not known", cases[i].what);
	}
}

int main(void)
{
	tap_start();
	if (memwatch_ctx_new(NULL, &ctx))
		return EXIT_FAILURE;
	test_known();
	test_not_renewed();
	test_not_known();
	memwatch_ctx_unref(ctx);
	return tap_done();
}
