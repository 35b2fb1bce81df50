// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Options of commands that read the live stream.
 */
#include <unistd.h>

#include "common/live.h"
#include "common/message.h"

#define RING_BYTES_MAX (256ULL << 20)

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

enum mw_priority mw_live_raise(const struct mw_live_config *config, const struct mw_cli *cli)
{
	enum mw_priority priority = config->priority ? MW_PRIORITY_NORMAL : mw_priority_raise();

	if (!config->priority && priority != MW_PRIORITY_REAL_TIME)
		mw_note(cli, "real-time priority is not permitted: records may be lost on a busy "
			     "machine");
	return priority;
}
