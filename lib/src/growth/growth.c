// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The detectors on the host: which state belongs to which sample. What is made
 * of it is in bpf/growth.h and nowhere else.
 */
#include <memwatch/growth.h>

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/context.h"
#include "growth/row.h"

/* A trace is somebody else's file: it must not take all memory. */
#define PROCESSES_MAX (1U << 20)

/**
 * struct process - one process
 * @history: NULL as long as it has not grown
 */
struct process {
	__u32 tgid;
	char comm[MEMWATCH_GROWTH_COMM_MAX];
	__u64 start_time_ns;
	struct mw_growth state;
	struct mw_growth_history *history;
};

/**
 * struct memwatch_growth - the detectors
 * @slots: hash of the process ids: index of the newest process with the id,
 *	plus 1; linear probing, never more than half full
 */
struct memwatch_growth {
	struct memwatch_ctx *ctx;
	struct process *processes;
	uint32_t count, room;
	uint32_t *slots;
	uint32_t nr_slots;
};

int memwatch_growth_new(struct memwatch_ctx *ctx, struct memwatch_growth **ret)
{
	struct memwatch_growth *growth = calloc(1, sizeof(*growth));

	if (!growth)
		return mw_fail(ctx, -ENOMEM, "out of memory");
	growth->ctx = memwatch_ctx_ref(ctx);
	*ret = growth;
	return 0;
}

struct memwatch_growth *memwatch_growth_unref(struct memwatch_growth *growth)
{
	if (!growth)
		return NULL;
	for (uint32_t i = 0; i < growth->count; i++)
		free(growth->processes[i].history);
	free(growth->processes);
	free(growth->slots);
	memwatch_ctx_unref(growth->ctx);
	free(growth);
	return NULL;
}

/* The slot of a process id, or the free one where it belongs. */
static uint32_t *find_slot(struct memwatch_growth *growth, __u32 tgid)
{
	uint32_t mask = growth->nr_slots - 1, at = tgid * 2654435761U & mask;

	while (growth->slots[at] && growth->processes[growth->slots[at] - 1].tgid != tgid)
		at = (at + 1) & mask;
	return &growth->slots[at];
}

static int make_room(struct memwatch_growth *growth)
{
	uint32_t room = growth->room ? growth->room * 2 : 64;
	struct process *processes;
	uint32_t *slots;

	if (growth->count < growth->room)
		return 0;
	if (room > PROCESSES_MAX)
		return mw_fail(growth->ctx, -ENOMEM, "more than %u processes", PROCESSES_MAX / 2);
	processes = realloc(growth->processes, room * sizeof(*processes));
	if (!processes)
		return mw_fail(growth->ctx, -ENOMEM, "out of memory");
	growth->processes = processes;
	slots = calloc((size_t)room * 2, sizeof(*slots));
	if (!slots)
		return mw_fail(growth->ctx, -ENOMEM, "out of memory");
	free(growth->slots);
	growth->slots = slots;
	growth->nr_slots = room * 2;
	growth->room = room;
	/* In order: of several with one id the newest stays in the slot. */
	for (uint32_t i = 0; i < growth->count; i++)
		*find_slot(growth, processes[i].tgid) = i + 1;
	return 0;
}

static __u32 pages_of(__u64 bytes)
{
	__u64 pages = bytes >> MW_GROWTH_PAGE_SHIFT;

	return pages >= MW_GROWTH_NO_LIMIT ? MW_GROWTH_NO_LIMIT - 1 : (__u32)pages;
}

static void convert(const struct memwatch_growth_sample *from, struct mw_growth_sample *to)
{
	__u64 used = from->anon_bytes + from->shmem_bytes;

	*to = (struct mw_growth_sample){
		.time_ns = from->time_ns,
		.file = pages_of(from->file_bytes),
		.anon = pages_of(from->anon_bytes),
		.swap = pages_of(from->swap_bytes),
		.shmem = pages_of(from->shmem_bytes),
		.vsz = pages_of(from->vsz_bytes),
		.headroom = MW_GROWTH_NO_LIMIT,
		.address_headroom = MW_GROWTH_NO_LIMIT,
	};
	/* What is swapped out or can be read from files again does not press on the limit. */
	if (from->limit_bytes != MEMWATCH_GROWTH_NONE)
		to->headroom = from->limit_bytes > used ? pages_of(from->limit_bytes - used) : 0;
}

/* Is it the same program still? */
static bool is_same(const struct process *p, const struct memwatch_growth_sample *sample,
		    __u32 signal)
{
	if (p->start_time_ns != sample->start_time_ns)
		return false;
	return !strcmp(p->comm, sample->comm) || signal >= p->state.signal;
}

static struct process *add(struct memwatch_growth *growth,
			   const struct memwatch_growth_sample *sample, __u32 signal)
{
	struct process *p;

	if (make_room(growth))
		return NULL;
	p = &growth->processes[growth->count];
	memset(p, 0, sizeof(*p));
	p->tgid = sample->tgid;
	p->start_time_ns = sample->start_time_ns;
	mw_growth_init(&p->state, sample->time_ns, signal);
	*find_slot(growth, sample->tgid) = ++growth->count;
	return p;
}

/*
 * An exec makes another program of a process: what was known of it goes, unless
 * somebody was told of it; then it stays in the list, as the one it was.
 */
static struct process *find(struct memwatch_growth *growth,
			    const struct memwatch_growth_sample *sample, __u32 signal)
{
	struct process *p = NULL;
	uint32_t index;

	if (growth->nr_slots) {
		index = *find_slot(growth, sample->tgid);
		p = index ? &growth->processes[index - 1] : NULL;
	}
	if (!p || (!is_same(p, sample, signal) && p->state.alert_ns))
		return add(growth, sample, signal);
	if (!is_same(p, sample, signal)) {
		free(p->history);
		p->history = NULL;
		p->start_time_ns = sample->start_time_ns;
		mw_growth_init(&p->state, sample->time_ns, signal);
	}
	return p;
}

int memwatch_growth_feed(struct memwatch_growth *growth,
			 const struct memwatch_growth_sample *sample)
{
	struct mw_growth_sample converted;
	struct process *p;
	__u32 event;

	convert(sample, &converted);
	p = find(growth, sample, mw_growth_signal(&converted));
	if (!p)
		return -ENOMEM;
	if (sample->time_ns < p->state.last_ns)
		return mw_fail(growth->ctx, -EINVAL, "process %u: time goes back", sample->tgid);
	memcpy(p->comm, sample->comm, sizeof(p->comm));
	event = mw_growth_feed(&p->state, p->history, &converted);
	if (p->state.flags & MW_GROWTH_F_HISTORY && !p->history) {
		p->history = calloc(1, sizeof(*p->history));
		if (!p->history)
			return mw_fail(growth->ctx, -ENOMEM, "out of memory");
		mw_growth_history_init(p->history, &p->state);
	}
	return (int)event;
}

int memwatch_growth_row(struct memwatch_growth *growth, unsigned int index,
			struct memwatch_growth_row *ret)
{
	MEMWATCH_OPTS(memwatch_growth_row, row);
	const struct process *p;
	int err;

	if (index >= growth->count)
		return 0;
	p = &growth->processes[index];
	row.tgid = p->tgid;
	row.start_time_ns = p->start_time_ns;
	memcpy(row.comm, p->comm, sizeof(row.comm));
	mw_growth_row_fill(&row, &p->state, p->history);
	err = mw_opts_export(ret, &row, sizeof(row));
	return err ? err : 1;
}
