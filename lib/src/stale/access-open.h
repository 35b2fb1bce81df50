/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Opening the perf events of access samples on one CPU, for a process that has not executed its
 * program yet. The events start when it does, and follow it across clone, fork and exec.
 */
#ifndef MW_STALE_ACCESS_OPEN_H
#define MW_STALE_ACCESS_OPEN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <linux/perf_event.h>

#include "stale/access-find.h"

/**
 * struct mw_access_mode - how events are opened; found by trying, the same on all CPUs
 * @pid: the process
 * @wakeup_bytes: unread bytes of a ring that wake up its reader
 * @user: the events leave out accesses by the kernel, because others are not permitted
 * @less_precise: by how much perf_event_attr.precise_ip is below that of the event
 * @counts_lost: the kernel counts lost records: commit 119a784c8127 ("perf/core: Add a new read
 *	format to get a number of lost samples"), PERF_FORMAT_LOST
 */
struct mw_access_mode {
	pid_t pid;
	uint32_t wakeup_bytes;
	bool user;
	int less_precise;
	bool counts_lost;
};

/* The attributes of @event, and those of its auxiliary event, which only counts. */
struct perf_event_attr mw_access_attr(const struct mw_access_mode *mode,
				      const struct mw_access_event *event, uint64_t period);
struct perf_event_attr mw_access_attr_aux(const struct mw_access_mode *mode,
					  const struct mw_access_event *event);

/* Whether a weaker mode may succeed where @mode failed with @err; changes @mode to it. */
bool mw_access_mode_weaken(struct mw_access_mode *mode, const struct mw_access_event *event,
			   int err);

/*
 * Opens the event that owns the ring of @cpu and records forks, exits, names, and maps. Returns a
 * descriptor or a negative errno. Changes @mode if the kernel does not count lost records.
 */
int mw_access_open_tracker(struct mw_access_mode *mode, unsigned int cpu);

/*
 * Opens @event on @cpu with output to the ring of @tracker. *@aux is the descriptor of the
 * auxiliary event, or -1. Returns a descriptor or a negative errno. Changes @mode if that helps.
 */
int mw_access_open_event(struct mw_access_mode *mode, const struct mw_access_event *event,
			 unsigned int cpu, int tracker, uint64_t period, int *aux);

#endif /* MW_STALE_ACCESS_OPEN_H */
