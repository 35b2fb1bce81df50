// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The live backend: the device makes the records, the relay brings them, the
 * merge orders them. This file decides in which order things start and end:
 *
 *	relay attached, session started, dump	so that no assignment is missed
 *	session stopped, relay detached, drained	so that none is lost
 *
 * The session is that of the device's descriptor: if this process is killed,
 * the kernel closes it and takes programs, rings and session down.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <memwatch/device.h>
#include <memwatch/proc.h>
#include <memwatch/stream.h>
#include <memwatch/value.h>

#include "stream/backend.h"
#include "loader/relay.h"
#include "base/context.h"
#include "merge/merge.h"
#include "base/timemath.h"

#define RING_PAGES_DEFAULT 64
#define RING_PAGES_MAX	   65536
#define WAKEUP_DEFAULT_NS  10000000ULL

/* How often to look which CPUs are online: so long one that came back has no ring. */
#define REFRESH_NS 10000000ULL

/**
 * struct live - a live stream
 * @peeked: a record that poll() has found and next() has not given out yet
 * @err: why the stream broke, for ever
 * @settled: losses after the last record have been told to the merge
 */
struct live {
	struct memwatch_stream stream;
	struct memwatch_device *device;
	struct mw_merge *merge;
	struct mw_bpf_relay *relay;
	struct mw_host_info host;
	char backend_reason[256];
	char estimate_reason[320];
	const struct memwatch_record_header *peeked;
	int err;
	bool started;
	bool settled;
	uint64_t wakeup_ns;
	uint64_t refresh_at_ns;
};

static struct live *to_live(struct memwatch_stream *stream)
{
	return (struct live *)stream;
}

/* ---------------------------------------------------------------- records */

static int round_of_merge(struct live *live)
{
	uint64_t now = mw_clock(CLOCK_MONOTONIC);

	if (!live->stream.stopped && now >= live->refresh_at_ns) {
		live->refresh_at_ns = now + REFRESH_NS;
		mw_bpf_relay_refresh(live->relay, now);
		now = mw_clock(CLOCK_MONOTONIC);
	}
	return mw_merge_round(live->merge, now);
}

/* As memwatch_stream_next(). */
static int take(struct live *live, const struct memwatch_record_header **ret)
{
	int err;

	while (!mw_merge_next(live->merge, ret)) {
		err = round_of_merge(live);
		if (err > 0)
			continue;
		if (err < 0)
			return live->err = mw_fail(live->stream.ctx, err, "out of memory");
		if (!live->stream.stopped)
			return -EAGAIN;
		/* All that was in the rings is out: what is missing now is lost. */
		if (live->settled || !mw_bpf_relay_settle(live->relay)) {
			live->settled = true;
			return 0;
		}
		live->settled = true;
	}
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
	return live->err ? live->err : take(live, ret);
}

/* Milliseconds to wait, rounded up, at most @limit_ns. */
static int wait_ms(const struct live *live, uint64_t now, uint64_t limit_ns)
{
	uint64_t wait = mw_min_u64(mw_min_u64(live->wakeup_ns, REFRESH_NS), limit_ns);

	wait = mw_min_u64(wait, mw_sub_sat(mw_merge_deadline(live->merge), now));
	return (int)mw_min_u64(wait / 1000000 + 1, 1000);
}

static int live_poll(struct memwatch_stream *stream, int timeout_ms)
{
	struct live *live = to_live(stream);
	uint64_t now = mw_clock(CLOCK_MONOTONIC);
	uint64_t end = timeout_ms < 0 ? MW_TIME_MAX
				      : mw_add_sat(now, (uint64_t)timeout_ms * 1000000);
	int err;

	for (;;) {
		if (live->peeked || live->err)
			return 1;
		err = take(live, &live->peeked);
		if (err != -EAGAIN) {
			if (err != 1)
				live->peeked = NULL;
			return 1;
		}
		live->peeked = NULL;
		now = mw_clock(CLOCK_MONOTONIC);
		if (now >= end)
			return 0;
		err = mw_bpf_relay_wait(live->relay, wait_ms(live, now, end - now));
		if (err < 0)
			return err;
	}
}

/* ------------------------------------------------------------------- counts */

static int live_stats(struct memwatch_stream *stream, struct memwatch_stream_stats *ret)
{
	struct live *live = to_live(stream);
	uint64_t produced, dropped;

	mw_merge_stats(live->merge, ret);
	ret->memory_bytes += sizeof(*live);
	/* After the end the last tick is not the last word. */
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

/* Stopping makes the module's last records; they are still to be read. */
static int live_stop(struct memwatch_stream *stream)
{
	struct live *live = to_live(stream);
	int err = 0;

	if (live->started)
		err = memwatch_device_stop(live->device);
	live->started = false;
	mw_bpf_relay_detach(live->relay);
	mw_merge_finish(live->merge, mw_clock(CLOCK_MONOTONIC));
	return err;
}

static void live_close(struct memwatch_stream *stream)
{
	struct live *live = to_live(stream);

	memwatch_device_close(live->device);
	mw_bpf_relay_close(live->relay);
	mw_merge_free(live->merge);
	free(live);
}

static const struct mw_backend_ops live_ops = {
	.name = "live",
	.next = live_next,
	.poll = live_poll,
	.stop = live_stop,
	.stats = live_stats,
	.cpu_stats = live_cpu_stats,
	.failure = live_failure,
	.close = live_close,
};

static int complete_opts(struct memwatch_ctx *ctx, struct memwatch_live_opts *opts)
{
	if (opts->flags & ~(MEMWATCH_LIVE_NO_DUMP | MEMWATCH_LIVE_NO_START) || opts->reserved ||
	    opts->mode > MEMWATCH_STREAM_SWITCH)
		return mw_fail(ctx, -EINVAL, "invalid options of a live stream");
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

/* The period in force goes to *@period_ns. */
static int set_period(struct live *live, const struct memwatch_live_opts *opts, uint64_t *period_ns)
{
	struct memwatch_config config = { 0 };
	int err;

	err = memwatch_device_config(live->device, &config);
	if (err)
		return err;
	*period_ns = config.period_ns;
	if (!opts->period_ns || opts->period_ns == config.period_ns)
		return 0;
	memset(&config, 0, sizeof(config));
	config.flags = MEMWATCH_CONFIG_PERIOD;
	config.period_ns = opts->period_ns;
	err = memwatch_device_set_config(live->device, &config);
	if (!err)
		*period_ns = opts->period_ns;
	return err;
}

static bool is_counted(const struct memwatch_stream_info *info, unsigned int counter)
{
	return info->counter[counter].status == MEMWATCH_STATUS_OK ||
	       info->counter[counter].status == MEMWATCH_STATUS_MULTIPLEXED;
}

/* Without RDT every miss of the last-level cache moves at least its line. */
static void describe_estimate(struct live *live)
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

static void describe(struct live *live, struct memwatch_ctx *ctx,
		     const struct memwatch_get_info *module)
{
	struct memwatch_stream_info *info = &live->stream.info;
	struct memwatch_proc_status *status;

	if (!memwatch_proc_status_read(ctx, &status)) {
		snprintf(live->backend_reason, sizeof(live->backend_reason), "%s",
			 status->backend_reason);
		memwatch_proc_status_free(status);
	}
	info->nr_rmids = module->nr_rmids;
	info->backend = memwatch_backend_name(module->backend);
	info->backend_reason = live->backend_reason;
	for (unsigned int i = 0; i < MEMWATCH_RDT_MAX; i++) {
		/* The bits of the features are in the order of the events. */
		bool there = module->features & (MEMWATCH_FEATURE_OCCUPANCY << i);

		info->rdt[i].status = there ? MEMWATCH_STATUS_OK : MEMWATCH_STATUS_UNAVAILABLE;
		if (!there)
			info->rdt[i].reason = live->backend_reason[0]
						      ? live->backend_reason
						      : "the module has no source for it";
	}
	describe_estimate(live);
}

static int start(struct live *live, const struct memwatch_live_opts *opts)
{
	int err;

	err = mw_bpf_relay_attach(live->relay);
	if (err || opts->flags & MEMWATCH_LIVE_NO_START)
		return err;
	err = memwatch_device_start(live->device);
	if (err)
		return err;
	live->started = true;
	if (opts->flags & MEMWATCH_LIVE_NO_DUMP)
		return 0;
	return memwatch_device_dump(live->device, NULL);
}

int memwatch_stream_open_live(struct memwatch_ctx *ctx, const struct memwatch_live_opts *user_opts,
			      struct memwatch_stream **ret)
{
	struct mw_bpf_relay_opts relay_opts = { 0 };
	struct mw_merge_opts merge_opts = { 0 };
	struct memwatch_get_info module;
	struct memwatch_live_opts opts;
	uint64_t period_ns = 0;
	struct live *live;
	int err;

	err = mw_opts_copy(ctx, &opts, sizeof(opts), user_opts);
	if (!err)
		err = complete_opts(ctx, &opts);
	if (err)
		return err;
	live = calloc(1, sizeof(*live));
	if (!live)
		return mw_fail(ctx, -ENOMEM, "out of memory");
	live->wakeup_ns = opts.wakeup_ns;

	err = memwatch_device_open(ctx, &live->device);
	if (!err)
		err = memwatch_device_info(live->device, &module);
	if (!err && module.schema != MEMWATCH_SCHEMA)
		err = mw_fail(ctx, -EPROTO,
			      "the module speaks schema %u, this library schema %u: install "
			      "both from one version",
			      module.schema, MEMWATCH_SCHEMA);
	if (!err)
		err = set_period(live, &opts, &period_ns);
	if (err)
		goto err_close;

	merge_opts.grace_ns = opts.grace_ns;
	merge_opts.silent_ns = opts.silent_ns;
	if (!merge_opts.silent_ns)
		merge_opts.silent_ns = mw_max_u64(MEMWATCH_STREAM_SILENT_DEFAULT_NS,
						  mw_mul_sat(3, period_ns));
	err = mw_merge_new(&merge_opts, &live->merge);
	if (err) {
		mw_fail(ctx, err, "out of memory");
		goto err_close;
	}
	relay_opts.mode = opts.mode;
	relay_opts.nr_rmids = module.nr_rmids;
	relay_opts.ring_pages = opts.ring_pages;
	relay_opts.settle_ns = mw_mul_sat(3, period_ns);
	err = mw_bpf_relay_open(ctx, &relay_opts, live->merge, &live->relay);
	if (err)
		goto err_close;

	live->stream.info.nr_cpus = mw_bpf_relay_cpus(live->relay);
	live->stream.info.mode = opts.mode;
	live->stream.info.period_ns = period_ns;
	for (unsigned int i = 0; i < MEMWATCH_COUNTER_MAX; i++)
		mw_bpf_relay_counter(live->relay, i, &live->stream.info.counter[i]);
	mw_stream_info_host(&live->stream.info, &live->host);
	live->refresh_at_ns = mw_clock(CLOCK_MONOTONIC) + REFRESH_NS;
	err = start(live, &opts);
	/* Only now it is decided whether RDT may be used. */
	if (!err)
		err = memwatch_device_info(live->device, &module);
	if (err)
		goto err_close;
	describe(live, ctx, &module);
	mw_stream_init(&live->stream, ctx, &live_ops);
	*ret = &live->stream;
	return 0;

err_close:
	live_close(&live->stream);
	return err;
}
