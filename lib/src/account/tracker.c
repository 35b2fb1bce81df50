// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The tracker: a heap of changes that have not taken effect, and a table of
 * assignments. Nothing in it depends on the order in which records arrive, as
 * long as time is not advanced past one that is still to come; and if that
 * happens, the generation still tells whose it is.
 */
#include <memwatch/tracker.h>

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/context.h"
#include "base/record.h"
#include "base/timemath.h"

#define PENDING_DEFAULT	  65536
#define PROCESSES_DEFAULT 262144
#define NONE		  UINT32_MAX

/* In the order in which changes of one moment take effect. */
enum change_kind {
	CHANGE_ALLOC,
	CHANGE_EXISTING,
	CHANGE_EXEC,
	CHANGE_FREE,
};

struct change {
	uint64_t time_ns;
	uint64_t sequence;
	enum change_kind kind;
	struct memwatch_process process;
};

struct node {
	struct memwatch_process process;
	bool used;
	uint32_t hash_next; /* of the bucket (rmid, generation), or of the free nodes */
	uint32_t older;	    /* assignment of the same RMID */
	uint32_t newer;
	uint32_t freed_next; /* queue of the freed ones, oldest first */
};

/* What is remembered of an RMID for ever. */
struct rmid {
	uint32_t rmid;
	uint32_t newest;	   /* node, NONE if all were forgotten */
	uint32_t freed_generation; /* the largest that is known to be over */
	uint32_t hash_next;
};

struct memwatch_tracker {
	struct memwatch_ctx *ctx;
	unsigned int refs;
	struct memwatch_tracker_opts opts;
	uint64_t sequence;

	struct change *heap;
	size_t nr_pending, max_pending;

	struct node *nodes;
	uint32_t nr_nodes, max_nodes, free_node;
	uint32_t *buckets; /* as many as max_nodes */

	struct rmid *rmids;
	uint32_t nr_rmids, max_rmids;
	uint32_t *rmid_buckets; /* as many as max_rmids */

	uint32_t freed_first, freed_last;
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
		return mw_fail(ctx, -ENOMEM, "tracker: no memory");
	tracker->opts = full;
	if (!full.pending_max)
		tracker->opts.pending_max = PENDING_DEFAULT;
	if (!full.processes_max)
		tracker->opts.processes_max = PROCESSES_DEFAULT;
	tracker->ctx = memwatch_ctx_ref(ctx);
	tracker->refs = 1;
	tracker->free_node = NONE;
	tracker->freed_first = NONE;
	tracker->freed_last = NONE;
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
	free(tracker->heap);
	free(tracker->nodes);
	free(tracker->buckets);
	free(tracker->rmids);
	free(tracker->rmid_buckets);
	free(tracker);
	return NULL;
}

/* ------------------------------------------------- changes still to come */

static bool change_before(const struct change *a, const struct change *b)
{
	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns;
	if (a->kind != b->kind)
		return a->kind < b->kind;
	return a->sequence < b->sequence;
}

static void heap_push(struct memwatch_tracker *tracker, const struct change *change)
{
	struct change *heap = tracker->heap;
	size_t at = tracker->nr_pending++;

	for (; at > 0 && change_before(change, &heap[(at - 1) / 2]); at = (at - 1) / 2)
		heap[at] = heap[(at - 1) / 2];
	heap[at] = *change;
}

static struct change heap_pop(struct memwatch_tracker *tracker)
{
	struct change *heap = tracker->heap;
	struct change first = heap[0];
	struct change last = heap[--tracker->nr_pending];
	size_t count = tracker->nr_pending;
	size_t at = 0;

	for (;;) {
		size_t child = 2 * at + 1;

		if (child + 1 < count && change_before(&heap[child + 1], &heap[child]))
			child++;
		if (child >= count || !change_before(&heap[child], &last))
			break;
		heap[at] = heap[child];
		at = child;
	}
	if (count)
		heap[at] = last;
	return first;
}

/* ------------------------------------------------------------ the tables */

static uint32_t hash(uint32_t a, uint32_t b)
{
	uint64_t key = ((uint64_t)a << 32 | b) * 0x9e3779b97f4a7c15ULL;

	return (uint32_t)(key >> 32);
}

static struct rmid *find_rmid(const struct memwatch_tracker *tracker, uint32_t rmid)
{
	uint32_t at;

	if (!tracker->max_rmids)
		return NULL;
	at = tracker->rmid_buckets[hash(rmid, 0) & (tracker->max_rmids - 1)];
	while (at != NONE && tracker->rmids[at].rmid != rmid)
		at = tracker->rmids[at].hash_next;
	return at == NONE ? NULL : &tracker->rmids[at];
}

static int grow_rmids(struct memwatch_tracker *tracker)
{
	uint32_t max = tracker->max_rmids ? tracker->max_rmids * 2 : 64;
	struct rmid *rmids = realloc(tracker->rmids, max * sizeof(*rmids));
	uint32_t *buckets;

	if (!rmids)
		return -ENOMEM;
	tracker->rmids = rmids;
	buckets = realloc(tracker->rmid_buckets, max * sizeof(*buckets));
	if (!buckets)
		return -ENOMEM;
	tracker->rmid_buckets = buckets;
	tracker->max_rmids = max;
	memset(buckets, 0xff, max * sizeof(*buckets));
	for (uint32_t i = 0; i < tracker->nr_rmids; i++) {
		uint32_t *bucket = &buckets[hash(rmids[i].rmid, 0) & (max - 1)];

		rmids[i].hash_next = *bucket;
		*bucket = i;
	}
	return 0;
}

static int obtain_rmid(struct memwatch_tracker *tracker, uint32_t rmid, struct rmid **ret)
{
	struct rmid *found = find_rmid(tracker, rmid);
	uint32_t *bucket;

	if (!found) {
		/* there are some hundred RMIDs; more than this is a broken stream */
		if (tracker->nr_rmids >= tracker->opts.processes_max)
			return -ENOSPC;
		if (tracker->nr_rmids == tracker->max_rmids && grow_rmids(tracker))
			return -ENOMEM;
		bucket = &tracker->rmid_buckets[hash(rmid, 0) & (tracker->max_rmids - 1)];
		found = &tracker->rmids[tracker->nr_rmids];
		*found = (struct rmid){ .rmid = rmid, .newest = NONE, .hash_next = *bucket };
		*bucket = tracker->nr_rmids++;
	}
	*ret = found;
	return 0;
}

static uint32_t *bucket_of(const struct memwatch_tracker *tracker, uint32_t rmid,
			   uint32_t generation)
{
	return &tracker->buckets[hash(rmid, generation) & (tracker->max_nodes - 1)];
}

static uint32_t find_node(const struct memwatch_tracker *tracker, uint32_t rmid,
			  uint32_t generation)
{
	uint32_t at;

	if (!tracker->max_nodes)
		return NONE;
	at = *bucket_of(tracker, rmid, generation);
	while (at != NONE && (tracker->nodes[at].process.rmid != rmid ||
			      tracker->nodes[at].process.generation != generation))
		at = tracker->nodes[at].hash_next;
	return at;
}

static int grow_nodes(struct memwatch_tracker *tracker)
{
	uint32_t max = tracker->max_nodes ? tracker->max_nodes * 2 : 64;
	struct node *nodes = realloc(tracker->nodes, max * sizeof(*nodes));
	uint32_t *buckets;

	if (!nodes)
		return -ENOMEM;
	tracker->nodes = nodes;
	buckets = realloc(tracker->buckets, max * sizeof(*buckets));
	if (!buckets)
		return -ENOMEM;
	tracker->buckets = buckets;
	tracker->max_nodes = max;
	memset(buckets, 0xff, max * sizeof(*buckets));
	/* it only grows when no node is free: all of them are in use */
	for (uint32_t i = 0; i < tracker->nr_nodes; i++) {
		uint32_t *bucket = bucket_of(tracker, nodes[i].process.rmid,
					     nodes[i].process.generation);

		nodes[i].hash_next = *bucket;
		*bucket = i;
	}
	return 0;
}

static void forget_oldest_freed(struct memwatch_tracker *tracker)
{
	uint32_t at = tracker->freed_first;
	struct node *node = &tracker->nodes[at];
	struct rmid *rmid = find_rmid(tracker, node->process.rmid);
	uint32_t *link = bucket_of(tracker, node->process.rmid, node->process.generation);

	tracker->freed_first = node->freed_next;
	if (tracker->freed_first == NONE)
		tracker->freed_last = NONE;
	while (*link != at)
		link = &tracker->nodes[*link].hash_next;
	*link = node->hash_next;
	if (node->older != NONE)
		tracker->nodes[node->older].newer = node->newer;
	if (node->newer != NONE)
		tracker->nodes[node->newer].older = node->older;
	else
		rmid->newest = node->older;
	node->used = false;
	node->hash_next = tracker->free_node;
	tracker->free_node = at;
	tracker->stats.freed--;
}

static void mark_freed(struct memwatch_tracker *tracker, uint32_t at, uint64_t time_ns,
		       uint32_t reason)
{
	struct node *node = &tracker->nodes[at];
	struct rmid *rmid = find_rmid(tracker, node->process.rmid);

	node->process.flags |= MEMWATCH_PROCESS_FREED;
	node->process.free_time_ns = mw_max_u64(time_ns, node->process.alloc_time_ns);
	node->process.reason = reason;
	if (rmid->freed_generation < node->process.generation)
		rmid->freed_generation = node->process.generation;
	node->freed_next = NONE;
	if (tracker->freed_last == NONE)
		tracker->freed_first = at;
	else
		tracker->nodes[tracker->freed_last].freed_next = at;
	tracker->freed_last = at;
	tracker->stats.live--;
	tracker->stats.freed++;
}

/* Puts it among the assignments of its RMID, which are in order of generation. */
static void link_by_age(struct memwatch_tracker *tracker, struct rmid *rmid, uint32_t at)
{
	struct node *nodes = tracker->nodes;
	uint32_t newer = NONE;
	uint32_t older = rmid->newest;

	while (older != NONE && nodes[older].process.generation > nodes[at].process.generation) {
		newer = older;
		older = nodes[older].older;
	}
	nodes[at].older = older;
	nodes[at].newer = newer;
	if (older != NONE)
		nodes[older].newer = at;
	if (newer != NONE)
		nodes[newer].older = at;
	else
		rmid->newest = at;
}

static int add_node(struct memwatch_tracker *tracker, const struct memwatch_process *process,
		    uint32_t *ret)
{
	struct rmid *rmid;
	uint32_t at, *bucket;
	int err;

	if (tracker->stats.live + tracker->stats.freed >= tracker->opts.processes_max) {
		tracker->stats.evicted++;
		if (tracker->freed_first == NONE)
			return -ENOSPC;
		forget_oldest_freed(tracker);
	}
	err = obtain_rmid(tracker, process->rmid, &rmid);
	if (err)
		return err;
	at = tracker->free_node;
	if (at != NONE) {
		tracker->free_node = tracker->nodes[at].hash_next;
	} else {
		if (tracker->nr_nodes == tracker->max_nodes && grow_nodes(tracker))
			return -ENOMEM;
		at = tracker->nr_nodes++;
	}
	bucket = bucket_of(tracker, process->rmid, process->generation);
	tracker->nodes[at] = (struct node){
		.process = *process,
		.used = true,
		.hash_next = *bucket,
		.freed_next = NONE,
	};
	*bucket = at;
	link_by_age(tracker, rmid, at);
	tracker->stats.live++;
	*ret = at;
	return 0;
}

/* ---------------------------------------------------- taking effect */

/* A live one of an older generation: its free was lost. It ended when this one began. */
static void end_older(struct memwatch_tracker *tracker, uint32_t at)
{
	const struct memwatch_process *process = &tracker->nodes[at].process;
	uint64_t time_ns = process->alloc_time_ns;
	uint32_t older = tracker->nodes[at].older;

	if (older != NONE && !(tracker->nodes[older].process.flags & MEMWATCH_PROCESS_FREED))
		mark_freed(tracker, older, time_ns, 0);
}

static bool is_over(const struct memwatch_tracker *tracker, uint32_t rmid, uint32_t generation)
{
	const struct rmid *found = find_rmid(tracker, rmid);

	return found && found->freed_generation >= generation;
}

static int apply_alloc(struct memwatch_tracker *tracker, const struct change *change)
{
	const struct memwatch_process *process = &change->process;
	uint32_t at = find_node(tracker, process->rmid, process->generation);
	struct memwatch_process *known;
	int err;

	if (at == NONE) {
		if (is_over(tracker, process->rmid, process->generation)) {
			tracker->stats.ignored++;
			return 0;
		}
		err = add_node(tracker, process, &at);
		if (err)
			return err == -ENOSPC ? 0 : err;
		end_older(tracker, at);
		return 0;
	}

	known = &tracker->nodes[at].process;
	if (change->kind == CHANGE_EXISTING) {
		/* nobody else tells that a process has moved to another cgroup */
		if (!(known->flags & MEMWATCH_PROCESS_FREED)) {
			known->cgroup_id = process->cgroup_id;
			known->uid = process->uid;
		}
		tracker->stats.ignored++;
	} else if (known->flags & MEMWATCH_PROCESS_EXISTED) {
		known->flags &= ~MEMWATCH_PROCESS_EXISTED;
		known->parent_tgid = process->parent_tgid;
		known->alloc_time_ns = process->alloc_time_ns;
	} else {
		tracker->stats.ignored++;
	}
	return 0;
}

static int apply_exec(struct memwatch_tracker *tracker, const struct change *change)
{
	uint32_t at = find_node(tracker, change->process.rmid, change->process.generation);
	struct memwatch_process *known;

	if (at == NONE) {
		tracker->stats.ignored++;
		return 0;
	}
	known = &tracker->nodes[at].process;
	memcpy(known->comm, change->process.comm, sizeof(known->comm));
	if (change->process.tgid) {
		known->uid = change->process.uid;
		known->cgroup_id = change->process.cgroup_id;
		known->reason = change->process.reason;
	}
	return 0;
}

static int apply_free(struct memwatch_tracker *tracker, const struct change *change)
{
	const struct memwatch_process *process = &change->process;
	uint32_t at = find_node(tracker, process->rmid, process->generation);
	struct rmid *rmid;
	int err;

	if (at == NONE && process->tgid && !is_over(tracker, process->rmid, process->generation)) {
		/* its alloc was lost, but a free says everything as well */
		struct memwatch_process known = *process;

		known.flags = MEMWATCH_PROCESS_EXISTED;
		err = add_node(tracker, &known, &at);
		if (err && err != -ENOSPC)
			return err;
		if (!err)
			end_older(tracker, at);
	}
	if (at == NONE || tracker->nodes[at].process.flags & MEMWATCH_PROCESS_FREED) {
		tracker->stats.ignored++;
		if (at == NONE && !obtain_rmid(tracker, process->rmid, &rmid) &&
		    rmid->freed_generation < process->generation)
			rmid->freed_generation = process->generation;
		return 0;
	}
	mark_freed(tracker, at, change->time_ns, process->reason);
	return 0;
}

static int apply_first(struct memwatch_tracker *tracker)
{
	struct change change = heap_pop(tracker);

	switch (change.kind) {
	case CHANGE_ALLOC:
	case CHANGE_EXISTING:
		return apply_alloc(tracker, &change);
	case CHANGE_EXEC:
		return apply_exec(tracker, &change);
	case CHANGE_FREE:
		return apply_free(tracker, &change);
	}
	return 0;
}

int memwatch_tracker_advance(struct memwatch_tracker *tracker, __u64 time_ns)
{
	int count = 0;

	while (tracker->nr_pending && tracker->heap[0].time_ns <= time_ns) {
		if (apply_first(tracker))
			return mw_fail(tracker->ctx, -ENOMEM, "tracker: no memory");
		if (count < INT_MAX)
			count++;
	}
	return count;
}

int memwatch_tracker_retire(struct memwatch_tracker *tracker, __u64 time_ns)
{
	int count = 0;

	while (tracker->freed_first != NONE &&
	       tracker->nodes[tracker->freed_first].process.free_time_ns < time_ns) {
		forget_oldest_freed(tracker);
		if (count < INT_MAX)
			count++;
	}
	return count;
}

/* --------------------------------------------------------------- queueing */

static int reserve_pending(struct memwatch_tracker *tracker)
{
	size_t max = tracker->max_pending ? tracker->max_pending * 2 : 64;
	struct change *heap;

	if (tracker->nr_pending < tracker->max_pending)
		return 0;
	heap = realloc(tracker->heap, max * sizeof(*heap));
	if (!heap)
		return -ENOMEM;
	tracker->heap = heap;
	tracker->max_pending = max;
	return 0;
}

static int queue(struct memwatch_tracker *tracker, struct change *change)
{
	if (change->process.rmid == MEMWATCH_RMID_UNASSIGNED || !change->process.generation) {
		tracker->stats.invalid++;
		return mw_fail(tracker->ctx, -EINVAL, "tracker: RMID %u of generation %u cannot be",
			       change->process.rmid, change->process.generation);
	}
	if (tracker->nr_pending >= tracker->opts.pending_max) {
		tracker->stats.early++;
		if (apply_first(tracker))
			return mw_fail(tracker->ctx, -ENOMEM, "tracker: no memory");
	}
	if (reserve_pending(tracker))
		return mw_fail(tracker->ctx, -ENOMEM, "tracker: no memory");
	change->process.comm[MEMWATCH_COMM_LEN - 1] = '\0';
	change->sequence = tracker->sequence++;
	heap_push(tracker, change);
	return 1;
}

static enum change_kind kind_of(unsigned int type)
{
	switch (type) {
	case MEMWATCH_RECORD_RMID_ALLOC:
		return CHANGE_ALLOC;
	case MEMWATCH_RECORD_RMID_EXISTING:
		return CHANGE_EXISTING;
	case MEMWATCH_RECORD_RMID_EXEC:
		return CHANGE_EXEC;
	default:
		return CHANGE_FREE;
	}
}

int memwatch_tracker_feed(struct memwatch_tracker *tracker,
			  const struct memwatch_record_header *record)
{
	const struct memwatch_record_rmid *r = (const struct memwatch_record_rmid *)record;
	struct change change = { 0 };

	if (record->type < MEMWATCH_RECORD_RMID_ALLOC || record->type > MEMWATCH_RECORD_RMID_FREE)
		return 0;
	if (record->size < sizeof(*r)) {
		tracker->stats.invalid++;
		return mw_fail(tracker->ctx, -EINVAL, "tracker: a record is too short");
	}
	change.kind = kind_of(record->type);
	/* An EXISTING tells of the past: it holds since the allocation. */
	change.time_ns = record->time_ns;
	if (change.kind == CHANGE_EXISTING)
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
		.flags = change.kind == CHANGE_EXISTING ? MEMWATCH_PROCESS_EXISTED : 0,
	};
	memcpy(change.process.comm, r->comm, sizeof(r->comm));
	return queue(tracker, &change);
}

int memwatch_tracker_alloc(struct memwatch_tracker *tracker, const struct memwatch_process *process)
{
	struct change change = {
		.kind = CHANGE_ALLOC,
		.time_ns = process->alloc_time_ns,
		.process = *process,
	};

	change.process.flags = 0;
	change.process.free_time_ns = 0;
	return queue(tracker, &change);
}

int memwatch_tracker_exec(struct memwatch_tracker *tracker, __u32 rmid, __u32 generation,
			  __u64 time_ns, const char *comm)
{
	struct change change = {
		.kind = CHANGE_EXEC,
		.time_ns = time_ns,
		.process = { .rmid = rmid, .generation = generation },
	};

	strncpy(change.process.comm, comm, sizeof(change.process.comm) - 1);
	return queue(tracker, &change);
}

int memwatch_tracker_free(struct memwatch_tracker *tracker, __u32 rmid, __u32 generation,
			  __u64 time_ns)
{
	struct change change = {
		.kind = CHANGE_FREE,
		.time_ns = time_ns,
		.process = { .rmid = rmid, .generation = generation },
	};

	return queue(tracker, &change);
}

/* ---------------------------------------------------------------- asking */

/* An assignment that has been announced but is still to take effect. */
static const struct memwatch_process *find_pending(const struct memwatch_tracker *tracker,
						   uint32_t rmid, uint32_t generation)
{
	for (size_t i = 0; i < tracker->nr_pending; i++) {
		const struct change *change = &tracker->heap[i];

		if (change->kind <= CHANGE_EXISTING && change->process.rmid == rmid &&
		    change->process.generation == generation)
			return &change->process;
	}
	return NULL;
}

/*
 * A pair of RMID and generation is one process for ever, so one that is about
 * to take effect is found as well: a sample is split over all the slots of its
 * interval, also over those before the allocation in it. Rare, hence no index.
 */
int memwatch_tracker_lookup(const struct memwatch_tracker *tracker, __u32 rmid, __u32 generation,
			    const struct memwatch_process **ret)
{
	uint32_t at = find_node(tracker, rmid, generation);
	const struct memwatch_process *process;

	process = at == NONE ? find_pending(tracker, rmid, generation)
			     : &tracker->nodes[at].process;
	if (!process)
		return -ENOENT;
	*ret = process;
	return 0;
}

int memwatch_tracker_owner(const struct memwatch_tracker *tracker, __u32 rmid, __u64 time_ns,
			   const struct memwatch_process **ret)
{
	const struct rmid *found = find_rmid(tracker, rmid);
	uint32_t at = found ? found->newest : NONE;

	for (; at != NONE; at = tracker->nodes[at].older) {
		const struct memwatch_process *process = &tracker->nodes[at].process;

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
	while (*position < tracker->nr_nodes) {
		const struct node *node = &tracker->nodes[(*position)++];

		if (node->used) {
			*ret = &node->process;
			return 1;
		}
	}
	return 0;
}

int memwatch_tracker_stats(const struct memwatch_tracker *tracker,
			   struct memwatch_tracker_stats *ret)
{
	struct memwatch_tracker_stats stats = tracker->stats;

	stats.pending = tracker->nr_pending;
	return mw_opts_export(ret, &stats, sizeof(stats));
}
