// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Recording the accesses of a process in a file, see <memwatch/access.h>.
 */
#include <memwatch/access.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/context.h"
#include "base/timemath.h"
#include "stale/access.h"
#include "stale/access-write.h"

/* A report of a running process sees samples that are as old. */
#define FLUSH_NS MW_NSEC_PER_SEC

/**
 * struct memwatch_access - see <memwatch/access.h>
 * @ctx: context, a reference
 * @plan: the events
 * @period: mean period
 * @event: their names
 * @rings: NULL: nothing is recorded; owned
 * @writer: valid if something is or was recorded
 * @flushed_ns: when the file was written last
 */
struct memwatch_access {
	struct memwatch_ctx *ctx;
	struct mw_access_plan plan;
	uint64_t period;
	char event[MW_ACCESS_EVENT_ROOM];
	struct mw_access *rings;
	struct mw_access_writer writer;
	uint64_t flushed_ns;
};

static void describe_plan(struct memwatch_access *access)
{
	size_t len = 0;

	for (unsigned int i = 0; i < access->plan.nr && len < sizeof(access->event); i++)
		len += (size_t)snprintf(access->event + len, sizeof(access->event) - len, "%s%s",
					i ? ", " : "", access->plan.event[i].name);
	if (!access->period)
		access->period = access->plan.event[0].default_period;
	if (access->plan.event[0].every)
		access->period = 1;
}

int memwatch_access_new(struct memwatch_ctx *ctx, const struct memwatch_access_opts *opts,
			struct memwatch_access **ret)
{
	struct memwatch_access_opts o;
	struct memwatch_access *access;
	int err = mw_opts_copy(ctx, &o, sizeof(o), opts);

	if (err)
		return err;
	if (o.period > MW_ACCESS_PERIOD_MAX)
		return mw_fail(ctx, -EINVAL, "a period is at most %llu", MW_ACCESS_PERIOD_MAX);
	access = calloc(1, sizeof(*access));
	if (!access)
		return mw_fail_memory(ctx, "access samples");
	err = mw_access_find(ctx, o.event ? o.event : "auto", &access->plan);
	if (err) {
		free(access);
		return err;
	}
	access->ctx = memwatch_ctx_ref(ctx);
	access->writer.fd = -1;
	access->period = o.period;
	describe_plan(access);
	*ret = access;
	return 0;
}

struct memwatch_access *memwatch_access_unref(struct memwatch_access *access)
{
	if (!access)
		return NULL;
	mw_access_close(access->rings);
	mw_access_writer_uninit(&access->writer);
	mw_access_plan_uninit(&access->plan);
	memwatch_ctx_unref(access->ctx);
	free(access);
	return NULL;
}

static void describe_file(struct memwatch_access *access)
{
	struct mw_access_file_header *header = &access->writer.header;
	struct mw_access_stats stats;

	mw_access_get_stats(access->rings, &stats);
	header->period = access->period;
	header->flags = (access->plan.event[0].every ? MW_ACCESS_FILE_PAGE_FAULTS : 0) |
			(stats.user_only ? MW_ACCESS_FILE_USER_ONLY : 0);
	memcpy(header->event, access->event, sizeof(header->event));
	header->lost = mw_add_sat(stats.counts.lost, stats.counts.lost_in_hardware);
	header->throttled = stats.counts.throttled;
}

int memwatch_access_record(struct memwatch_access *access, __u32 pid, const char *directory)
{
	struct mw_access_opts opts = { .period = access->period };
	int err;

	if (access->rings || access->writer.blocks)
		return mw_fail(access->ctx, -EBUSY, "accesses are recorded already");
	err = mw_access_open(access->ctx, &access->plan, (pid_t)pid, &opts, &access->rings);
	if (err)
		return err;
	err = mw_access_writer_init(&access->writer, access->ctx, directory);
	if (err) {
		mw_access_close(access->rings);
		access->rings = NULL;
		return err;
	}
	describe_file(access);
	return mw_access_writer_flush(&access->writer);
}

static int write_file(struct memwatch_access *access, bool ended)
{
	describe_file(access);
	if (ended)
		access->writer.header.flags |= MW_ACCESS_FILE_ENDED;
	access->flushed_ns = mw_clock(CLOCK_MONOTONIC);
	return mw_access_writer_flush(&access->writer);
}

static void take_items(struct memwatch_access *access)
{
	struct mw_access_item item;

	while (mw_access_next(access->rings, &item))
		mw_access_writer_add(&access->writer, &item);
}

int memwatch_access_poll(struct memwatch_access *access, int timeout_ms)
{
	bool ended;
	int err = 0;

	if (!access->rings)
		return mw_fail(access->ctx, -EINVAL, "no accesses are recorded");
	mw_access_wait(access->rings, timeout_ms);
	take_items(access);
	ended = mw_access_ended(access->rings);
	if (ended || mw_clock(CLOCK_MONOTONIC) - access->flushed_ns >= FLUSH_NS)
		err = write_file(access, ended);
	return err ? err : !ended;
}

int memwatch_access_end(struct memwatch_access *access)
{
	int err;

	if (!access->rings)
		return mw_fail(access->ctx, -EINVAL, "no accesses are recorded");
	take_items(access);
	err = write_file(access, true);
	mw_access_close(access->rings);
	access->rings = NULL;
	return err;
}

int memwatch_access_get_info(const struct memwatch_access *access, struct memwatch_access_info *ret)
{
	const struct mw_access_file_header *header = &access->writer.header;
	struct memwatch_access_info info = {
		.sz = sizeof(info),
		.event = access->event,
		.period = access->period,
		.page_faults = access->plan.event[0].every,
		.user_only = !!(header->flags & MW_ACCESS_FILE_USER_ONLY),
		.samples = header->samples,
		.lost = header->lost,
		.throttled = header->throttled,
	};

	return mw_opts_export(ret, &info, sizeof(info));
}
