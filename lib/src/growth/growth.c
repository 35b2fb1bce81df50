// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The growth detectors on the host: finds the state of the process that a sample is
 * about, and feeds the sample to it. The detectors themselves are in bpf/growth.h only.
 */
#include <memwatch/growth.h>

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/context.h"
#include "base/index.h"
#include "growth/pages.h"
#include "growth/row.h"

/* A trace is an untrusted file: it must not take all memory. */
#define PROCESSES_MAX (1U << 20)

/**
 * struct process - one process of the trace
 * @tgid: process id
 * @comm: name at the last sample
 * @start_time_ns: start time; 0 if it is not known
 * @state: state of the detectors
 * @history: owned; NULL until the process has grown
 * @spans: owned; its notices and alerts in the order of their beginnings
 * @nr_spans: their number
 * @max_spans: how many fit
 */
struct process {
	__u32 tgid;
	char comm[MEMWATCH_GROWTH_COMM_MAX];
	__u64 start_time_ns;
	struct mw_growth state;
	struct mw_growth_history *history;
	struct memwatch_growth_span *spans;
	uint32_t nr_spans, max_spans;
};

/**
 * struct memwatch_growth - the detectors
 * @ctx: context, a reference
 * @processes: in the order of their first samples
 * @count: number of processes
 * @capacity: how many fit
 * @by_tgid: from a process id to the newest process with this id
 */
struct memwatch_growth {
	struct memwatch_ctx *ctx;
	struct process *processes;
	uint32_t count, capacity;
	struct mw_index by_tgid;
};

int memwatch_growth_new(struct memwatch_ctx *ctx, struct memwatch_growth **ret)
{
	struct memwatch_growth *growth = calloc(1, sizeof(*growth));

	if (!growth)
		return mw_fail_memory(ctx, "growth detectors");
	growth->ctx = memwatch_ctx_ref(ctx);
	mw_index_init(&growth->by_tgid);
	*ret = growth;
	return 0;
}

struct memwatch_growth *memwatch_growth_unref(struct memwatch_growth *growth)
{
	if (!growth)
		return NULL;
	for (uint32_t i = 0; i < growth->count; i++) {
		free(growth->processes[i].history);
		free(growth->processes[i].spans);
	}
	free(growth->processes);
	mw_index_free(&growth->by_tgid);
	memwatch_ctx_unref(growth->ctx);
	free(growth);
	return NULL;
}

static uint32_t tgid_hash(const struct memwatch_growth *growth, __u32 tgid)
{
	return mw_index_hash(&growth->by_tgid, tgid, 0);
}

/* The newest process with this id, or NULL. */
static struct process *process_find(struct memwatch_growth *growth, __u32 tgid)
{
	uint32_t at, number;

	mw_index_for_each (&growth->by_tgid, tgid_hash(growth, tgid), &at, number)
		if (growth->processes[number].tgid == tgid)
			return &growth->processes[number];
	return NULL;
}

static void sample_convert(const struct memwatch_growth_sample *from, struct mw_growth_sample *to)
{
	__u64 used = from->anon_bytes + from->shmem_bytes;

	*to = (struct mw_growth_sample){
		.time_ns = from->time_ns,
		.file = mw_pages_from_bytes(from->file_bytes),
		.anon = mw_pages_from_bytes(from->anon_bytes),
		.swap = mw_pages_from_bytes(from->swap_bytes),
		.shmem = mw_pages_from_bytes(from->shmem_bytes),
		.vsz = mw_pages_from_bytes(from->vsz_bytes),
		.headroom = MW_GROWTH_NO_LIMIT,
	};
	/* Swapped memory and mapped files, which can be read again, do not use the limit up. */
	if (from->limit_bytes != MEMWATCH_GROWTH_NONE)
		to->headroom = from->limit_bytes > used
				       ? mw_pages_from_bytes(from->limit_bytes - used)
				       : 0;
}

/* Is the sample about the same program, with no exec and no new process in between? */
static bool is_same_program(const struct process *p, const struct memwatch_growth_sample *sample,
			    __u32 signal)
{
	if (p->start_time_ns != sample->start_time_ns)
		return false;
	return !strcmp(p->comm, sample->comm) || signal >= p->state.signal;
}

/* @older is the process that had this id before, or NULL. */
static struct process *process_add(struct memwatch_growth *growth, const struct process *older,
				   const struct memwatch_growth_sample *sample, __u32 signal)
{
	uint32_t hash = tgid_hash(growth, sample->tgid), number = growth->count;
	uint32_t replaced = older ? (uint32_t)(older - growth->processes) : MW_INDEX_NONE;
	struct process *p;

	if (number == PROCESSES_MAX) {
		mw_fail(growth->ctx, -ENOMEM, "more than %u processes", PROCESSES_MAX);
		return NULL;
	}
	if (mw_array_reserve(growth->processes, growth->capacity, number + 1U) ||
	    (replaced == MW_INDEX_NONE && mw_index_insert(&growth->by_tgid, hash, number))) {
		mw_fail_memory(growth->ctx, "growth detectors");
		return NULL;
	}
	if (replaced != MW_INDEX_NONE)
		mw_index_renumber(&growth->by_tgid, hash, replaced, number);
	p = &growth->processes[growth->count++];
	memset(p, 0, sizeof(*p));
	p->tgid = sample->tgid;
	p->start_time_ns = sample->start_time_ns;
	mw_growth_init(&p->state, sample->time_ns, signal);
	return p;
}

/*
 * The state for a sample. After an exec a process is judged anew. If it had a notice or an
 * alert, it stays in the list as it was, and the new program gets a state of its own.
 */
static struct process *process_for_sample(struct memwatch_growth *growth,
					  const struct memwatch_growth_sample *sample, __u32 signal)
{
	struct process *p = process_find(growth, sample->tgid);

	if (!p || (!is_same_program(p, sample, signal) && p->nr_spans))
		return process_add(growth, p, sample, signal);
	if (!is_same_program(p, sample, signal)) {
		free(p->history);
		p->history = NULL;
		p->start_time_ns = sample->start_time_ns;
		mw_growth_init(&p->state, sample->time_ns, signal);
	}
	return p;
}

static int begin_span(struct memwatch_growth *growth, struct process *p, __u32 level)
{
	struct memwatch_growth_span span = {
		.sz = sizeof(span),
		.level = level,
		.start_ns = p->state.last_ns,
		.end_ns = MEMWATCH_GROWTH_NONE,
	};

	if (level == MEMWATCH_GROWTH_ALERT)
		span.reason = p->state.reason;
	if (mw_array_reserve(p->spans, p->max_spans, p->nr_spans + 1U))
		return mw_fail_memory(growth->ctx, "growth detectors");
	p->spans[p->nr_spans++] = span;
	return 0;
}

/* Ends the last span of the level, which holds. */
static void end_span(struct process *p, __u32 level)
{
	uint32_t i = p->nr_spans;

	while (i-- > 0)
		if (p->spans[i].level == level)
			break;
	p->spans[i].end_ns = p->state.last_ns;
}

static int keep_spans(struct memwatch_growth *growth, struct process *p, __u32 event)
{
	int err = 0;

	if (event & MEMWATCH_GROWTH_SETTLE)
		end_span(p, MEMWATCH_GROWTH_NOTICE);
	if (event & MEMWATCH_GROWTH_CLEAR)
		end_span(p, MEMWATCH_GROWTH_ALERT);
	if (event & MEMWATCH_GROWTH_NOTICE)
		err = begin_span(growth, p, MEMWATCH_GROWTH_NOTICE);
	if (!err && event & MEMWATCH_GROWTH_ALERT)
		err = begin_span(growth, p, MEMWATCH_GROWTH_ALERT);
	return err;
}

int memwatch_growth_feed(struct memwatch_growth *growth,
			 const struct memwatch_growth_sample *user_sample)
{
	struct memwatch_growth_sample copy, *sample = &copy;
	struct mw_growth_sample converted;
	struct process *p;
	__u32 event;
	int err = mw_opts_copy(growth->ctx, &copy, sizeof(copy), user_sample);

	if (err)
		return err;
	sample_convert(sample, &converted);
	p = process_for_sample(growth, sample, mw_growth_signal(&converted));
	if (!p)
		return -ENOMEM;
	if (sample->time_ns < p->state.last_ns)
		return mw_fail(growth->ctx, -EINVAL,
			       "process %u: the time of a sample is before that of the last one",
			       sample->tgid);
	memcpy(p->comm, sample->comm, sizeof(p->comm));
	event = mw_growth_feed(&p->state, p->history, &converted);
	if (p->state.flags & MW_GROWTH_F_HISTORY && !p->history) {
		p->history = calloc(1, sizeof(*p->history));
		if (!p->history)
			return mw_fail_memory(growth->ctx, "growth history");
		mw_growth_history_init(p->history, &p->state);
	}
	err = keep_spans(growth, p, event);
	return err ? err : (int)event;
}

int memwatch_growth_get_row(struct memwatch_growth *growth, unsigned int index,
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

int memwatch_growth_get_span(struct memwatch_growth *growth, unsigned int index, unsigned int span,
			     struct memwatch_growth_span *ret)
{
	const struct process *p;
	int err;

	if (index >= growth->count)
		return 0;
	p = &growth->processes[index];
	if (span >= p->nr_spans)
		return 0;
	err = mw_opts_export(ret, &p->spans[span], sizeof(p->spans[span]));
	return err ? err : 1;
}
