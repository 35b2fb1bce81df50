// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The common part of all streams: argument checks and dispatch. It does not depend on any
 * backend.
 */
#include "stream/backend.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/context.h"
#include "base/timemath.h"

static void set_default_text(const char **text)
{
	if (!*text)
		*text = "";
}

void mw_stream_init(struct memwatch_stream *stream, struct memwatch_ctx *ctx,
		    const struct mw_backend_ops *ops)
{
	struct memwatch_stream_info *info = &stream->info;

	stream->ctx = memwatch_ctx_ref(ctx);
	stream->ops = ops;
	info->sz = sizeof(*info);
	if (!info->schema)
		info->schema = MEMWATCH_SCHEMA;
	if (!info->version)
		info->version = memwatch_version();
	set_default_text(&info->backend);
	set_default_text(&info->backend_reason);
	set_default_text(&info->hostname);
	set_default_text(&info->kernel);
	for (int i = 0; i < MEMWATCH_COUNTER_MAX; i++)
		set_default_text(&info->counter[i].reason);
	for (int i = 0; i < MEMWATCH_RDT_MAX; i++)
		set_default_text(&info->rdt[i].reason);
}

void mw_stream_info_host(struct memwatch_stream_info *info, struct mw_host_info *host)
{
	struct utsname name;

	memset(host, 0, sizeof(*host));
	if (!uname(&name)) {
		snprintf(host->hostname, sizeof(host->hostname), "%s", name.nodename);
		snprintf(host->kernel, sizeof(host->kernel), "%s", name.release);
	}
	info->hostname = host->hostname;
	info->kernel = host->kernel;
	info->start_realtime_ns = mw_clock(CLOCK_REALTIME);
	info->start_monotonic_ns = mw_clock(CLOCK_MONOTONIC);
	info->start_boottime_ns = mw_clock(CLOCK_BOOTTIME);
}

struct memwatch_stream *memwatch_stream_unref(struct memwatch_stream *stream)
{
	struct memwatch_ctx *ctx;

	if (!stream)
		return NULL;
	ctx = stream->ctx;
	if (stream->has_ready_fd)
		close(stream->ready_fd);
	stream->ops->close(stream);
	memwatch_ctx_unref(ctx);
	return NULL;
}

int memwatch_stream_next(struct memwatch_stream *stream, const struct memwatch_record_header **ret)
{
	return stream->ops->next(stream, ret);
}

int memwatch_stream_poll(struct memwatch_stream *stream, int timeout_ms)
{
	return stream->ops->poll ? stream->ops->poll(stream, timeout_ms) : 1;
}

/* A backend that never waits has a descriptor that is always readable. */
int memwatch_stream_fd(struct memwatch_stream *stream)
{
	if (stream->ops->fd)
		return stream->ops->fd(stream);
	if (!stream->has_ready_fd) {
		stream->ready_fd = eventfd(1, EFD_CLOEXEC);
		if (stream->ready_fd < 0)
			return mw_fail(stream->ctx, -errno, "cannot open an eventfd: %s",
				       strerror(errno));
		stream->has_ready_fd = 1;
	}
	return stream->ready_fd;
}

int memwatch_stream_stop(struct memwatch_stream *stream)
{
	int err = 0;

	if (stream->stopped)
		return 0;
	if (stream->ops->stop)
		err = stream->ops->stop(stream);
	/* Nothing produces records any more, even if the session could not be stopped. */
	stream->stopped = 1;
	return err;
}

const struct memwatch_stream_info *memwatch_stream_get_info(const struct memwatch_stream *stream)
{
	return &stream->info;
}

int memwatch_stream_get_stats(struct memwatch_stream *stream, struct memwatch_stream_stats *ret)
{
	MEMWATCH_OPTS(memwatch_stream_stats, stats);
	int err = stream->ops->stats(stream, &stats);

	return err ? err : mw_opts_export(ret, &stats, sizeof(stats));
}

int memwatch_stream_get_cpu_stats(struct memwatch_stream *stream, unsigned int index,
				  struct memwatch_stream_cpu_stats *ret)
{
	MEMWATCH_OPTS(memwatch_stream_cpu_stats, stats);
	int err;

	if (!stream->ops->cpu_stats)
		return 0;
	err = stream->ops->cpu_stats(stream, index, &stats);
	if (err <= 0)
		return err;
	err = mw_opts_export(ret, &stats, sizeof(stats));
	return err ? err : 1;
}

int memwatch_stream_get_failure(struct memwatch_stream *stream, unsigned int index,
				const char **name, __u64 *count)
{
	return stream->ops->failure ? stream->ops->failure(stream, index, name, count) : 0;
}
