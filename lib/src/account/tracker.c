// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The tracker: a queue of changes that have not taken effect, and the table of
 * assignments. The result does not depend on the order in which records arrive, as long
 * as time is not advanced past a record that is still to come. If that happens, the
 * generation still says to which assignment the record belongs.
 */
#include <memwatch/tracker.h>

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "account/assignments.h"
#include "account/changes.h"
#include "base/context.h"
#include "base/record.h"
#include "base/timemath.h"

#define PENDING_DEFAULT	  65536
#define PROCESSES_DEFAULT 262144

/**
 * struct memwatch_tracker - the tracker
 * @ctx: a reference
 * @refs: references to the tracker
 * @pending_max: changes that may wait
 * @changes: changes that have not taken effect
 * @assignments: the effect of all others
 * @stats: counts; the table of assignments and the queue have the others
 */
struct memwatch_tracker {
	struct memwatch_ctx *ctx;
	unsigned int refs;
	uint32_t pending_max;
	struct mw_changes changes;
	struct mw_assignments assignments;
	struct memwatch_tracker_stats stats;
};

int memwatch_tracker_new(struct memwatch_ctx *ctx, const struct memwatch_tracker_opts *opts,
			 struct memwatch_tracker **ret)
{
	struct memwatch_tracker_opts full;
	struct memwatch_tracker *tracker;
	int err;

	err = mw_opts_copy(ctx, &full, sizeof(full), opts);
	if (err)
		return err;
	tracker = calloc(1, sizeof(*tracker));
	if (!tracker)
		return mw_fail_memory(ctx, "tracker");
	tracker->pending_max = full.pending_max ? full.pending_max : PENDING_DEFAULT;
	mw_assignments_init(&tracker->assignments,
			    full.processes_max ? full.processes_max : PROCESSES_DEFAULT);
	mw_changes_init(&tracker->changes);
	tracker->ctx = memwatch_ctx_ref(ctx);
	tracker->refs = 1;
	*ret = tracker;
	return 0;
}

struct memwatch_tracker *memwatch_tracker_ref(struct memwatch_tracker *tracker)
{
	tracker->refs++;
	return tracker;
}

struct memwatch_tracker *memwatch_tracker_unref(struct memwatch_tracker *tracker)
{
	if (!tracker || --tracker->refs)
		return NULL;
	memwatch_ctx_unref(tracker->ctx);
	mw_changes_uninit(&tracker->changes);
	mw_assignments_uninit(&tracker->assignments);
	free(tracker);
	return NULL;
}

/* ---------------------------------------------------- taking effect */

/*
 * A new generation of an RMID is there. If the one before it is still live, the record of
 * its end was lost: it ended when the new one began.
 */
static void end_older(struct memwatch_tracker *tracker, uint32_t number)
{
	const struct mw_assignment *entries = tracker->assignments.entries;
	uint32_t older = entries[number].older;

	if (older != MW_NO_ASSIGNMENT && !(entries[older].process.flags & MEMWATCH_PROCESS_FREED))
		mw_assignments_end(&tracker->assignments, older,
				   entries[number].process.alloc_time_ns, 0);
}

/*
 * The same if the new generation was known first. So of each RMID only the newest assignment
 * is live, and a stream in which generations descend does not make a long list of them.
 */
static void end_if_older(struct memwatch_tracker *tracker, uint32_t number)
{
	const struct mw_assignment *entries = tracker->assignments.entries;
	uint32_t newer = entries[number].newer;

	if (newer != MW_NO_ASSIGNMENT)
		mw_assignments_end(&tracker->assignments, number,
				   entries[newer].process.alloc_time_ns, 0);
}

static int apply_alloc(struct memwatch_tracker *tracker, const struct mw_change *change)
{
	const struct memwatch_process *process = &change->process;
	uint32_t at = mw_assignments_find(&tracker->assignments, process->rmid,
					  process->generation);
	struct memwatch_process *known;
	int err;

	if (at == MW_NO_ASSIGNMENT) {
		if (mw_assignments_has_ended(&tracker->assignments, process->rmid,
					     process->generation)) {
			tracker->stats.ignored++;
			return 0;
		}
		err = mw_assignments_add(&tracker->assignments, process, &at);
		if (err)
			return err == -ENOSPC ? 0 : err;
		end_older(tracker, at);
		end_if_older(tracker, at);
		return 0;
	}

	known = &tracker->assignments.entries[at].process;
	if (change->kind == MW_CHANGE_EXISTING) {
		/* Only a dump shows that a process has moved to another cgroup or user. */
		if (!(known->flags & MEMWATCH_PROCESS_FREED)) {
			known->cgroup_id = process->cgroup_id;
			known->uid = process->uid;
		}
		tracker->stats.ignored++;
	} else if (known->flags & MEMWATCH_PROCESS_EXISTED) {
		known->flags &= ~MEMWATCH_PROCESS_EXISTED;
		known->flags |= process->flags;
		known->parent_tgid = process->parent_tgid;
		known->alloc_time_ns = process->alloc_time_ns;
	} else {
		tracker->stats.ignored++;
	}
	return 0;
}

static int apply_exec(struct memwatch_tracker *tracker, const struct mw_change *change)
{
	uint32_t at = mw_assignments_find(&tracker->assignments, change->process.rmid,
					  change->process.generation);
	struct memwatch_process *known;

	if (at == MW_NO_ASSIGNMENT) {
		tracker->stats.ignored++;
		return 0;
	}
	known = &tracker->assignments.entries[at].process;
	memcpy(known->comm, change->process.comm, sizeof(known->comm));
	if (change->process.tgid) {
		known->uid = change->process.uid;
		known->cgroup_id = change->process.cgroup_id;
		known->reason = change->process.reason;
	}
	return 0;
}

static int apply_free(struct memwatch_tracker *tracker, const struct mw_change *change)
{
	const struct memwatch_process *process = &change->process;
	uint32_t at = mw_assignments_find(&tracker->assignments, process->rmid,
					  process->generation);
	int err;

	if (at == MW_NO_ASSIGNMENT && process->tgid &&
	    !mw_assignments_has_ended(&tracker->assignments, process->rmid, process->generation)) {
		/* The record of its allocation was lost. That of the free holds the same fields. */
		struct memwatch_process known = *process;

		/* What it did until now has been delivered as of an unknown process. */
		known.flags = MEMWATCH_PROCESS_EXISTED | MEMWATCH_PROCESS_PARTIAL;
		err = mw_assignments_add(&tracker->assignments, &known, &at);
		if (err && err != -ENOSPC)
			return err;
		if (!err)
			end_older(tracker, at);
	}
	if (at == MW_NO_ASSIGNMENT ||
	    tracker->assignments.entries[at].process.flags & MEMWATCH_PROCESS_FREED) {
		tracker->stats.ignored++;
		if (at == MW_NO_ASSIGNMENT)
			mw_assignments_note_end(&tracker->assignments, process->rmid,
						process->generation);
		return 0;
	}
	mw_assignments_end(&tracker->assignments, at, change->time_ns, process->reason);
	return 0;
}

static int apply_first(struct memwatch_tracker *tracker)
{
	struct mw_change change = mw_changes_pop(&tracker->changes);

	switch (change.kind) {
	case MW_CHANGE_ALLOC:
	case MW_CHANGE_EXISTING:
		return apply_alloc(tracker, &change);
	case MW_CHANGE_EXEC:
		return apply_exec(tracker, &change);
	case MW_CHANGE_FREE:
		return apply_free(tracker, &change);
	}
	return 0;
}

int memwatch_tracker_advance(struct memwatch_tracker *tracker, __u64 time_ns)
{
	int count = 0;

	while (tracker->changes.count && mw_changes_first_ns(&tracker->changes) <= time_ns) {
		if (apply_first(tracker))
			return mw_fail_memory(tracker->ctx, "tracker");
		if (count < INT_MAX)
			count++;
	}
	return count;
}

int memwatch_tracker_retire(struct memwatch_tracker *tracker, __u64 time_ns)
{
	struct mw_assignments *table = &tracker->assignments;
	int count = 0;

	while (table->first_freed != MW_NO_ASSIGNMENT &&
	       table->entries[table->first_freed].process.free_time_ns < time_ns) {
		mw_assignments_forget(table);
		if (count < INT_MAX)
			count++;
	}
	return count;
}

/* --------------------------------------------------------------- queueing */

static int queue_change(struct memwatch_tracker *tracker, struct mw_change *change)
{
	if (!change->process.generation) {
		tracker->stats.invalid++;
		return mw_fail(tracker->ctx, -EINVAL,
			       "tracker: RMID %u, generation %u cannot have an owner",
			       change->process.rmid, change->process.generation);
	}
	if (tracker->changes.count >= tracker->pending_max) {
		tracker->stats.early++;
		if (apply_first(tracker))
			return mw_fail_memory(tracker->ctx, "tracker");
	}
	change->process.sz = sizeof(change->process);
	change->process.comm[MEMWATCH_COMM_LEN - 1] = '\0';
	if (mw_changes_push(&tracker->changes, change))
		return mw_fail_memory(tracker->ctx, "tracker");
	return 1;
}

static enum mw_change_kind kind_of(unsigned int type)
{
	switch (type) {
	case MEMWATCH_RECORD_RMID_ALLOC:
		return MW_CHANGE_ALLOC;
	case MEMWATCH_RECORD_RMID_EXISTING:
		return MW_CHANGE_EXISTING;
	case MEMWATCH_RECORD_RMID_EXEC:
		return MW_CHANGE_EXEC;
	default:
		return MW_CHANGE_FREE;
	}
}

int memwatch_tracker_feed(struct memwatch_tracker *tracker,
			  const struct memwatch_record_header *record)
{
	const struct memwatch_record_rmid *r = (const struct memwatch_record_rmid *)record;
	struct mw_change change = { 0 };

	if (record->type < MEMWATCH_RECORD_RMID_ALLOC || record->type > MEMWATCH_RECORD_RMID_FREE)
		return 0;
	if (record->size < sizeof(*r)) {
		tracker->stats.invalid++;
		return mw_fail(tracker->ctx, -EINVAL, "tracker: an RMID record is too short");
	}
	change.kind = kind_of(record->type);
	/* An EXISTING record is about the time since the allocation. */
	change.time_ns = record->time_ns;
	if (change.kind == MW_CHANGE_EXISTING)
		change.time_ns = mw_min_u64(record->time_ns, r->alloc_time_ns);
	change.process = (struct memwatch_process){
		.rmid = r->rmid,
		.generation = r->generation,
		.tgid = r->tgid,
		.parent_tgid = r->parent_tgid,
		.start_time_ns = r->start_time_ns,
		.alloc_time_ns = r->alloc_time_ns,
		.cgroup_id = r->cgroup_id,
		.uid = r->uid,
		.reason = r->reason,
		.unmeasured_ns = r->unmeasured_ns,
		.flags = change.kind == MW_CHANGE_EXISTING ? MEMWATCH_PROCESS_EXISTED : 0,
	};
	if (change.kind == MW_CHANGE_ALLOC && r->reason == MEMWATCH_REASON_PROMOTED)
		change.process.flags |= MEMWATCH_PROCESS_PARTIAL;
	memcpy(change.process.comm, r->comm, sizeof(r->comm));
	return queue_change(tracker, &change);
}

int memwatch_tracker_alloc(struct memwatch_tracker *tracker, const struct memwatch_process *process)
{
	struct mw_change change = { .kind = MW_CHANGE_ALLOC };
	int err = mw_opts_copy(tracker->ctx, &change.process, sizeof(change.process), process);

	if (err)
		return err;
	change.time_ns = change.process.alloc_time_ns;
	change.process.flags = 0;
	change.process.free_time_ns = 0;
	return queue_change(tracker, &change);
}

int memwatch_tracker_exec(struct memwatch_tracker *tracker, __u32 rmid, __u32 generation,
			  __u64 time_ns, const char *comm)
{
	struct mw_change change = {
		.kind = MW_CHANGE_EXEC,
		.time_ns = time_ns,
		.process = { .rmid = rmid, .generation = generation },
	};

	strncpy(change.process.comm, comm, sizeof(change.process.comm) - 1);
	return queue_change(tracker, &change);
}

int memwatch_tracker_free(struct memwatch_tracker *tracker, __u32 rmid, __u32 generation,
			  __u64 time_ns)
{
	struct mw_change change = {
		.kind = MW_CHANGE_FREE,
		.time_ns = time_ns,
		.process = { .rmid = rmid, .generation = generation },
	};

	return queue_change(tracker, &change);
}

/* ---------------------------------------------------------------- asking */

/*
 * An assignment that is still to take effect is found too: a sample is split over all
 * slots of its interval, also over those before the allocation in it.
 */
int memwatch_tracker_lookup(const struct memwatch_tracker *tracker, __u32 rmid, __u32 generation,
			    const struct memwatch_process **ret)
{
	uint32_t at = mw_assignments_find(&tracker->assignments, rmid, generation);
	const struct memwatch_process *process;

	process = at == MW_NO_ASSIGNMENT
			  ? mw_changes_find_alloc(&tracker->changes, rmid, generation)
			  : &tracker->assignments.entries[at].process;
	if (!process)
		return -ENOENT;
	*ret = process;
	return 0;
}

int memwatch_tracker_owner(const struct memwatch_tracker *tracker, __u32 rmid, __u64 time_ns,
			   const struct memwatch_process **ret)
{
	const struct mw_assignment *entries = tracker->assignments.entries;
	uint32_t at = mw_assignments_newest(&tracker->assignments, rmid);

	for (; at != MW_NO_ASSIGNMENT; at = entries[at].older) {
		const struct memwatch_process *process = &entries[at].process;

		if (process->alloc_time_ns > time_ns)
			continue;
		if (process->flags & MEMWATCH_PROCESS_FREED && process->free_time_ns <= time_ns)
			return -ENOENT;
		*ret = process;
		return 0;
	}
	return -ENOENT;
}

int memwatch_tracker_next(const struct memwatch_tracker *tracker, size_t *position,
			  const struct memwatch_process **ret)
{
	const struct mw_assignments *table = &tracker->assignments;

	while (*position < table->nr_entries) {
		const struct mw_assignment *entry = &table->entries[(*position)++];

		if (entry->used) {
			*ret = &entry->process;
			return 1;
		}
	}
	return 0;
}

int memwatch_tracker_get_stats(const struct memwatch_tracker *tracker,
			       struct memwatch_tracker_stats *ret)
{
	struct memwatch_tracker_stats stats = tracker->stats;

	stats.pending = tracker->changes.count;
	stats.live = tracker->assignments.live;
	stats.freed = tracker->assignments.freed;
	stats.evicted = tracker->assignments.evicted;
	return mw_opts_export(ret, &stats, sizeof(stats));
}
