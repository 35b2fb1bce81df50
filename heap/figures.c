/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What the allocator says about itself.
 *
 * malloc_info() and mallinfo2() hold the lock of one arena after the other while they walk the free
 * chunks there, which takes 0.1 to 0.2 us for each of them. So they are called at most every 10 s,
 * and after a call that took longer than a millisecond only so rarely that it costs less than
 * 0.01 % of the time. How many free chunks there are is not known before, so a single call may take
 * longer.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "figures.h"
#include "lock.h"
#include "malloc-info.h"
#include "next.h"
#include "profile.h"
#include "runtime.h"

#define INTERVAL_NS   UINT64_C(10000000000)
#define HELD_MAX_NS   UINT64_C(1000000)
#define SLOW_INTERVAL 10000 /* times what the last call took */

#define FIRST_NS      UINT64_C(500000000) /* after the first sample */

static uint64_t figures_due; /* when the next ones are taken; 0: no sample yet */

static ssize_t statm_read(char *text, size_t size)
{
	struct mw_interrupts were;
	ssize_t length = -1;
	int fd;

	mw_interrupts_block(&were);
	fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		length = read(fd, text, size);
		close(fd);
	}
	mw_interrupts_restore(&were);
	return length;
}

/* Resident and shared pages, fields 2 and 3. */
static void memory_read(struct mw_heap_figures *figures)
{
	char text[128], *at;
	uint64_t page = mw_profile.header->system_page_bytes;
	ssize_t length = statm_read(text, sizeof(text) - 1);

	if (length <= 0)
		return;
	text[length] = 0;
	strtoull(text, &at, 10);
	figures->rss_bytes = strtoull(at, &at, 10) * page;
	figures->shared_bytes = strtoull(at, &at, 10) * page;
}

static void figures_take(struct mw_heap_figures *figures, uint64_t now)
{
	/* CPU time: waiting for the locks of others disturbs nobody. */
	uint64_t begin = mw_clock_read(CLOCK_THREAD_CPUTIME_ID);

	memset(figures, 0, sizeof(*figures));
	if (!mw_malloc_info_read(&mw_thread, figures) && mw_next.mallinfo2) {
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
	figures->took_ns = mw_clock_read(CLOCK_THREAD_CPUTIME_ID) - begin;
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
	/* One thread gets through, and the others have to wait until it is done. */
	if (!__atomic_compare_exchange_n(&figures_due, &due, due ? UINT64_MAX : now + FIRST_NS,
					 false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED) ||
	    !due)
		return;
	figures = &header->figures[(header->figures_valid + 1) & 1];
	figures_take(figures, now);
	took = figures->took_ns;
	__atomic_store_n(&header->figures_valid, header->figures_valid + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&figures_due,
			 now + (took > HELD_MAX_NS ? took * SLOW_INTERVAL : INTERVAL_NS),
			 __ATOMIC_RELEASE);
}

void mw_figures_clear(void)
{
	figures_due = 0;
}
