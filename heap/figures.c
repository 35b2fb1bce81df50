/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What the allocator says about itself.
 *
 * mallinfo2() holds the lock of an arena while it walks the free chunks there, which takes
 * longer the more fragmented the heap is. So it is called at most every 10 s, and after a call
 * that took longer than a millisecond only so rarely that it costs less than 0.01 % of the time.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "figures.h"
#include "next.h"
#include "profile.h"
#include "runtime.h"

#define INTERVAL_NS   UINT64_C(10000000000)
#define HELD_MAX_NS   UINT64_C(1000000)
#define SLOW_INTERVAL 10000 /* times what the last call took */

#define FIRST_NS      UINT64_C(500000000) /* after the first sample */

static uint64_t figures_due; /* when the next ones are taken; 0: no sample yet */

/* Resident and shared pages, fields 2 and 3. */
static void memory_read(struct mw_heap_figures *figures)
{
	char text[128], *at;
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	uint64_t page = mw_profile.header->system_page_bytes;
	ssize_t length;

	if (fd < 0)
		return;
	length = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (length <= 0)
		return;
	text[length] = 0;
	strtoull(text, &at, 10);
	figures->rss_bytes = strtoull(at, &at, 10) * page;
	figures->shared_bytes = strtoull(at, &at, 10) * page;
}

static void figures_take(struct mw_heap_figures *figures, uint64_t now)
{
	memset(figures, 0, sizeof(*figures));
	if (mw_next.mallinfo2) {
		struct mallinfo2 info = mw_next.mallinfo2();

		figures->arena = info.arena;
		figures->hblkhd = info.hblkhd;
		figures->uordblks = info.uordblks;
		figures->fordblks = info.fordblks;
		figures->keepcost = info.keepcost;
		figures->fsmblks = info.fsmblks;
		figures->ordblks = info.ordblks;
		figures->hblks = info.hblks;
	}
	figures->took_ns = mw_runtime_now() - now;
	memory_read(figures);
	figures->live_bytes = __atomic_load_n(&mw_profile.header->live_bytes, __ATOMIC_RELAXED);
	figures->time_ns = now;
}

void mw_figures_follow(uint64_t now)
{
	struct mw_heap_header *header = mw_profile.header;
	uint64_t due = __atomic_load_n(&figures_due, __ATOMIC_RELAXED), took;
	struct mw_heap_figures *figures;

	if (now < due)
		return;
	/* One thread gets through: the others see that it is not due any more. */
	if (!__atomic_compare_exchange_n(&figures_due, &due, now + (due ? INTERVAL_NS : FIRST_NS),
					 false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED) ||
	    !due)
		return;
	figures = &header->figures[(header->figures_valid + 1) & 1];
	figures_take(figures, now);
	__atomic_store_n(&header->figures_valid, header->figures_valid + 1, __ATOMIC_RELEASE);
	took = figures->took_ns;
	if (took > HELD_MAX_NS)
		__atomic_store_n(&figures_due, now + took * SLOW_INTERVAL, __ATOMIC_RELEASE);
}

void mw_figures_clear(void)
{
	figures_due = 0;
}
