// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The parsers of /proc/memwatch: they accept what the module writes and refuse everything
 * else. In particular, they do not read an invalid number as 0.
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
				   "period_asked_ns: 500000\nperiod_reason: ticks: 7.00 %\n"
				   "policy: fifo\ncpumask: 0-1\nrmids_total: 512\nrmids_used: 7\n"
				   "newer_key: anything: at all\n"
				   "settings_by: 12 a\\134b\ndefaults_by: 0 -\n"
				   "session: 12 started memwatchctl\nsession: 13 open a\\134b\n"
				   "waiting: 99 two words\nwaiting: 100 x\\012y\n";
	struct memwatch_proc_status *s = NULL;

	if (!tap_ok(!memwatch_proc_status_parse(ctx, text, strlen(text), &s), "status is parsed"))
		return;
	tap_eq(s->abi, 1, "status: a number of 32 bits");
	tap_eq(s->period_ns, 1000000, "status: a number of 64 bits");
	tap_eq(s->rmids_total, 512, "status: a number behind strings");
	tap_eq(s->period_asked_ns, 500000, "status: the period that was set");
	tap_str_eq(s->period_reason, "ticks: 7.00 %", "status: why the period is longer");
	tap_eq(s->keys, 12, "status: an unknown key is skipped and not counted");
	tap_str_eq(s->backend_reason, "CPUID leaf 0xF: absent",
		   "status: a value may contain a colon");
	tap_eq(s->nr_waiting, 2, "status: number of waiting processes");
	tap_eq(memwatch_proc_waiting_at(s, 0)->tgid, 99, "status: tgid of a waiting process");
	tap_str_eq(memwatch_proc_waiting_at(s, 0)->comm, "two words",
		   "status: a name may contain a space");
	tap_str_eq(memwatch_proc_waiting_at(s, 1)->comm, "x\ny",
		   "status: escapes in a waiting process are resolved");
	tap_eq(s->nr_session, 2, "status: number of sessions");
	tap_eq(memwatch_proc_session_at(s, 0)->started, 1, "status: a session that is started");
	tap_eq(memwatch_proc_session_at(s, 1)->started, 0, "status: a session that is open only");
	tap_str_eq(memwatch_proc_session_at(s, 1)->comm, "a\\b",
		   "status: escapes in a session are resolved");
	tap_eq(s->settings_by->tgid, 12, "status: tgid of who made the settings");
	tap_str_eq(s->settings_by->comm, "a\\b", "status: escapes in who made the settings");
	tap_eq(s->defaults_by->tgid, 0, "status: the defaults are the parameters of the module");
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
		"settings_by: 1\n",
		"defaults_by: x y\n",
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
		tap_eq(status_error(bad[i]), -EBADMSG, "status: invalid text %zu is refused", i);
	tap_eq(status_error(""), 0, "status: empty text is valid");
	tap_eq(status_error("allocs: 18446744073709551615\n"), 0,
	       "status: the largest number is valid");
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
	tap_eq(r->count, 2, "rmids: number of processes");
	tap_eq(memwatch_proc_rmid_at(r, 0)->rmid, 3, "rmids: column rmid");
	tap_eq(memwatch_proc_rmid_at(r, 0)->generation, 2, "rmids: column generation");
	tap_eq(memwatch_proc_rmid_at(r, 0)->tgid, 77, "rmids: column tgid");
	tap_eq(memwatch_proc_rmid_at(r, 0)->start_time_ns, 1000, "rmids: column start_time_ns");
	tap_eq(memwatch_proc_rmid_at(r, 0)->cgroup_id, 42, "rmids: column cgroup_id");
	tap_eq(memwatch_proc_rmid_at(r, 0)->uid, 1000, "rmids: column uid");
	tap_str_eq(memwatch_proc_rmid_at(r, 0)->comm, "a b\tc",
		   "rmids: a name may contain any character");
	tap_str_eq(memwatch_proc_rmid_at(r, 1)->comm, "", "rmids: a name may be empty");
	memwatch_proc_rmids_free(r);

	tap_eq(rmids_error("# rmid\tnew\tgeneration\ttgid\tparent_tgid\tstart_time_ns\t"
			   "alloc_time_ns\tcgroup_id\tuid\tcomm\n1\tx\t1\t1\t1\t1\t1\t1\t1\tz\n# "
			   "end 1\n"),
	       0, "rmids: an unknown column is skipped");
	tap_eq(rmids_error(NAMES "# end 0\n"), 0, "rmids: a file without processes is valid");
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
		tap_eq(rmids_error(bad[i]), -EBADMSG, "rmids: invalid text %zu is refused", i);
}

static void test_rmids_truncated(void)
{
	static const char text[] = NAMES LINE "one\n" LINE "two\n# end 2\n";
	size_t len = strlen(text), accepted = 0;

	for (size_t i = 0; i < len - 1; i++) {
		struct memwatch_proc_rmids *r = NULL;
		char *piece = malloc(i ? i : 1);

		/* memory of exactly this size, so that the sanitizer detects reads beyond it */
		memcpy(piece, text, i);
		accepted += !memwatch_proc_rmids_parse(ctx, piece, i, &r);
		memwatch_proc_rmids_free(r);
		free(piece);
	}
	tap_eq(accepted, 0, "rmids: a truncated file is refused, wherever it ends");
}

static void test_overhead(void)
{
	static const char text[] =
		"memory_bytes: 123456\n"
		"cpu 0: ticks=10 missed=1 jitter_max_ns=5 switches=100 pqr_writes=3 "
		"switch_cycles=9000 switch_sampled=2 tick_cycles=77 newer=1 "
		"rdt_waits=3 rdt_ns=40000 rdt_sync_ns=900 rdt_busy=2 rdt_age_max_ns=1003000 "
		"irqs_off_max_ns=38000 tick_ns=70000 tick_ppm=7000\n"
		"cpu 3: ticks=11\njitter_ns 0-1023: 9\njitter_ns 1024-2047: 1\n";
	static const char *const bad[] = { "cpu x: ticks=1\n", "cpu 1 ticks=1\n",
					   "cpu 1: ticks=\n",  "cpu 1: ticks\n",
					   "jitter_ns 1: 2\n", "jitter_ns 1-2\n" };
	struct memwatch_proc_overhead *o = NULL;

	if (!tap_ok(!memwatch_proc_overhead_parse(ctx, text, strlen(text), &o),
		    "overhead is parsed"))
		return;
	tap_eq(o->memory_bytes, 123456, "overhead: memory of the module");
	tap_eq(o->nr_cpus, 2, "overhead: number of CPUs");
	tap_eq(memwatch_proc_cpu_at(o, 0)->switch_cycles, 9000,
	       "overhead: a value of the first CPU");
	tap_eq(memwatch_proc_cpu_at(o, 0)->rdt_waits, 3,
	       "overhead: RMIDs that were not read in time");
	tap_eq(memwatch_proc_cpu_at(o, 0)->rdt_ns, 40000, "overhead: the time of reading counters");
	tap_eq(memwatch_proc_cpu_at(o, 0)->rdt_sync_ns, 900,
	       "overhead: the time of agreeing with other CPUs on what to read");
	tap_eq(memwatch_proc_cpu_at(o, 0)->rdt_busy, 2, "overhead: how often another CPU read");
	tap_eq(memwatch_proc_cpu_at(o, 0)->rdt_age_max_ns, 1003000,
	       "overhead: the age of the oldest run");
	tap_eq(memwatch_proc_cpu_at(o, 0)->irqs_off_max_ns, 38000,
	       "overhead: the longest time with interrupts off");
	tap_eq(memwatch_proc_cpu_at(o, 0)->tick_ns, 70000, "overhead: the time of all ticks");
	tap_eq(memwatch_proc_cpu_at(o, 0)->tick_ppm, 7000,
	       "overhead: the last value of the first CPU");
	tap_eq(memwatch_proc_cpu_at(o, 1)->cpu, 3, "overhead: number of the second CPU");
	tap_eq(memwatch_proc_cpu_at(o, 1)->ticks, 11, "overhead: a value of the second CPU");
	tap_eq(memwatch_proc_cpu_at(o, 1)->switches, 0,
	       "overhead: a value that is not in the file is 0");
	tap_eq(o->nr_jitter, 2, "overhead: number of bins of the histogram");
	tap_eq(memwatch_proc_jitter_at(o, 1)->low_ns, 1024, "overhead: lower limit of a bin");
	tap_eq(memwatch_proc_jitter_at(o, 1)->count, 1, "overhead: count of a bin");
	memwatch_proc_overhead_free(o);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		o = NULL;
		tap_eq(memwatch_proc_overhead_parse(ctx, bad[i], strlen(bad[i]), &o), -EBADMSG,
		       "overhead: invalid text %zu is refused", i);
		tap_ok(!o, "overhead: invalid text %zu has no result", i);
	}
}

static void test_without_module(void)
{
	MEMWATCH_OPTS(memwatch_ctx_opts, opts, .root = "/nonexistent");
	struct memwatch_proc_status *status = NULL;
	struct memwatch_ctx *other = NULL;

	memwatch_ctx_new(&opts, &other);
	tap_eq(memwatch_proc_status_read(other, &status), -ENOENT,
	       "without the module, status cannot be read");
	tap_ok(!status, "without the module, there is no status");
	tap_ok(strstr(memwatch_ctx_error(other), "is the module loaded?"),
	       "without the module, the error names the remedy");
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
	test_rmids_truncated();
	test_overhead();
	test_without_module();
	memwatch_ctx_unref(ctx);
	return tap_done();
}
