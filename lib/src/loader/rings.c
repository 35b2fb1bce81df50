// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Perf rings of CPUs that go online and offline, see rings.h.
 */
#include "loader/rings.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loader/libbpf.h"
#include "base/context.h"
#include "base/cpus.h"
#include "base/timemath.h"

/* When a ring cannot be opened, it is tried again so much later. */
#define RETRY_NS 1000000000ULL

/**
 * struct cpu - a possible CPU and its ring
 * @base: mapping of the ring: the control page, then the data; NULL until the CPU has
 *	been online
 * @fd: the event that the ring was created with; it is polled
 * @index: index of the ring in the merge
 * @known: the merge knows the CPU, so that @index is valid
 * @generation: ring generation; 0: no event writes to the ring, as far as is known
 * @last_generation: the last value of @generation that was not 0
 * @retry_ns: when to open the ring again, which has failed since the CPU came online; 0: it has not
 * @misses: last count of what was dropped or kept for want of a ring
 * @reported: how many of them were reported to the merge
 */
struct cpu {
	void *base;
	int fd;
	unsigned int index;
	bool known;
	uint32_t generation;
	uint32_t last_generation;
	uint64_t retry_ns;
	uint64_t misses;
	uint64_t reported;
};

struct mw_bpf_rings {
	struct memwatch_ctx *ctx;
	struct mw_merge *merge;
	struct mw_bpf_rings_opts opts;
	struct cpu *cpus; /* all possible CPUs */
	unsigned int nr_cpus;
	size_t page_size;
	size_t bytes; /* size of a mapping, control page included */
	int epoll;
	uint8_t *online;  /* scratch, one element per CPU */
	uint64_t *counts; /* one element per CPU: records dropped for want of a ring */
	uint64_t *misses; /* likewise: what was dropped or kept */
};

static int fail_ring(struct mw_bpf_rings *rings, unsigned int cpu, int err)
{
	struct memwatch_ctx *ctx = rings->ctx;

	if (err == -EMFILE)
		return mw_fail(ctx, err,
			       "cannot open the ring of CPU %u: too many open files; each CPU "
			       "needs one: raise the limit (ulimit -n)",
			       cpu);
	if (err == -EACCES)
		return mw_fail(ctx, err,
			       "cannot open the ring of CPU %u: not permitted; it needs root, or "
			       "CAP_PERFMON and kernel.perf_event_paranoid of at most 2",
			       cpu);
	if (err == -EPERM)
		return mw_fail(ctx, err,
			       "cannot map the ring of CPU %u: %u pages exceed "
			       "kernel.perf_event_mlock_kb; use fewer pages or CAP_IPC_LOCK",
			       cpu, rings->opts.pages);
	return mw_fail(ctx, err, "cannot open the ring of CPU %u: %s", cpu, strerror(-err));
}

/* ----------------------------------------------------------------- one ring */

/*
 * Frames contain raw data only. perf need not add the time, because the records have one
 * of their own.
 */
static int event_open(const struct mw_bpf_rings *rings, unsigned int cpu)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_BPF_OUTPUT,
		.sample_type = PERF_SAMPLE_RAW,
		.sample_period = 1,
	};
	int fd;

	if (rings->opts.wakeup_bytes) {
		attr.watermark = 1;
		attr.wakeup_watermark = rings->opts.wakeup_bytes;
	} else {
		attr.wakeup_events = 1;
	}
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int event_put(const struct mw_bpf_rings *rings, unsigned int cpu, int fd)
{
	return bpf_map_update_elem(rings->opts.map, &cpu, &fd, BPF_ANY) ? -errno : 0;
}

static int read_counts(struct mw_bpf_rings *rings)
{
	int err = bpf_map_lookup_elem(rings->opts.counts, &rings->opts.no_ring, rings->counts);

	if (!err)
		err = bpf_map_lookup_elem(rings->opts.counts, &rings->opts.held, rings->misses);
	if (err || rings->opts.held == rings->opts.no_ring)
		return err;
	for (unsigned int cpu = 0; cpu < rings->nr_cpus; cpu++)
		rings->misses[cpu] += rings->counts[cpu];
	return 0;
}

/*
 * Reports what the CPU sent while it had no ring, which the kernel does not count. Its
 * place is between the present content of the ring and what the new event will write. That begins
 * with what the CPU has kept, and what it has lost is newer.
 */
static void ring_report_lost(struct mw_bpf_rings *rings, unsigned int cpu)
{
	struct cpu *here = &rings->cpus[cpu];

	if (read_counts(rings) || rings->counts[cpu] == here->reported)
		return;
	mw_merge_lost_add(rings->merge, here->index, rings->counts[cpu] - here->reported,
			  mw_clock(CLOCK_MONOTONIC));
	here->reported = rings->counts[cpu];
}

/* The merge learns of a CPU with its ring, or when that cannot be opened. 0, -ENOMEM, -ENOSPC. */
static int cpu_add(struct mw_bpf_rings *rings, unsigned int cpu)
{
	struct cpu *here = &rings->cpus[cpu];
	int index = here->known ? (int)here->index : mw_merge_cpu_add(rings->merge, cpu);

	if (index < 0)
		return index;
	here->index = (unsigned int)index;
	here->known = true;
	return 0;
}

/* Returns -ENODEV if the CPU has gone offline meanwhile. */
static int ring_open(struct mw_bpf_rings *rings, unsigned int cpu)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = cpu };
	struct cpu *here = &rings->cpus[cpu];
	struct mw_ring ring;
	void *base;
	int fd, err;

	fd = event_open(rings, cpu);
	if (fd < 0)
		return fd;
	base = mmap(NULL, rings->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED) {
		err = -errno;
		goto err_close;
	}
	err = mw_ring_init_perf(&ring, base, rings->page_size, rings->bytes - rings->page_size);
	if (err)
		goto err_unmap;
	if (epoll_ctl(rings->epoll, EPOLL_CTL_ADD, fd, &event)) {
		err = -errno;
		goto err_unmap;
	}
	err = cpu_add(rings, cpu);
	if (err)
		goto err_unmap;
	mw_merge_ring_attach(rings->merge, here->index, &ring);
	here->base = base;
	here->fd = fd;
	ring_report_lost(rings, cpu);
	/* If this fails, the next attempt is ring_reopen(). */
	err = event_put(rings, cpu, fd);
	if (!err)
		here->generation = ++here->last_generation;
	return err;

err_unmap:
	munmap(base, rings->bytes);
err_close:
	close(fd);
	return err;
}

/*
 * Opens a new event for the ring of a CPU that is online again. The map keeps a
 * reference to the event, so its descriptor can be closed.
 */
static int ring_reopen(struct mw_bpf_rings *rings, unsigned int cpu)
{
	struct cpu *here = &rings->cpus[cpu];
	int fd, err = 0;

	fd = event_open(rings, cpu);
	if (fd < 0)
		return fd;
	if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, here->fd))
		err = -errno;
	if (!err) {
		ring_report_lost(rings, cpu);
		err = event_put(rings, cpu, fd);
	}
	if (!err)
		here->generation = ++here->last_generation;
	close(fd);
	return err;
}

/* --------------------------------------------------------------------- CPUs */

static void cpu_set_online(struct mw_bpf_rings *rings, unsigned int cpu)
{
	struct cpu *here = &rings->cpus[cpu];
	uint64_t now = mw_clock(CLOCK_MONOTONIC);
	int err;

	if (now < here->retry_ns)
		return;
	err = here->base ? ring_reopen(rings, cpu) : ring_open(rings, cpu);
	if (err == -ENODEV)
		return;
	if (err) {
		/* What it loses begins now. */
		cpu_add(rings, cpu);
		if (!here->retry_ns)
			mw_log(rings->ctx, MEMWATCH_LOG_WARNING,
			       "CPU %u came online, but its ring cannot be opened: %s; "
			       "its records are lost until that is possible",
			       cpu, strerror(-err));
		here->retry_ns = now + RETRY_NS;
		return;
	}
	here->retry_ns = 0;
	mw_log(rings->ctx, MEMWATCH_LOG_INFO, "CPU %u came online", cpu);
	/* what was dropped until now does not mean that the CPU went offline again */
	read_counts(rings);
	here->misses = rings->misses[cpu];
}

void mw_bpf_rings_refresh(struct mw_bpf_rings *rings)
{
	if (mw_cpus_online(rings->ctx, rings->online, rings->nr_cpus) || read_counts(rings))
		return;
	for (unsigned int i = 0; i < rings->nr_cpus; i++) {
		struct cpu *cpu = &rings->cpus[i];

		/* the count changes if the CPU went offline and came back since the last call */
		if (cpu->generation && (!rings->online[i] || rings->misses[i] != cpu->misses)) {
			cpu->generation = 0;
			mw_log(rings->ctx, MEMWATCH_LOG_INFO, "CPU %u went offline", i);
		}
		cpu->misses = rings->misses[i];
		if (!rings->online[i])
			cpu->retry_ns = 0;
		else if (!cpu->generation)
			cpu_set_online(rings, i);
	}
}

uint32_t mw_bpf_rings_generation(const struct mw_bpf_rings *rings, unsigned int cpu)
{
	return rings->cpus[cpu].generation;
}

int mw_bpf_rings_index(const struct mw_bpf_rings *rings, unsigned int cpu)
{
	return rings->cpus[cpu].known ? (int)rings->cpus[cpu].index : -ENOENT;
}

unsigned int mw_bpf_rings_count(const struct mw_bpf_rings *rings)
{
	unsigned int count = 0;

	for (unsigned int cpu = 0; cpu < rings->nr_cpus; cpu++)
		count += !!rings->cpus[cpu].base;
	return count;
}

int mw_bpf_rings_wait(struct mw_bpf_rings *rings, int timeout_ms)
{
	struct epoll_event events[16];
	int n = epoll_wait(rings->epoll, events, 16, timeout_ms);

	return n < 0 ? -errno : n > 0;
}

int mw_bpf_rings_fd(const struct mw_bpf_rings *rings)
{
	return rings->epoll;
}

/* ----------------------------------------------------------------- lifetime */

static int open_rings(struct mw_bpf_rings *rings)
{
	int err = mw_cpus_online(rings->ctx, rings->online, rings->nr_cpus);

	for (unsigned int cpu = 0; !err && cpu < rings->nr_cpus; cpu++) {
		if (!rings->online[cpu])
			continue;
		err = ring_open(rings, cpu);
		if (err == -ENODEV)
			err = 0;
		else if (err)
			fail_ring(rings, cpu, err);
	}
	return err;
}

int mw_bpf_rings_open(struct memwatch_ctx *ctx, const struct mw_bpf_rings_opts *opts,
		      struct mw_merge *merge, struct mw_bpf_rings **ret)
{
	struct mw_bpf_rings *rings = calloc(1, sizeof(*rings));
	int cpus = libbpf_num_possible_cpus(), err;

	if (!rings)
		return mw_fail_memory(ctx, "cannot open the rings");
	rings->ctx = ctx;
	rings->merge = merge;
	rings->opts = *opts;
	rings->page_size = (size_t)sysconf(_SC_PAGESIZE);
	rings->bytes = (opts->pages + 1) * rings->page_size;
	rings->epoll = epoll_create1(EPOLL_CLOEXEC);
	rings->nr_cpus = cpus > 0 ? (unsigned int)cpus : 0;
	rings->cpus = calloc(rings->nr_cpus, sizeof(*rings->cpus));
	rings->online = calloc(rings->nr_cpus, sizeof(*rings->online));
	rings->counts = calloc(rings->nr_cpus, sizeof(*rings->counts));
	rings->misses = calloc(rings->nr_cpus, sizeof(*rings->misses));
	if (rings->epoll < 0 || !rings->nr_cpus || !rings->cpus || !rings->online ||
	    !rings->counts || !rings->misses)
		err = mw_fail(ctx, -ENOMEM,
			      "cannot open the rings: out of memory, or too many open files "
			      "(ulimit -n)");
	else
		err = open_rings(rings);
	if (err) {
		mw_bpf_rings_close(rings);
		return err;
	}
	*ret = rings;
	return 0;
}

void mw_bpf_rings_close(struct mw_bpf_rings *rings)
{
	if (!rings)
		return;
	for (unsigned int cpu = 0; rings->cpus && cpu < rings->nr_cpus; cpu++) {
		if (!rings->cpus[cpu].base)
			continue;
		munmap(rings->cpus[cpu].base, rings->bytes);
		close(rings->cpus[cpu].fd);
	}
	if (rings->epoll >= 0)
		close(rings->epoll);
	free(rings->cpus);
	free(rings->online);
	free(rings->counts);
	free(rings->misses);
	free(rings);
}
