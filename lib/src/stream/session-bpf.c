// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A session without the module. Attaching the programs starts it, so there is little to do; the
 * session ends with its file descriptors, even if this process is killed.
 */
#include "stream/session.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/context.h"

static const char no_rdt[] = "the bpf backend cannot read it; it needs the module";

static bool has_btf(struct memwatch_ctx *ctx)
{
	bool readable = false;
	char *path;

	if (!mw_ctx_path(ctx, "/sys/kernel/btf/vmlinux", &path)) {
		readable = !access(path, R_OK);
		free(path);
	}
	return readable;
}

static int bpf_stop(struct mw_session *session, struct mw_bpf_relay *relay)
{
	(void)session;
	mw_bpf_relay_stop(relay);
	return 0;
}

static int bpf_describe(struct mw_session *session, struct memwatch_stream_info *info)
{
	(void)session;
	info->nr_rmids = 0;
	info->backend = "bpf";
	info->backend_reason = "measured by BPF programs, without the module";
	for (unsigned int i = 0; i < MEMWATCH_RDT_MAX; i++) {
		info->rdt[i].status = MEMWATCH_STATUS_UNAVAILABLE;
		info->rdt[i].reason = no_rdt;
	}
	return 0;
}

static void bpf_close(struct mw_session *session)
{
	free(session);
}

static const struct mw_session_ops bpf_ops = {
	.stop = bpf_stop,
	.describe = bpf_describe,
	.close = bpf_close,
};

int mw_session_open_bpf(struct memwatch_ctx *ctx, const struct memwatch_live_opts *opts,
			struct mw_session **ret)
{
	uint64_t period_ns = opts->period_ns ? opts->period_ns : MEMWATCH_PERIOD_DEFAULT_NS;
	struct mw_session *session;

	if (opts->flags & MEMWATCH_LIVE_NO_START)
		return mw_fail(ctx, -EINVAL,
			       "live stream: only the module can measure in a session of another "
			       "process");
	if (period_ns < MEMWATCH_PERIOD_MIN_NS || period_ns > MEMWATCH_PERIOD_MAX_NS)
		return mw_fail(ctx, -EINVAL, "live stream: the period must be 100 us to 1 s");
	if (!has_btf(ctx))
		return mw_fail(
			ctx, -EOPNOTSUPP,
			"the kernel module memwatch is not loaded, and this kernel has no BTF "
			"(CONFIG_DEBUG_INFO_BTF), without which only the module can measure; "
			"load it: modprobe memwatch");
	session = calloc(1, sizeof(*session));
	if (!session)
		return mw_fail_memory(ctx, "live stream");
	*session = (struct mw_session){
		.ctx = ctx,
		.ops = &bpf_ops,
		.period_ns = period_ns,
		.relay = { .source = MW_BPF_SOURCE_SCHEDULER, .period_ns = period_ns },
	};
	*ret = session;
	return 0;
}
