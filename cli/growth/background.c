// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The background monitor: turns alerts and verdicts into growth records.
 */
#include <errno.h>
#include <string.h>

#include "common/clock.h"
#include "growth/background.h"
#include "growth/monitor.h"

int mw_background_monitor_open(struct mw_background_monitor *monitor, const struct mw_cli *cli,
			       struct memwatch_ctx *ctx, const char *command)
{
	MEMWATCH_OPTS(memwatch_watch_opts, opts, .flags = MEMWATCH_WATCH_NO_WHERE);
	struct memwatch_watch *watch;
	int err = memwatch_watch_open(ctx, &opts, &watch);

	if (err)
		return mw_monitor_failed(ctx, err, command);
	*monitor = (struct mw_background_monitor){
		.ctx = ctx,
		.watch = watch,
		.entry = { .cli = cli, .command = command },
	};
	return 0;
}

void mw_background_monitor_close(struct mw_background_monitor *monitor)
{
	if (!monitor->watch)
		return;
	mw_registry_entry_remove(&monitor->entry);
	memwatch_watch_unref(monitor->watch);
	mw_growth_latest_uninit(&monitor->latest);
	monitor->watch = NULL;
}

/* The record has the form of the BPF program's alerts; its time is @now_ns. */
static void row_to_record(const struct memwatch_growth_row *row, uint64_t now_ns,
			  struct memwatch_record_growth *ret)
{
	uint64_t eta_s = row->eta_ns / 1000000000;

	*ret = (struct memwatch_record_growth){
		.h = { .time_ns = now_ns, .type = MEMWATCH_RECORD_GROWTH, .size = sizeof(*ret) },
		.start_time_ns = row->start_time_ns,
		.tgid = row->tgid,
		.what = MEMWATCH_GROWTH_STATE,
		.verdict = row->verdict,
		.confidence = row->confidence,
		.reason = row->reason,
		.limit = (uint8_t)row->limit,
		.eta_s = row->eta_ns == MEMWATCH_GROWTH_NONE || eta_s > UINT32_MAX
				 ? UINT32_MAX
				 : (uint32_t)eta_s,
		.signal_bytes = row->signal_bytes,
		.slope = row->slope,
	};
	memcpy(ret->comm, row->comm, sizeof(ret->comm) - 1);
}

/* Builds the table anew after a round, so that it does not keep processes that ended. */
static int refresh_latest(struct mw_background_monitor *monitor, uint64_t now_ns,
			  int (*take)(void *data, const struct memwatch_record_growth *record),
			  void *data)
{
	const struct memwatch_record_growth *before;
	struct memwatch_record_growth record;
	MEMWATCH_OPTS(memwatch_growth_row, row);
	struct mw_growth_latest latest = { 0 };
	int err = memwatch_watch_snapshot(monitor->watch);

	if (err < 0)
		return err;
	err = 0;
	for (unsigned int i = 0; !err && memwatch_watch_get_row(monitor->watch, i, &row) == 1;
	     i++) {
		row_to_record(&row, now_ns, &record);
		before = mw_growth_latest_find(&monitor->latest, row.tgid, row.start_time_ns);
		if (take && (row.verdict >= MEMWATCH_GROWTH_GROWING || !before ||
			     before->verdict != row.verdict))
			err = take(data, &record);
		if (!err)
			err = mw_growth_latest_update(&latest, &record);
	}
	mw_growth_latest_uninit(&monitor->latest);
	monitor->latest = latest;
	return err;
}

int mw_background_monitor_poll(struct mw_background_monitor *monitor,
			       int (*take)(void *data, const struct memwatch_record_growth *record),
			       void *data)
{
	const struct memwatch_record_header *record;
	uint64_t now = mw_clock_ns(CLOCK_MONOTONIC), cpu_ns;
	int bits = memwatch_watch_poll(monitor->watch, 0), err = 0;

	if (bits < 0)
		return bits == -EINTR ? 0 : bits;
	cpu_ns = mw_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	mw_registry_entry_update(&monitor->entry, monitor->ctx, monitor->watch, now);
	while (!err && bits & MEMWATCH_WATCH_EVENT &&
	       memwatch_watch_next(monitor->watch, &record) == 1)
		if (take && record->type == MEMWATCH_RECORD_GROWTH)
			err = take(data, (const struct memwatch_record_growth *)record);
	if (!err && bits & MEMWATCH_WATCH_ROUND)
		err = refresh_latest(monitor, mw_clock_ns(CLOCK_MONOTONIC), take, data);
	memwatch_watch_charge(monitor->watch, mw_clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns);
	return err;
}
