// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Options of commands that read the live stream.
 */
#include <unistd.h>

#include "common/clock.h"
#include "common/library.h"
#include "common/live.h"
#include "common/message.h"

#define RING_BYTES_MAX (256ULL << 20)
#define INTERVAL_NS    1000000000ULL

const char *const mw_live_priorities[] = { "real-time", "normal", NULL };
/* In the order of enum memwatch_live_backend. */
const char *const mw_live_backends[] = { "auto", "module", "bpf", NULL };

int mw_live_check(const struct mw_live_config *config, const char *where)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), bytes = config->ring_bytes;

	if (bytes && (bytes < page || bytes > RING_BYTES_MAX || bytes & (bytes - 1)))
		return mw_error(MW_EXIT_USAGE, where,
				"--ring-size must be a power of two from a page to 256M");
	return 0;
}

int mw_live_open(const struct mw_cli *cli, struct memwatch_ctx *ctx,
		 const struct mw_live_config *config, struct memwatch_live_opts *opts,
		 const char *where, struct memwatch_stream **ret)
{
	int err;

	opts->ring_pages = (uint32_t)(config->ring_bytes / (uint64_t)sysconf(_SC_PAGESIZE));
	opts->backend = (uint32_t)config->backend;
	err = memwatch_stream_open_live(ctx, opts, ret);
	if (err)
		return mw_module_failed(ctx, err, where,
					"record and top also measure without it: --backend bpf");
	if (config->backend == MEMWATCH_LIVE_AUTO && !memwatch_stream_get_info(*ret)->nr_rmids)
		mw_note(cli, "the module is not loaded: measuring by BPF alone, without the cache "
			     "and the memory bandwidth of each process");
	return 0;
}

static uint64_t thread_cpu_ns(void)
{
	return mw_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

void mw_live_raise(struct mw_live_share *share, const struct mw_live_config *config,
		   const struct mw_cli *cli)
{
	share->priority = config->priority ? MW_PRIORITY_NORMAL : mw_priority_raise();
	share->begin_ns = 0;
	if (!config->priority && share->priority != MW_PRIORITY_REAL_TIME)
		mw_note(cli, "real-time priority is not permitted: records may be lost on a busy "
			     "machine");
}

void mw_live_limit(struct mw_live_share *share, const struct mw_cli *cli)
{
	uint64_t now, cpu;

	if (share->priority == MW_PRIORITY_NORMAL)
		return;
	now = mw_clock_ns(CLOCK_MONOTONIC);
	if (now - share->begin_ns < INTERVAL_NS)
		return;
	cpu = thread_cpu_ns();
	/* What it took to load programs and to read BTF does not count. */
	if (share->begin_ns && cpu - share->cpu_ns > (now - share->begin_ns) / 2) {
		mw_priority_lower();
		share->priority = MW_PRIORITY_NORMAL;
		mw_warn(cli, "reading the rings takes more than half of a CPU: it goes on with the "
			     "normal priority, and records may be lost");
	}
	share->begin_ns = now;
	share->cpu_ns = cpu;
}
