// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Opening of perf events, see access-open.h.
 */
#include "stale/access-open.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "stale/access-ring.h"

static int open_attr(struct perf_event_attr *attr, const struct mw_access_mode *mode,
		     unsigned int cpu, int group)
{
	int fd = (int)syscall(SYS_perf_event_open, attr, mode->pid, (int)cpu, group,
			      PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/*
 * What all events have in common. An event that is inherited can be mapped only if it belongs to a
 * CPU (perf_mmap() in kernel/events/core.c), so each CPU has events and a ring of its own.
 */
static struct perf_event_attr common_attr(const struct mw_access_mode *mode)
{
	return (struct perf_event_attr){
		.size = sizeof(struct perf_event_attr),
		.sample_type = MW_ACCESS_SAMPLE_TYPE,
		.read_format = mode->counts_lost ? PERF_FORMAT_LOST : 0,
		.disabled = 1,
		.enable_on_exec = 1,
		.inherit = 1,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = mode->wakeup_bytes,
	};
}

int mw_access_open_tracker(struct mw_access_mode *mode, unsigned int cpu)
{
	struct perf_event_attr attr = common_attr(mode);
	int fd;

	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_DUMMY;
	attr.exclude_kernel = 1;
	attr.exclude_hv = 1;
	attr.mmap = 1;
	attr.mmap2 = 1;
	attr.comm = 1;
	attr.comm_exec = 1;
	attr.task = 1;
	fd = open_attr(&attr, mode, cpu, -1);
	if (fd != -EINVAL || !mode->counts_lost)
		return fd;
	mode->counts_lost = false;
	attr.read_format = 0;
	return open_attr(&attr, mode, cpu, -1);
}

struct perf_event_attr mw_access_attr(const struct mw_access_mode *mode,
				      const struct mw_access_event *event, uint64_t period)
{
	struct perf_event_attr attr = common_attr(mode);
	const struct mw_pmu_config *config = &event->config;

	if (mode->user && event->kernel == MW_ACCESS_KERNEL_FILTER)
		config = &event->filter;
	attr.type = event->type;
	attr.config = config->word[0];
	attr.config1 = config->word[1];
	attr.config2 = config->word[2];
	attr.sample_period = period;
	attr.precise_ip = (unsigned int)(event->precise - mode->less_precise) & 3;
	attr.exclude_kernel = mode->user;
	attr.exclude_hv = mode->user;
	attr.exclude_guest = event->exclude_guest;
	return attr;
}

struct perf_event_attr mw_access_attr_aux(const struct mw_access_mode *mode,
					  const struct mw_access_event *event)
{
	struct perf_event_attr attr = mw_access_attr(mode, event, 0);

	attr.config = event->aux.word[0];
	attr.config1 = event->aux.word[1];
	attr.config2 = event->aux.word[2];
	/* x86_pmu_hw_config() refuses precise events that do not sample */
	attr.precise_ip = 0;
	return attr;
}

static int open_once(const struct mw_access_mode *mode, const struct mw_access_event *event,
		     unsigned int cpu, uint64_t period, int *aux)
{
	struct perf_event_attr attr = mw_access_attr(mode, event, period);
	int fd;

	*aux = -1;
	if (event->has_aux) {
		struct perf_event_attr aux_attr = mw_access_attr_aux(mode, event);

		fd = open_attr(&aux_attr, mode, cpu, -1);
		if (fd < 0)
			return fd;
		*aux = fd;
	}
	fd = open_attr(&attr, mode, cpu, *aux);
	if (fd < 0 && *aux >= 0) {
		close(*aux);
		*aux = -1;
	}
	return fd;
}

bool mw_access_mode_weaken(struct mw_access_mode *mode, const struct mw_access_event *event,
			   int err)
{
	if ((err == -EACCES || err == -EPERM) && !mode->user &&
	    event->kernel != MW_ACCESS_KERNEL_NEVER) {
		mode->user = true;
		return true;
	}
	if ((err == -EINVAL || err == -EOPNOTSUPP) && event->precise - mode->less_precise > 1) {
		mode->less_precise++;
		return true;
	}
	return false;
}

int mw_access_open_event(struct mw_access_mode *mode, const struct mw_access_event *event,
			 unsigned int cpu, int tracker, uint64_t period, int *aux)
{
	int fd;

	do {
		fd = open_once(mode, event, cpu, period, aux);
	} while (fd < 0 && mw_access_mode_weaken(mode, event, fd));
	if (fd < 0 || !ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, tracker))
		return fd;
	tracker = -errno;
	close(fd);
	if (*aux >= 0)
		close(*aux);
	*aux = -1;
	return tracker;
}
