// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Summaries. An entry of a slot is added to the row of its key and, on its own, to the
 * total, so that the total does not depend on what makes a row.
 */
#include <memwatch/summary.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "account/levels.h"
#include "account/losses.h"
#include "account/row-life.h"
#include "account/row-members.h"
#include "account/row-order.h"
#include "account/row-share.h"
#include "account/summary-row.h"
#include "base/array.h"
#include "base/context.h"
#include "base/index.h"
#include "base/timemath.h"
#include "base/value.h"

#define ROWS_DEFAULT  1048576
#define RMIDS_DEFAULT 2097152
#define NONE	      UINT32_MAX

/* What makes a row; see make_key(). */
struct key {
	uint64_t a;
	uint64_t b;
	uint32_t flags;
};

/* A part of time; empty if both are 0. */
struct span {
	uint64_t begin_ns;
	uint64_t end_ns;
};

/**
 * struct row - a row
 * @whole: what the caller gets
 * @key: what makes it
 * @visited: number of the last slot in which it ran
 * @life: when what the row is about may have run
 * @unmeasured_ns: for how long its processes ran without an RMID
 * @partial: one of its processes has been without an RMID for a time
 */
struct row {
	struct mw_summary_row whole;
	struct key key;
	uint64_t visited;
	struct mw_row_life life;
	uint64_t unmeasured_ns;
	bool partial;
};

/**
 * struct memwatch_summary - a summary
 * @ctx: a reference
 * @opts: complete
 * @rows: the rows, in order of appearance
 * @nr_rows: length of @rows
 * @max_rows: how many fit
 * @row_index: from the key to @rows
 * @other: the row for all that is beyond opts.rows_max, or NONE
 * @total: everything, added up on its own
 * @visit: number of the slot that was fed last
 * @levels: the occupancies of the rows and of the total
 * @in_range: a slot of the range has been fed
 * @losses: when records were lost
 * @covered: the time that the rows are about
 * @members: which RMIDs are in which row's list
 * @order: numbers of the rows, sorted
 * @nr_order: length of @order; 0: the order is that of appearance
 * @max_order: how many fit
 */
struct memwatch_summary {
	struct memwatch_ctx *ctx;
	struct memwatch_summary_opts opts;
	struct row *rows;
	uint32_t nr_rows, max_rows;
	struct mw_index row_index;
	uint32_t other;
	struct row total;
	uint64_t visit;
	struct mw_levels levels;
	bool in_range;
	struct mw_losses losses;
	struct span covered;
	struct mw_row_members members;
	uint32_t *order;
	uint32_t nr_order, max_order;
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
	if (!full.rmids_max)
		full.rmids_max = RMIDS_DEFAULT;
	if (full.by > MEMWATCH_BY_SLOT)
		return mw_fail(ctx, -EINVAL, "summary: unknown grouping %u; the highest is %u",
			       (unsigned int)full.by, (unsigned int)MEMWATCH_BY_SLOT);
	if (full.rows_max > INT32_MAX || full.rmids_max > INT32_MAX)
		return mw_fail(
			ctx, -EINVAL,
			"summary: rows_max is %u and rmids_max is %u; at most %d are allowed",
			(unsigned int)full.rows_max, (unsigned int)full.rmids_max, INT32_MAX);
	if (full.reserved)
		return mw_fail(ctx, -EINVAL,
			       "summary: the reserved member of the options is not 0");
	summary = calloc(1, sizeof(*summary));
	if (!summary)
		return mw_fail_memory(ctx, "summary");
	summary->ctx = memwatch_ctx_ref(ctx);
	summary->opts = full;
	summary->covered.begin_ns = full.from_ns;
	mw_index_init(&summary->row_index);
	mw_row_members_init(&summary->members, full.rmids_max);
	mw_levels_init(&summary->levels, full.rmids_max);
	memwatch_summary_reset(summary);
	*ret = summary;
	return 0;
}

void memwatch_summary_reset(struct memwatch_summary *summary)
{
	for (uint32_t i = 0; i < summary->nr_rows; i++)
		free(summary->rows[i].whole.rmids);
	summary->nr_rows = 0;
	summary->other = NONE;
	mw_row_members_clear(&summary->members);
	summary->nr_order = 0;
	mw_index_clear(&summary->row_index);
	memset(&summary->total, 0, sizeof(summary->total));
	summary->total.whole.seen.cpu = MEMWATCH_CPU_ANY;
	mw_row_life_extend(&summary->total.life, 0, MW_TIME_MAX);
	/* The next rows are about the time that follows; a loss may go on in it. */
	summary->covered.begin_ns = mw_max_u64(summary->covered.begin_ns, summary->covered.end_ns);
	mw_losses_forget(&summary->losses, summary->covered.begin_ns);
	mw_levels_restart(&summary->levels, summary->covered.begin_ns);
}

struct memwatch_summary *memwatch_summary_unref(struct memwatch_summary *summary)
{
	if (!summary)
		return NULL;
	memwatch_summary_reset(summary);
	memwatch_ctx_unref(summary->ctx);
	free(summary->rows);
	mw_index_free(&summary->row_index);
	mw_row_members_uninit(&summary->members);
	mw_levels_uninit(&summary->levels);
	mw_losses_uninit(&summary->losses);
	free(summary->order);
	free(summary);
	return NULL;
}

/* ------------------------------------------------------------------ rows */

static uint32_t key_hash(const struct memwatch_summary *summary, const struct key *key)
{
	return mw_index_hash(&summary->row_index, key->a, key->b + key->flags);
}

static uint32_t find_row(const struct memwatch_summary *summary, const struct key *key)
{
	uint32_t at, number;

	mw_index_for_each (&summary->row_index, key_hash(summary, key), &at, number) {
		const struct key *other = &summary->rows[number].key;

		if (other->a == key->a && other->b == key->b && other->flags == key->flags)
			return number;
	}
	return NONE;
}

static int add_row(struct memwatch_summary *summary, const struct key *key, uint32_t *ret)
{
	struct row *row;

	if (mw_array_reserve(summary->rows, summary->max_rows, summary->nr_rows + 1) ||
	    mw_levels_add_row(&summary->levels) ||
	    mw_index_insert(&summary->row_index, key_hash(summary, key), summary->nr_rows))
		return -ENOMEM;
	row = &summary->rows[summary->nr_rows];
	memset(row, 0, sizeof(*row));
	row->key = *key;
	row->whole.seen.flags = key->flags;
	row->whole.seen.cpu = MEMWATCH_CPU_ANY;
	*ret = summary->nr_rows++;
	return 0;
}

static int obtain_row(struct memwatch_summary *summary, const struct key *key, uint32_t *ret)
{
	static const struct key rest = { .flags = MEMWATCH_ROW_OTHER };
	uint32_t at = find_row(summary, key);
	int err = 0;

	if (at == NONE && !(key->flags & MEMWATCH_ROW_OTHER) &&
	    summary->nr_rows < summary->opts.rows_max) {
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
		     const struct mw_slot_entry *entry, struct key *key)
{
	const struct memwatch_process *process = entry->seen.process;
	uint64_t assignment = (uint64_t)entry->seen.rmid << 32 | entry->seen.generation;

	*key = (struct key){ 0 };
	if (mw_slot_entry_is_other(entry) && summary->opts.by != MEMWATCH_BY_SLOT) {
		key->flags = MEMWATCH_ROW_OTHER;
		return;
	}
	switch (summary->opts.by) {
	case MEMWATCH_BY_CPU:
		key->a = entry->seen.cpu;
		return;
	case MEMWATCH_BY_SLOT:
		/* A late slot may contain parts of several slots; they share one row. */
		key->a = slot->begin_ns;
		key->flags = slot->flags & MEMWATCH_SLOT_LATE ? MEMWATCH_ROW_LATE : 0;
		return;
	case MEMWATCH_BY_CGROUP:
		key->a = process ? process->cgroup_id : 0;
		return;
	default:
		break;
	}
	if (mw_slot_entry_is_unassigned(entry))
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

/* Adds an RMID to the list of a row. Returns 0, -ENOSPC or -ENOMEM. */
static int list_rmid(struct memwatch_summary *summary, uint32_t at,
		     const struct mw_slot_entry *entry)
{
	struct row *row = &summary->rows[at];
	struct memwatch_summary_rmid rmid = { entry->seen.rmid, entry->seen.generation };
	uint32_t nr = row->whole.seen.nr_rmids;
	int err;

	/* The processes of a cgroup that have no RMID are only counted. */
	if (summary->opts.by == MEMWATCH_BY_CGROUP && entry->seen.process && !rmid.rmid)
		return mw_row_members_add(&summary->members, at, rmid.rmid, rmid.generation,
					  MW_NO_PLACE);
	/* Most rows have one RMID, which needs no array. */
	if (nr && mw_array_reserve(row->whole.rmids, row->whole.max_rmids, nr + 1))
		return -ENOMEM;
	err = mw_row_members_add(&summary->members, at, entry->seen.rmid, entry->seen.generation,
				 nr);
	if (err)
		return err;
	if (!nr)
		row->whole.rmid = rmid;
	if (nr == 1)
		row->whole.rmids[0] = row->whole.rmid;
	if (nr)
		row->whole.rmids[nr] = rmid;
	row->whole.seen.nr_rmids++;
	return 0;
}

static int note_assignment(struct memwatch_summary *summary, uint32_t at,
			   const struct mw_slot_entry *entry)
{
	struct mw_row_member *member = mw_row_members_find(&summary->members, at, entry->seen.rmid,
							   entry->seen.generation);
	struct row *row = &summary->rows[at];
	bool appeared = true;

	if (member) {
		appeared = mw_row_member_note(member, entry->seen.generation);
		if (member->at == MW_NO_PLACE)
			return 0;
		if (row->whole.seen.nr_rmids > 1)
			row->whole.rmids[member->at].generation = member->newest;
		else
			row->whole.rmid.generation = member->newest;
	} else {
		int err = list_rmid(summary, at, entry);

		if (err)
			return err == -ENOSPC ? 0 : err;
	}
	row->whole.seen.processes += appeared && entry->seen.process &&
				     summary->opts.by == MEMWATCH_BY_CGROUP;
	/* How long it waited for an RMID that it had before the time of the rows is not theirs. */
	if (appeared && entry->seen.process &&
	    entry->seen.process->alloc_time_ns >= summary->covered.begin_ns)
		row->unmeasured_ns += entry->seen.process->unmeasured_ns;
	return 0;
}

static void describe_row(struct memwatch_summary *summary, struct row *row,
			 const struct memwatch_slot *slot, const struct mw_slot_entry *entry)
{
	const struct memwatch_process *process = entry->seen.process;

	if (row->key.flags & MEMWATCH_ROW_OTHER)
		return;
	if (summary->opts.by == MEMWATCH_BY_SLOT) {
		row->whole.seen.first_ns = slot->begin_ns;
		row->whole.seen.last_ns = slot->end_ns;
	}
	if (summary->opts.by == MEMWATCH_BY_CPU)
		row->whole.seen.cpu = entry->seen.cpu;
	if (!process || summary->opts.by > MEMWATCH_BY_RMID)
		return;
	row->whole.seen.cgroup_id = process->cgroup_id;
	memcpy(row->whole.seen.comm, process->comm, sizeof(row->whole.seen.comm));
	if (summary->opts.by == MEMWATCH_BY_CGROUP)
		return;
	row->whole.seen.tgid = process->tgid;
	row->whole.seen.start_time_ns = process->start_time_ns;
	row->whole.seen.uid = process->uid;
	row->whole.seen.processes = 1;
}

/* What the row learns of its process even if the entry only tells the end of it. */
static void note_life(const struct memwatch_summary *summary, struct row *row,
		      const struct memwatch_slot *slot, const struct mw_slot_entry *entry)
{
	const struct memwatch_process *process = entry->seen.process;
	uint32_t by = summary->opts.by;

	if (by == MEMWATCH_BY_SLOT)
		mw_row_life_extend(&row->life, slot->begin_ns, slot->end_ns);
	/* Of a cgroup, there may be processes that no record names. The rest has many processes. */
	else if (!process || (by != MEMWATCH_BY_PROCESS && by != MEMWATCH_BY_RMID) ||
		 row->key.flags & MEMWATCH_ROW_OTHER)
		mw_row_life_extend(&row->life, 0, MW_TIME_MAX);
	else
		mw_row_life_follow(&row->life, process);
	row->partial |= process && mw_row_lacks_time(process, summary->covered.begin_ns);
}

/* Whether an entry has something to say in a row; otherwise it only tells an end. */
static bool has_values(const struct memwatch_summary *summary, const struct mw_slot_entry *entry)
{
	return mw_slot_entry_is_measured(entry) ||
	       mw_levels_hold(&summary->levels, entry->seen.rmid, entry->seen.generation);
}

/* ------------------------------------------------------------------ sums */

static void visit_row(struct memwatch_summary *summary, struct row *row,
		      const struct memwatch_slot *slot)
{
	if (row->visited == summary->visit)
		return;
	row->visited = summary->visit;
	row->whole.seen.slots += !(slot->flags & MEMWATCH_SLOT_LATE);
	if (!row->whole.seen.last_ns || slot->begin_ns < row->whole.seen.first_ns)
		row->whole.seen.first_ns = slot->begin_ns;
	row->whole.seen.last_ns = mw_max_u64(row->whole.seen.last_ns, slot->end_ns);
}

static void add_entry(struct memwatch_summary *summary, struct row *row,
		      const struct memwatch_slot *slot, const struct mw_slot_entry *entry)
{
	/*
	 * An RDT reading alone does not mean that the process ran: its dirty cache lines may be
	 * written back after its end.
	 */
	if (entry->seen.samples)
		visit_row(summary, row, slot);
	row->whole.seen.samples += entry->seen.samples;
	memwatch_value_merge(&row->whole.seen.cpu_time_ns, &entry->seen.cpu_time_ns);
	for (int i = 0; i < MEMWATCH_COUNTER_MAX; i++)
		memwatch_value_merge(&row->whole.counter[i], &entry->counter[i]);
	memwatch_value_merge(&row->whole.seen.residue, &entry->seen.residue);
	memwatch_value_merge(&row->whole.seen.mbm_total, &entry->rdt[MEMWATCH_RDT_MBM_TOTAL]);
	memwatch_value_merge(&row->whole.seen.mbm_local, &entry->rdt[MEMWATCH_RDT_MBM_LOCAL]);
}

/* Adds entry number @number, and returns in @at the number of its row, or MW_NO_ROW. */
static int feed_entry(struct memwatch_summary *summary, const struct mw_slot_given *given,
		      uint32_t number, uint32_t *at)
{
	const struct mw_slot_entry *entry = &given->entries[number];
	const struct memwatch_slot *slot = &given->seen;
	bool listed = summary->opts.by <= MEMWATCH_BY_RMID;
	struct key key;
	struct row *row;
	int err;

	*at = MW_NO_ROW;

	add_entry(summary, &summary->total, slot, entry);
	/* RDT measures a cache, which no single CPU owns. */
	if (summary->opts.by == MEMWATCH_BY_CPU && entry->seen.cpu == MEMWATCH_CPU_ANY &&
	    !mw_slot_entry_is_other(entry))
		return 0;
	make_key(summary, slot, entry, &key);
	if (!has_values(summary, entry)) {
		/* The end of a process that has no row makes none. */
		*at = find_row(summary, &key);
		if (*at != MW_NO_ROW)
			note_life(summary, &summary->rows[*at], slot, entry);
		return 0;
	}
	err = obtain_row(summary, &key, at);
	if (err)
		return err;
	row = &summary->rows[*at];
	note_life(summary, row, slot, entry);
	describe_row(summary, row, slot, entry);
	add_entry(summary, row, slot, entry);
	if (listed && !(row->key.flags & MEMWATCH_ROW_OTHER))
		return note_assignment(summary, *at, entry);
	return 0;
}

/* The time of the rows begins with the first slot, or where the rows before them ended. */
static void cover_slot(struct memwatch_summary *summary, const struct memwatch_slot *slot)
{
	if (slot->flags & MEMWATCH_SLOT_LATE)
		return;
	if (!summary->covered.begin_ns)
		summary->covered.begin_ns = slot->begin_ns;
	summary->covered.end_ns = mw_max_u64(summary->covered.end_ns, slot->end_ns);
}

/* What was read before the range holds in it, but is in no row yet. */
static int feed_earlier(struct memwatch_summary *summary, const struct mw_slot_given *slot)
{
	int err = 0;

	mw_levels_begin(&summary->levels);
	for (uint32_t i = 0; i < slot->seen.nr_entries && !err; i++)
		err = mw_levels_note(&summary->levels, slot, i, MW_NO_ROW);
	return err ? err : mw_levels_apply(&summary->levels, slot);
}

static int feed_entries(struct memwatch_summary *summary, const struct mw_slot_given *slot)
{
	bool by_slot = summary->opts.by == MEMWATCH_BY_SLOT;
	uint32_t at = MW_NO_ROW;
	int err = 0;

	mw_levels_begin(&summary->levels);
	for (uint32_t i = 0; i < slot->seen.nr_entries && !err; i++) {
		err = feed_entry(summary, slot, i, &at);
		if (!err)
			err = mw_levels_note(&summary->levels, slot, i, by_slot ? MW_NO_ROW : at);
	}
	if (err)
		return err;
	if (by_slot && at != MW_NO_ROW && !(slot->seen.flags & MEMWATCH_SLOT_LATE))
		return mw_levels_apply_to(&summary->levels, slot, at);
	return mw_levels_apply(&summary->levels, slot);
}

int memwatch_summary_feed(struct memwatch_summary *summary, const struct memwatch_slot *slot)
{
	const struct mw_slot_given *given = mw_slot_given_of(slot);

	/* A loss before the range may go on in it. */
	for (uint32_t i = 0; i < slot->nr_losses; i++)
		if (mw_losses_add(&summary->losses, &given->losses[i]))
			return mw_fail_memory(summary->ctx, "summary");
	if (summary->opts.to_ns && slot->begin_ns >= summary->opts.to_ns) {
		summary->covered.end_ns = mw_max_u64(summary->covered.end_ns, summary->opts.to_ns);
		return 0;
	}
	if (slot->begin_ns < summary->opts.from_ns)
		return feed_earlier(summary, given) ? mw_fail_memory(summary->ctx, "summary") : 0;
	cover_slot(summary, slot);
	if (!summary->in_range)
		mw_levels_restart(&summary->levels, summary->covered.begin_ns);
	summary->in_range = true;
	summary->visit++;
	summary->nr_order = 0;
	return feed_entries(summary, given) ? mw_fail_memory(summary->ctx, "summary") : 1;
}

/* --------------------------------------------------------------- reading */

/* If records of the time of the row were lost, all its values are lower bounds. */
static void mark_row(const struct memwatch_summary *summary, struct row *row)
{
	uint64_t begin_ns = mw_max_u64(row->life.begin_ns, summary->covered.begin_ns);
	uint64_t end_ns = mw_min_u64(row->life.end_ns, summary->covered.end_ns);

	if (mw_losses_touch(&summary->losses, row->whole.seen.cpu, begin_ns, end_ns))
		mw_summary_row_mark(&row->whole);
}

/* What holds now does so up to the end of the last slot. */
static void fill_occupancy(const struct memwatch_summary *summary, struct row *row,
			   const struct mw_occupancy *occupancy)
{
	row->whole.seen.occupancy_mean = mw_occupancy_mean(occupancy, summary->covered.end_ns);
	row->whole.seen.occupancy_max = mw_occupancy_max(occupancy);
}

int memwatch_summary_sort(struct memwatch_summary *summary, unsigned int key, bool descending)
{
	struct mw_row_order order;
	struct mw_row_place *places;

	if (mw_row_order_init(&order, key, descending))
		return mw_fail(summary->ctx, -EINVAL, "summary: no sort key %u", key);
	summary->nr_order = 0;
	if (key == MEMWATCH_SORT_NONE || !summary->nr_rows)
		return 0;

	places = calloc(summary->nr_rows, sizeof(*places));
	if (!places || mw_array_reserve(summary->order, summary->max_order, summary->nr_rows)) {
		free(places);
		return mw_fail_memory(summary->ctx, "summary");
	}
	for (uint32_t i = 0; i < summary->nr_rows; i++) {
		fill_occupancy(summary, &summary->rows[i], &summary->levels.rows[i]);
		places[i] = mw_row_order_place(&order, &summary->rows[i].whole.seen, i);
	}
	mw_row_order_sort(&order, places, summary->nr_rows);
	for (uint32_t i = 0; i < summary->nr_rows; i++)
		summary->order[i] = places[i].row;
	free(places);
	summary->nr_order = summary->nr_rows;
	return 0;
}

int memwatch_summary_next(struct memwatch_summary *summary, size_t *position,
			  const struct memwatch_summary_row **ret)
{
	uint32_t number = (uint32_t)*position;
	struct row *row;

	if (*position >= summary->nr_rows)
		return 0;
	if (summary->nr_order)
		number = summary->order[number];
	row = &summary->rows[number];
	(*position)++;
	fill_occupancy(summary, row, &summary->levels.rows[number]);
	if (summary->opts.by <= MEMWATCH_BY_CGROUP)
		mw_row_share(&row->whole, row->unmeasured_ns, row->partial);
	mark_row(summary, row);
	*ret = &row->whole.seen;
	return 1;
}

int memwatch_summary_get_total(struct memwatch_summary *summary,
			       const struct memwatch_summary_row **ret)
{
	if (summary->in_range)
		fill_occupancy(summary, &summary->total, &summary->levels.total);
	mark_row(summary, &summary->total);
	*ret = &summary->total.whole.seen;
	return 0;
}
