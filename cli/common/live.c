// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Options of commands that read the live stream.
 */
#include <unistd.h>

#include "common/clock.h"
#include "common/live.h"
#include "common/message.h"

#define RING_BYTES_MAX (256ULL << 20)
#define INTERVAL_NS    1000000000ULL

const char *const mw_live_priorities[] = { "real-time", "normal", NULL };

int mw_live_check(const struct mw_live_config *config, const char *where)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), bytes = config->ring_bytes;

	if (bytes && (bytes < page || bytes > RING_BYTES_MAX || bytes & (bytes - 1)))
		return mw_error(MW_EXIT_USAGE, where,
				"--ring-size must be a power of two from a page to 256M");
	return 0;
}

uint32_t mw_live_ring_pages(const struct mw_live_config *config)
{
	return (uint32_t)(config->ring_bytes / (uint64_t)sysconf(_SC_PAGESIZE));
}

static uint64_t thread_cpu_ns(void)
{
	return mw_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

void mw_live_raise(struct mw_live_share *share, const struct mw_live_config *config,
		   const struct mw_cli *cli)
{
	share->priority = config->priority ? MW_PRIORITY_NORMAL : mw_priority_raise();
	share->begin_ns = mw_clock_ns(CLOCK_MONOTONIC);
	share->cpu_ns = thread_cpu_ns();
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
	if (cpu - share->cpu_ns > (now - share->begin_ns) / 2) {
		mw_priority_lower();
		share->priority = MW_PRIORITY_NORMAL;
		mw_warn(cli, "reading the rings takes more than half of a CPU: it goes on with the "
			     "normal priority, and records may be lost");
	}
	share->begin_ns = now;
	share->cpu_ns = cpu;
}
