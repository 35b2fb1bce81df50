// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The live stream: the module, or BPF alone, makes the records, BPF programs send them, the
 * merge sorts them. The order of starting and stopping matters:
 *
 *	attach the programs, start the session, dump: no assignment is missed;
 *	stop the session, detach the programs, drain the rings: no record is lost.
 *
 * All of it belongs to file descriptors. If this process is killed, the kernel closes them and so
 * ends the session, the programs and the rings.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <memwatch/stream.h>

#include "stream/backend.h"
#include "stream/session.h"
#include "loader/relay.h"
#include "loader/wakeup.h"
#include "base/context.h"
#include "merge/merge.h"
#include "base/timemath.h"

#define RING_PAGES_DEFAULT 64
#define RING_PAGES_MAX	   65536
#define WAKEUP_DEFAULT_NS  10000000ULL

/**
 * struct live - a live stream
 * @stream: common part
 * @session: who makes the records
 * @merge: sorts the records of all rings
 * @relay: BPF programs, rings and counters
 * @host: strings of the stream's info
 * @estimate_reason: string of the stream's info
 * @peeked: a record that live_poll() has found and live_next() has not returned yet
 * @err: the failure that ended the stream, or 0
 * @settled: losses after the last record have been reported to the merge
 * @silent_fixed: the options say how long to wait for a CPU that is silent
 * @period_ns: the longest period so far
 * @wakeup_ns: how long a record may wait in its ring
 * @wakeup: the descriptor for event loops
 */
struct live {
	struct memwatch_stream stream;
	struct mw_session *session;
	struct mw_merge *merge;
	struct mw_bpf_relay *relay;
	struct mw_host_info host;
	char estimate_reason[320];
	const struct memwatch_record_header *peeked;
	int err;
	bool settled;
	bool silent_fixed;
	uint64_t period_ns;
	uint64_t wakeup_ns;
	struct mw_wakeup wakeup;
};

static struct live *to_live(struct memwatch_stream *stream)
{
	return (struct live *)stream;
}

/* ---------------------------------------------------------------- records */

static int live_run_round(struct live *live)
{
	uint64_t now = mw_clock(CLOCK_MONOTONIC);

	if (!live->stream.stopped)
		mw_bpf_relay_refresh(live->relay, now);
	return mw_merge_round(live->merge, now);
}

/* How long to wait for the rings at most. */
static uint64_t live_wait_ns(const struct live *live, uint64_t now)
{
	return mw_min_u64(live->wakeup_ns, mw_sub_sat(mw_merge_deadline(live->merge), now));
}

/* Nothing to deliver now. */
static int live_again(struct live *live)
{
	uint64_t now;

	if (live->wakeup.opened) {
		now = mw_clock(CLOCK_MONOTONIC);
		mw_wakeup_arm(&live->wakeup, mw_add_sat(now, live_wait_ns(live, now) + 1));
	}
	return -EAGAIN;
}

/*
 * The waits for three periods follow a period that becomes longer in mid-session: the module
 * does that when ticks cost too much, or another program sets it.
 */
static void live_follow_period(struct live *live, const struct memwatch_record_tick *tick)
{
	uint64_t three = mw_mul_sat(3, tick->period_ns);

	if (tick->period_ns <= live->period_ns)
		return;
	live->period_ns = tick->period_ns;
	if (!live->silent_fixed)
		mw_merge_set_silent(live->merge,
				    mw_max_u64(MEMWATCH_STREAM_SILENT_DEFAULT_NS, three));
}

/* As memwatch_stream_next(). */
static int live_read_record(struct live *live, const struct memwatch_record_header **ret)
{
	int err;

	while (!mw_merge_next(live->merge, ret)) {
		err = live_run_round(live);
		if (err > 0)
			continue;
		if (err < 0)
			return live->err = mw_fail_memory(live->stream.ctx, "live stream");
		if (!live->stream.stopped)
			return live_again(live);
		/* the rings are empty: records that are still missing are lost */
		if (live->settled || !mw_bpf_relay_settle(live->relay)) {
			live->settled = true;
			return 0;
		}
		live->settled = true;
	}
	if ((*ret)->type == MEMWATCH_RECORD_TICK)
		live_follow_period(live, (const struct memwatch_record_tick *)(const void *)*ret);
	return 1;
}

static int live_next(struct memwatch_stream *stream, const struct memwatch_record_header **ret)
{
	struct live *live = to_live(stream);

	if (live->peeked) {
		*ret = live->peeked;
		live->peeked = NULL;
		return 1;
	}
	return live->err ? live->err : live_read_record(live, ret);
}

static int live_poll(struct memwatch_stream *stream, int timeout_ms)
{
	struct live *live = to_live(stream);
	uint64_t now = mw_clock(CLOCK_MONOTONIC);
	uint64_t end = timeout_ms < 0 ? MW_TIME_MAX
				      : mw_add_sat(now, (uint64_t)timeout_ms * 1000000);
	uint64_t wait;
	int err;

	for (;;) {
		if (live->peeked || live->err)
			return 1;
		err = live_read_record(live, &live->peeked);
		if (err != -EAGAIN) {
			if (err != 1)
				live->peeked = NULL;
			return 1;
		}
		live->peeked = NULL;
		now = mw_clock(CLOCK_MONOTONIC);
		if (now >= end)
			return 0;
		wait = mw_min_u64(live_wait_ns(live, now), end - now);
		err = mw_bpf_relay_wait(live->relay, (int)mw_min_u64(wait / 1000000 + 1, 1000));
		if (err < 0)
			return err;
	}
}

static int live_fd(struct memwatch_stream *stream)
{
	struct live *live = to_live(stream);
	int fd = mw_wakeup_open(&live->wakeup, mw_bpf_relay_fd(live->relay));

	return fd < 0 ? mw_fail(stream->ctx, fd, "live stream: no descriptor for event loops: %s",
				strerror(-fd))
		      : fd;
}

/* ------------------------------------------------------------------- counts */

static int live_stats(struct memwatch_stream *stream, struct memwatch_stream_stats *ret)
{
	struct live *live = to_live(stream);
	uint64_t produced, dropped;

	mw_merge_stats(live->merge, ret);
	ret->memory_bytes += sizeof(*live);
	/* records may have been sent after the last tick that was delivered */
	if (live->settled && !mw_bpf_relay_totals(live->relay, &produced, &dropped))
		ret->produced = produced;
	return 0;
}

static int live_cpu_stats(struct memwatch_stream *stream, unsigned int index,
			  struct memwatch_stream_cpu_stats *ret)
{
	struct live *live = to_live(stream);
	uint64_t produced;
	int err = mw_merge_cpu_stats(live->merge, index, ret);

	if (err > 0 && live->settled && !mw_bpf_relay_cpu_total(live->relay, ret->cpu, &produced))
		ret->produced = produced;
	return err;
}

static int live_failure(struct memwatch_stream *stream, unsigned int index, const char **name,
			__u64 *count)
{
	return mw_bpf_relay_failure(to_live(stream)->relay, index, name, count);
}

/* --------------------------------------------------------------- lifetime */

/* The last records are sent when the session stops; they are still delivered. */
static int live_stop(struct memwatch_stream *stream)
{
	struct live *live = to_live(stream);
	int err = live->session->ops->stop(live->session, live->relay);

	mw_bpf_relay_detach(live->relay);
	mw_merge_finish(live->merge, mw_clock(CLOCK_MONOTONIC));
	mw_wakeup_arm(&live->wakeup, 0);
	return err;
}

static void live_close(struct memwatch_stream *stream)
{
	struct live *live = to_live(stream);

	if (live->session)
		live->session->ops->close(live->session);
	mw_wakeup_close(&live->wakeup);
	mw_bpf_relay_close(live->relay);
	mw_merge_free(live->merge);
	free(live);
}

static const struct mw_backend_ops live_ops = {
	.name = "live",
	.next = live_next,
	.poll = live_poll,
	.fd = live_fd,
	.stop = live_stop,
	.stats = live_stats,
	.cpu_stats = live_cpu_stats,
	.failure = live_failure,
	.close = live_close,
};

/* Checks the options and fills in the defaults. */
static int complete_live_opts(struct memwatch_ctx *ctx, struct memwatch_live_opts *opts)
{
	unsigned int unknown = opts->flags &
			       ~(__u32)(MEMWATCH_LIVE_NO_DUMP | MEMWATCH_LIVE_NO_START);

	if (unknown)
		return mw_fail(ctx, -EINVAL, "live stream: unknown flags %#x", unknown);
	if (opts->mode > MEMWATCH_STREAM_SWITCH)
		return mw_fail(ctx, -EINVAL, "live stream: unknown mode %u",
			       (unsigned int)opts->mode);
	if (opts->backend > MEMWATCH_LIVE_BPF)
		return mw_fail(ctx, -EINVAL, "live stream: unknown backend %u",
			       (unsigned int)opts->backend);
	if (!opts->ring_pages)
		opts->ring_pages = RING_PAGES_DEFAULT;
	if (opts->ring_pages > RING_PAGES_MAX || opts->ring_pages & (opts->ring_pages - 1))
		return mw_fail(ctx, -EINVAL,
			       "invalid ring size: %u pages; a power of two up to %u is needed",
			       opts->ring_pages, RING_PAGES_MAX);
	if (!opts->grace_ns)
		opts->grace_ns = MEMWATCH_STREAM_GRACE_DEFAULT_NS;
	if (!opts->wakeup_ns)
		opts->wakeup_ns = WAKEUP_DEFAULT_NS;
	return 0;
}

static bool is_counted(const struct memwatch_stream_info *info, unsigned int counter)
{
	return info->counter[counter].status == MEMWATCH_STATUS_OK ||
	       info->counter[counter].status == MEMWATCH_STATUS_MULTIPLEXED;
}

/* Without RDT, memory traffic is estimated: each LLC miss moves at least a cache line. */
static void live_describe_estimate(struct live *live)
{
	struct memwatch_availability *total = &live->stream.info.rdt[MEMWATCH_RDT_MBM_TOTAL];

	if (total->status != MEMWATCH_STATUS_UNAVAILABLE ||
	    !is_counted(&live->stream.info, MEMWATCH_COUNTER_LLC_MISSES))
		return;
	snprintf(live->estimate_reason, sizeof(live->estimate_reason), "from LLC misses: %s",
		 total->reason);
	total->status = MEMWATCH_STATUS_ESTIMATED;
	total->reason = live->estimate_reason;
}

/* By default the module, because it measures more, if there is one. */
static int live_open_session(struct live *live, struct memwatch_ctx *ctx,
			     const struct memwatch_live_opts *opts)
{
	bool use_module = opts->backend == MEMWATCH_LIVE_MODULE;
	char *path;
	int err;

	if (opts->backend == MEMWATCH_LIVE_AUTO) {
		err = mw_ctx_path(ctx, "/dev/memwatch", &path);
		if (err)
			return err;
		use_module = !access(path, F_OK);
		free(path);
	}
	return use_module ? mw_session_open_module(ctx, opts, &live->session)
			  : mw_session_open_bpf(ctx, opts, &live->session);
}

/* Opens merge and relay; both follow the period. */
static int live_open_relay(struct live *live, struct memwatch_ctx *ctx,
			   const struct memwatch_live_opts *opts)
{
	uint64_t three = mw_mul_sat(3, live->session->period_ns);
	struct mw_bpf_relay_opts relay_opts = live->session->relay;
	struct mw_merge_opts merge_opts = {
		.grace_ns = opts->grace_ns,
		.silent_ns = opts->silent_ns,
	};

	relay_opts.mode = opts->mode;
	relay_opts.ring_pages = opts->ring_pages;
	if (!merge_opts.silent_ns)
		merge_opts.silent_ns = mw_max_u64(MEMWATCH_STREAM_SILENT_DEFAULT_NS, three);
	if (mw_merge_new(&merge_opts, &live->merge))
		return mw_fail_memory(ctx, "live stream");
	return mw_bpf_relay_open(ctx, &relay_opts, live->merge, &live->relay);
}

/* Attaches the programs and starts to measure. */
static int live_start(struct live *live, const struct memwatch_live_opts *opts)
{
	const struct mw_session_ops *ops = live->session->ops;
	struct memwatch_stream_info *info = &live->stream.info;
	int err;

	info->nr_cpus = mw_bpf_relay_cpus(live->relay);
	info->mode = opts->mode;
	info->period_ns = live->session->period_ns;
	for (unsigned int i = 0; i < MEMWATCH_COUNTER_MAX; i++)
		mw_bpf_relay_counter(live->relay, i, &info->counter[i]);
	err = mw_bpf_relay_attach(live->relay);
	if (!err && ops->start)
		err = ops->start(live->session, opts);
	/* Starting a session takes long, and the CPUs begin at the end of it. */
	mw_stream_info_host(info, &live->host);
	if (!err && ops->dump)
		err = ops->dump(live->session, opts);
	if (!err)
		err = ops->describe(live->session, info);
	live_describe_estimate(live);
	return err;
}

int memwatch_stream_open_live(struct memwatch_ctx *ctx, const struct memwatch_live_opts *user_opts,
			      struct memwatch_stream **ret)
{
	struct memwatch_live_opts opts;
	struct live *live;
	int err;

	err = mw_opts_copy(ctx, &opts, sizeof(opts), user_opts);
	if (!err)
		err = complete_live_opts(ctx, &opts);
	if (err)
		return err;
	live = calloc(1, sizeof(*live));
	if (!live)
		return mw_fail_memory(ctx, "live stream");
	live->silent_fixed = opts.silent_ns;

	err = live_open_session(live, ctx, &opts);
	if (err)
		goto err_close;
	live->period_ns = live->session->period_ns;
	live->wakeup_ns = mw_min_u64(opts.wakeup_ns,
				     mw_mul_sat(MW_BPF_RELAY_TICKS, live->period_ns));
	err = live_open_relay(live, ctx, &opts);
	if (!err)
		err = live_start(live, &opts);
	if (err)
		goto err_close;
	mw_stream_init(&live->stream, ctx, &live_ops);
	*ret = &live->stream;
	return 0;

err_close:
	live_close(&live->stream);
	return err;
}
