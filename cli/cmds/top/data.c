// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * top, the data: one interval of the stream as a table, with the memory of
 * each process beside it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/root.h"
#include "cmds/top/top.h"

#define M MW_COLUMN_MEASURED
#define H MW_COLUMN_HIDDEN

static const struct mw_column columns[TOP_NR_COLUMNS] = {
	[TOP_TGID] = { "tgid", "PID", MW_KIND_UINT, 0, 0 },
	[TOP_START] = { "start_time_ns", "STARTED", MW_KIND_UINT, MW_UNIT_NS, H },
	[TOP_UID] = { "uid", "UID", MW_KIND_UINT, 0, H },
	[TOP_CGROUP_ID] = { "cgroup_id", "CGROUP", MW_KIND_UINT, 0, H },
	[TOP_PROCESSES] = { "processes", "PROCS", MW_KIND_UINT, 0, H },
	[TOP_RMIDS] = { "rmids", "RMID", MW_KIND_LIST, 0, 0 },
	[TOP_CPU] = { "cpu_percent", "CPU", MW_KIND_DOUBLE, MW_UNIT_PERCENT, M },
	[TOP_RSS] = { "rss_bytes", "RSS", MW_KIND_UINT, MW_UNIT_BYTES, M },
	[TOP_GROWTH] = { "rss_growth_bytes_per_second", "GROWTH/s", MW_KIND_DOUBLE, MW_UNIT_BYTES,
			 M | MW_COLUMN_CHANGE },
	[TOP_LLC] = { "llc_occupancy_bytes", "LLC", MW_KIND_UINT, MW_UNIT_BYTES, M },
	[TOP_TOTAL] = { "mbm_total_bytes_per_second", "MEM TOTAL", MW_KIND_DOUBLE, MW_UNIT_RATE,
			M },
	[TOP_LOCAL] = { "mbm_local_bytes_per_second", "MEM LOCAL", MW_KIND_DOUBLE, MW_UNIT_RATE,
			M },
	[TOP_CYCLES] = { "cycles", "CYCLES", MW_KIND_UINT, MW_UNIT_COUNT, M },
	[TOP_INSTRUCTIONS] = { "instructions", "INSTR", MW_KIND_UINT, MW_UNIT_COUNT, M },
	[TOP_IPC] = { "ipc", "IPC", MW_KIND_DOUBLE, MW_UNIT_RATIO, M },
	[TOP_MISSES] = { "llc_misses", "LLC MISS", MW_KIND_UINT, MW_UNIT_COUNT, M },
	[TOP_COMM] = { "comm", "COMMAND", MW_KIND_TEXT, 0, MW_COLUMN_LAST },
};

const char *const mw_top_sort_names[] = { "cpu",       "rss",	     "growth", "llc",
					  "mbm-total", "mbm-local",  "cycles", "instructions",
					  "ipc",       "llc-misses", "pid",    "comm",
					  NULL };

const enum top_column mw_top_sort_columns[] = {
	TOP_CPU,    TOP_RSS,	      TOP_GROWTH, TOP_LLC,    TOP_TOTAL, TOP_LOCAL,
	TOP_CYCLES, TOP_INSTRUCTIONS, TOP_IPC,	  TOP_MISSES, TOP_TGID,	 TOP_COMM,
};

static void set_columns(struct top *top)
{
	bool growth = top->monitor.watch || top->recorded.nr;

	memcpy(top->columns, columns, sizeof(columns));
	for (int i = 0; i < MW_GROWTH_LATEST_COLUMNS; i++) {
		top->columns[TOP_VERDICT + i] = mw_growth_latest_columns[i];
		if (!growth || top->config.by != MEMWATCH_BY_PROCESS)
			top->columns[TOP_VERDICT + i].flags |= H;
		if (top->config.by != MEMWATCH_BY_PROCESS)
			top->columns[TOP_VERDICT + i].key = NULL;
	}
	if (top->config.by == MEMWATCH_BY_PROCESS) {
		top->columns[TOP_PROCESSES].key = NULL;
		return;
	}
	top->columns[TOP_TGID].key = NULL;
	top->columns[TOP_TGID].flags |= H;
	top->columns[TOP_START].key = NULL;
	top->columns[TOP_UID].key = NULL;
	top->columns[TOP_RMIDS].flags |= H;
	top->columns[TOP_PROCESSES].flags &= ~H;
	top->columns[TOP_COMM].key = "cgroup";
	top->columns[TOP_COMM].title = "CGROUP";
	top->columns[TOP_RSS].key = "anonymous_bytes";
	top->columns[TOP_RSS].title = "ANON";
	top->columns[TOP_GROWTH].key = "anonymous_growth_bytes_per_second";
}

int mw_top_init(struct top *top, struct memwatch_stream *stream)
{
	int err;

	set_columns(top);
	mw_table_init(&top->table, top->columns, TOP_NR_COLUMNS);
	err = mw_feed_init(&top->feed, top->ctx, stream, (unsigned int)top->config.by, 0, 0);
	return err ?: mw_cgroups_new(top->cli, &top->cgroups);
}

void mw_top_uninit(struct top *top)
{
	mw_feed_uninit(&top->feed);
	mw_table_uninit(&top->table);
	mw_pool_free(&top->pool);
	mw_cgroups_free(top->cgroups);
	free(top->rss);
	mw_background_monitor_close(&top->monitor);
	mw_growth_latest_uninit(&top->recorded);
}

int mw_top_growth(struct top *top, const struct memwatch_record_growth *record)
{
	int err = mw_growth_latest_update(&top->recorded, record);

	set_columns(top);
	return err;
}

int mw_top_regroup(struct top *top)
{
	MEMWATCH_OPTS(memwatch_summary_opts, opts, .by = (uint32_t)top->config.by);
	struct memwatch_summary *summary;
	int err = memwatch_summary_new(top->ctx, &opts, &summary);

	if (err)
		return err;
	memwatch_summary_unref(top->feed.summary);
	top->feed.summary = summary;
	top->table.nr_rows = 0;
	top->nr_rss = 0;
	set_columns(top);
	return 0;
}

/* ---------------------------------------------------------------- memory */

static bool is_same_process(const struct mw_cli *cli, uint32_t tgid, uint64_t start_ns)
{
	uint64_t ticks = mw_root_start_ticks(cli, tgid);

	return ticks && ticks == start_ns / (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK));
}

static int read_rss(const struct mw_cli *cli, uint32_t tgid, uint64_t start_ns, uint64_t *ret)
{
	char path[64], line[128];
	unsigned long long resident;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/statm", tgid);
	if (mw_root_line(cli, path, line, sizeof(line)) <= 0 ||
	    sscanf(line, "%*u %llu", &resident) != 1 || !is_same_process(cli, tgid, start_ns))
		return -ESRCH;
	*ret = resident * (uint64_t)sysconf(_SC_PAGESIZE);
	return 0;
}

static int read_anonymous(const struct mw_cli *cli, const char *cgroup, uint64_t *ret)
{
	char path[4096], line[256];
	unsigned long long value;
	int err = -ENOENT;
	FILE *file;

	if (!cgroup)
		return -ENOENT;
	snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.stat", cgroup);
	file = mw_root_open(cli, path);
	while (file && err && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "anon %llu", &value) != 1)
			continue;
		*ret = value;
		err = 0;
	}
	if (file)
		fclose(file);
	return err;
}

static int compare_rss(const void *a, const void *b)
{
	const struct top_rss *x = a, *y = b;

	return x->id != y->id ? (x->id > y->id) - (x->id < y->id)
			      : (x->start > y->start) - (x->start < y->start);
}

static void fill_memory(const struct top *top, const struct memwatch_summary_row *row,
			struct top_rss *now, struct mw_cell *cells)
{
	bool by_process = top->config.by == MEMWATCH_BY_PROCESS;
	const struct top_rss *before;
	int err;

	cells[TOP_RSS] = (struct mw_cell){ .missing = true };
	cells[TOP_GROWTH] = cells[TOP_RSS];
	*now = (struct top_rss){ by_process ? row->tgid : row->cgroup_id,
				 by_process ? row->start_time_ns : 0, UINT64_MAX };
	if (top->replay || !now->id)
		return;
	err = by_process ? read_rss(top->cli, row->tgid, row->start_time_ns, &now->bytes)
			 : read_anonymous(top->cli, mw_cgroups_path(top->cgroups, row->cgroup_id),
					  &now->bytes);
	if (err)
		return;
	cells[TOP_RSS] = (struct mw_cell){ .number = now->bytes, .status = MEMWATCH_STATUS_OK };
	before = top->nr_rss ? bsearch(now, top->rss, top->nr_rss, sizeof(*now), compare_rss)
			     : NULL;
	if (!before || before->bytes == UINT64_MAX || !top->interval_ns) {
		cells[TOP_GROWTH].status = MEMWATCH_STATUS_FIRST;
		return;
	}
	cells[TOP_GROWTH] = (struct mw_cell){
		.real = ((double)now->bytes - (double)before->bytes) * 1e9 /
			(double)top->interval_ns,
		.status = MEMWATCH_STATUS_OK,
	};
}

/* ----------------------------------------------------------------- rows */

static struct mw_cell per_second(const struct top *top, const struct memwatch_value *value)
{
	struct mw_cell cell = { .status = value->status };

	cell.real = (double)value->value * 1e9 / (double)top->interval_ns;
	return cell;
}

static double percent(const struct top *top, const struct memwatch_summary_row *row)
{
	return (double)row->cpu_time_ns.value * 100 / (double)top->interval_ns;
}

static const char *name_of(struct top *top, const struct memwatch_summary_row *row)
{
	const char *name = mw_row_name(row, (unsigned int)top->config.by), *path;
	char *copy, id[32];

	if (top->config.by == MEMWATCH_BY_CGROUP && row->cgroup_id &&
	    !(row->flags & MEMWATCH_ROW_OTHER)) {
		path = top->replay ? NULL : mw_cgroups_path(top->cgroups, row->cgroup_id);
		snprintf(id, sizeof(id), "id %" PRIu64, (uint64_t)row->cgroup_id);
		name = path ? path : id;
	}
	copy = mw_pool_alloc(&top->pool, strlen(name) + 1);
	return copy ? strcpy(copy, name) : "";
}

static int fill_row(struct top *top, const struct memwatch_summary_row *row, struct mw_cell *c)
{
	bool nobody = row->flags & (MEMWATCH_ROW_UNKNOWN | MEMWATCH_ROW_OTHER);
	struct mw_list rmids;

	if (mw_rmid_list(row, &top->pool, &rmids))
		return -ENOMEM;
	c[TOP_TGID] = (struct mw_cell){ .number = row->tgid, .missing = nobody };
	c[TOP_START] = (struct mw_cell){ .number = row->start_time_ns, .missing = nobody };
	c[TOP_UID] = (struct mw_cell){ .number = row->uid, .missing = nobody };
	c[TOP_CGROUP_ID] = (struct mw_cell){ .number = row->cgroup_id, .missing = !row->cgroup_id };
	c[TOP_PROCESSES] = (struct mw_cell){ .number = row->processes };
	c[TOP_RMIDS] = (struct mw_cell){ .list = rmids };
	c[TOP_CPU] = (struct mw_cell){ .real = percent(top, row),
				       .status = row->cpu_time_ns.status };
	mw_growth_latest_fill_cells(
		mw_growth_latest_find(top->monitor.watch ? &top->monitor.latest : &top->recorded,
				      row->tgid, row->start_time_ns),
		c + TOP_VERDICT);
	c[TOP_LLC] = mw_measured(&row->occupancy_mean);
	c[TOP_TOTAL] = per_second(top, &row->mbm_total);
	c[TOP_LOCAL] = per_second(top, &row->mbm_local);
	c[TOP_CYCLES] = mw_measured(&row->counter[MEMWATCH_COUNTER_CYCLES]);
	c[TOP_INSTRUCTIONS] = mw_measured(&row->counter[MEMWATCH_COUNTER_INSTRUCTIONS]);
	c[TOP_IPC] = mw_ipc(row);
	c[TOP_MISSES] = mw_measured(&row->counter[MEMWATCH_COUNTER_LLC_MISSES]);
	c[TOP_COMM] = (struct mw_cell){ .text = name_of(top, row) };
	return 0;
}

static int make_rows(struct top *top)
{
	const struct memwatch_summary_row *row;
	struct top_rss *rss = NULL;
	size_t position = 0, nr = 0, room = 0;
	int err = memwatch_summary_sort(top->feed.summary, MEMWATCH_SORT_CPU_TIME, true);

	while (!err && memwatch_summary_next(top->feed.summary, &position, &row) == 1) {
		struct mw_cell *cells;

		if (row->flags & MEMWATCH_ROW_UNASSIGNED ||
		    (top->config.by == MEMWATCH_BY_CGROUP && !row->cgroup_id)) {
			top->unassigned_percent += percent(top, row);
			continue;
		}
		if (nr == room) {
			struct top_rss *more = reallocarray(rss, 2 * room + 64, sizeof(*rss));

			if (!more) {
				err = -ENOMEM;
				break;
			}
			rss = more;
			room = 2 * room + 64;
		}
		cells = mw_table_row(&top->table);
		err = cells ? fill_row(top, row, cells) : -ENOMEM;
		if (!err)
			fill_memory(top, row, &rss[nr++], cells);
	}
	if (nr)
		qsort(rss, nr, sizeof(*rss), compare_rss);
	free(top->rss);
	top->rss = rss;
	top->nr_rss = nr;
	return err;
}

int mw_top_cut(struct top *top, uint64_t end_ns)
{
	int err;

	top->interval_ns = end_ns > top->begin_ns ? end_ns - top->begin_ns : 1;
	top->end_ns = end_ns;
	top->unassigned_percent = 0;
	top->table.nr_rows = 0;
	mw_pool_free(&top->pool);
	err = make_rows(top);
	memwatch_summary_reset(top->feed.summary);
	top->begin_ns = end_ns;
	top->stats.sz = sizeof(top->stats);
	memwatch_stream_stats(top->feed.stream, &top->stats);
	mw_top_sort(top);
	return err;
}

/* --------------------------------------------------------------- sorting */

static bool has_value(const struct mw_column *column, const struct mw_cell *cell)
{
	return !cell->missing &&
	       (!(column->flags & MW_COLUMN_MEASURED) || mw_status_has_value(cell->status));
}

static double number(const struct mw_column *column, const struct mw_cell *cell)
{
	return column->kind == MW_KIND_DOUBLE ? cell->real : (double)cell->number;
}

/* Large values first, names and numbers of processes upwards, nothing last. */
static int compare_rows(const void *a, const void *b, void *arg)
{
	const struct top *top = arg;
	enum top_column at = mw_top_sort_columns[top->config.sort];
	const struct mw_column *column = &top->columns[at];
	const struct mw_cell *x = (const struct mw_cell *)a + at;
	const struct mw_cell *y = (const struct mw_cell *)b + at;
	bool hx = has_value(column, x), hy = has_value(column, y);
	int order;

	if (hx != hy)
		return hy - hx;
	if (!hx)
		return 0;
	if (column->kind == MW_KIND_TEXT)
		order = strcmp(x->text, y->text);
	else
		order = (number(column, x) > number(column, y)) -
			(number(column, x) < number(column, y));
	if (column->kind != MW_KIND_TEXT && at != TOP_TGID)
		order = -order;
	return top->reverse ? -order : order;
}

void mw_top_sort(struct top *top)
{
	if (top->table.nr_rows)
		qsort_r(top->table.cells, top->table.nr_rows,
			TOP_NR_COLUMNS * sizeof(struct mw_cell), compare_rows, top);
}

bool mw_top_matches(const struct top *top, const struct mw_cell *row)
{
	char pid[16];

	if (!top->config.filter || !*top->config.filter)
		return true;
	snprintf(pid, sizeof(pid), "%" PRIu64, row[TOP_TGID].number);
	return strstr(row[TOP_COMM].text, top->config.filter) ||
	       (top->config.by == MEMWATCH_BY_PROCESS && !strcmp(pid, top->config.filter));
}
