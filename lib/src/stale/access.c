// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The rings of a process, see access.h.
 */
#include "stale/access.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/context.h"
#include "base/cpus.h"
#include "base/timemath.h"
#include "stale/access-open.h"
#include "stale/access-why.h"

#define DEFAULT_PAGES 128

/* Items of one ring before it is the turn of the next. */
#define TURN 4096

/*
 * A new period discards what the counter has counted: half a period, on average. After 16 samples
 * of a ring these are 3 % of them. Which ones does not depend on their addresses.
 */
#define REARM_SAMPLES 16

/**
 * struct access_event - an event on a CPU
 * @fd: descriptor, or -1: this CPU does not have it
 * @aux: descriptor of its auxiliary event, or -1
 */
struct access_event {
	int fd, aux;
};

/**
 * struct access_ring - a CPU
 * @base: mapping of the ring
 * @tracker: the event that owns the ring
 * @event: the events, as in the plan
 * @reader: the reader of the ring
 * @rearmed: samples when the last new period was set
 */
struct access_ring {
	void *base;
	int tracker;
	struct access_event event[MW_ACCESS_EVENTS_MAX];
	struct mw_access_reader reader;
	uint64_t rearmed;
};

/**
 * struct mw_access - see access.h
 * @ctx: context, not owned
 * @plan: the events, not owned
 * @mode: how they were opened
 * @period: mean, or 0: that of the event
 * @random: state of the random numbers
 * @ring: rings of the CPUs that were online; owned
 * @nr: how many
 * @hung_up: of these, how many whose processes have ended
 * @current: the ring whose turn it is
 * @taken: items that were taken in this turn
 * @empty: the last call of mw_access_next() found nothing
 * @bytes: size of a mapping
 * @rearmed: how often a new period was set
 * @epoll: waits for all rings
 * @record: scratch memory of the readers; owned
 */
struct mw_access {
	struct memwatch_ctx *ctx;
	const struct mw_access_plan *plan;
	struct mw_access_mode mode;
	uint64_t period, random;
	struct access_ring *ring;
	unsigned int nr, hung_up, current, taken;
	bool empty;
	size_t bytes;
	uint64_t rearmed;
	int epoll;
	void *record;
};

static uint64_t draw_period(struct mw_access *access, const struct mw_access_event *event)
{
	if (event->every)
		return event->default_period;
	return mw_access_period(&access->random,
				access->period ? access->period : event->default_period,
				event->step);
}

/* ------------------------------------------------------------- opening */

static int fail_map(struct mw_access *access, int err)
{
	if (err == -EPERM)
		return mw_fail(access->ctx, -EACCES,
			       "cannot map a ring: %zu KiB exceed kernel.perf_event_mlock_kb; use "
			       "fewer pages or CAP_IPC_LOCK",
			       access->bytes / 1024);
	return mw_fail(access->ctx, err, "cannot map a ring: %s", strerror(-err));
}

static int ring_map(struct mw_access *access, struct access_ring *ring)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = ring };
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct mw_ring parts;
	void *base = mmap(NULL, access->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring->tracker,
			  0);
	int err;

	if (base == MAP_FAILED)
		return fail_map(access, -errno);
	ring->base = base;
	err = mw_ring_init_perf(&parts, base, page, access->bytes - page);
	if (!err && epoll_ctl(access->epoll, EPOLL_CTL_ADD, ring->tracker, &event))
		err = -errno;
	if (err)
		return fail_map(access, err);
	mw_access_reader_init(&ring->reader, &parts, access->record);
	return 0;
}

static int ring_add_event(struct mw_access *access, struct access_ring *ring, unsigned int cpu,
			  unsigned int number)
{
	const struct mw_access_event *event = &access->plan->event[number];
	struct access_event *here = &ring->event[number];
	int fd;

	if (event->cpus && !event->cpus[cpu])
		return 0;
	fd = mw_access_open_event(&access->mode, event, cpu, ring->tracker,
				  draw_period(access, event), &here->aux);
	if (fd < 0)
		return mw_access_fail_open(access->ctx, event, access->mode.user, fd);
	here->fd = fd;
	return 0;
}

/* Opens the next ring. A CPU that has gone offline meanwhile is left out. */
static int access_add_ring(struct mw_access *access, unsigned int cpu)
{
	static const struct mw_access_event tracker = {
		.name = "the event that follows processes"
	};
	struct access_ring *ring = &access->ring[access->nr];
	int err = 0;

	for (unsigned int i = 0; i < MW_ACCESS_EVENTS_MAX; i++)
		ring->event[i] = (struct access_event){ .fd = -1, .aux = -1 };
	ring->tracker = mw_access_open_tracker(&access->mode, cpu);
	if (ring->tracker == -ENODEV)
		return 0;
	if (ring->tracker < 0)
		return mw_access_fail_open(access->ctx, &tracker, true, ring->tracker);
	access->nr++;
	err = ring_map(access, ring);
	for (unsigned int i = 0; !err && i < access->plan->nr; i++)
		err = ring_add_event(access, ring, cpu, i);
	return err;
}

static int access_open_rings(struct mw_access *access)
{
	uint8_t *online = malloc(MW_CPUS_MAX);
	unsigned int cpus = 0;
	int err = -ENOMEM;

	if (online)
		err = mw_cpus_online(access->ctx, online, MW_CPUS_MAX);
	for (unsigned int cpu = 0; !err && cpu < MW_CPUS_MAX; cpu++)
		cpus += online[cpu];
	access->ring = calloc(cpus, sizeof(*access->ring));
	if (!err && !access->ring)
		err = -ENOMEM;
	for (unsigned int cpu = 0; !err && cpu < MW_CPUS_MAX; cpu++)
		if (online[cpu])
			err = access_add_ring(access, cpu);
	free(online);
	if (!err && !access->nr)
		err = mw_fail(access->ctx, -ENODEV, "access samples: no CPU is online");
	return err == -ENOMEM ? mw_fail_memory(access->ctx, "access samples") : err;
}

static int access_init(struct mw_access *access, const struct mw_access_opts *opts)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint32_t pages = opts->pages ? opts->pages : DEFAULT_PAGES;

	if (opts->period > MW_ACCESS_PERIOD_MAX || pages & (pages - 1) || pages > 1U << 18)
		return mw_fail(
			access->ctx, -EINVAL,
			"access samples: the period is too large, or the pages of a ring are "
			"no power of two");
	access->bytes = (pages + 1) * page;
	access->mode.wakeup_bytes = (uint32_t)(pages * page / 4);
	access->period = opts->period;
	access->random = opts->seed;
	if (!opts->seed && getrandom(&access->random, sizeof(access->random), 0) < 0)
		return mw_fail(access->ctx, -errno, "cannot read random numbers: %s",
			       strerror(errno));
	access->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (access->epoll < 0)
		return mw_fail(access->ctx, -errno, "cannot wait for rings: %s", strerror(errno));
	access->record = malloc(MW_ACCESS_RECORD_ROOM);
	return access->record ? 0 : mw_fail_memory(access->ctx, "access samples");
}

int mw_access_open(struct memwatch_ctx *ctx, const struct mw_access_plan *plan, pid_t pid,
		   const struct mw_access_opts *opts, struct mw_access **ret)
{
	static const struct mw_access_opts defaults;
	struct mw_access *access = calloc(1, sizeof(*access));
	int err;

	if (!access)
		return mw_fail_memory(ctx, "access samples");
	access->ctx = ctx;
	access->plan = plan;
	access->mode.pid = pid;
	access->mode.counts_lost = true;
	access->epoll = -1;
	err = access_init(access, opts ? opts : &defaults);
	if (!err)
		err = access_open_rings(access);
	if (err) {
		mw_access_close(access);
		return err;
	}
	*ret = access;
	return 0;
}

void mw_access_close(struct mw_access *access)
{
	if (!access)
		return;
	for (unsigned int i = 0; i < access->nr; i++) {
		struct access_ring *ring = &access->ring[i];

		for (unsigned int n = 0; n < MW_ACCESS_EVENTS_MAX; n++) {
			if (ring->event[n].fd >= 0)
				close(ring->event[n].fd);
			if (ring->event[n].aux >= 0)
				close(ring->event[n].aux);
		}
		if (ring->base)
			munmap(ring->base, access->bytes);
		close(ring->tracker);
	}
	if (access->epoll >= 0)
		close(access->epoll);
	free(access->ring);
	free(access->record);
	free(access);
}

/* ------------------------------------------------------------- reading */

/*
 * PERF_EVENT_IOC_PERIOD restarts the event with the new period (__perf_event_period()). It changes
 * the event that was opened, and none that was inherited from it.
 */
static void ring_draw_periods(struct mw_access *access, struct access_ring *ring)
{
	const struct mw_access_counts *counts = &ring->reader.counts;
	uint64_t samples = counts->samples + counts->no_address + counts->kernel_address;
	uint64_t period;

	if (samples - ring->rearmed < REARM_SAMPLES)
		return;
	ring->rearmed = samples;
	for (unsigned int i = 0; i < access->plan->nr; i++) {
		if (ring->event[i].fd < 0 || access->plan->event[i].every)
			continue;
		period = draw_period(access, &access->plan->event[i]);
		/* The kernel refuses what is too short for this PMU; the old period stays then. */
		if (!ioctl(ring->event[i].fd, PERF_EVENT_IOC_PERIOD, &period))
			access->rearmed++;
	}
}

int mw_access_next(struct mw_access *access, struct mw_access_item *item)
{
	struct access_ring *ring;

	for (unsigned int tries = 0; tries <= access->nr; tries++) {
		ring = &access->ring[access->current];
		if (access->taken < TURN && mw_access_reader_next(&ring->reader, item)) {
			access->taken++;
			access->empty = false;
			return 1;
		}
		ring_draw_periods(access, ring);
		access->taken = 0;
		access->current = (access->current + 1) % access->nr;
	}
	access->empty = true;
	return 0;
}

int mw_access_wait(struct mw_access *access, int timeout_ms)
{
	struct epoll_event events[16];
	struct access_ring *ring;
	int n;

	if (access->hung_up == access->nr)
		return 1;
	n = epoll_wait(access->epoll, events, 16, timeout_ms);
	if (n < 0)
		return -errno;
	/* The kernel reports the end of the last process for ever, so stop waiting for it. */
	for (int i = 0; i < n; i++) {
		if (!(events[i].events & EPOLLHUP))
			continue;
		ring = events[i].data.ptr;
		if (!epoll_ctl(access->epoll, EPOLL_CTL_DEL, ring->tracker, NULL))
			access->hung_up++;
	}
	access->empty = false;
	return n > 0;
}

int mw_access_fd(const struct mw_access *access)
{
	return access->epoll;
}

bool mw_access_ended(const struct mw_access *access)
{
	return access->hung_up == access->nr && access->empty;
}

/* ---------------------------------------------------------- statistics */

/* What the kernel has counted for an event and for those that were inherited from it. */
static uint64_t read_lost(int fd)
{
	uint64_t values[2]; /* the counter, lost records */

	if (fd < 0 || read(fd, values, sizeof(values)) != sizeof(values))
		return 0;
	return values[1];
}

static void counts_add(struct mw_access_counts *sum, const struct mw_access_counts *counts)
{
	sum->samples += counts->samples;
	sum->no_address += counts->no_address;
	sum->kernel_address += counts->kernel_address;
	sum->lost = mw_add_sat(sum->lost, counts->lost);
	sum->lost_in_hardware = mw_add_sat(sum->lost_in_hardware, counts->lost_in_hardware);
	sum->throttled += counts->throttled;
	sum->others += counts->others;
	sum->malformed += counts->malformed;
	sum->broken += counts->broken;
	sum->broken_bytes = mw_add_sat(sum->broken_bytes, counts->broken_bytes);
}

void mw_access_get_stats(const struct mw_access *access, struct mw_access_stats *ret)
{
	uint64_t lost = 0;

	*ret = (struct mw_access_stats){
		.rings = access->nr,
		.rearmed = access->rearmed,
		.user_only = access->mode.user,
	};
	for (unsigned int r = 0; r < access->nr; r++) {
		counts_add(&ret->counts, &access->ring[r].reader.counts);
		if (!access->mode.counts_lost)
			continue;
		lost += read_lost(access->ring[r].tracker);
		for (unsigned int i = 0; i < access->plan->nr; i++)
			lost += read_lost(access->ring[r].event[i].fd);
	}
	ret->counts.lost = mw_max_u64(ret->counts.lost, lost);
}
