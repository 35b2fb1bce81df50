// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Rows of the library's summary as cells: identity, growth, activity, metrics.
 */
#include <errno.h>

#include "summary/rows.h"

const char *const mw_by_names[] = { "process", "cgroup", "rmid", "cpu", "slot", NULL };
const char *const mw_by_arrays[] = { "processes", "cgroups", "rmids", "cpus", "slots", NULL };

int mw_sort_default(unsigned int by)
{
	switch (by) {
	case MEMWATCH_BY_CPU:
		return mw_sort_find(MEMWATCH_SORT_CPU);
	case MEMWATCH_BY_SLOT:
		return mw_sort_find(MEMWATCH_SORT_FIRST);
	default:
		return mw_sort_find(MEMWATCH_SORT_CPU_TIME);
	}
}

/* ------------------------------------------------------------- identity */

int mw_rmid_list(const struct memwatch_summary_row *row, struct mw_pool *pool, struct mw_list *ret)
{
	uint32_t *list = mw_pool_alloc(pool, (row->nr_rmids + !row->nr_rmids) * sizeof(*list));

	if (!list)
		return -ENOMEM;
	for (uint32_t i = 0; i < row->nr_rmids; i++)
		list[i] = memwatch_summary_rmid_at(row, i)->rmid;
	*ret = (struct mw_list){ list, row->nr_rmids };
	return 0;
}

bool mw_row_is_unassigned(const struct memwatch_summary_row *row, unsigned int by)
{
	if (row->flags & MEMWATCH_ROW_OTHER)
		return false;
	return row->flags & MEMWATCH_ROW_UNASSIGNED ||
	       (by == MEMWATCH_BY_CGROUP && !row->cgroup_id);
}

const char *mw_row_name(const struct memwatch_summary_row *row, unsigned int by)
{
	if (row->flags & MEMWATCH_ROW_OTHER)
		return "(others)";
	if (mw_row_is_unassigned(row, by))
		return "(unassigned)";
	if (row->flags & MEMWATCH_ROW_UNKNOWN)
		return "(unknown)";
	return row->comm;
}

#define H	MW_COLUMN_HIDDEN
#define ALL_PPM 1000000

/* What says which process, cgroup, RMID, CPU or slot a row is about. */
enum identity {
	ID_END,
	ID_TGID,
	ID_START_TIME,
	ID_COMM,
	ID_RMIDS,
	ID_UID,
	ID_PROCESS_CGROUP,
	ID_CGROUP,
	ID_PROCESSES,
	ID_RMID,
	ID_GENERATION,
	ID_CPU,
	ID_LATE,
};

static const struct mw_column identity_columns[] = {
	[ID_TGID] = { "tgid", "PID", MW_KIND_UINT, 0, 0 },
	[ID_START_TIME] = { "start_time_ns", "STARTED", MW_KIND_UINT, MW_UNIT_NS, H },
	[ID_COMM] = { "comm", "COMMAND", MW_KIND_TEXT, 0, 0 },
	[ID_RMIDS] = { "rmids", "RMID", MW_KIND_LIST, 0, MW_COLUMN_LEFT },
	[ID_UID] = { "uid", "UID", MW_KIND_UINT, 0, H },
	[ID_PROCESS_CGROUP] = { "cgroup_id", "CGROUP", MW_KIND_UINT, 0, H },
	[ID_CGROUP] = { "cgroup_id", "CGROUP", MW_KIND_UINT, 0, 0 },
	[ID_PROCESSES] = { "processes", "PROCESSES", MW_KIND_UINT, 0, 0 },
	[ID_RMID] = { "rmid", "RMID", MW_KIND_UINT, 0, 0 },
	[ID_GENERATION] = { "generation", "GEN", MW_KIND_UINT, 0, 0 },
	[ID_CPU] = { "cpu", "CPU", MW_KIND_UINT, 0, 0 },
	[ID_LATE] = { "late", "LATE", MW_KIND_BOOL, 0, 0 },
};

/* By &enum memwatch_summary_by, in the order of the columns; each list ends with ID_END. */
static const enum identity identities[][MW_ROWS_IDENTITIES + 1] = {
	[MEMWATCH_BY_PROCESS] = { ID_TGID, ID_START_TIME, ID_COMM, ID_RMIDS, ID_UID,
				  ID_PROCESS_CGROUP },
	[MEMWATCH_BY_CGROUP] = { ID_CGROUP, ID_PROCESSES, ID_COMM },
	[MEMWATCH_BY_RMID] = { ID_RMID, ID_GENERATION, ID_TGID, ID_START_TIME, ID_COMM, ID_UID,
			       ID_PROCESS_CGROUP },
	[MEMWATCH_BY_CPU] = { ID_CPU },
	[MEMWATCH_BY_SLOT] = { ID_LATE },
};

static int fill_identity(const struct mw_rows *rows, const struct memwatch_summary_row *row,
			 enum identity id, struct mw_pool *pool, struct mw_cell *cell)
{
	const struct memwatch_summary_rmid *rmid = memwatch_summary_rmid_at(row, 0);
	bool known = !(row->flags &
		       (MEMWATCH_ROW_UNASSIGNED | MEMWATCH_ROW_UNKNOWN | MEMWATCH_ROW_OTHER));

	*cell = (struct mw_cell){ .missing = !known };
	switch (id) {
	case ID_TGID:
		cell->number = row->tgid;
		break;
	case ID_START_TIME:
		cell->number = row->start_time_ns;
		break;
	case ID_COMM:
		*cell = (struct mw_cell){ .text = mw_pool_copy(pool, mw_row_name(row, rows->by)) };
		return cell->text ? 0 : -ENOMEM;
	case ID_RMIDS:
		cell->missing = false;
		return mw_rmid_list(row, pool, &cell->list);
	case ID_UID:
		cell->number = row->uid;
		break;
	case ID_PROCESS_CGROUP:
	case ID_CGROUP:
		*cell = (struct mw_cell){ .number = row->cgroup_id, .missing = !row->cgroup_id };
		break;
	case ID_PROCESSES:
		*cell = (struct mw_cell){ .number = row->processes, .missing = !row->cgroup_id };
		break;
	case ID_RMID:
		if (rmid)
			*cell = (struct mw_cell){ .number = rmid->rmid };
		break;
	case ID_GENERATION:
		if (rmid)
			*cell = (struct mw_cell){ .number = rmid->generation };
		break;
	case ID_CPU:
		*cell = (struct mw_cell){ .number = row->cpu,
					  .missing = row->cpu == MEMWATCH_CPU_ANY };
		break;
	case ID_LATE:
		*cell = (struct mw_cell){ .truth = row->flags & MEMWATCH_ROW_LATE };
		break;
	case ID_END:
		break;
	}
	return 0;
}

/* When the row was active; the columns behind these are those of the metrics. */
enum { SLOTS, FIRST, LAST, NR_ACTIVITIES };

static const struct mw_column activities[NR_ACTIVITIES] = {
	[SLOTS] = { "slots", "SLOTS", MW_KIND_UINT, 0, 0 },
	[FIRST] = { "first_ns", "FROM", MW_KIND_UINT, MW_UNIT_MOMENT, 0 },
	[LAST] = { "last_ns", "TO", MW_KIND_UINT, MW_UNIT_MOMENT, 0 },
};

static void add_column(struct mw_rows *rows, const struct mw_column *column, unsigned int flags)
{
	rows->columns[rows->nr_columns] = *column;
	rows->columns[rows->nr_columns++].flags |= flags;
}

void mw_rows_init(struct mw_rows *rows, unsigned int by, uint64_t origin_ns)
{
	const struct memwatch_metric_info *metric;

	*rows = (struct mw_rows){ .by = by, .origin_ns = origin_ns, .name = MW_ROWS_COLUMNS };
	for (const enum identity *id = identities[by]; *id != ID_END; id++) {
		if (*id == ID_COMM)
			rows->name = rows->nr_columns;
		add_column(rows, &identity_columns[*id], 0);
	}
	rows->nr_identities = rows->nr_columns;
	/* The columns of growth are hidden until a record of growth has been read. */
	for (size_t i = 0; by == MEMWATCH_BY_PROCESS && i < MW_GROWTH_LATEST_COLUMNS; i++)
		add_column(rows, &mw_growth_latest_columns[i], H);
	rows->first_value = rows->nr_columns;
	for (size_t i = 0; i < NR_ACTIVITIES; i++)
		add_column(rows, &activities[i], by == MEMWATCH_BY_SLOT && i == SLOTS ? H : 0);
	for (unsigned int i = 0; (metric = memwatch_metric_at(i)); i++) {
		struct mw_column column = mw_metric_column(metric);

		if (rows->nr_columns < MW_ROWS_COLUMNS)
			add_column(rows, &column, 0);
	}
}

void mw_rows_uninit(struct mw_rows *rows)
{
	mw_growth_latest_uninit(&rows->growth);
}

int mw_rows_growth(struct mw_rows *rows, const struct memwatch_record_growth *record)
{
	if (rows->by != MEMWATCH_BY_PROCESS)
		return 0;
	for (size_t i = rows->nr_identities; i < rows->first_value; i++)
		rows->columns[i].flags &= ~H;
	return mw_growth_latest_update(&rows->growth, record);
}

/* ---------------------------------------------------------------- cells */

static struct mw_cell relative_moment(const struct mw_rows *rows, uint64_t time_ns, bool missing)
{
	return (struct mw_cell){
		.number = time_ns > rows->origin_ns ? time_ns - rows->origin_ns : 0,
		.missing = missing,
	};
}

static void fill_values(struct mw_rows *rows, const struct memwatch_summary_row *row,
			struct mw_cell *cells)
{
	/* A process of which there is only an RDT reading did not run at any time. */
	bool idle = !row->last_ns;
	struct mw_cell *metrics = cells + NR_ACTIVITIES;
	size_t nr_metrics = rows->nr_columns - rows->first_value - NR_ACTIVITIES;

	cells[SLOTS] = (struct mw_cell){ .number = row->slots };
	cells[FIRST] = relative_moment(rows, row->first_ns, idle);
	cells[LAST] = relative_moment(rows, row->last_ns, idle);
	for (unsigned int i = 0; i < nr_metrics; i++) {
		struct mw_column *column = &rows->columns[rows->first_value + NR_ACTIVITIES + i];

		metrics[i] = mw_metric_cell(row, memwatch_metric_at(i));
		if (column->unit == MW_UNIT_PPM && mw_status_has_value(metrics[i].status) &&
		    metrics[i].number < ALL_PPM)
			column->flags &= ~H;
	}
}

int mw_rows_fill(struct mw_rows *rows, const struct memwatch_summary_row *row, struct mw_pool *pool,
		 struct mw_cell *cells)
{
	for (size_t i = 0; i < rows->nr_identities; i++) {
		int err = fill_identity(rows, row, identities[rows->by][i], pool, &cells[i]);

		if (err)
			return err;
	}
	if (rows->by == MEMWATCH_BY_PROCESS)
		mw_growth_latest_fill_cells(
			mw_growth_latest_find(&rows->growth, row->tgid, row->start_time_ns),
			cells + rows->nr_identities);
	fill_values(rows, row, cells + rows->first_value);
	return 0;
}
