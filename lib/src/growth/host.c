// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Divides the memory of the machine into classes. What is neither free nor in any counter has been
 * allocated by the kernel for itself: buffers of drivers and of pipes, for example.
 */
#include "growth/host.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/timemath.h"
#include "growth/limits.h"
#include "growth/pages.h"

/* The classes of which /proc/meminfo counts the rest. */
static const char *const counted[] = {
	"MemFree:",	 "Buffers:",	"Cached:",     "SwapCached:",	 "AnonPages:",
	"KReclaimable:", "SUnreclaim:", "PageTables:", "SecPageTables:", "Hugetlb:"
};

static uint32_t pages_of_kb(uint64_t kb)
{
	return mw_pages_from_bytes(kb << 10);
}

/*
 * Pages that the protocols have for buffers. Each line of the file ends with "mem" and the number,
 * which is that of all network namespaces.
 */
static uint64_t count_socket_pages(struct memwatch_ctx *ctx)
{
	uint64_t pages = 0;
	char text[4096];
	const char *at;

	if (mw_limits_read_text(ctx, "/proc/net/sockstat", text, sizeof(text)))
		return 0;
	for (at = strstr(text, " mem "); at; at = strstr(at + 1, " mem "))
		pages += strtoull(at + 5, NULL, 10);
	return pages;
}

int mw_host_sample(struct memwatch_ctx *ctx, struct mw_group_sample *ret, uint64_t *swap_bytes)
{
	struct mw_limits_host limits;
	uint64_t swapped, known = 0;
	char text[4096];
	int err = mw_limits_read_text(ctx, "/proc/meminfo", text, sizeof(text));

	if (err)
		return err;
	mw_limits_parse_host(text, &limits);
	for (size_t i = 0; i < sizeof(counted) / sizeof(counted[0]); i++)
		known += mw_limits_number(text, counted[i]);
	/* Before 4.20 the whole reclaimable memory is slab. */
	if (!strstr(text, "KReclaimable:"))
		known += mw_limits_number(text, "SReclaimable:");
	swapped = mw_sub_sat(mw_limits_number(text, "SwapTotal:"),
			     mw_limits_number(text, "SwapFree:") +
				     mw_limits_number(text, "SwapCached:"));
	ret->pages[MEMWATCH_CLASS_ANON] = pages_of_kb(mw_limits_number(text, "AnonPages:") +
						      swapped);
	ret->pages[MEMWATCH_CLASS_SHMEM] = pages_of_kb(mw_limits_number(text, "Shmem:"));
	ret->pages[MEMWATCH_CLASS_KERNEL] = pages_of_kb(
		mw_sub_sat(mw_limits_number(text, "MemTotal:"), known));
	ret->pages[MEMWATCH_CLASS_SLAB] = pages_of_kb(mw_limits_number(text, "SUnreclaim:"));
	ret->pages[MEMWATCH_CLASS_PAGETABLES] = pages_of_kb(
		mw_limits_number(text, "PageTables:") + mw_limits_number(text, "SecPageTables:"));
	ret->pages[MEMWATCH_CLASS_SOCK] = mw_pages_from_bytes(count_socket_pages(ctx) *
							      (uint64_t)sysconf(_SC_PAGESIZE));
	ret->headroom = mw_pages_from_bytes(limits.headroom_bytes);
	ret->limit = MEMWATCH_LIMIT_HOST;
	*swap_bytes = limits.swap_bytes;
	return 0;
}
