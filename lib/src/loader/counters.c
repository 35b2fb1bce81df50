// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Hardware counters of CPUs that go online and offline, see counters.h.
 */
#include "loader/counters.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memwatch/metric.h>
#include <memwatch/value.h>

#include "base/context.h"
#include "base/timemath.h"
#include "bpf/relay.h"
#include "loader/libbpf.h"

/*
 * How long to wait before it is seen whether a program has failed to read, first and at most: an
 * idle CPU runs no program.
 */
#define WAIT_FIRST_NS 3000000ULL
#define WAIT_MOST_NS  1000000000ULL

/**
 * struct cpu - a possible CPU
 * @open: the counters are open
 * @unread: how often the programs had failed to read them when they were closed
 * @wait_ns: how long to wait before the next look
 * @look_ns: when that is
 */
struct cpu {
	bool open;
	uint64_t unread;
	uint64_t wait_ns;
	uint64_t look_ns;
};

struct mw_bpf_counters {
	struct memwatch_ctx *ctx;
	const struct mw_bpf_programs *programs;
	struct cpu *cpus;
	unsigned int nr_cpus;
	uint64_t *counts; /* scratch, one element per CPU */
	struct memwatch_availability available[MEMWATCH_COUNTER_MAX];
	char reasons[MEMWATCH_COUNTER_MAX][160];
};

const char *mw_bpf_counters_reason(int err)
{
	switch (err) {
	case -ENOENT:
	case -EOPNOTSUPP:
	case -ENODEV:
	case -ENXIO:
		return "the processor, or the virtual machine, has no such hardware counter";
	case -EACCES:
	case -EPERM:
		return "not permitted: needs root, or CAP_PERFMON and "
		       "kernel.perf_event_paranoid of at most 2";
	case -EBUSY:
		return "the counter is in use by somebody else";
	case -ENOSYS:
		return "this kernel has no performance events";
	case -EMFILE:
	case -ENFILE:
		return "too many open files";
	default:
		return strerror(-err);
	}
}

int mw_bpf_counters_new(struct memwatch_ctx *ctx, const struct mw_bpf_programs *programs,
			unsigned int nr_cpus, struct mw_bpf_counters **ret)
{
	struct mw_bpf_counters *counters = calloc(1, sizeof(*counters));

	if (!counters)
		return -ENOMEM;
	counters->ctx = ctx;
	counters->programs = programs;
	counters->nr_cpus = nr_cpus;
	counters->cpus = calloc(nr_cpus, sizeof(*counters->cpus));
	counters->counts = calloc(nr_cpus, sizeof(*counters->counts));
	if (!counters->cpus || !counters->counts) {
		mw_bpf_counters_free(counters);
		return -ENOMEM;
	}
	*ret = counters;
	return 0;
}

void mw_bpf_counters_free(struct mw_bpf_counters *counters)
{
	if (!counters)
		return;
	free(counters->cpus);
	free(counters->counts);
	free(counters);
}

void mw_bpf_counters_available(const struct mw_bpf_counters *counters, unsigned int counter,
			       struct memwatch_availability *ret)
{
	*ret = counters->available[counter];
}

static int event_open(unsigned int counter, unsigned int cpu)
{
	const struct memwatch_metric_info *metric = memwatch_metric_find(MEMWATCH_METRIC_COUNTER,
									 counter);
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = metric->event_type,
		.config = metric->event_config,
	};
	int fd;

	fd = (int)syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* The map with the perf events of a counter has the name of the counter. */
static int counter_map(const struct mw_bpf_counters *counters, unsigned int counter)
{
	return bpf_object__find_map_fd_by_name(counters->programs->obj,
					       memwatch_counter_name(counter));
}

uint32_t mw_bpf_counters_probe(struct mw_bpf_counters *counters, const uint8_t *online)
{
	uint32_t mask = 0;

	for (unsigned int i = 0; i < MEMWATCH_COUNTER_MAX; i++) {
		int first = 0, fd = -ENODEV;

		for (unsigned int cpu = 0; cpu < counters->nr_cpus && fd < 0; cpu++) {
			if (!online[cpu])
				continue;
			fd = event_open(i, cpu);
			if (fd < 0 && !first)
				first = fd;
		}
		counters->available[i].reason = "";
		if (fd >= 0) {
			close(fd);
			mask |= 1U << i;
			counters->available[i].status = MEMWATCH_STATUS_OK;
			continue;
		}
		snprintf(counters->reasons[i], sizeof(counters->reasons[i]), "%s",
			 mw_bpf_counters_reason(first ? first : fd));
		counters->available[i].status = MEMWATCH_STATUS_UNAVAILABLE;
		counters->available[i].reason = counters->reasons[i];
		mw_log(counters->ctx, MEMWATCH_LOG_INFO, "%s: unavailable: %s",
		       memwatch_counter_name(i), counters->reasons[i]);
	}
	return mask;
}

/* The map keeps a reference to the event, so its descriptor can be closed. */
void mw_bpf_counters_open(struct mw_bpf_counters *counters, unsigned int cpu)
{
	for (unsigned int i = 0; i < MEMWATCH_COUNTER_MAX; i++) {
		int fd, err;

		if (counters->available[i].status == MEMWATCH_STATUS_UNAVAILABLE)
			continue;
		fd = event_open(i, cpu);
		err = fd;
		if (fd >= 0) {
			err = bpf_map_update_elem(counter_map(counters, i), &cpu, &fd, BPF_ANY);
			close(fd);
		}
		if (err < 0 && counters->available[i].status == MEMWATCH_STATUS_OK) {
			snprintf(counters->reasons[i], sizeof(counters->reasons[i]),
				 "not on CPU %u: %s", cpu, mw_bpf_counters_reason(err));
			counters->available[i].status = MEMWATCH_STATUS_ESTIMATED;
			counters->available[i].reason = counters->reasons[i];
			mw_log(counters->ctx, MEMWATCH_LOG_WARNING, "%s: %s",
			       memwatch_counter_name(i), counters->reasons[i]);
		}
	}
	counters->cpus[cpu].open = true;
}

/*
 * How often the programs have failed on @cpu to read the first counter that they read. They read
 * the others behind it.
 */
static uint64_t count_unread(struct mw_bpf_counters *counters, unsigned int cpu)
{
	uint32_t what = MW_RELAY_FAIL_READ;

	while (what < MW_RELAY_FAIL_MAX &&
	       counters->available[what - MW_RELAY_FAIL_READ].status == MEMWATCH_STATUS_UNAVAILABLE)
		what++;
	if (what == MW_RELAY_FAIL_MAX ||
	    bpf_map_lookup_elem(bpf_map__fd(counters->programs->failures), &what, counters->counts))
		return 0;
	return counters->counts[cpu];
}

void mw_bpf_counters_close(struct mw_bpf_counters *counters, unsigned int cpu, uint64_t now_ns)
{
	struct cpu *here = &counters->cpus[cpu];

	if (!here->open)
		return;
	for (unsigned int i = 0; i < MEMWATCH_COUNTER_MAX; i++)
		bpf_map_delete_elem(counter_map(counters, i), &cpu);
	here->open = false;
	here->unread = count_unread(counters, cpu);
	here->wait_ns = WAIT_FIRST_NS;
	here->look_ns = mw_add_sat(now_ns, here->wait_ns);
}

uint64_t mw_bpf_counters_reopen(struct mw_bpf_counters *counters, unsigned int cpu, uint64_t now_ns)
{
	struct cpu *here = &counters->cpus[cpu];

	if (here->open)
		return MW_TIME_MAX;
	if (now_ns < here->look_ns)
		return here->look_ns;
	if (here->wait_ns && count_unread(counters, cpu) == here->unread) {
		here->wait_ns = mw_min_u64(2 * here->wait_ns, WAIT_MOST_NS);
		here->look_ns = mw_add_sat(now_ns, here->wait_ns);
		return here->look_ns;
	}
	mw_bpf_counters_open(counters, cpu);
	return MW_TIME_MAX;
}
