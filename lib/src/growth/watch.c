// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The growth monitor: decides when a round runs, keeps within the budgets, and delivers
 * records. Which process leaks is decided in the kernel, by bpf/growth.h.
 */
#include <memwatch/watch.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/context.h"
#include "base/timemath.h"
#include "growth/governor.h"
#include "growth/limits.h"
#include "growth/pages.h"
#include "growth/snapshot.h"
#include "growth/state-file.h"
#include "loader/growth.h"

#define PROCESSES_DEFAULT 10000
#define PERIOD_DEFAULT_NS 5000000000ULL
#define PERIOD_MIN_NS	  50000000ULL
#define REST_DEFAULT_PPM  1000
#define STORM_DEFAULT_PPM 10000

/*
 * The programs send each record as soon as it is made, so the merge need not wait long
 * for a CPU whose ring is silent.
 */
#define GRACE_NS  200000ULL
#define SILENT_NS 1000000ULL

/* Growth since the last round for which a round is requested, in pages: 8 MiB. */
#define REQUEST_PAGES (8 * MW_GROWTH_MIB)

/*
 * The run time of the event program is measured for MEASURE_NS every MEASURE_EVERY_NS,
 * because counting costs as much as the program itself. While the program is over its
 * budget it is measured every MEASURE_AGAIN_NS, so that it is detached soon.
 */
#define MEASURE_EVERY_NS 10000000000ULL
#define MEASURE_AGAIN_NS 1000000000ULL
#define MEASURE_NS	 200000000ULL

/* Cgroups are walked once a second at most: a walk opens several files for each of them. */
#define LIMITS_EVERY_NS 1000000000ULL

/* Every so many rounds, states of processes that have exited are looked for. */
#define SWEEP_ROUNDS 12

/**
 * struct memwatch_watch - the monitor
 * @ctx: context, a reference
 * @merge: the merge of the rings, owned
 * @bpf: the programs and maps, owned
 * @governor: decides period, gap, width, and whether the event program is attached
 * @stats: as memwatch_watch_stats() reports them
 * @events: the event program is wanted and can be attached
 * @next_ns: when the next regular round is due
 * @last_ns: when the last round began
 * @limits_ns: when the limits of cgroups were read last
 * @measure_ns: when the next measurement of the event program begins or ends
 * @measured_from_ns: when the current measurement began
 * @measured_to_ns: when the last measurement ended
 * @measured_ns: run time of the event program when the current measurement began
 * @requested_ns: when a round was requested; 0: none was since the last round
 * @poll_cpu_ns: CPU time of this thread when memwatch_watch_poll() was entered
 * @charged_ns: CPU time that the governor knows of
 * @stats_fd: keeps run time statistics enabled during a measurement; else -1
 * @round: number of the last round
 * @peeked: next record for memwatch_watch_next(), or NULL
 * @snapshot: see memwatch_watch_snapshot()
 */
struct memwatch_watch {
	struct memwatch_ctx *ctx;
	struct mw_merge *merge;
	struct mw_bpf_growth *bpf;
	struct mw_governor governor;
	struct memwatch_watch_stats stats;
	bool events;
	uint64_t next_ns;
	uint64_t last_ns;
	uint64_t limits_ns;
	uint64_t measure_ns;
	uint64_t measured_from_ns;
	uint64_t measured_to_ns;
	uint64_t measured_ns;
	uint64_t requested_ns;
	uint64_t poll_cpu_ns;
	uint64_t charged_ns;
	int stats_fd;
	uint32_t round;
	const struct memwatch_record_header *peeked;
	struct mw_snapshot snapshot;
};

static int store_limit(void *userdata, uint64_t cgroup, const struct mw_limit *limit)
{
	struct memwatch_watch *watch = userdata;
	struct mw_growth_limit bound = {
		.headroom = mw_pages_from_bytes(limit->headroom_bytes),
		.limit = limit->limit,
	};

	/* If the map is full, processes of this cgroup have only the limit of the machine. */
	mw_bpf_growth_set_limit(watch->bpf, cgroup, &bound);
	return 0;
}

/* The headroom of the machine is read each time, those of cgroups once a second. */
static void refresh_limits(struct memwatch_watch *watch, uint64_t now)
{
	volatile struct mw_growth_control *control = mw_bpf_growth_control(watch->bpf);
	uint64_t bytes;

	if (!mw_limits_host_headroom(watch->ctx, &bytes))
		control->host_headroom = mw_pages_from_bytes(bytes);
	if (watch->limits_ns && now < watch->limits_ns + LIMITS_EVERY_NS)
		return;
	watch->limits_ns = now;
	mw_bpf_growth_forget_limits(watch->bpf);
	mw_limits_walk_cgroups(watch->ctx, store_limit, watch);
}

/*
 * Deletes the states of processes that exited while the iterator made them: the exit
 * program came too early for these. Also counts the processes.
 */
static void sweep_exited(struct memwatch_watch *watch)
{
	struct mw_growth_key *last = NULL;
	struct mw_growth_key key, previous;
	struct mw_growth_process process;
	uint32_t count = 0, growing = 0;

	while (mw_bpf_growth_next(watch->bpf, last, &key, &process)) {
		if (watch->round - process.round > 2) {
			mw_bpf_growth_delete(watch->bpf, &key);
			/* The key after a deleted one is not known: begin again. */
			last = NULL;
			count = growing = 0;
			continue;
		}
		count++;
		growing += !!(process.growth.flags & MW_GROWTH_F_HISTORY);
		previous = key;
		last = &previous;
	}
	watch->stats.processes = count;
	watch->stats.growing = growing;
}

static int run_round(struct memwatch_watch *watch)
{
	volatile struct mw_growth_control *control = mw_bpf_growth_control(watch->bpf);
	uint64_t now = mw_clock(CLOCK_MONOTONIC), spent;
	int err;

	refresh_limits(watch, now);
	mw_bpf_growth_refresh(watch->bpf);
	if (!++watch->round)
		watch->round = 1;
	control->round = watch->round;
	control->request_ns = now;
	err = mw_bpf_growth_round(watch->bpf);
	if (err)
		return err;
	if (watch->round % SWEEP_ROUNDS == 1)
		sweep_exited(watch);
	watch->stats.rounds++;
	if (watch->requested_ns)
		watch->stats.reaction_ns = mw_sub_sat(mw_clock(CLOCK_MONOTONIC),
						      watch->requested_ns);
	watch->requested_ns = 0;
	watch->last_ns = now;
	/* All CPU time since the last round is charged to this one, wake-ups included. */
	spent = watch->stats.cpu_ns + mw_clock(CLOCK_THREAD_CPUTIME_ID) - watch->poll_cpu_ns;
	mw_governor_round(&watch->governor, mw_sub_sat(spent, watch->charged_ns));
	watch->charged_ns = spent;
	control->request_gap_ns = watch->governor.gap_ns;
	watch->next_ns = now + watch->governor.period_ns;
	return 0;
}

/* Does what the governor has decided about the event program. */
static void apply_decision(struct memwatch_watch *watch)
{
	int err;

	mw_bpf_growth_control(watch->bpf)->width = watch->governor.width;
	if (watch->governor.attached == watch->stats.events_attached)
		return;
	if (!watch->governor.attached) {
		mw_bpf_growth_detach_events(watch->bpf);
		watch->stats.events_attached = 0;
		watch->stats.events_state = MEMWATCH_EVENTS_OVER_BUDGET;
		mw_log(watch->ctx, MEMWATCH_LOG_WARNING,
		       "the event program took %u ppm of a CPU, more than its budget of %u: it is "
		       "detached for a while, and fast growth is found at the next round only",
		       watch->stats.event_ppm, watch->governor.storm_ppm);
		return;
	}
	err = mw_bpf_growth_attach_events(watch->bpf);
	watch->stats.events_attached = !err;
	watch->stats.events_state = err ? MEMWATCH_EVENTS_IMPOSSIBLE : MEMWATCH_EVENTS_ATTACHED;
	watch->stats.events_error = (uint32_t)-err;
	if (err) {
		watch->events = false;
		mw_log(watch->ctx, MEMWATCH_LOG_WARNING,
		       "cannot attach to kmem:rss_stat (%s): fast growth is found at the next "
		       "round only",
		       strerror(-err));
	}
}

static void begin_measurement(struct memwatch_watch *watch, uint64_t now)
{
	watch->measure_ns = now + MEASURE_NS;
	watch->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	watch->measured_from_ns = now;
	watch->measured_ns = mw_bpf_growth_event_ns(watch->bpf);
}

static void end_measurement(struct memwatch_watch *watch, uint64_t now)
{
	uint64_t ran = mw_sub_sat(mw_bpf_growth_event_ns(watch->bpf), watch->measured_ns);
	uint64_t time = mw_max_u64(now - watch->measured_from_ns, 1);
	uint64_t passed = now - watch->measured_to_ns;

	close(watch->stats_fd);
	watch->stats_fd = -1;
	watch->measured_to_ns = now;
	watch->stats.event_ppm = (uint32_t)mw_min_u64(ran * 1000000 / time, UINT32_MAX);
	watch->stats.event_ns += mw_mul_sat(ran, passed) / time;
	mw_governor_events(&watch->governor, watch->stats.event_ppm, passed);
	watch->measure_ns = now - MEASURE_NS +
			    (watch->governor.attached && watch->governor.overruns
				     ? MEASURE_AGAIN_NS
				     : MEASURE_EVERY_NS);
	apply_decision(watch);
}

static void measure_events(struct memwatch_watch *watch, uint64_t now)
{
	if (!watch->events || now < watch->measure_ns)
		return;
	if (watch->stats_fd < 0)
		begin_measurement(watch, now);
	else
		end_measurement(watch, now);
}

/* The next record for the caller: 1, 0 if there is none, or a negative errno. */
static int next_record(struct memwatch_watch *watch, const struct memwatch_record_header **ret)
{
	const struct memwatch_record_growth *record;
	int err;

	for (;;) {
		while (!mw_merge_next(watch->merge, ret)) {
			err = mw_merge_round(watch->merge, mw_clock(CLOCK_MONOTONIC));
			if (err <= 0)
				return err;
		}
		record = (const struct memwatch_record_growth *)*ret;
		if ((*ret)->type == MEMWATCH_RECORD_LOST)
			return 1;
		if ((*ret)->type != MEMWATCH_RECORD_GROWTH)
			continue;
		if (record->what != MEMWATCH_GROWTH_POKED)
			return 1;
		/* The record only wakes this thread up: the request is in request_ns. */
		watch->stats.pokes++;
	}
}

int memwatch_watch_next(struct memwatch_watch *watch, const struct memwatch_record_header **ret)
{
	if (watch->peeked) {
		*ret = watch->peeked;
		watch->peeked = NULL;
		return 1;
	}
	return next_record(watch, ret);
}

static int wait_ms(const struct memwatch_watch *watch, uint64_t now, uint64_t end)
{
	uint64_t until = mw_min_u64(end, watch->next_ns);

	until = mw_min_u64(until, mw_merge_deadline(watch->merge));
	if (watch->events)
		until = mw_min_u64(until, watch->measure_ns);
	return (int)mw_min_u64((mw_sub_sat(until, now) + 999999) / 1000000, 60000);
}

/* Runs a round if one is due, and looks for records. Returns bits or a negative errno. */
static int poll_once(struct memwatch_watch *watch, uint64_t now)
{
	uint64_t asked = mw_bpf_growth_control(watch->bpf)->request_ns;
	int err, bits = 0;

	/* run_round() writes the start of a round to request_ns too: that is no request. */
	if (!watch->requested_ns && watch->round && asked > watch->last_ns)
		watch->requested_ns = asked;
	if (now >= watch->next_ns ||
	    (watch->requested_ns && now >= watch->last_ns + watch->governor.gap_ns)) {
		err = run_round(watch);
		if (err)
			return err;
		bits |= MEMWATCH_WATCH_ROUND;
	}
	measure_events(watch, now);
	if (!watch->peeked) {
		err = next_record(watch, &watch->peeked);
		if (err <= 0)
			watch->peeked = NULL;
		if (err < 0)
			return err;
	}
	return bits | (watch->peeked ? MEMWATCH_WATCH_EVENT : 0);
}

int memwatch_watch_poll(struct memwatch_watch *watch, int timeout_ms)
{
	uint64_t now = mw_clock(CLOCK_MONOTONIC);
	uint64_t end = timeout_ms < 0 ? MW_TIME_MAX
				      : mw_add_sat(now, (uint64_t)timeout_ms * 1000000);
	int bits, err = 0;

	watch->poll_cpu_ns = mw_clock(CLOCK_THREAD_CPUTIME_ID);
	for (;;) {
		bits = poll_once(watch, now);
		if (bits)
			break;
		now = mw_clock(CLOCK_MONOTONIC);
		if (now >= end)
			break;
		err = mw_bpf_growth_wait(watch->bpf,
					 watch->requested_ns ? 1 : wait_ms(watch, now, end));
		if (err < 0)
			break;
		now = mw_clock(CLOCK_MONOTONIC);
	}
	watch->stats.cpu_ns += mw_clock(CLOCK_THREAD_CPUTIME_ID) - watch->poll_cpu_ns;
	return err < 0 ? err : bits;
}

int memwatch_watch_snapshot(struct memwatch_watch *watch)
{
	return mw_snapshot_take(watch->ctx, &watch->snapshot, watch->bpf);
}

int memwatch_watch_row(struct memwatch_watch *watch, unsigned int index,
		       struct memwatch_growth_row *ret)
{
	return mw_snapshot_row(&watch->snapshot, watch->bpf, index, ret);
}

int memwatch_watch_sample(struct memwatch_watch *watch, unsigned int index,
			  struct memwatch_growth_sample *ret, __u64 *cgroup)
{
	return mw_snapshot_sample(&watch->snapshot, index, ret, cgroup);
}

const char *memwatch_watch_limit_name(unsigned int limit)
{
	switch (limit) {
	case MEMWATCH_LIMIT_HOST:
		return "the memory of the machine";
	case MEMWATCH_LIMIT_CGROUP_MAX:
		return "memory.max of its cgroup";
	case MEMWATCH_LIMIT_CGROUP_HIGH:
		return "memory.high of its cgroup";
	case MEMWATCH_LIMIT_DATA:
		return "RLIMIT_DATA";
	case MEMWATCH_LIMIT_AS:
		return "RLIMIT_AS";
	default:
		return "its limit";
	}
}

/* Checks the options and fills in the defaults. */
static int complete_watch_opts(struct memwatch_ctx *ctx, struct memwatch_watch_opts *opts)
{
	if (opts->flags & ~MEMWATCH_WATCH_NO_EVENTS)
		return mw_fail(ctx, -EINVAL, "growth monitor: unknown flags %#x",
			       opts->flags & ~MEMWATCH_WATCH_NO_EVENTS);
	if (!opts->max_processes)
		opts->max_processes = PROCESSES_DEFAULT;
	if (!opts->period_ns)
		opts->period_ns = PERIOD_DEFAULT_NS;
	if (!opts->rest_ppm)
		opts->rest_ppm = REST_DEFAULT_PPM;
	if (!opts->storm_ppm)
		opts->storm_ppm = STORM_DEFAULT_PPM;
	if (opts->period_ns < PERIOD_MIN_NS || opts->period_ns > MW_GOVERNOR_PERIOD_MAX_NS)
		return mw_fail(ctx, -EINVAL,
			       "the period of a growth monitor must be 50 ms to 60 s");
	if (opts->rest_ppm > 1000000 || opts->storm_ppm > 1000000)
		return mw_fail(ctx, -EINVAL,
			       "a budget of a growth monitor must be at most one CPU (1000000)");
	return 0;
}

int memwatch_watch_open(struct memwatch_ctx *ctx, const struct memwatch_watch_opts *user_opts,
			struct memwatch_watch **ret)
{
	struct mw_merge_opts merge_opts = { .grace_ns = GRACE_NS, .silent_ns = SILENT_NS };
	struct memwatch_watch_opts opts;
	struct memwatch_watch *watch;
	int err;

	err = mw_opts_copy(ctx, &opts, sizeof(opts), user_opts);
	if (!err)
		err = complete_watch_opts(ctx, &opts);
	if (err)
		return err;
	watch = calloc(1, sizeof(*watch));
	if (!watch)
		return mw_fail_memory(ctx, "growth monitor");
	watch->ctx = memwatch_ctx_ref(ctx);
	watch->stats_fd = -1;
	watch->stats.sz = sizeof(watch->stats);
	watch->stats.state_bytes = sizeof(struct mw_growth_process);
	watch->stats.history_bytes = sizeof(struct mw_growth_history);
	err = mw_merge_new(&merge_opts, &watch->merge);
	if (!err)
		err = mw_bpf_growth_open(ctx, opts.max_processes, watch->merge, &watch->bpf);
	if (err) {
		memwatch_watch_unref(watch);
		return err;
	}
	mw_governor_init(&watch->governor, opts.period_ns, opts.rest_ppm, opts.storm_ppm,
			 mw_bpf_growth_width(watch->bpf));
	mw_bpf_growth_control(watch->bpf)->request_pages = REQUEST_PAGES;
	mw_bpf_growth_control(watch->bpf)->request_gap_ns = watch->governor.gap_ns;
	watch->events = !(opts.flags & MEMWATCH_WATCH_NO_EVENTS);
	watch->measured_to_ns = mw_clock(CLOCK_MONOTONIC);
	watch->measure_ns = watch->measured_to_ns + MEASURE_AGAIN_NS;
	if (watch->events)
		apply_decision(watch);
	*ret = watch;
	return 0;
}

struct memwatch_watch *memwatch_watch_unref(struct memwatch_watch *watch)
{
	if (!watch)
		return NULL;
	if (watch->stats_fd >= 0)
		close(watch->stats_fd);
	mw_bpf_growth_close(watch->bpf);
	mw_merge_free(watch->merge);
	free(watch->snapshot.items);
	memwatch_ctx_unref(watch->ctx);
	free(watch);
	return NULL;
}

int memwatch_watch_save(struct memwatch_watch *watch, const char *path)
{
	return mw_state_file_save(watch->ctx, watch->bpf, path);
}

int memwatch_watch_load(struct memwatch_watch *watch, const char *path)
{
	if (watch->round)
		return mw_fail(watch->ctx, -EINVAL,
			       "histories must be loaded before the first round");
	return mw_state_file_load(watch->ctx, watch->bpf, path);
}

int memwatch_watch_stats(struct memwatch_watch *watch, struct memwatch_watch_stats *ret)
{
	struct memwatch_watch_stats *s = &watch->stats;

	s->samples = mw_bpf_growth_count(watch->bpf, MW_GROWTH_COUNT_SAMPLES);
	s->full = mw_bpf_growth_count(watch->bpf, MW_GROWTH_COUNT_FULL);
	s->deep_full = mw_bpf_growth_count(watch->bpf, MW_GROWTH_COUNT_HISTORY_FULL);
	s->execs = mw_bpf_growth_count(watch->bpf, MW_GROWTH_COUNT_EXECS);
	s->exits = mw_bpf_growth_count(watch->bpf, MW_GROWTH_COUNT_EXITS);
	s->lost = mw_bpf_growth_count(watch->bpf, MW_GROWTH_COUNT_OUTPUT) +
		  mw_bpf_growth_count(watch->bpf, MW_GROWTH_COUNT_NO_RING);
	s->period_ns = watch->governor.period_ns;
	s->gap_ns = watch->governor.gap_ns;
	s->over_budget = watch->governor.detaches;
	s->width = watch->governor.width;
	s->rest_ppm = watch->governor.rest_ppm;
	s->storm_ppm = watch->governor.storm_ppm;
	s->events_retry_ns = 0;
	if (s->events_state == MEMWATCH_EVENTS_OVER_BUDGET)
		s->events_retry_ns = watch->measured_to_ns + watch->governor.detach_left_ns;
	return mw_opts_export(ret, s, sizeof(*s));
}
