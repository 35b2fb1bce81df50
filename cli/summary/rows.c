// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * From the library's summary to cells.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "summary/rows.h"

const char *const mw_by_names[] = { "process", "cgroup", "rmid", "cpu", "slot", NULL };
const char *const mw_by_arrays[] = { "processes", "cgroups", "rmids", "cpus", "slots", NULL };

static const struct {
	unsigned int key;
	bool descending;
} sorts[] = {
	{ MEMWATCH_SORT_CPU_TIME, true },     { MEMWATCH_SORT_CYCLES, true },
	{ MEMWATCH_SORT_INSTRUCTIONS, true }, { MEMWATCH_SORT_IPC, true },
	{ MEMWATCH_SORT_LLC_MISSES, true },   { MEMWATCH_SORT_OCCUPANCY, true },
	{ MEMWATCH_SORT_MBM_TOTAL, true },    { MEMWATCH_SORT_MBM_LOCAL, true },
	{ MEMWATCH_SORT_SLOTS, true },	      { MEMWATCH_SORT_FIRST, false },
	{ MEMWATCH_SORT_TGID, false },	      { MEMWATCH_SORT_COMM, false },
	{ MEMWATCH_SORT_CPU, false },
};

const char *const mw_sort_names[] = { "cpu-time",   "cycles", "instructions", "ipc",
				      "llc-misses", "llc",    "mbm-total",    "mbm-local",
				      "slots",	    "first",  "pid",	      "comm",
				      "cpu",	    NULL };

unsigned int mw_sort_key(int name, bool *descending)
{
	*descending = sorts[name].descending;
	return sorts[name].key;
}

int mw_sort_default(unsigned int by)
{
	switch (by) {
	case MEMWATCH_BY_CPU:
		return 12;
	case MEMWATCH_BY_SLOT:
		return 9;
	default:
		return 0;
	}
}

/* ----------------------------------------------------------------- pool */

struct chunk {
	struct chunk *next;
	size_t used;
	char data[16384] __attribute__((aligned(8)));
};

void *mw_pool_alloc(struct mw_pool *pool, size_t bytes)
{
	struct chunk *chunk = pool->chunks;
	void *data;

	bytes = (bytes + 7) & ~(size_t)7;
	if (!chunk || chunk->used + bytes > sizeof(chunk->data)) {
		size_t extra = bytes > sizeof(chunk->data) ? bytes - sizeof(chunk->data) : 0;

		chunk = malloc(sizeof(*chunk) + extra);
		if (!chunk)
			return NULL;
		chunk->next = pool->chunks;
		chunk->used = 0;
		pool->chunks = chunk;
	}
	data = chunk->data + chunk->used;
	chunk->used += bytes;
	return data;
}

void mw_pool_free(struct mw_pool *pool)
{
	struct chunk *chunk = pool->chunks;

	while (chunk) {
		struct chunk *next = chunk->next;

		free(chunk);
		chunk = next;
	}
	pool->chunks = NULL;
}

/* -------------------------------------------------------------- columns */

#define M MW_COLUMN_MEASURED
#define H MW_COLUMN_HIDDEN

/* Identities: in the order of the table. */
static const struct mw_column id_tgid = { "tgid", "PID", MW_KIND_UINT, 0, 0 };
static const struct mw_column id_start = { "start_time_ns", "STARTED", MW_KIND_UINT, MW_UNIT_NS,
					   H };
static const struct mw_column id_comm = { "comm", "COMMAND", MW_KIND_TEXT, 0, 0 };
static const struct mw_column id_rmids = { "rmids", "RMID", MW_KIND_LIST, 0, MW_COLUMN_LEFT };
static const struct mw_column id_uid = { "uid", "UID", MW_KIND_UINT, 0, H };
static const struct mw_column id_cgroup = { "cgroup_id", "CGROUP", MW_KIND_UINT, 0, H };
static const struct mw_column id_cgroup_row = { "cgroup_id", "CGROUP", MW_KIND_UINT, 0, 0 };
static const struct mw_column id_processes = { "processes", "PROCESSES", MW_KIND_UINT, 0, 0 };
static const struct mw_column id_rmid = { "rmid", "RMID", MW_KIND_UINT, 0, 0 };
static const struct mw_column id_generation = { "generation", "GEN", MW_KIND_UINT, 0, 0 };
static const struct mw_column id_cpu = { "cpu", "CPU", MW_KIND_UINT, 0, 0 };
static const struct mw_column id_late = { "late", "LATE", MW_KIND_BOOL, 0, 0 };
static const struct mw_column id_end = { NULL, NULL, 0, 0, 0 };

#define IDENTITIES_MAX 8

static const struct mw_column *const identities[][IDENTITIES_MAX] = {
	[MEMWATCH_BY_PROCESS] = { &id_tgid, &id_start, &id_comm, &id_rmids, &id_uid, &id_cgroup,
				  &id_end },
	[MEMWATCH_BY_CGROUP] = { &id_cgroup_row, &id_processes, &id_comm, &id_end },
	[MEMWATCH_BY_RMID] = { &id_rmid, &id_generation, &id_tgid, &id_start, &id_comm, &id_uid,
			       &id_cgroup, &id_end },
	[MEMWATCH_BY_CPU] = { &id_cpu, &id_end },
	[MEMWATCH_BY_SLOT] = { &id_late, &id_end },
};

enum {
	SLOTS,
	FIRST,
	LAST,
	CPU_TIME,
	CYCLES,
	INSTRUCTIONS,
	IPC,
	REFERENCES,
	MISSES,
	OCCUPANCY,
	OCCUPANCY_MAX,
	RESIDUE,
	TOTAL,
	LOCAL,
	NR_VALUES,
};

static const struct mw_column values[NR_VALUES] = {
	[SLOTS] = { "slots", "SLOTS", MW_KIND_UINT, 0, 0 },
	[FIRST] = { "first_ns", "FROM", MW_KIND_UINT, MW_UNIT_MOMENT, 0 },
	[LAST] = { "last_ns", "TO", MW_KIND_UINT, MW_UNIT_MOMENT, 0 },
	[CPU_TIME] = { "cpu_time_ns", "CPU TIME", MW_KIND_UINT, MW_UNIT_NS, M },
	[CYCLES] = { "cycles", "CYCLES", MW_KIND_UINT, MW_UNIT_COUNT, M },
	[INSTRUCTIONS] = { "instructions", "INSTR", MW_KIND_UINT, MW_UNIT_COUNT, M },
	[IPC] = { "ipc", "IPC", MW_KIND_DOUBLE, MW_UNIT_RATIO, M },
	[REFERENCES] = { "llc_references", "LLC REFS", MW_KIND_UINT, MW_UNIT_COUNT, M | H },
	[MISSES] = { "llc_misses", "LLC MISS", MW_KIND_UINT, MW_UNIT_COUNT, M },
	[OCCUPANCY] = { "llc_occupancy_bytes", "LLC", MW_KIND_UINT, MW_UNIT_BYTES, M },
	[OCCUPANCY_MAX] = { "llc_occupancy_max_bytes", "LLC MAX", MW_KIND_UINT, MW_UNIT_BYTES,
			    M | H },
	[RESIDUE] = { "llc_residue_bytes", "LLC OLD", MW_KIND_UINT, MW_UNIT_BYTES, M | H },
	[TOTAL] = { "mbm_total_bytes", "MEMORY", MW_KIND_UINT, MW_UNIT_BYTES, M },
	[LOCAL] = { "mbm_local_bytes", "LOCAL", MW_KIND_UINT, MW_UNIT_BYTES, M },
};

void mw_rows_init(struct mw_rows *rows, unsigned int by, uint64_t origin_ns)
{
	*rows = (struct mw_rows){ .by = by, .origin_ns = origin_ns };
	for (size_t i = 0; identities[by][i]->key; i++)
		rows->columns[rows->nr_columns++] = *identities[by][i];
	for (size_t i = 0; by == MEMWATCH_BY_PROCESS && i < MW_GROWTH_LATEST_COLUMNS; i++) {
		rows->columns[rows->nr_columns] = mw_growth_latest_columns[i];
		rows->columns[rows->nr_columns++].flags |= H; /* until something is known */
	}
	for (size_t i = 0; i < NR_VALUES; i++) {
		rows->columns[rows->nr_columns] = values[i];
		if (by == MEMWATCH_BY_SLOT && i == SLOTS)
			rows->columns[rows->nr_columns].flags |= H;
		rows->nr_columns++;
	}
}

void mw_rows_uninit(struct mw_rows *rows)
{
	mw_growth_latest_uninit(&rows->growth);
}

/* The columns of growth are the last before the values. */
static size_t growth_at(const struct mw_rows *rows)
{
	return rows->nr_columns - NR_VALUES -
	       (rows->by == MEMWATCH_BY_PROCESS ? MW_GROWTH_LATEST_COLUMNS : 0);
}

int mw_rows_growth(struct mw_rows *rows, const struct memwatch_record_growth *record)
{
	if (rows->by != MEMWATCH_BY_PROCESS)
		return 0;
	for (size_t i = 0; i < MW_GROWTH_LATEST_COLUMNS; i++)
		rows->columns[growth_at(rows) + i].flags &= ~H;
	return mw_growth_latest_update(&rows->growth, record);
}

/* ---------------------------------------------------------------- cells */

struct mw_cell mw_measured(const struct memwatch_value *value)
{
	return (struct mw_cell){ .number = value->value, .status = value->status };
}

struct mw_cell mw_ipc(const struct memwatch_summary_row *row)
{
	const struct memwatch_value *cycles = &row->counter[MEMWATCH_COUNTER_CYCLES];
	const struct memwatch_value *instructions = &row->counter[MEMWATCH_COUNTER_INSTRUCTIONS];
	struct mw_cell cell = { .status = MEMWATCH_STATUS_UNAVAILABLE };

	if (!mw_status_has_value(cycles->status) || !mw_status_has_value(instructions->status) ||
	    !cycles->value)
		return cell;
	cell.status = memwatch_status_worst(cycles->status, instructions->status);
	cell.real = (double)instructions->value / (double)cycles->value;
	return cell;
}

int mw_rmid_list(const struct memwatch_summary_row *row, struct mw_pool *pool, struct mw_list *ret)
{
	uint32_t *list = mw_pool_alloc(pool, (row->nr_rmids + !row->nr_rmids) * sizeof(*list));
	size_t nr = 0;

	if (!list)
		return -ENOMEM;
	for (uint32_t i = 0; i < row->nr_rmids; i++) {
		size_t j = 0;

		while (j < nr && list[j] != row->rmids[i].rmid)
			j++;
		if (j == nr)
			list[nr++] = row->rmids[i].rmid;
	}
	*ret = (struct mw_list){ list, nr };
	return 0;
}

const char *mw_row_name(const struct memwatch_summary_row *row, unsigned int by)
{
	if (row->flags & MEMWATCH_ROW_OTHER)
		return "(others)";
	if (row->flags & MEMWATCH_ROW_UNASSIGNED || (by == MEMWATCH_BY_CGROUP && !row->cgroup_id))
		return "(unassigned)";
	if (row->flags & MEMWATCH_ROW_UNKNOWN)
		return "(unknown)";
	return row->comm;
}

static int fill_identity(const struct mw_rows *rows, const struct memwatch_summary_row *row,
			 const char *key, struct mw_pool *pool, struct mw_cell *cell)
{
	bool known = !(row->flags &
		       (MEMWATCH_ROW_UNASSIGNED | MEMWATCH_ROW_UNKNOWN | MEMWATCH_ROW_OTHER));

	*cell = (struct mw_cell){ .missing = !known };
	if (!strcmp(key, "rmids"))
		return mw_rmid_list(row, pool, &cell->list) ?: (cell->missing = false);
	if (!strcmp(key, "comm")) {
		const char *name = mw_row_name(row, rows->by);
		char *copy = mw_pool_alloc(pool, strlen(name) + 1);

		if (!copy)
			return -ENOMEM;
		*cell = (struct mw_cell){ .text = strcpy(copy, name) };
	} else if (!strcmp(key, "tgid")) {
		cell->number = row->tgid;
	} else if (!strcmp(key, "start_time_ns")) {
		cell->number = row->start_time_ns;
	} else if (!strcmp(key, "uid")) {
		cell->number = row->uid;
	} else if (!strcmp(key, "cgroup_id")) {
		*cell = (struct mw_cell){ .number = row->cgroup_id, .missing = !row->cgroup_id };
	} else if (!strcmp(key, "processes")) {
		*cell = (struct mw_cell){ .number = row->processes, .missing = !row->cgroup_id };
	} else if (!strcmp(key, "cpu")) {
		*cell = (struct mw_cell){ .number = row->cpu,
					  .missing = row->cpu == MEMWATCH_CPU_ANY };
	} else if (!strcmp(key, "late")) {
		*cell = (struct mw_cell){ .truth = row->flags & MEMWATCH_ROW_LATE };
	} else if (row->nr_rmids) {
		bool rmid = !strcmp(key, "rmid");

		*cell = (struct mw_cell){ .number = rmid ? row->rmids[0].rmid
							 : row->rmids[0].generation };
	}
	return 0;
}

static void fill_values(const struct mw_rows *rows, const struct memwatch_summary_row *row,
			struct mw_cell *cells)
{
	uint64_t origin = rows->origin_ns;

	cells[SLOTS] = (struct mw_cell){ .number = row->slots };
	cells[FIRST] = (struct mw_cell){ .number = row->first_ns > origin ? row->first_ns - origin
									  : 0 };
	cells[LAST] = (struct mw_cell){ .number = row->last_ns > origin ? row->last_ns - origin
									: 0 };
	/* Nothing ran, there is only a reading: then there is no first and last. */
	cells[FIRST].missing = cells[LAST].missing = !row->last_ns;
	cells[CPU_TIME] = mw_measured(&row->cpu_time_ns);
	cells[CYCLES] = mw_measured(&row->counter[MEMWATCH_COUNTER_CYCLES]);
	cells[INSTRUCTIONS] = mw_measured(&row->counter[MEMWATCH_COUNTER_INSTRUCTIONS]);
	cells[IPC] = mw_ipc(row);
	cells[REFERENCES] = mw_measured(&row->counter[MEMWATCH_COUNTER_LLC_REFERENCES]);
	cells[MISSES] = mw_measured(&row->counter[MEMWATCH_COUNTER_LLC_MISSES]);
	cells[OCCUPANCY] = mw_measured(&row->occupancy_mean);
	cells[OCCUPANCY_MAX] = mw_measured(&row->occupancy_max);
	cells[RESIDUE] = mw_measured(&row->residue);
	cells[TOTAL] = mw_measured(&row->mbm_total);
	cells[LOCAL] = mw_measured(&row->mbm_local);
}

int mw_rows_fill(const struct mw_rows *rows, const struct memwatch_summary_row *row,
		 struct mw_pool *pool, struct mw_cell *cells)
{
	size_t nr = growth_at(rows);

	for (size_t i = 0; i < nr; i++) {
		int err = fill_identity(rows, row, rows->columns[i].key, pool, &cells[i]);

		if (err)
			return err;
	}
	if (rows->by == MEMWATCH_BY_PROCESS)
		mw_growth_latest_fill_cells(
			mw_growth_latest_find(&rows->growth, row->tgid, row->start_time_ns),
			cells + nr);
	fill_values(rows, row, cells + rows->nr_columns - NR_VALUES);
	return 0;
}
