// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * top, the data: makes a table of one interval of the stream, and adds the memory of each
 * process or cgroup.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/array.h"
#include "common/clock.h"
#include "common/root.h"
#include "cmds/top/top.h"

#define H MW_COLUMN_HIDDEN

/*
 * For rows that are cgroups: hides the columns that only describe a process, and renames those
 * that now describe the cgroup.
 */
static void set_cgroup_columns(struct mw_column *columns)
{
	columns[TOP_TGID].key = NULL;
	columns[TOP_TGID].flags |= H;
	columns[TOP_START].key = NULL;
	columns[TOP_UID].key = NULL;
	columns[TOP_RMIDS].flags |= H;
	columns[TOP_PROCESSES].flags &= ~H;
	columns[TOP_RSS].key = "anonymous_bytes";
	columns[TOP_RSS].title = "ANON";
	columns[TOP_GROWTH].key = "anonymous_growth_bytes_per_second";
	columns[mw_top_layout.name].key = "cgroup";
	columns[mw_top_layout.name].title = "CGROUP";
}

/* The columns of the layout, as config.by and what is known of growth need them. */
static void set_columns(struct top *top)
{
	bool by_process = top->config.by == MEMWATCH_BY_PROCESS;
	bool growth = top->monitor.watch || top->recorded.nr;

	memcpy(top->columns, mw_top_layout.columns, sizeof(top->columns));
	for (int i = TOP_VERDICT; i < TOP_FIRST_METRIC; i++) {
		if (!growth || !by_process)
			top->columns[i].flags |= H;
		if (!by_process)
			top->columns[i].key = NULL;
	}
	if (by_process)
		top->columns[TOP_PROCESSES].key = NULL;
	else
		set_cgroup_columns(top->columns);
}

int mw_top_init(struct top *top, struct memwatch_stream *stream)
{
	int err;

	set_columns(top);
	top->recorded.max = top->limits.rows;
	mw_table_init(&top->table, top->columns, mw_top_layout.nr_columns);
	err = mw_feed_init(&top->feed, top->ctx, stream, (unsigned int)top->config.by, 0, 0,
			   TOP_LAG_NS, &top->limits);
	return err ?: mw_cgroups_new(top->cli, &top->cgroups);
}

void mw_top_uninit(struct top *top)
{
	mw_feed_uninit(&top->feed);
	mw_top_idle_uninit(&top->idle);
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
	struct memwatch_summary *summary;
	int err = mw_feed_summary_new(top->ctx, (unsigned int)top->config.by, 0, 0, &top->limits,
				      &summary);

	if (err)
		return err;
	memwatch_summary_unref(top->feed.summary);
	top->feed.summary = summary;
	top->table.nr_rows = 0;
	/* The new summary has nothing of the interval so far. */
	if (top->begin_ns)
		mw_top_skip(top, mw_top_closed_ns(top));
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
	const char *mount = mw_cgroup_mount(cli);
	char path[4096], line[256];
	unsigned long long value;
	int err = -ENOENT;
	FILE *file;

	if (!cgroup || !mount)
		return -ENOENT;
	snprintf(path, sizeof(path), "%s%s/memory.stat", mount, cgroup);
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

static double per_second(const struct top *top, const struct memwatch_value *value)
{
	return (double)value->value * 1e9 / (double)top->interval_ns;
}

static struct mw_cell percent_cell(const struct top *top, const struct memwatch_value *time)
{
	return (struct mw_cell){
		.real = (double)time->value * 100 / (double)top->interval_ns,
		.status = time->status,
	};
}

const struct mw_column mw_top_unassigned_column = { "unassigned_cpu_percent", NULL, MW_KIND_DOUBLE,
						    MW_UNIT_PERCENT, MW_COLUMN_MEASURED };

struct mw_cell mw_top_unassigned(const struct top *top)
{
	return percent_cell(top, &top->unassigned);
}

/* The path of a cgroup, or its id if there is none; a process has the name of its command. */
static const char *copy_name(struct top *top, const struct memwatch_summary_row *row)
{
	const char *name = mw_row_name(row, (unsigned int)top->config.by), *path;
	char id[32];

	if (top->config.by == MEMWATCH_BY_CGROUP && row->cgroup_id &&
	    !(row->flags & MEMWATCH_ROW_OTHER)) {
		path = top->replay ? NULL : mw_cgroups_path(top->cgroups, row->cgroup_id);
		snprintf(id, sizeof(id), "id %" PRIu64, (uint64_t)row->cgroup_id);
		name = path ? path : id;
	}
	return mw_pool_copy(&top->pool, name) ?: "";
}

static struct mw_cell metric_cell(const struct top *top, const struct memwatch_summary_row *row,
				  size_t column)
{
	const struct memwatch_metric_info *metric = mw_top_layout.metric[column];
	const struct memwatch_value *value;

	if (!mw_top_layout.rate[column])
		return mw_metric_cell(row, metric);
	value = memwatch_summary_value(row, metric);
	return (struct mw_cell){ .real = per_second(top, value), .status = value->status };
}

static int fill_top_row(struct top *top, const struct memwatch_summary_row *row, struct mw_cell *c)
{
	const struct mw_growth_latest *growth = top->monitor.watch ? &top->monitor.latest
								   : &top->recorded;
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
	c[TOP_CPU] = percent_cell(top, &row->cpu_time_ns);
	mw_growth_latest_fill_cells(mw_growth_latest_find(growth, row->tgid, row->start_time_ns),
				    c + TOP_VERDICT);
	for (size_t i = TOP_FIRST_METRIC; i < mw_top_layout.name; i++)
		c[i] = metric_cell(top, row, i);
	c[mw_top_layout.name] = (struct mw_cell){ .text = copy_name(top, row) };
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

		if (mw_row_is_unassigned(row, (unsigned int)top->config.by)) {
			memwatch_value_merge(&top->unassigned, &row->cpu_time_ns);
			continue;
		}
		err = mw_array_reserve(rss, room, nr + 1);
		if (err)
			break;
		cells = mw_table_row(&top->table);
		err = cells ? fill_top_row(top, row, cells) : -ENOMEM;
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

/* An interval ends with a slot. */
uint64_t mw_top_due(const struct top *top)
{
	uint64_t end_ns = mw_clock_add(top->begin_ns, top->config.delay);
	uint64_t beyond_ns = end_ns % top->feed.slot_ns;

	if (beyond_ns)
		end_ns = mw_clock_add(end_ns, top->feed.slot_ns - beyond_ns);
	return mw_clock_add(end_ns, top->feed.lag_ns);
}

/*
 * The time that the records have reached: that of the last one, since what is newer may still be in
 * the rings. The stream waits for a silent CPU for three periods. If no record comes for longer,
 * all CPUs sleep, and what open slots hold comes with the next interval.
 */
static uint64_t reached_ns(const struct top *top)
{
	uint64_t period_ns = top->feed.period_ns > top->feed.slot_ns ? top->feed.period_ns
								     : top->feed.slot_ns;
	uint64_t silent_ns = 3 * period_ns + TOP_SILENT_NS;

	if (top->replay || top->emptied_ns < top->feed.last_ns + silent_ns)
		return top->feed.last_ns;
	return top->emptied_ns - silent_ns;
}

bool mw_top_is_due(const struct top *top)
{
	return reached_ns(top) >= mw_top_due(top);
}

uint64_t mw_top_closed_ns(const struct top *top)
{
	return mw_feed_closed_ns(&top->feed, reached_ns(top));
}

int mw_top_finish(struct top *top)
{
	top->idle.late_ns = 0;
	return mw_feed_finish(&top->feed);
}

int mw_top_cut(struct top *top, uint64_t end_ns)
{
	int err;

	top->interval_ns = end_ns > top->begin_ns ? end_ns - top->begin_ns : 1;
	top->end_ns = end_ns;
	top->unassigned = (struct memwatch_value){ .status = MEMWATCH_STATUS_OK };
	top->table.nr_rows = 0;
	mw_pool_free(&top->pool);
	err = make_rows(top);
	top->unassigned.value = mw_top_idle_cut(&top->idle, end_ns, top->unassigned.value);
	memwatch_summary_reset(top->feed.summary);
	top->begin_ns = end_ns;
	top->stats.sz = sizeof(top->stats);
	memwatch_stream_get_stats(top->feed.stream, &top->stats);
	mw_top_sort(top);
	mw_top_take_groups(top);
	return err;
}

void mw_top_skip(struct top *top, uint64_t end_ns)
{
	/* Soon after the start, the summary has nothing yet. */
	if (end_ns < top->begin_ns)
		end_ns = top->begin_ns;
	memwatch_summary_reset(top->feed.summary);
	mw_top_idle_cut(&top->idle, end_ns, 0);
	top->nr_rss = 0; /* the growth since then is that of many intervals */
	top->begin_ns = end_ns;
}

/* --------------------------------------------------------------- sorting */

static bool has_value(const struct mw_column *column, const struct mw_cell *cell)
{
	return !cell->missing &&
	       (!(column->flags & MW_COLUMN_MEASURED) || mw_status_has_value(cell->status));
}

static double cell_number(const struct mw_column *column, const struct mw_cell *cell)
{
	return column->kind == MW_KIND_DOUBLE ? cell->real : (double)cell->number;
}

/* Large values come first, names and process ids in ascending order, missing values last. */
static int compare_rows(const void *a, const void *b, void *arg)
{
	const struct top *top = arg;
	size_t at = mw_top_layout.sort_column[top->config.sort];
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
		order = (cell_number(column, x) > cell_number(column, y)) -
			(cell_number(column, x) < cell_number(column, y));
	if (column->kind != MW_KIND_TEXT && at != TOP_TGID)
		order = -order;
	return top->reverse ? -order : order;
}

void mw_top_sort(struct top *top)
{
	if (top->table.nr_rows)
		qsort_r(top->table.cells, top->table.nr_rows,
			mw_top_layout.nr_columns * sizeof(struct mw_cell), compare_rows, top);
}

bool mw_top_matches(const struct top *top, const struct mw_cell *row)
{
	char pid[16];

	if (!top->config.filter || !*top->config.filter)
		return true;
	snprintf(pid, sizeof(pid), "%" PRIu64, row[TOP_TGID].number);
	return strstr(row[mw_top_layout.name].text, top->config.filter) ||
	       (top->config.by == MEMWATCH_BY_PROCESS && !strcmp(pid, top->config.filter));
}
