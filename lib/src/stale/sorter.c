// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The sorter of events.
 */
#include "stale/sorter.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/context.h"
#include "base/file-io.h"

/* Events of a run that are read at once while runs are merged. */
#define PIECE	     1024U

#define EVENTS_LEAST 4096U

/**
 * struct mw_sorter_run - a sorted run in the file
 * @piece: the events that were read last; owned
 * @at, @count: the current one, and how many there are
 * @offset: where the next ones are in the file
 * @left: how many they are
 */
struct mw_sorter_run {
	struct mw_event *piece;
	size_t at, count;
	uint64_t offset, left;
};

void mw_sorter_init(struct mw_sorter *sorter, struct memwatch_ctx *ctx,
		    const struct mw_sorter_place *place)
{
	/* qsort() needs as much again. */
	uint64_t limit = place->bytes / 2 / sizeof(struct mw_event);

	*sorter = (struct mw_sorter){
		.ctx = ctx,
		.place = *place,
		.limit = limit > EVENTS_LEAST ? limit : EVENTS_LEAST,
		.fd = -1,
	};
}

void mw_sorter_uninit(struct mw_sorter *sorter)
{
	for (size_t i = 0; i < sorter->nr_runs; i++)
		free(sorter->runs[i].piece);
	free(sorter->runs);
	free(sorter->events);
	if (sorter->fd >= 0 && !sorter->place.fd)
		close(sorter->fd);
	*sorter = (struct mw_sorter){ .fd = -1 };
}

static bool is_before(const struct mw_event *a, const struct mw_event *b)
{
	return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->sequence < b->sequence;
}

static int compare_events(const void *a, const void *b)
{
	return is_before(a, b) ? -1 : is_before(b, a);
}

static void sort_events(struct mw_sorter *sorter)
{
	size_t i = 1;

	while (i < sorter->count && is_before(&sorter->events[i - 1], &sorter->events[i]))
		i++;
	if (i < sorter->count)
		qsort(sorter->events, sorter->count, sizeof(*sorter->events), compare_events);
}

static int open_file(struct mw_sorter *sorter)
{
	if (sorter->fd >= 0)
		return 0;
	sorter->fd = sorter->place.fd;
	if (!sorter->fd)
		sorter->fd = open(sorter->place.directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (sorter->fd < 0) {
		int err = sorter->place.fd ? sorter->place.fd : -errno;

		return mw_fail(sorter->ctx, err, "%s: cannot create a file for sorting: %s",
			       sorter->place.directory, strerror(-err));
	}
	return 0;
}

static int write_all(struct mw_sorter *sorter, const void *bytes, size_t len)
{
	int err = mw_file_write_at(sorter->fd, bytes, len, sorter->size);

	if (err)
		return mw_fail(sorter->ctx, err, "%s: cannot write a file for sorting: %s",
			       sorter->place.directory, strerror(-err));
	sorter->size += len;
	return 0;
}

/* Writes the events in memory to the file as a sorted run. */
static int spill_events(struct mw_sorter *sorter)
{
	struct mw_sorter_run run = { .offset = sorter->size, .left = sorter->count };
	int err = open_file(sorter);

	if (!err && mw_array_reserve(sorter->runs, sorter->runs_capacity, sorter->nr_runs + 1))
		err = mw_fail_memory(sorter->ctx, "sorting");
	if (err)
		return err;
	sort_events(sorter);
	err = write_all(sorter, sorter->events, sorter->count * sizeof(*sorter->events));
	if (err)
		return err;
	sorter->runs[sorter->nr_runs++] = run;
	sorter->count = 0;
	return 0;
}

int mw_sorter_add(struct mw_sorter *sorter, const struct mw_event *event)
{
	if (sorter->count == sorter->limit) {
		int err = spill_events(sorter);

		if (err)
			return err;
	}
	if (mw_array_reserve(sorter->events, sorter->capacity, sorter->count + 1))
		return mw_fail_memory(sorter->ctx, "sorting");
	sorter->events[sorter->count++] = *event;
	sorter->added++;
	return 0;
}

/* Reads more events of a run that has some. */
static int read_piece(struct mw_sorter *sorter, struct mw_sorter_run *run)
{
	size_t count = run->left < PIECE ? (size_t)run->left : PIECE;
	size_t len = count * sizeof(*run->piece);
	ssize_t n = mw_file_read_at(sorter->fd, run->piece, len, run->offset);

	if (n != (ssize_t)len)
		return mw_fail(sorter->ctx, n < 0 ? (int)n : -EIO,
			       "%s: cannot read the file for sorting: %s", sorter->place.directory,
			       n < 0 ? strerror((int)-n) : "it is too short");
	run->at = 0;
	run->count = count;
	run->offset += len;
	run->left -= count;
	return 0;
}

static const struct mw_event *first_of(const struct mw_sorter_run *run)
{
	return &run->piece[run->at];
}

/* Moves run @i of the heap down to its place. */
static void sift_down(struct mw_sorter *sorter, size_t i)
{
	struct mw_sorter_run run = sorter->runs[i];

	for (;;) {
		size_t child = 2 * i + 1;

		if (child + 1 < sorter->nr_runs &&
		    is_before(first_of(&sorter->runs[child + 1]), first_of(&sorter->runs[child])))
			child++;
		if (child >= sorter->nr_runs ||
		    is_before(first_of(&run), first_of(&sorter->runs[child])))
			break;
		sorter->runs[i] = sorter->runs[child];
		i = child;
	}
	sorter->runs[i] = run;
}

int mw_sorter_finish(struct mw_sorter *sorter)
{
	int err = 0;

	if (!sorter->nr_runs) {
		sort_events(sorter);
		return 0;
	}
	if (sorter->count)
		err = spill_events(sorter);
	free(sorter->events);
	sorter->events = NULL;
	sorter->capacity = 0;
	for (size_t i = 0; !err && i < sorter->nr_runs; i++) {
		sorter->runs[i].piece = calloc(PIECE, sizeof(struct mw_event));
		err = sorter->runs[i].piece ? read_piece(sorter, &sorter->runs[i])
					    : mw_fail_memory(sorter->ctx, "sorting");
	}
	for (size_t i = sorter->nr_runs / 2; !err && i-- > 0;)
		sift_down(sorter, i);
	return err;
}

static int next_of_runs(struct mw_sorter *sorter, struct mw_event *event)
{
	struct mw_sorter_run *top = sorter->runs;
	int err = 0;

	*event = *first_of(top);
	if (++top->at == top->count) {
		if (top->left) {
			err = read_piece(sorter, top);
		} else {
			free(top->piece);
			*top = sorter->runs[--sorter->nr_runs];
		}
	}
	if (!err && sorter->nr_runs)
		sift_down(sorter, 0);
	return err ? err : 1;
}

int mw_sorter_next(struct mw_sorter *sorter, struct mw_event *event)
{
	if (sorter->taken == sorter->added)
		return 0;
	sorter->taken++;
	if (sorter->nr_runs)
		return next_of_runs(sorter, event);
	*event = sorter->events[sorter->taken - 1];
	return 1;
}
