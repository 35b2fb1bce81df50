// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Summaries. A row is found by its key; sums go into the row and, separately,
 * into the total, so that the total does not depend on how rows are made.
 */
#include <memwatch/summary.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/context.h"
#include "base/timemath.h"

#define ROWS_DEFAULT 1048576
#define NONE	     UINT32_MAX

struct key {
	uint64_t a;
	uint64_t b;
	uint32_t flags;
};

struct row {
	struct memwatch_summary_row row; /* first: what the caller sees */
	struct key key;
	uint32_t hash_next;
	uint32_t max_rmids;
	struct memwatch_summary_rmid *rmids;
	uint64_t visited;		 /* number of the last slot fed in which it ran */
	uint64_t level_visited;		 /* likewise, that had an occupancy for it */
	struct memwatch_value level;	 /* occupancy in that slot */
	struct memwatch_value level_sum; /* over the slots before */
	uint64_t level_slots;
};

struct memwatch_summary {
	struct memwatch_ctx *ctx;
	struct memwatch_summary_opts opts;
	struct row *rows;
	uint32_t nr_rows, max_rows;
	uint32_t *buckets; /* as many as max_rows */
	uint32_t other;	   /* row of the rest, NONE */
	struct row total;
	uint64_t visit;

	/* (row, rmid, generation) that are in the row's list: row + 1 in the first */
	struct {
		uint32_t row;
		struct memwatch_summary_rmid rmid;
	} * members;
	uint32_t nr_members, max_members;

	uint32_t *order;
	uint32_t nr_order; /* 0: order of appearance */
};

int memwatch_summary_new(struct memwatch_ctx *ctx, const struct memwatch_summary_opts *opts,
			 struct memwatch_summary **ret)
{
	struct memwatch_summary_opts full;
	struct memwatch_summary *summary;
	int err;

	err = mw_opts_copy(ctx, &full, sizeof(full), opts);
	if (err)
		return err;
	if (!full.rows_max)
		full.rows_max = ROWS_DEFAULT;
	if (!full.to_ns)
		full.to_ns = MW_TIME_MAX;
	if (full.by > MEMWATCH_BY_SLOT || full.rows_max > INT32_MAX)
		return mw_fail(ctx, -EINVAL, "summary: an option is out of range");
	summary = calloc(1, sizeof(*summary));
	if (!summary)
		return mw_fail(ctx, -ENOMEM, "summary: no memory");
	summary->ctx = memwatch_ctx_ref(ctx);
	summary->opts = full;
	memwatch_summary_reset(summary);
	*ret = summary;
	return 0;
}

void memwatch_summary_reset(struct memwatch_summary *summary)
{
	for (uint32_t i = 0; i < summary->nr_rows; i++)
		free(summary->rows[i].rmids);
	summary->nr_rows = 0;
	summary->other = NONE;
	summary->nr_members = 0;
	summary->nr_order = 0;
	if (summary->max_rows)
		memset(summary->buckets, 0xff, summary->max_rows * sizeof(*summary->buckets));
	if (summary->max_members)
		memset(summary->members, 0, summary->max_members * sizeof(*summary->members));
	memset(&summary->total, 0, sizeof(summary->total));
	summary->total.row.cpu = MEMWATCH_CPU_ANY;
}

struct memwatch_summary *memwatch_summary_unref(struct memwatch_summary *summary)
{
	if (!summary)
		return NULL;
	memwatch_summary_reset(summary);
	memwatch_ctx_unref(summary->ctx);
	free(summary->rows);
	free(summary->buckets);
	free(summary->members);
	free(summary->order);
	free(summary);
	return NULL;
}

/* ------------------------------------------------------------------ rows */

static uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t key = a * 0x9e3779b97f4a7c15ULL;

	key = (key ^ (key >> 32) ^ b) * 0xff51afd7ed558ccdULL;
	return key ^ (key >> 32);
}

static uint32_t *bucket_of(const struct memwatch_summary *summary, const struct key *key)
{
	return &summary->buckets[mix(key->a, key->b + key->flags) & (summary->max_rows - 1)];
}

static int grow_rows(struct memwatch_summary *summary)
{
	uint32_t max = summary->max_rows ? summary->max_rows * 2 : 64;
	struct row *rows = realloc(summary->rows, max * sizeof(*rows));
	uint32_t *buckets;

	if (!rows)
		return -ENOMEM;
	summary->rows = rows;
	buckets = realloc(summary->buckets, max * sizeof(*buckets));
	if (!buckets)
		return -ENOMEM;
	summary->buckets = buckets;
	summary->max_rows = max;
	memset(buckets, 0xff, max * sizeof(*buckets));
	for (uint32_t i = 0; i < summary->nr_rows; i++) {
		uint32_t *bucket = bucket_of(summary, &rows[i].key);

		rows[i].hash_next = *bucket;
		*bucket = i;
	}
	return 0;
}

static int add_row(struct memwatch_summary *summary, const struct key *key, uint32_t *ret)
{
	uint32_t *bucket;
	struct row *row;

	if (summary->nr_rows == summary->max_rows && grow_rows(summary))
		return -ENOMEM;
	bucket = bucket_of(summary, key);
	row = &summary->rows[summary->nr_rows];
	memset(row, 0, sizeof(*row));
	row->key = *key;
	row->row.flags = key->flags;
	row->row.cpu = MEMWATCH_CPU_ANY;
	row->hash_next = *bucket;
	*bucket = summary->nr_rows;
	*ret = summary->nr_rows++;
	return 0;
}

static int obtain_row(struct memwatch_summary *summary, const struct key *key, uint32_t *ret)
{
	static const struct key rest = { .flags = MEMWATCH_ROW_OTHER };
	uint32_t at = NONE;
	int err = 0;

	if (summary->max_rows)
		at = *bucket_of(summary, key);
	while (at != NONE &&
	       (summary->rows[at].key.a != key->a || summary->rows[at].key.b != key->b ||
		summary->rows[at].key.flags != key->flags))
		at = summary->rows[at].hash_next;
	if (at == NONE && summary->nr_rows < summary->opts.rows_max) {
		err = add_row(summary, key, &at);
	} else if (at == NONE) {
		if (summary->other == NONE)
			err = add_row(summary, &rest, &summary->other);
		at = summary->other;
	}
	if (!err)
		*ret = at;
	return err;
}

static void make_key(const struct memwatch_summary *summary, const struct memwatch_slot *slot,
		     const struct memwatch_slot_entry *entry, struct key *key)
{
	const struct memwatch_process *process = entry->process;
	uint64_t assignment = (uint64_t)entry->rmid << 32 | entry->generation;

	*key = (struct key){ 0 };
	switch (summary->opts.by) {
	case MEMWATCH_BY_CPU:
		key->a = entry->cpu;
		return;
	case MEMWATCH_BY_SLOT:
		/* late parts of different slots are one row each time they are given */
		key->a = slot->begin_ns;
		key->flags = slot->flags & MEMWATCH_SLOT_LATE ? MEMWATCH_ROW_LATE : 0;
		return;
	case MEMWATCH_BY_CGROUP:
		key->a = process ? process->cgroup_id : 0;
		return;
	default:
		break;
	}
	if (entry->rmid == MEMWATCH_RMID_UNASSIGNED)
		key->flags = MEMWATCH_ROW_UNASSIGNED;
	else if (!process)
		key->flags = MEMWATCH_ROW_UNKNOWN;
	if (summary->opts.by == MEMWATCH_BY_RMID || !process) {
		key->a = assignment;
		return;
	}
	key->a = process->tgid;
	key->b = process->start_time_ns;
}

static int grow_members(struct memwatch_summary *summary)
{
	uint32_t old_max = summary->max_members;
	uint32_t max = old_max ? old_max * 2 : 256;
	__typeof__(summary->members) old = summary->members;
	__typeof__(summary->members) members = calloc(max, sizeof(*members));

	if (!members)
		return -ENOMEM;
	for (uint32_t i = 0; i < old_max; i++) {
		uint64_t at;

		if (!old[i].row)
			continue;
		at = mix((uint64_t)old[i].rmid.rmid << 32 | old[i].rmid.generation, old[i].row);
		while (members[at & (max - 1)].row)
			at++;
		members[at & (max - 1)] = old[i];
	}
	free(old);
	summary->members = members;
	summary->max_members = max;
	return 0;
}

/* 1: it was not in the row's list, and now is. */
static int add_member(struct memwatch_summary *summary, uint32_t row,
		      const struct memwatch_slot_entry *entry)
{
	uint64_t at = mix((uint64_t)entry->rmid << 32 | entry->generation, row + 1);

	if (summary->nr_members * 2 >= summary->max_members && grow_members(summary))
		return -ENOMEM;
	for (;; at++) {
		__typeof__(summary->members) member =
			&summary->members[at & (summary->max_members - 1)];

		if (member->row == row + 1 && member->rmid.rmid == entry->rmid &&
		    member->rmid.generation == entry->generation)
			return 0;
		if (member->row)
			continue;
		member->row = row + 1;
		member->rmid.rmid = entry->rmid;
		member->rmid.generation = entry->generation;
		summary->nr_members++;
		return 1;
	}
}

static int list_rmid(struct memwatch_summary *summary, uint32_t at,
		     const struct memwatch_slot_entry *entry)
{
	struct row *row = &summary->rows[at];
	int err = add_member(summary, at, entry);

	if (err <= 0)
		return err;
	if (row->row.nr_rmids == row->max_rmids) {
		uint32_t max = row->max_rmids ? row->max_rmids * 2 : 4;
		struct memwatch_summary_rmid *rmids = realloc(row->rmids, max * sizeof(*rmids));

		if (!rmids)
			return -ENOMEM;
		row->rmids = rmids;
		row->max_rmids = max;
	}
	row->rmids[row->row.nr_rmids++] = (struct memwatch_summary_rmid){
		entry->rmid,
		entry->generation,
	};
	row->row.rmids = row->rmids;
	row->row.processes += entry->process && summary->opts.by == MEMWATCH_BY_CGROUP;
	return 0;
}

static void describe(struct memwatch_summary *summary, struct row *row,
		     const struct memwatch_slot *slot, const struct memwatch_slot_entry *entry)
{
	const struct memwatch_process *process = entry->process;

	if (row->key.flags & MEMWATCH_ROW_OTHER)
		return;
	if (summary->opts.by == MEMWATCH_BY_SLOT) {
		row->row.first_ns = slot->begin_ns;
		row->row.last_ns = slot->end_ns;
	}
	if (summary->opts.by == MEMWATCH_BY_CPU)
		row->row.cpu = entry->cpu;
	if (!process || summary->opts.by > MEMWATCH_BY_RMID)
		return;
	row->row.cgroup_id = process->cgroup_id;
	memcpy(row->row.comm, process->comm, sizeof(row->row.comm));
	if (summary->opts.by == MEMWATCH_BY_CGROUP)
		return;
	row->row.tgid = process->tgid;
	row->row.start_time_ns = process->start_time_ns;
	row->row.uid = process->uid;
	row->row.processes = 1;
}

/* ------------------------------------------------------------------ sums */

/* The level of the slot before is complete: one more for the mean. */
static void fold_level(struct row *row)
{
	struct memwatch_value *level = &row->level;
	struct memwatch_value *max = &row->row.occupancy_max;
	uint64_t largest = mw_max_u64(max->value, level->value);

	if (!level->parts)
		return;
	if (level->status != MEMWATCH_STATUS_UNAVAILABLE &&
	    level->status != MEMWATCH_STATUS_FIRST && level->status != MEMWATCH_STATUS_ERROR)
		row->level_slots++;
	memwatch_value_merge(&row->level_sum, level);
	memwatch_value_merge(max, level);
	max->value = largest;
	row->row.occupancy_mean = row->level_sum;
	if (row->level_slots)
		row->row.occupancy_mean.value = row->level_sum.value / row->level_slots;
	memset(level, 0, sizeof(*level));
}

static void visit(struct memwatch_summary *summary, struct row *row,
		  const struct memwatch_slot *slot)
{
	if (row->visited == summary->visit)
		return;
	row->visited = summary->visit;
	row->row.slots += !(slot->flags & MEMWATCH_SLOT_LATE);
	if (!row->row.last_ns || slot->begin_ns < row->row.first_ns)
		row->row.first_ns = slot->begin_ns;
	row->row.last_ns = mw_max_u64(row->row.last_ns, slot->end_ns);
}

static void add_entry(struct memwatch_summary *summary, struct row *row,
		      const struct memwatch_slot *slot, const struct memwatch_slot_entry *entry)
{
	/* A reading of RDT alone is no sign of life: dirty lines outlive their process. */
	if (entry->samples)
		visit(summary, row, slot);
	row->row.samples += entry->samples;
	if (entry->samples)
		memwatch_value_add(&row->row.cpu_time_ns, entry->run_ns, MEMWATCH_STATUS_OK);
	for (int i = 0; i < MEMWATCH_COUNTER_MAX; i++)
		memwatch_value_merge(&row->row.counter[i], &entry->counter[i]);
	if (entry->rdt[MEMWATCH_RDT_OCCUPANCY].parts && row->level_visited != summary->visit) {
		fold_level(row);
		row->level_visited = summary->visit;
	}
	memwatch_value_merge(&row->level, &entry->rdt[MEMWATCH_RDT_OCCUPANCY]);
	memwatch_value_merge(&row->row.residue, &entry->residue);
	memwatch_value_merge(&row->row.mbm_total, &entry->rdt[MEMWATCH_RDT_MBM_TOTAL]);
	memwatch_value_merge(&row->row.mbm_local, &entry->rdt[MEMWATCH_RDT_MBM_LOCAL]);
}

static int feed_entry(struct memwatch_summary *summary, const struct memwatch_slot *slot,
		      const struct memwatch_slot_entry *entry)
{
	bool listed = summary->opts.by <= MEMWATCH_BY_RMID;
	struct key key;
	uint32_t at;
	int err;

	add_entry(summary, &summary->total, slot, entry);
	/* RDT is measured per cache, not per CPU */
	if (summary->opts.by == MEMWATCH_BY_CPU && entry->cpu == MEMWATCH_CPU_ANY)
		return 0;
	make_key(summary, slot, entry, &key);
	err = obtain_row(summary, &key, &at);
	if (err)
		return err;
	describe(summary, &summary->rows[at], slot, entry);
	add_entry(summary, &summary->rows[at], slot, entry);
	if (listed && !(summary->rows[at].key.flags & MEMWATCH_ROW_OTHER))
		return list_rmid(summary, at, entry);
	return 0;
}

int memwatch_summary_feed(struct memwatch_summary *summary, const struct memwatch_slot *slot)
{
	if (slot->begin_ns < summary->opts.from_ns || slot->begin_ns >= summary->opts.to_ns)
		return 0;
	summary->visit++;
	summary->nr_order = 0;
	for (uint32_t i = 0; i < slot->nr_entries; i++) {
		if (feed_entry(summary, slot, &slot->entries[i]))
			return mw_fail(summary->ctx, -ENOMEM, "summary: no memory");
	}
	/* Occupancy of several entries is one level: it may be folded only now. */
	fold_level(&summary->total);
	return 1;
}

/* --------------------------------------------------------------- reading */

const struct memwatch_value *memwatch_summary_value(const struct memwatch_summary_row *row,
						    const struct memwatch_metric_info *metric)
{
	if (!metric->row_offset)
		return NULL;
	return (const struct memwatch_value *)(const void *)((const char *)row +
							     metric->row_offset);
}

/* A ratio in parts per million; unavailable if its divisor is 0. */
static uint64_t sort_ratio(const struct memwatch_summary_row *row,
			   const struct memwatch_metric_info *ratio,
			   struct memwatch_value *measured)
{
	const struct memwatch_value *divisor = &row->counter[ratio->divisor];

	*measured = row->counter[ratio->index];
	if (!divisor->value) {
		measured->status = MEMWATCH_STATUS_UNAVAILABLE;
		return measured->value;
	}
	return (uint64_t)((unsigned __int128)measured->value * 1000000 / divisor->value);
}

static const struct memwatch_metric_info *find_sort_metric(unsigned int key)
{
	const struct memwatch_metric_info *metric;

	for (unsigned int i = 0; (metric = memwatch_metric_info(i)); i++)
		if (metric->sort && metric->sort == key)
			return metric;
	return NULL;
}

/* The number by which a row is sorted; @measured says whether it has one. */
static uint64_t sort_number(const struct memwatch_summary_row *row, unsigned int key,
			    const struct memwatch_metric_info *metric,
			    struct memwatch_value *measured)
{
	if (metric && metric->source == MEMWATCH_METRIC_RATIO)
		return sort_ratio(row, metric, measured);
	if (metric) {
		*measured = *memwatch_summary_value(row, metric);
		return measured->value;
	}
	*measured = (struct memwatch_value){ .parts = 1, .status = MEMWATCH_STATUS_OK };
	switch (key) {
	case MEMWATCH_SORT_SLOTS:
		return row->slots;
	case MEMWATCH_SORT_FIRST:
		return row->first_ns;
	case MEMWATCH_SORT_TGID:
		return row->tgid;
	case MEMWATCH_SORT_CPU:
		return row->cpu;
	default:
		return 0;
	}
}

struct sort_item {
	uint64_t number;
	const char *comm;
	uint32_t row;
	bool missing;
	bool descending;
};

static int compare_items(const void *a, const void *b)
{
	const struct sort_item *x = a, *y = b;
	int order;

	if (x->missing != y->missing)
		return x->missing ? 1 : -1;
	if (x->comm)
		order = strncmp(x->comm, y->comm, MEMWATCH_COMM_LEN);
	else
		order = x->number < y->number ? -1 : x->number > y->number;
	if (order)
		return x->descending ? -order : order;
	return x->row < y->row ? -1 : x->row > y->row;
}

static void fold_all(struct memwatch_summary *summary)
{
	for (uint32_t i = 0; i < summary->nr_rows; i++)
		fold_level(&summary->rows[i]);
}

int memwatch_summary_sort(struct memwatch_summary *summary, unsigned int key, bool descending)
{
	const struct memwatch_metric_info *metric = find_sort_metric(key);
	struct sort_item *items;
	uint32_t *order;

	if (!metric && key > MEMWATCH_SORT_CPU)
		return mw_fail(summary->ctx, -EINVAL, "summary: no sort key %u", key);
	fold_all(summary);
	summary->nr_order = 0;
	if (key == MEMWATCH_SORT_NONE || !summary->nr_rows)
		return 0;

	items = calloc(summary->nr_rows, sizeof(*items));
	order = realloc(summary->order, summary->nr_rows * sizeof(*order));
	if (order)
		summary->order = order;
	if (!items || !order) {
		free(items);
		return mw_fail(summary->ctx, -ENOMEM, "summary: no memory");
	}
	for (uint32_t i = 0; i < summary->nr_rows; i++) {
		const struct memwatch_summary_row *row = &summary->rows[i].row;
		struct memwatch_value value;

		items[i].number = sort_number(row, key, metric, &value);
		items[i].missing = !value.parts || value.status == MEMWATCH_STATUS_UNAVAILABLE ||
				   value.status == MEMWATCH_STATUS_FIRST;
		items[i].comm = key == MEMWATCH_SORT_COMM ? row->comm : NULL;
		items[i].row = i;
		items[i].descending = descending;
	}
	qsort(items, summary->nr_rows, sizeof(*items), compare_items);
	for (uint32_t i = 0; i < summary->nr_rows; i++)
		order[i] = items[i].row;
	free(items);
	summary->nr_order = summary->nr_rows;
	return 0;
}

int memwatch_summary_next(struct memwatch_summary *summary, size_t *position,
			  const struct memwatch_summary_row **ret)
{
	uint32_t at;

	if (*position >= summary->nr_rows)
		return 0;
	at = summary->nr_order ? summary->order[*position] : (uint32_t)*position;
	(*position)++;
	fold_level(&summary->rows[at]);
	*ret = &summary->rows[at].row;
	return 1;
}

int memwatch_summary_total(struct memwatch_summary *summary,
			   const struct memwatch_summary_row **ret)
{
	*ret = &summary->total.row;
	return 0;
}
