// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Loader, rings and merge of the library on the running kernel without the module: the
 * programs of the relay are run with BPF_PROG_TEST_RUN on all CPUs at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "loader/relay.h"
#include "loader/rings.h"
#include "base/context.h"
#include "base/timemath.h"
#include "lib/tests/sysfs-kit.h"
#include "../tap.h"

#define OWNER(rmid, generation) ((uint64_t)(generation) << 32 | (rmid))
#define CPUS_MAX		64

struct producer {
	pthread_t thread;
	int cpu, on_switch, on_tick;
	unsigned int ticks;
	uint64_t first_ns, last_ns;
	bool failed;
};

static void run_program(struct producer *p, int prog, uint64_t *args, size_t count)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = count * sizeof(*args),
		    .flags = BPF_F_TEST_RUN_ON_CPU, .cpu = p->cpu);

	if (bpf_prog_test_run_opts(prog, &opts))
		p->failed = true;
}

/* Runs the programs on one CPU as the module would: seven switches, then a tick. */
static void *produce_records(void *data)
{
	struct producer *p = data;
	uint64_t owner = 0;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(p->cpu, &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	for (unsigned int i = 0; i < p->ticks * 8; i++) {
		uint64_t now = mw_clock(CLOCK_MONOTONIC);
		uint64_t next = OWNER(i % 5, !!(i % 5));
		uint64_t change[] = { now, owner, next, 1 };
		uint64_t tick[] = { now, now, 1000000, 0, owner };

		if (i % 8 == 0) {
			run_program(p, p->on_tick, tick, 5);
			p->last_ns = now;
			if (!p->first_ns)
				p->first_ns = now;
		} else {
			run_program(p, p->on_switch, change, 4);
			owner = next;
		}
	}
	return NULL;
}

struct result {
	uint64_t run_ns[CPUS_MAX];
	uint64_t records, lost, unsorted, late;
	uint64_t last_ns;
};

static void read_merge(struct mw_merge *merge, struct result *result)
{
	const struct memwatch_record_header *rec;

	do {
		while (mw_merge_next(merge, &rec) > 0) {
			if (rec->flags & MEMWATCH_RECORD_F_LATE)
				result->late++;
			else if (rec->time_ns < result->last_ns)
				result->unsorted++;
			else
				result->last_ns = rec->time_ns;
			if (rec->type == MEMWATCH_RECORD_LOST) {
				result->lost += ((const struct memwatch_record_lost *)rec)->count;
				continue;
			}
			result->records++;
			if (rec->type == MEMWATCH_RECORD_SAMPLE)
				result->run_ns[rec->cpu] +=
					((const struct memwatch_record_sample *)rec)->run_ns;
		}
	} while (mw_merge_round(merge, mw_clock(CLOCK_MONOTONIC)) > 0);
}

static struct producer producers[CPUS_MAX];

/* Runs a producer on each CPU; reads meanwhile, or afterwards if the reader is @stalled. */
static void run_producers(struct mw_bpf_relay *relay, struct mw_merge *merge, unsigned int cpus,
			  bool stalled, struct result *result)
{
	memset(producers, 0, sizeof(producers));
	for (unsigned int i = 0; i < cpus; i++) {
		producers[i].cpu = (int)i;
		producers[i].ticks = 2000;
		producers[i].on_switch = mw_bpf_relay_program(relay, "on_switch");
		producers[i].on_tick = mw_bpf_relay_program(relay, "on_tick");
		pthread_create(&producers[i].thread, NULL, produce_records, &producers[i]);
	}
	for (unsigned int i = 0; i < cpus; i++) {
		while (!stalled && pthread_tryjoin_np(producers[i].thread, NULL)) {
			read_merge(merge, result);
			mw_bpf_relay_wait(relay, 5);
		}
		if (stalled)
			pthread_join(producers[i].thread, NULL);
	}
	mw_bpf_relay_detach(relay);
	mw_merge_finish(merge, mw_clock(CLOCK_MONOTONIC));
	read_merge(merge, result);
	if (mw_bpf_relay_settle(relay))
		read_merge(merge, result);
}

static void check_stream(struct mw_bpf_relay *relay, struct mw_merge *merge, bool stalled,
			 const struct result *result)
{
	struct memwatch_stream_stats stats = { .sz = sizeof(stats) };
	const char *what = stalled ? "stalled reader" : "reader";
	uint64_t produced = 0, dropped = 0;

	mw_bpf_relay_totals(relay, &produced, &dropped);
	mw_merge_stats(merge, &stats);
	tap_eq(produced, result->records + result->lost, "%s: produced = delivered + lost", what);
	tap_eq(stats.malformed, 0, "%s: no record is malformed", what);
	tap_eq(stats.lost, result->lost, "%s: the merge counts the records of losses", what);
	tap_eq(dropped, result->lost, "%s: the relay dropped what the stream lost", what);
	if (stalled)
		tap_ok(dropped > 0, "%s: records are lost (%llu)", what,
		       (unsigned long long)dropped);
	else
		tap_eq(dropped, 0, "%s: no record is lost", what);
	tap_eq(result->unsorted, 0, "%s: records are sorted, or flagged late", what);
	tap_ok(result->records > (stalled ? 50 : 20000),
	       "%s: records are delivered (%llu, %llu late)", what,
	       (unsigned long long)result->records, (unsigned long long)result->late);
}

static void test_stream(struct memwatch_ctx *ctx, unsigned int ring_pages, bool stalled)
{
	struct mw_merge_opts merge_opts = { .grace_ns = 2000000, .silent_ns = 50000000 };
	struct mw_bpf_relay_opts opts = { .nr_rmids = 16, .ring_pages = ring_pages };
	const char *what = stalled ? "stalled reader" : "reader";
	unsigned int cpus, wrong = 0, failed = 0;
	struct mw_bpf_relay *relay = NULL;
	struct mw_merge *merge = NULL;
	struct result result = { 0 };
	int err;

	err = mw_merge_new(&merge_opts, &merge);
	if (!err)
		err = mw_bpf_relay_open(ctx, &opts, merge, &relay);
	if (!tap_ok(!err, "%s: the relay is opened: %s", what, err ? ctx->error : "yes"))
		return;
	cpus = mw_bpf_relay_cpus(relay);
	if (cpus > CPUS_MAX)
		cpus = CPUS_MAX;
	run_producers(relay, merge, cpus, stalled, &result);
	check_stream(relay, merge, stalled, &result);
	for (unsigned int i = 0; i < cpus; i++) {
		failed += producers[i].failed;
		wrong += result.run_ns[i] != producers[i].last_ns - producers[i].first_ns;
	}
	tap_eq(failed, 0, "%s: programs run on every CPU", what);
	if (!stalled)
		tap_eq(wrong, 0, "%s: run_ns of each CPU is the time between its ticks", what);
	mw_bpf_relay_close(relay);
	mw_merge_free(merge);
}

static void test_failures(struct memwatch_ctx *ctx)
{
	struct mw_merge_opts merge_opts = { 0 };
	struct mw_bpf_relay_opts opts = { .nr_rmids = 16, .ring_pages = 8 };
	struct mw_bpf_relay *relay, *other;
	struct memwatch_availability available;
	unsigned int names = 0, reasons = 0;
	struct mw_merge *merge;
	const char *name;
	__u64 count;
	int err;

	mw_merge_new(&merge_opts, &merge);
	err = mw_bpf_relay_open(ctx, &opts, merge, &relay);
	if (!tap_ok(!err, "the relay is opened: %s", err ? ctx->error : "yes"))
		return;
	while (mw_bpf_relay_failure(relay, names, &name, &count) > 0 && name && *name && !count)
		names++;
	tap_ok(names >= 14, "every failure counter has a name and is 0 (%u counters)", names);
	for (unsigned int i = 0; i < MEMWATCH_COUNTER_MAX; i++) {
		mw_bpf_relay_counter(relay, i, &available);
		tap_note("%s: %s",
			 i == 0	  ? "cycles"
			 : i == 1 ? "instructions"
				  : "cache",
			 available.reason[0] ? available.reason : "available");
		reasons += (available.status == MEMWATCH_STATUS_OK) == !available.reason[0];
	}
	tap_eq(reasons, MEMWATCH_COUNTER_MAX,
	       "each counter is either available or has a reason why not");
	tap_ok(!mw_bpf_relay_open(ctx, &opts, merge, &other),
	       "a second relay is opened at the same time");
	mw_bpf_relay_close(other);
	if (access("/dev/memwatch", F_OK)) {
		err = mw_bpf_relay_attach(relay);
		tap_eq(err, -EOPNOTSUPP, "without the module, attaching fails");
		tap_ok(strstr(ctx->error, "no such tracepoint"),
		       "without the module, the error names the cause: %s", ctx->error);
	}
	mw_bpf_relay_close(relay);
	opts.ring_pages = 3;
	err = mw_bpf_relay_open(ctx, &opts, merge, &relay);
	tap_eq(err, -EINVAL, "a ring of 3 pages is refused: %s", ctx->error);
	mw_merge_free(merge);
}

static void set_online(struct sysfs *machine, const char *cpus)
{
	const struct sysfs_file files[] = { { "online", cpus }, { NULL, NULL } };

	sysfs_add(machine, "sys/devices/system/cpu", files);
}

static void count_warning(void *userdata, enum memwatch_log_level level, const char *message)
{
	tap_note("%s", message);
	*(unsigned int *)userdata += level <= MEMWATCH_LOG_WARNING;
}

/* CPU 0 comes online, and what should be the map of the rings is none. */
static void test_outage(void)
{
	int map = bpf_map_create(BPF_MAP_TYPE_PERF_EVENT_ARRAY, "rings", 4, 4, CPUS_MAX, NULL);
	int counts = bpf_map_create(BPF_MAP_TYPE_PERCPU_ARRAY, "counts", 4, 8, 1, NULL);
	int none = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct mw_bpf_rings_opts opts = { .map = dup(none), .counts = counts, .pages = 1 };
	struct mw_merge_opts merge_opts = { 0 };
	struct mw_bpf_rings *rings = NULL;
	unsigned int warnings = 0;
	struct mw_merge *merge;
	struct sysfs machine;
	uint64_t begin;
	int err;

	sysfs_begin(&machine);
	memwatch_ctx_set_log(machine.ctx, count_warning, &warnings, MEMWATCH_LOG_WARNING);
	set_online(&machine, "\n");
	mw_merge_new(&merge_opts, &merge);
	err = mw_bpf_rings_open(machine.ctx, &opts, merge, &rings);
	tap_eq(err, 0, "rings are opened without a CPU: %s", machine.ctx->error);
	set_online(&machine, "0\n");
	begin = mw_clock(CLOCK_MONOTONIC);
	for (int i = 0; i < 5; i++)
		mw_bpf_rings_refresh(rings);
	tap_eq(warnings, 1, "a ring that cannot be opened is warned of once");
	dup2(map, opts.map);
	mw_bpf_rings_refresh(rings);
	tap_ok(!mw_bpf_rings_generation(rings, 0) || mw_clock(CLOCK_MONOTONIC) - begin > 1000000000,
	       "it is not tried again for a second");
	for (int i = 0; i < 200 && !mw_bpf_rings_generation(rings, 0); i++) {
		usleep(50000);
		mw_bpf_rings_refresh(rings);
	}
	tap_eq(mw_bpf_rings_generation(rings, 0), 1, "it is opened as soon as that is possible");
	tap_eq(mw_bpf_rings_index(rings, 0), 0, "the merge has known the CPU all the time");
	set_online(&machine, "\n");
	mw_bpf_rings_refresh(rings);
	dup2(none, opts.map);
	set_online(&machine, "0\n");
	mw_bpf_rings_refresh(rings);
	mw_bpf_rings_refresh(rings);
	tap_eq(warnings, 2, "the next time that it cannot be opened is warned of, too");
	mw_bpf_rings_close(rings);
	mw_merge_free(merge);
	sysfs_end(&machine);
	close(opts.map);
	close(map);
	close(none);
	close(counts);
}

int main(void)
{
	struct memwatch_ctx *ctx;

	tap_start();
	if (geteuid())
		tap_skip_all("needs root");
	if (memwatch_ctx_new(NULL, &ctx))
		return 1;
	test_failures(ctx);
	test_stream(ctx, 1024, false);
	test_stream(ctx, 1, true);
	test_outage();
	memwatch_ctx_unref(ctx);
	return tap_done();
}
