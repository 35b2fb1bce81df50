// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The layout of the table of top: its own columns, and those of the metrics.
 */
#include <stdio.h>
#include <string.h>

#include "cmds/top/top.h"

#define M MW_COLUMN_MEASURED
#define H MW_COLUMN_HIDDEN

/* The columns before the metrics. */
static const struct {
	struct mw_column column;
	int width;
	const char *sort_name;
} own_columns[TOP_FIRST_METRIC] = {
	[TOP_TGID] = { { "tgid", "PID", MW_KIND_UINT, 0, 0 }, 8, NULL },
	[TOP_START] = { { "start_time_ns", "STARTED", MW_KIND_UINT, MW_UNIT_NS, H }, 0, NULL },
	[TOP_UID] = { { "uid", "UID", MW_KIND_UINT, 0, H }, 0, NULL },
	[TOP_CGROUP_ID] = { { "cgroup_id", "CGROUP", MW_KIND_UINT, 0, H }, 0, NULL },
	[TOP_PROCESSES] = { { "processes", "PROCS", MW_KIND_UINT, 0, H }, 6, NULL },
	[TOP_RMIDS] = { { "rmids", "RMID", MW_KIND_LIST, 0, 0 }, 6, NULL },
	[TOP_CPU] = { { "cpu_percent", "CPU", MW_KIND_DOUBLE, MW_UNIT_PERCENT, M }, 8, "cpu" },
	[TOP_RSS] = { { "rss_bytes", "RSS", MW_KIND_UINT, MW_UNIT_BYTES, M }, 9, "rss" },
	[TOP_GROWTH] = { { "rss_growth_bytes_per_second", "GROWTH/s", MW_KIND_DOUBLE, MW_UNIT_BYTES,
			   M | MW_COLUMN_CHANGE },
			 10,
			 "growth" },
	[TOP_VERDICT] = { { 0 }, 13, NULL },
	[TOP_SLOPE] = { { 0 }, 11, NULL },
	[TOP_ETA] = { { 0 }, 9, NULL },
};

struct top_layout mw_top_layout;

/* Keys and headings of columns that show a metric for each second. */
static char rate_keys[TOP_COLUMNS_MAX][64], rate_headings[TOP_COLUMNS_MAX][24];

static void add_layout_sort(struct top_layout *layout, const char *name, size_t column)
{
	if (!name)
		return;
	layout->sort_names[layout->nr_sorts] = name;
	layout->sort_column[layout->nr_sorts++] = column;
}

/* Sums of bytes are shown as a rate; counts and levels as they are in the interval. */
static bool is_rate(const struct memwatch_metric_info *metric)
{
	return metric->unit == MEMWATCH_UNIT_BYTES && !(metric->flags & MEMWATCH_METRIC_LEVEL);
}

static int metric_width(const struct mw_column *column)
{
	int heading = (int)strlen(column->title) + 1, number;

	switch (column->unit) {
	case MW_UNIT_RATE:
		number = 10;
		break;
	case MW_UNIT_BYTES:
		number = 9;
		break;
	case MW_UNIT_RATIO:
		number = 6;
		break;
	default:
		number = 8;
	}
	return heading > number ? heading : number;
}

static void add_metric(struct top_layout *layout, const struct memwatch_metric_info *metric)
{
	size_t at = layout->nr_columns;
	struct mw_column column = mw_metric_column(metric);

	column.flags &= ~(unsigned int)H;
	/* The last place is that of the name. */
	if (at + 1 >= TOP_COLUMNS_MAX)
		return;
	if (is_rate(metric)) {
		snprintf(rate_keys[at], sizeof(rate_keys[at]), "%s_per_second", metric->key);
		snprintf(rate_headings[at], sizeof(rate_headings[at]), "%s/s", metric->heading);
		column = (struct mw_column){ rate_keys[at], rate_headings[at], MW_KIND_DOUBLE,
					     MW_UNIT_RATE, M };
	}
	layout->columns[at] = column;
	layout->metric[at] = metric;
	layout->rate[at] = is_rate(metric);
	layout->width[at] = metric_width(&column);
	layout->nr_columns++;
	add_layout_sort(layout, metric->sort_name, at);
}

/*
 * CPU time is shown as a percentage instead; details are for programs that read reports. The
 * share is shown always: a column that comes and goes would move the others.
 */
static bool is_for_people(const struct memwatch_metric_info *metric)
{
	return metric->unit == MEMWATCH_UNIT_PPM ||
	       (metric->unit != MEMWATCH_UNIT_NS && !(metric->flags & MEMWATCH_METRIC_DETAIL));
}

__attribute__((constructor)) static void make_layout(void)
{
	const struct memwatch_metric_info *metric;
	struct top_layout *layout = &mw_top_layout;

	for (size_t i = 0; i < TOP_FIRST_METRIC; i++) {
		layout->columns[i] = own_columns[i].column;
		layout->width[i] = own_columns[i].width;
		add_layout_sort(layout, own_columns[i].sort_name, i);
	}
	for (int i = 0; i < MW_GROWTH_LATEST_COLUMNS; i++)
		layout->columns[TOP_VERDICT + i] = mw_growth_latest_columns[i];
	layout->nr_columns = TOP_FIRST_METRIC;
	/* Cache and memory first: they are what top is for. */
	for (unsigned int i = 0; (metric = memwatch_metric_at(i)); i++)
		if (is_for_people(metric) && metric->source == MEMWATCH_METRIC_RDT)
			add_metric(layout, metric);
	for (unsigned int i = 0; (metric = memwatch_metric_at(i)); i++)
		if (is_for_people(metric) && metric->source != MEMWATCH_METRIC_RDT)
			add_metric(layout, metric);
	layout->name = layout->nr_columns++;
	layout->columns[layout->name] = (struct mw_column){ "comm", "COMMAND", MW_KIND_TEXT, 0,
							    MW_COLUMN_LAST };
	add_layout_sort(layout, "pid", TOP_TGID);
	add_layout_sort(layout, "comm", layout->name);
}

int mw_top_find_sort(const char *name)
{
	for (int i = 0; i < mw_top_layout.nr_sorts; i++)
		if (!strcmp(mw_top_layout.sort_names[i], name))
			return i;
	return -1;
}
