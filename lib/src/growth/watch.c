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

#include "base/context.h"
#include "base/namespace.h"
#include "base/timemath.h"
#include "growth/governor.h"
#include "growth/limits.h"
#include "growth/measure.h"
#include "growth/own-time.h"
#include "growth/pages.h"
#include "growth/quota.h"
#include "growth/snapshot.h"
#include "growth/state-file.h"
#include "growth/suspects.h"
#include "growth/survey.h"
#include "loader/growth.h"
#include "loader/wakeup.h"

#define FLAGS_ALL                                                                                  \
	(MEMWATCH_WATCH_NO_EVENTS | MEMWATCH_WATCH_OWN_THREAD | MEMWATCH_WATCH_NO_TOUCH |          \
	 MEMWATCH_WATCH_NO_WHERE)
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

/* Every so many rounds, states of processes that have exited are looked for. */
#define SWEEP_ROUNDS 12

/**
 * struct memwatch_watch - the monitor
 * @ctx: context, a reference
 * @merge: the merge of the rings, owned
 * @bpf: the programs and maps, owned
 * @governor: decides period, gap, width, and whether the event program is attached
 * @stats: as memwatch_watch_get_stats() reports them
 * @events: the event program is wanted and can be attached
 * @next_ns: when the next regular round is due
 * @last_ns: when the last round began
 * @measure: measurements of the event program
 * @requested_ns: when a round was requested; 0: none was since the last round
 * @time: CPU time of the monitor
 * @charged_ns: CPU time that the governor knows of
 * @round: number of the last round
 * @peeked: next record for memwatch_watch_next(), or NULL
 * @wakeup: the descriptor for event loops
 * @snapshot: see memwatch_watch_snapshot()
 * @quota: which processes have a state when there is not room for all
 * @survey: the cgroups and the machine, owned
 * @suspects: what is found out about growing processes
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
	struct mw_measure measure;
	uint64_t requested_ns;
	struct mw_own_time time;
	uint64_t charged_ns;
	uint32_t round;
	const struct memwatch_record_header *peeked;
	struct mw_wakeup wakeup;
	struct mw_snapshot snapshot;
	struct mw_quota quota;
	struct mw_survey *survey;
	struct mw_suspects suspects;
};

struct mw_survey *mw_watch_survey(struct memwatch_watch *watch)
{
	return watch->survey;
}

struct mw_suspects *mw_watch_suspects(struct memwatch_watch *watch)
{
	return &watch->suspects;
}

static void refresh_limits(struct memwatch_watch *watch)
{
	volatile struct mw_growth_control *control = mw_bpf_growth_control(watch->bpf);
	struct mw_limits_host host;

	if (mw_limits_read_host(watch->ctx, &host))
		return;
	control->host_headroom = mw_pages_from_bytes(host.headroom_bytes);
	control->host_swap = mw_pages_from_bytes(host.swap_bytes) >> control->page_shift;
}

struct sweep {
	struct memwatch_watch *watch;
	uint32_t processes, growing;
};

static int sweep_process(void *userdata, const void *key, const void *value)
{
	const struct mw_growth_process *process = value;
	struct sweep *sweep = userdata;

	/* After a load, what the first round did not find does not exist. */
	if (!process->round || sweep->watch->round - process->round > 2) {
		mw_bpf_growth_delete(sweep->watch->bpf, key);
		return 0;
	}
	mw_suspects_check(&sweep->watch->suspects, key, &process->growth, sweep->watch->last_ns);
	sweep->processes++;
	sweep->growing += !!(process->growth.flags & MW_GROWTH_F_HISTORY);
	return 0;
}

static int sweep_owner(void *userdata, const void *key, const void *value)
{
	const struct mw_growth_owner *owner = value;
	const uint32_t uid = *(const uint32_t *)key;
	struct sweep *sweep = userdata;

	if (sweep->watch->round - owner->round > 2 && uid != MW_GROWTH_OWNER_OTHERS)
		mw_bpf_growth_delete_owner(sweep->watch->bpf, uid);
	return 0;
}

/*
 * Deletes the states of processes that exited while the iterator made them: the exit
 * program came too early for these. Also counts the processes.
 */
static int sweep_exited(struct memwatch_watch *watch)
{
	struct sweep sweep = { .watch = watch };
	int err = mw_bpf_growth_each(watch->bpf, sweep_process, &sweep);

	if (!err)
		err = mw_bpf_growth_each_owner(watch->bpf, sweep_owner, &sweep);
	watch->stats.processes = sweep.processes;
	watch->stats.growing = sweep.growing;
	return err;
}

/* Is the event program detached for its cost, so that rounds have to replace it? */
static bool rounds_are_fast(const struct memwatch_watch *watch)
{
	return watch->events && !watch->governor.attached;
}

static uint64_t current_period(const struct memwatch_watch *watch)
{
	return rounds_are_fast(watch) ? watch->governor.fast_ns : watch->governor.period_ns;
}

/* Samples all processes. */
static int sample_all(struct memwatch_watch *watch, uint64_t now)
{
	volatile struct mw_growth_control *control = mw_bpf_growth_control(watch->bpf);
	int err = mw_quota_make_room(&watch->quota, watch->ctx, watch->bpf, now);

	if (err)
		return err;
	refresh_limits(watch);
	mw_bpf_growth_refresh(watch->bpf);
	if (!++watch->round)
		watch->round = 1;
	control->round = watch->round;
	control->request_ns = now;
	err = mw_bpf_growth_round(watch->bpf);
	if (!err)
		err = mw_quota_update(&watch->quota, watch->ctx, watch->bpf, watch->round);
	if (!err && watch->round % SWEEP_ROUNDS == 1)
		err = sweep_exited(watch);
	return err;
}

static int run_round(struct memwatch_watch *watch)
{
	uint64_t now = mw_clock(CLOCK_MONOTONIC), spent;
	int err = sample_all(watch, now);

	if (!err)
		err = mw_survey_visit(watch->survey, now, watch->governor.period_ns,
				      watch->governor.rest_ppm);
	if (err)
		return err;
	watch->stats.rounds++;
	if (watch->requested_ns)
		watch->stats.reaction_ns = mw_sub_sat(mw_clock(CLOCK_MONOTONIC),
						      watch->requested_ns);
	watch->requested_ns = 0;
	watch->last_ns = now;
	/* All CPU time since the last round is charged to this one, wake-ups included. */
	spent = mw_own_time_now(&watch->time);
	mw_governor_round(&watch->governor, mw_sub_sat(spent, watch->charged_ns));
	watch->charged_ns = spent;
	mw_bpf_growth_control(watch->bpf)->request_gap_ns = watch->governor.gap_ns;
	watch->next_ns = now + current_period(watch);
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
		       "detached for a while, and rounds run every %u ms instead",
		       watch->stats.event_ppm, watch->governor.storm_ppm,
		       (unsigned int)(watch->governor.fast_ns / 1000000));
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

static void measure_events(struct memwatch_watch *watch, uint64_t now)
{
	struct mw_governor *governor = &watch->governor;
	struct mw_measured measured;

	if (!watch->events || !mw_measure_run(&watch->measure, watch->bpf, now, &measured))
		return;
	watch->stats.event_ppm = measured.ppm;
	watch->stats.event_ns += measured.cpu_ns;
	watch->stats.event_cost = MEMWATCH_EVENT_COST_MEASURED;
	mw_governor_events(governor, measured.ppm, measured.passed_ns);
	mw_measure_schedule(&watch->measure, governor->attached && governor->overruns);
	apply_decision(watch);
	watch->next_ns = mw_min_u64(watch->next_ns, now + current_period(watch));
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
		if (record->what != MEMWATCH_GROWTH_POKED) {
			mw_suspects_note(&watch->suspects, record, mw_clock(CLOCK_MONOTONIC));
			return 1;
		}
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

/* When memwatch_watch_poll() has something to do even if no ring changes. */
static uint64_t next_action(const struct memwatch_watch *watch, uint64_t now)
{
	uint64_t at = mw_min_u64(watch->next_ns, mw_merge_deadline(watch->merge));

	at = mw_min_u64(at, mw_suspects_next(&watch->suspects));
	if (watch->events)
		at = mw_min_u64(at, watch->measure.next_ns);
	return watch->requested_ns ? mw_min_u64(at, now + 1000000) : at;
}

static int wait_ms(const struct memwatch_watch *watch, uint64_t now, uint64_t end)
{
	uint64_t until = mw_min_u64(end, next_action(watch, now));

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
		if (mw_survey_have_events(watch->survey))
			bits |= MEMWATCH_WATCH_GROUP;
	}
	measure_events(watch, now);
	/* Visits have a budget of their own. */
	watch->charged_ns += mw_suspects_run(&watch->suspects, now);
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

	mw_own_time_begin(&watch->time);
	for (;;) {
		bits = poll_once(watch, now);
		if (bits)
			break;
		now = mw_clock(CLOCK_MONOTONIC);
		if (now >= end)
			break;
		err = mw_bpf_growth_wait(watch->bpf, wait_ms(watch, now, end));
		if (err < 0)
			break;
		now = mw_clock(CLOCK_MONOTONIC);
	}
	mw_wakeup_arm(&watch->wakeup, bits ? 0 : next_action(watch, now));
	mw_own_time_end(&watch->time);
	return err < 0 ? err : bits;
}

int memwatch_watch_fd(struct memwatch_watch *watch)
{
	int fd = mw_wakeup_open(&watch->wakeup, mw_bpf_growth_fd(watch->bpf));

	return fd < 0 ? mw_fail(watch->ctx, fd, "growth monitor: no descriptor for event loops: %s",
				strerror(-fd))
		      : fd;
}

void memwatch_watch_charge(struct memwatch_watch *watch, __u64 cpu_ns)
{
	mw_own_time_add(&watch->time, cpu_ns);
}

int memwatch_watch_find(struct memwatch_watch *watch, __u32 tgid, __u64 start_time_ns,
			struct memwatch_growth_row *ret, __u64 *cgroup)
{
	struct mw_growth_key key = { .start_ns = start_time_ns, .tgid = tgid };

	return mw_snapshot_find(watch->bpf, &key, ret, cgroup);
}

int memwatch_watch_snapshot(struct memwatch_watch *watch)
{
	return mw_snapshot_take(watch->ctx, &watch->snapshot, watch->bpf);
}

int memwatch_watch_get_row(struct memwatch_watch *watch, unsigned int index,
			   struct memwatch_growth_row *ret)
{
	return mw_snapshot_row(&watch->snapshot, watch->bpf, index, ret);
}

int memwatch_watch_get_sample(struct memwatch_watch *watch, unsigned int index,
			      struct memwatch_growth_sample *ret, __u64 *cgroup)
{
	return mw_snapshot_sample(&watch->snapshot, index, ret, cgroup);
}

/* Checks the options and fills in the defaults. */
static int complete_watch_opts(struct memwatch_ctx *ctx, struct memwatch_watch_opts *opts)
{
	if (opts->flags & ~FLAGS_ALL)
		return mw_fail(ctx, -EINVAL, "growth monitor: unknown flags %#x",
			       opts->flags & ~FLAGS_ALL);
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
	if (opts->max_suspects > MW_GROWTH_SUSPECTS_MAX)
		return mw_fail(ctx, -EINVAL,
			       "a growth monitor can follow the pages of at most %u "
			       "processes",
			       MW_GROWTH_SUSPECTS_MAX);
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
	if (!err && !mw_namespace_has_all_pids(ctx))
		err = mw_fail(ctx, -EREMOTE,
			      "growing processes can only be watched on the host, or in a "
			      "container with the pid namespace of the host");
	if (err)
		return err;
	watch = calloc(1, sizeof(*watch));
	if (!watch)
		return mw_fail_memory(ctx, "growth monitor");
	watch->ctx = memwatch_ctx_ref(ctx);
	watch->stats.sz = sizeof(watch->stats);
	watch->stats.state_bytes = sizeof(struct mw_growth_process);
	watch->stats.history_bytes = sizeof(struct mw_growth_history);
	mw_quota_init(&watch->quota, opts.max_processes);
	err = mw_merge_new(&merge_opts, &watch->merge);
	if (!err)
		err = mw_bpf_growth_open(ctx, opts.max_processes, watch->merge, &watch->bpf);
	if (!err)
		err = mw_survey_open(ctx, watch->bpf, &watch->survey);
	/* The first visit finds the names of all cgroups: that is no cost of a round. */
	if (!err)
		err = mw_survey_visit(watch->survey, mw_clock(CLOCK_MONOTONIC), opts.period_ns,
				      opts.rest_ppm);
	if (err) {
		memwatch_watch_unref(watch);
		return err;
	}
	mw_governor_init(&watch->governor, opts.period_ns, opts.rest_ppm, opts.storm_ppm,
			 mw_bpf_growth_width());
	mw_bpf_growth_control(watch->bpf)->request_pages = REQUEST_PAGES;
	mw_bpf_growth_control(watch->bpf)->request_gap_ns = watch->governor.gap_ns;
	watch->events = !(opts.flags & MEMWATCH_WATCH_NO_EVENTS);
	mw_measure_init(&watch->measure, mw_clock(CLOCK_MONOTONIC));
	if (watch->events)
		apply_decision(watch);
	mw_suspects_open(&watch->suspects, ctx, watch->bpf, opts.max_suspects, opts.flags);
	mw_own_time_init(&watch->time, opts.flags & MEMWATCH_WATCH_OWN_THREAD);
	*ret = watch;
	return 0;
}

struct memwatch_watch *memwatch_watch_unref(struct memwatch_watch *watch)
{
	if (!watch)
		return NULL;
	mw_suspects_close(&watch->suspects);
	mw_wakeup_close(&watch->wakeup);
	mw_survey_close(watch->survey);
	mw_bpf_growth_close(watch->bpf);
	mw_merge_free(watch->merge);
	free(watch->snapshot.items);
	mw_quota_uninit(&watch->quota);
	memwatch_ctx_unref(watch->ctx);
	free(watch);
	return NULL;
}

int memwatch_watch_save(struct memwatch_watch *watch, const char *path)
{
	int err;

	mw_own_time_begin(&watch->time);
	err = mw_state_file_save(watch->ctx, watch->bpf, &watch->survey->groups, path);
	mw_own_time_end(&watch->time);
	return err;
}

int memwatch_watch_load(struct memwatch_watch *watch, const char *path)
{
	int n;

	if (watch->round)
		return mw_fail(watch->ctx, -EINVAL,
			       "histories must be loaded before the first round");
	mw_own_time_begin(&watch->time);
	n = mw_state_file_load(watch->ctx, watch->bpf, &watch->survey->groups, path);
	mw_own_time_end(&watch->time);
	return n;
}

int memwatch_watch_get_stats(struct memwatch_watch *watch, struct memwatch_watch_stats *ret)
{
	struct memwatch_watch_stats *s = &watch->stats;

	s->samples = mw_bpf_growth_count(watch->bpf, MW_GROWTH_COUNT_SAMPLES);
	s->full = mw_bpf_growth_count(watch->bpf, MW_GROWTH_COUNT_FULL);
	s->deep_full = mw_bpf_growth_count(watch->bpf, MW_GROWTH_COUNT_HISTORY_FULL);
	s->execs = mw_bpf_growth_count(watch->bpf, MW_GROWTH_COUNT_EXECS);
	s->exits = mw_bpf_growth_count(watch->bpf, MW_GROWTH_COUNT_EXITS);
	s->lost = mw_bpf_growth_count(watch->bpf, MW_GROWTH_COUNT_OUTPUT) +
		  mw_bpf_growth_count(watch->bpf, MW_GROWTH_COUNT_NO_RING);
	s->deep_cgroups = (uint32_t)mw_bpf_growth_count(watch->bpf, MW_GROWTH_COUNT_DEEP);
	s->replaced = watch->quota.replaced;
	s->unwatched = watch->quota.waiting;
	s->quota = watch->quota.share == MW_GROWTH_NO_LIMIT ? 0 : watch->quota.share;
	s->period_ns = current_period(watch);
	s->gap_ns = watch->governor.gap_ns;
	s->over_budget = watch->governor.detaches;
	s->width = watch->governor.width;
	s->rest_ppm = watch->governor.rest_ppm;
	s->storm_ppm = watch->governor.storm_ppm;
	mw_suspects_get_stats(&watch->suspects, s);
	mw_own_time_update(&watch->time);
	s->cpu_ns = watch->time.total_ns;
	s->events_retry_ns = 0;
	if (s->events_state == MEMWATCH_EVENTS_OVER_BUDGET)
		s->events_retry_ns = watch->measure.last_ns + watch->governor.detach_left_ns;
	return mw_opts_export(ret, s, sizeof(*s));
}
