/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Brings events into the order of time; those of the same time stay in the order of the input.
 * Events that do not fit into the memory are written to a file without a name in sorted runs, which
 * are merged at the end.
 */
#ifndef MW_STALE_SORTER_H
#define MW_STALE_SORTER_H

#include <memwatch/ctx.h>

#include "stale/sim.h"

struct mw_sorter_run;

/**
 * struct mw_sorter_place - where events are while they are sorted
 * @bytes: how much memory to use
 * @directory: where the file is; not owned
 * @fd: the file, not owned; 0: it is created when it is needed; or a negative errno: there is none
 */
struct mw_sorter_place {
	uint64_t bytes;
	const char *directory;
	int fd;
};

/**
 * struct mw_sorter - the sorter
 * @ctx: context, not owned
 * @place: where the file is
 * @events: the events in memory; owned
 * @count, @capacity: of @events
 * @limit: most events in memory
 * @fd: the file, or -1
 * @size: of the file
 * @runs: the runs in it; while they are merged, a heap with the earliest event on top; owned
 * @nr_runs, @runs_capacity: of @runs
 * @added: events that were added
 * @taken: events that were taken
 */
struct mw_sorter {
	struct memwatch_ctx *ctx;
	struct mw_sorter_place place;
	struct mw_event *events;
	size_t count, capacity, limit;
	int fd;
	uint64_t size;
	struct mw_sorter_run *runs;
	size_t nr_runs, runs_capacity;
	uint64_t added, taken;
};

void mw_sorter_init(struct mw_sorter *sorter, struct memwatch_ctx *ctx,
		    const struct mw_sorter_place *place);
void mw_sorter_uninit(struct mw_sorter *sorter);

/* Adds an event. Returns 0, -ENOMEM or any errno of open() and write(). */
int mw_sorter_add(struct mw_sorter *sorter, const struct mw_event *event);

/* After the last event was added. Returns 0, -ENOMEM or any errno of write() and read(). */
int mw_sorter_finish(struct mw_sorter *sorter);

/* The next event. Returns 1, 0 at the end, or any errno of read(). */
int mw_sorter_next(struct mw_sorter *sorter, struct mw_event *event);

#endif /* MW_STALE_SORTER_H */
