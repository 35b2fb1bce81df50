// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The growth detectors on the host: finds the state of the process that a sample is
 * about, and feeds the sample to it. The detectors themselves are in bpf/growth.h only.
 */
#include <memwatch/growth.h>
#include <memwatch/groups.h>

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/context.h"
#include "base/index.h"
#include "growth/groups.h"
#include "growth/pages.h"
#include "growth/past.h"
#include "growth/programs.h"
#include "growth/row.h"
#include "growth/spans.h"

/* A trace is an untrusted file: it must not take all memory. */
#define PROCESSES_MAX (1U << 20)

/**
 * struct process - one process of the trace
 * @tgid: process id
 * @comm: name at the last sample
 * @start_time_ns: start time; 0 if it is not known
 * @cgroup: owned; its cgroup at the last sample, or NULL
 * @shmem: pages of shared memory at the last sample
 * @signal_before: signal at the last sample before the notice
 * @cold_before: pages of cold memory then, if that is known
 * @touch: what was known of its pages at the last sample
 * @state: state of the detectors
 * @history: owned; NULL until the process has grown
 * @spans: its notices and alerts
 */
struct process {
	__u32 tgid;
	char comm[MEMWATCH_GROWTH_COMM_MAX];
	__u64 start_time_ns;
	char *cgroup;
	__u32 shmem;
	__u32 signal_before;
	__u32 cold_before;
	struct mw_growth_touch touch;
	struct mw_growth state;
	struct mw_growth_history *history;
	struct mw_spans spans;
};

/**
 * struct memwatch_growth - the detectors
 * @ctx: context, a reference
 * @processes: in the order of their first samples
 * @count: number of processes
 * @capacity: how many fit
 * @by_tgid: from a process id to the newest process with this id
 * @programs: those that have reached their limit
 * @groups: the cgroups and the machine
 */
struct memwatch_growth {
	struct memwatch_ctx *ctx;
	struct process *processes;
	uint32_t count, capacity;
	struct mw_index by_tgid;
	struct mw_programs programs;
	struct mw_groups groups;
};

/* The part of the growth of a process that is memory of the class. */
static __u32 part_of_class(const struct process *p, unsigned int class, __u64 since_ns)
{
	__u32 growth = mw_past_growth(&p->state, p->history, since_ns);
	__u32 pages = class == MEMWATCH_CLASS_SHMEM ? p->shmem
						    : mw_growth_sub_sat(p->state.signal, p->shmem);

	return growth < pages ? growth : pages;
}

static bool blame_process(void *userdata, const struct mw_group_class *class, uint64_t since_ns,
			  uint32_t least, struct mw_group_by *ret)
{
	const struct memwatch_growth *growth = userdata;
	const char *path = class->group->path;

	for (uint32_t i = 0; i < growth->count; i++) {
		const struct process *p = &growth->processes[i];
		__u32 pages;

		if (p->state.last_ns + MW_GROUP_CURRENT_NS < growth->groups.now ||
		    !mw_group_contains(path, p->cgroup ? p->cgroup : ""))
			continue;
		pages = part_of_class(p, class->class, since_ns);
		if (pages < least || pages <= ret->pages)
			continue;
		ret->tgid = p->tgid;
		ret->pages = pages;
		memcpy(ret->comm, p->comm, sizeof(ret->comm));
	}
	return ret->pages;
}

int memwatch_growth_new(struct memwatch_ctx *ctx, struct memwatch_growth **ret)
{
	struct memwatch_growth *growth = calloc(1, sizeof(*growth));

	if (!growth)
		return mw_fail_memory(ctx, "growth detectors");
	growth->ctx = memwatch_ctx_ref(ctx);
	mw_index_init(&growth->by_tgid);
	mw_programs_init(&growth->programs);
	growth->groups = (struct mw_groups){
		.ctx = ctx,
		.blame = blame_process,
		.userdata = growth,
	};
	mw_groups_init(&growth->groups);
	*ret = growth;
	return 0;
}

struct memwatch_growth *memwatch_growth_unref(struct memwatch_growth *growth)
{
	if (!growth)
		return NULL;
	for (uint32_t i = 0; i < growth->count; i++) {
		free(growth->processes[i].cgroup);
		free(growth->processes[i].history);
		mw_spans_free(&growth->processes[i].spans);
	}
	mw_groups_uninit(&growth->groups);
	mw_programs_uninit(&growth->programs);
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
		.touch = {
			.gained = mw_pages_from_bytes(from->gained_bytes),
			.cold = mw_pages_from_bytes(from->cold_bytes),
			.cold_low = mw_pages_from_bytes(from->cold_low_bytes),
			.cold_high = mw_pages_from_bytes(from->cold_high_bytes),
			.untouched_s = (__u32)(from->untouched_ns / MW_GROWTH_SECOND),
		},
	};
	/* Swapped memory and mapped files, which can be read again, do not use the limit up. */
	if (from->limit_bytes != MEMWATCH_GROWTH_NONE)
		to->headroom = from->limit_bytes > used
				       ? mw_pages_from_bytes(from->limit_bytes - used)
				       : 0;
}

/*
 * If only all cold memory of a process is known, what it has gained since its notice is taken to be
 * the growth of the signal, and as much of that to be cold as the cold memory has grown by.
 */
static void derive_touch(struct process *p, const struct memwatch_growth_sample *from,
			 struct mw_growth_sample *sample)
{
	__u32 signal = mw_growth_signal(sample), cold = mw_pages_from_bytes(from->cold_bytes);
	struct mw_growth_touch *touch = &sample->touch;

	if (from->gained_bytes != MEMWATCH_GROWTH_NONE)
		return;
	memset(touch, 0, sizeof(*touch));
	if (!(p->state.flags & MW_GROWTH_F_NOTICE)) {
		p->signal_before = signal;
		p->cold_before = cold;
		return;
	}
	touch->gained = mw_growth_sub_sat(signal, p->signal_before);
	cold = mw_growth_sub_sat(cold, p->cold_before);
	touch->cold = cold < touch->gained ? cold : touch->gained;
	touch->cold_low = touch->cold_high = touch->cold;
	touch->untouched_s = 60;
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
				   __u32 tgid)
{
	uint32_t hash = tgid_hash(growth, tgid), number = growth->count;
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
	p->tgid = tgid;
	return p;
}

/* Begins the state of @p with the first sample of a process, or of a program after an exec. */
static void process_begin(struct process *p, const struct memwatch_growth_sample *sample,
			  __u32 signal)
{
	free(p->history);
	p->history = NULL;
	p->start_time_ns = sample->start_time_ns;
	mw_growth_init(&p->state, sample->time_ns, signal);
}

/* Ends the notice and the alert of a program that is replaced, as the kernel does. */
static void process_end(struct memwatch_growth *growth, struct process *p, __u64 now_ns)
{
	unsigned int event = (p->state.flags & MW_GROWTH_F_NOTICE ? MW_GROWTH_EVENT_SETTLE : 0) |
			     (p->state.flags & MW_GROWTH_F_ALERT ? MW_GROWTH_EVENT_CLEAR : 0);

	/* What ends needs no memory. */
	mw_spans_note(growth->ctx, &p->spans, event, now_ns, NULL);
	p->state.flags &= ~(MW_GROWTH_F_NOTICE | MW_GROWTH_F_ALERT);
	p->state.reason = MW_GROWTH_NONE;
	p->state.verdict = MW_GROWTH_INSUFFICIENT;
	p->state.confidence = mw_growth_calibrated_confidence(0);
}

/*
 * The state for a sample. After an exec a process is judged anew. If it had a notice or an
 * alert, it stays in the list with them, and the new program gets a state of its own.
 */
static struct process *process_for_sample(struct memwatch_growth *growth,
					  const struct memwatch_growth_sample *sample, __u32 signal)
{
	struct process *p = process_find(growth, sample->tgid);

	if (p && is_same_program(p, sample, signal))
		return p;
	if (p && p->spans.nr)
		process_end(growth, p, sample->time_ns);
	if (!p || p->spans.nr)
		p = process_add(growth, p, sample->tgid);
	if (p)
		process_begin(p, sample, signal);
	return p;
}

static int set_cgroup(struct memwatch_growth *growth, struct process *p, const char *cgroup)
{
	char *copy;

	if (!cgroup || (p->cgroup && !strcmp(p->cgroup, cgroup)))
		return 0;
	copy = strdup(cgroup);
	if (!copy)
		return mw_fail_memory(growth->ctx, "growth detectors");
	free(p->cgroup);
	p->cgroup = copy;
	return 0;
}

static int feed_process(struct memwatch_growth *growth, const struct memwatch_growth_sample *sample)
{
	MEMWATCH_OPTS(memwatch_growth_row, row);
	struct mw_growth_sample converted;
	struct process *p;
	__u32 event;
	int err;

	sample_convert(sample, &converted);
	p = process_for_sample(growth, sample, mw_growth_signal(&converted));
	if (!p)
		return -ENOMEM;
	if (sample->time_ns < p->state.last_ns)
		return mw_fail(growth->ctx, -EINVAL,
			       "process %u: the time of a sample is before that of the last one",
			       sample->tgid);
	memcpy(p->comm, sample->comm, sizeof(p->comm));
	p->shmem = converted.shmem;
	err = set_cgroup(growth, p, sample->cgroup);
	if (err)
		return err;
	derive_touch(p, sample, &converted);
	p->touch = converted.touch;
	event = mw_growth_feed(&p->state, p->history, &converted);
	if (p->state.flags & MW_GROWTH_F_HISTORY && !p->history) {
		p->history = calloc(1, sizeof(*p->history));
		if (!p->history)
			return mw_fail_memory(growth->ctx, "growth history");
		mw_growth_history_init(p->history, &p->state);
	}
	if (mw_programs_note(&growth->programs, p->comm, &p->state, event))
		return mw_fail_memory(growth->ctx, "growth detectors");
	if (event)
		mw_growth_row_fill(&row, &p->state, p->history);
	err = mw_spans_note(growth->ctx, &p->spans, event, p->state.last_ns, &row);
	return err ? err : (int)event;
}

/* The kernel's memory includes slab and page tables, which are classes of their own. */
static void group_sample_convert(const struct memwatch_growth_sample *from,
				 struct mw_group_sample *to)
{
	__u32 part = mw_pages_from_bytes(from->slab_bytes + from->pagetables_bytes);
	__u64 used = from->anon_bytes + from->shmem_bytes + from->sock_bytes;

	*to = (struct mw_group_sample){
		.time_ns = from->time_ns,
		.headroom = MW_GROWTH_NO_LIMIT,
	};
	to->pages[MEMWATCH_CLASS_ANON] = mw_pages_from_bytes(from->anon_bytes + from->swap_bytes);
	to->pages[MEMWATCH_CLASS_SHMEM] = mw_pages_from_bytes(from->shmem_bytes);
	to->pages[MEMWATCH_CLASS_KERNEL] = mw_growth_sub_sat(
		mw_pages_from_bytes(from->kernel_bytes), part);
	to->pages[MEMWATCH_CLASS_SLAB] = mw_pages_from_bytes(from->slab_bytes);
	to->pages[MEMWATCH_CLASS_SOCK] = mw_pages_from_bytes(from->sock_bytes);
	to->pages[MEMWATCH_CLASS_PAGETABLES] = mw_pages_from_bytes(from->pagetables_bytes);
	used += from->kernel_bytes > from->slab_bytes + from->pagetables_bytes
			? from->kernel_bytes
			: from->slab_bytes + from->pagetables_bytes;
	if (from->limit_bytes != MEMWATCH_GROWTH_NONE)
		to->headroom = from->limit_bytes > used
				       ? mw_pages_from_bytes(from->limit_bytes - used)
				       : 0;
}

static int feed_group(struct memwatch_growth *growth, const struct memwatch_growth_sample *sample)
{
	struct mw_group *group = mw_groups_get(&growth->groups, sample->cgroup);
	struct mw_group_sample converted;

	if (!group)
		return -ENOMEM;
	group_sample_convert(sample, &converted);
	return mw_groups_feed(&growth->groups, group, &converted);
}

int memwatch_growth_feed(struct memwatch_growth *growth,
			 const struct memwatch_growth_sample *user_sample)
{
	struct memwatch_growth_sample sample;
	int err = mw_opts_copy(growth->ctx, &sample, sizeof(sample), user_sample);

	/* A new time is a new round. */
	if (!err && sample.time_ns != growth->groups.now)
		err = mw_groups_judge(&growth->groups);
	if (err)
		return err;
	if (!sample.tgid && sample.cgroup)
		return feed_group(growth, &sample);
	return feed_process(growth, &sample);
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
	mw_spans_fill_row(&p->spans, &row);
	mw_growth_row_touch(&row, &p->state, p->history, &p->touch);
	err = mw_opts_export(ret, &row, sizeof(row));
	return err ? err : 1;
}

int memwatch_growth_get_span(struct memwatch_growth *growth, unsigned int index, unsigned int span,
			     struct memwatch_growth_span *ret)
{
	if (index >= growth->count)
		return 0;
	return mw_spans_get(&growth->processes[index].spans, span, ret);
}

/* The class with a number, after the last round was judged; NULL, and *err, if there is none. */
static const struct mw_group_class *class_at(struct memwatch_growth *growth, unsigned int index,
					     int *err)
{
	*err = mw_groups_judge(&growth->groups);
	if (*err || index >= growth->groups.nr_list)
		return NULL;
	return growth->groups.list[index];
}

int memwatch_growth_get_group(struct memwatch_growth *growth, unsigned int index,
			      struct memwatch_growth_group *ret, struct memwatch_growth_row *row)
{
	MEMWATCH_OPTS(memwatch_growth_group, group);
	MEMWATCH_OPTS(memwatch_growth_row, verdict);
	const struct mw_group_class *class;
	int err;

	class = class_at(growth, index, &err);
	if (!class)
		return err;
	mw_groups_fill(class, &group, &verdict);
	verdict.limit = 0;
	err = mw_opts_export(ret, &group, sizeof(group));
	if (!err)
		err = mw_opts_export(row, &verdict, sizeof(verdict));
	return err ? err : 1;
}

int memwatch_growth_get_group_span(struct memwatch_growth *growth, unsigned int index,
				   unsigned int span, struct memwatch_growth_span *ret)
{
	const struct mw_group_class *class;
	int err;

	class = class_at(growth, index, &err);
	return class ? mw_spans_get(&class->spans, span, ret) : err;
}
