// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The parsers of /proc/memwatch: what the module writes is understood, what it
 * never would is refused, and nothing is read as 0 for want of better.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <memwatch/proc.h>

#include "../../selftests/tap.h"

static struct memwatch_ctx *ctx;

static int status_error(const char *text)
{
	struct memwatch_proc_status *status = NULL;
	int err = memwatch_proc_status_parse(ctx, text, strlen(text), &status);

	memwatch_proc_status_free(status);
	return err;
}

static void test_status(void)
{
	static const char text[] = "version: 0.1.0\nabi: 1\nschema: 1\nbackend: emulated\n"
				   "backend_reason: CPUID leaf 0xF: absent\nperiod_ns: 1000000\n"
				   "policy: fifo\ncpumask: 0-1\nrmids_total: 512\nrmids_used: 7\n"
				   "newer_key: anything: at all\n"
				   "session: 12 started memwatchctl\nsession: 13 open a\\134b\n"
				   "waiting: 99 two words\nwaiting: 100 x\\012y\n";
	struct memwatch_proc_status *s = NULL;

	if (!tap_ok(!memwatch_proc_status_parse(ctx, text, strlen(text), &s), "status is parsed"))
		return;
	tap_ok(s->abi == 1 && s->period_ns == 1000000 && s->rmids_total == 512 && s->keys == 10,
	       "status: numbers, and a key not known is skipped");
	tap_ok(!strcmp(s->backend_reason, "CPUID leaf 0xF: absent"),
	       "status: a value may hold a colon");
	tap_ok(s->nr_waiting == 2 && s->waiting[0].tgid == 99 &&
		       !strcmp(s->waiting[0].comm, "two words") &&
		       !strcmp(s->waiting[1].comm, "x\ny"),
	       "status: waiting processes");
	tap_ok(s->nr_session == 2 && s->session[0].started && !s->session[1].started &&
		       !strcmp(s->session[1].comm, "a\\b"),
	       "status: sessions");
	memwatch_proc_status_free(s);
}

static void test_status_refuses(void)
{
	static const char *const bad[] = {
		"abi 1\n",
		"abi: \n",
		"abi: -1\n",
		"abi: 1x\n",
		"abi: 4294967296\n",
		"allocs: 18446744073709551616\n",
		"waiting: 1\n",
		"waiting: x y\n",
		"waiting: 1 a\\9\n",
		"waiting: 1 a\\000\n",
		"session: 1 maybe x\n",
		"session: 1 open\n",
		"\n",
		"waiting: 1 0123456789abcdef\n",
		"version: 01234567890123456789012345678901234567890\n",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		tap_ok(status_error(bad[i]) == -EBADMSG, "status refuses case %zu", i);
	tap_ok(!status_error(""), "an empty status is a status");
	tap_ok(!status_error("allocs: 18446744073709551615\n"), "the largest number is a number");
}

#define NAMES                                                                                      \
	"# "                                                                                       \
	"rmid\tgeneration\ttgid\tparent_tgid\tstart_time_ns\talloc_time_ns\tcgroup_"               \
	"id\tuid\tcomm\n"
#define LINE "3\t2\t77\t1\t1000\t2000\t42\t1000\t"

static int rmids_error(const char *text)
{
	struct memwatch_proc_rmids *rmids = NULL;
	int err = memwatch_proc_rmids_parse(ctx, text, strlen(text), &rmids);

	memwatch_proc_rmids_free(rmids);
	return err;
}

static void test_rmids(void)
{
	static const char text[] = NAMES LINE "a b\\011c\n" LINE "\n# end 2\n";
	struct memwatch_proc_rmids *r = NULL;

	if (!tap_ok(!memwatch_proc_rmids_parse(ctx, text, strlen(text), &r), "rmids is parsed"))
		return;
	tap_ok(r->count == 2 && r->processes[0].rmid == 3 && r->processes[0].generation == 2 &&
		       r->processes[0].tgid == 77 && r->processes[0].start_time_ns == 1000 &&
		       r->processes[0].cgroup_id == 42 && r->processes[0].uid == 1000,
	       "rmids: columns");
	tap_ok(!strcmp(r->processes[0].comm, "a b\tc") && !*r->processes[1].comm,
	       "rmids: a name may hold anything, or nothing");
	memwatch_proc_rmids_free(r);

	tap_ok(!rmids_error("# rmid\tnew\tgeneration\ttgid\tparent_tgid\tstart_time_ns\t"
			    "alloc_time_ns\tcgroup_id\tuid\tcomm\n1\tx\t1\t1\t1\t1\t1\t1\t1\tz\n# "
			    "end 1\n"),
	       "rmids: a column not known is skipped");
	tap_ok(!rmids_error(NAMES "# end 0\n"), "rmids: there may be none");
}

static void test_rmids_refuses(void)
{
	static const char *const bad[] = {
		"",
		NAMES,
		NAMES LINE "x\n",
		NAMES LINE "x\n# end 2\n",
		NAMES LINE "x\n# end 1\nmore\n",
		NAMES "3\t2\t77\n# end 1\n",
		NAMES "0\t2\t77\t1\t1\t1\t1\t1\tx\n# end 1\n",
		NAMES LINE "x\\18\n# end 1\n",
		NAMES LINE "x\\777\n# end 1\n",
		"# rmid\tcomm\n1\tx\n# end 1\n",
		LINE "x\n# end 1\n",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		tap_ok(rmids_error(bad[i]) == -EBADMSG, "rmids refuses case %zu", i);
}

static void test_rmids_cut(void)
{
	static const char text[] = NAMES LINE "one\n" LINE "two\n# end 2\n";
	size_t len = strlen(text), taken = 0;

	for (size_t i = 0; i < len - 1; i++) {
		struct memwatch_proc_rmids *r = NULL;
		char *piece = malloc(i ? i : 1);

		/* In memory of exactly this size, for the sanitizer. */
		memcpy(piece, text, i);
		taken += !memwatch_proc_rmids_parse(ctx, piece, i, &r);
		memwatch_proc_rmids_free(r);
		free(piece);
	}
	tap_ok(!taken, "rmids: cut anywhere, it is incomplete");
}

static void test_overhead(void)
{
	static const char text[] =
		"memory_bytes: 123456\n"
		"cpu 0: ticks=10 missed=1 jitter_max_ns=5 switches=100 pqr_writes=3 "
		"switch_cycles=9000 switch_sampled=2 tick_cycles=77 newer=1\n"
		"cpu 3: ticks=11\njitter_ns 0-1023: 9\njitter_ns 1024-2047: 1\n";
	static const char *const bad[] = { "cpu x: ticks=1\n", "cpu 1 ticks=1\n",
					   "cpu 1: ticks=\n",  "cpu 1: ticks\n",
					   "jitter_ns 1: 2\n", "jitter_ns 1-2\n" };
	struct memwatch_proc_overhead *o = NULL;

	if (!tap_ok(!memwatch_proc_overhead_parse(ctx, text, strlen(text), &o),
		    "overhead is parsed"))
		return;
	tap_ok(o->memory_bytes == 123456 && o->nr_cpus == 2 && o->cpus[0].switch_cycles == 9000 &&
		       o->cpus[1].cpu == 3 && o->cpus[1].ticks == 11 && !o->cpus[1].switches,
	       "overhead: CPUs");
	tap_ok(o->nr_jitter == 2 && o->jitter[1].low_ns == 1024 && o->jitter[1].count == 1,
	       "overhead: histogram");
	memwatch_proc_overhead_free(o);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		o = NULL;
		tap_ok(memwatch_proc_overhead_parse(ctx, bad[i], strlen(bad[i]), &o) == -EBADMSG &&
			       !o,
		       "overhead refuses case %zu", i);
	}
}

static void test_absent(void)
{
	MEMWATCH_OPTS(memwatch_ctx_opts, opts, .root = "/nonexistent");
	struct memwatch_proc_status *status = NULL;
	struct memwatch_ctx *other = NULL;

	memwatch_ctx_new(&opts, &other);
	tap_ok(memwatch_proc_status_read(other, &status) == -ENOENT && !status &&
		       strstr(memwatch_ctx_error(other), "is the module loaded?"),
	       "without the module the error names the remedy");
	memwatch_ctx_unref(other);
}

int main(void)
{
	tap_start();
	memwatch_ctx_new(NULL, &ctx);
	test_status();
	test_status_refuses();
	test_rmids();
	test_rmids_refuses();
	test_rmids_cut();
	test_overhead();
	test_absent();
	memwatch_ctx_unref(ctx);
	return tap_done();
}
