/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * top: what is shared between the collection of an interval, the output line
 * by line, and the full screen.
 */
#ifndef MW_TOP_H
#define MW_TOP_H

#include <memwatch/memwatch.h>

#include "common/cgroup.h"
#include "summary/feed.h"
#include "growth/background.h"
#include "summary/rows.h"
#include "output/table.h"

struct top_config {
	int by;
	int sort;
	uint64_t delay;
	uint64_t iterations; /* 0: no end */
	uint64_t rows;	     /* 0: all */
	bool batch;
	bool growth;
	const char *replay;
	const char *filter;
};

/* Columns, in the order of the table. */
enum top_column {
	TOP_TGID,
	TOP_START,
	TOP_UID,
	TOP_CGROUP_ID,
	TOP_PROCESSES,
	TOP_RMIDS,
	TOP_CPU,
	TOP_RSS,
	TOP_GROWTH,
	TOP_VERDICT, /* mw_growth_latest_columns from here */
	TOP_SLOPE,
	TOP_ETA,
	TOP_LLC,
	TOP_TOTAL,
	TOP_LOCAL,
	TOP_CYCLES,
	TOP_INSTRUCTIONS,
	TOP_IPC,
	TOP_MISSES,
	TOP_COMM,
	TOP_NR_COLUMNS,
};

/* Names of the sort keys, and the column of each. */
extern const char *const mw_top_sort_names[];
extern const enum top_column mw_top_sort_columns[];

/* RSS of the last interval, for growth. */
struct top_rss {
	uint64_t id, start, bytes;
};

struct top {
	const struct mw_cli *cli;
	struct top_config config; /* keys change it */
	bool reverse;
	bool replay;
	struct memwatch_ctx *ctx;
	struct mw_feed feed;
	struct mw_cgroups *cgroups;
	struct mw_column columns[TOP_NR_COLUMNS];
	/* The interval that is shown. */
	struct mw_table table;
	struct mw_pool pool;
	uint64_t interval_ns, end_ns;
	double unassigned_percent;
	struct memwatch_stream_stats stats;
	struct mw_background_monitor monitor; /* --growth */
	struct mw_growth_latest recorded;     /* growth in a recording */
	/* The interval that runs. */
	uint64_t begin_ns;
	struct top_rss *rss;
	size_t nr_rss;
};

/* top-data.c */
int mw_top_init(struct top *top, struct memwatch_stream *stream);
void mw_top_uninit(struct top *top);
/* A recording says something of growth: 0 or -ENOMEM. */
int mw_top_growth(struct top *top, const struct memwatch_record_growth *record);
/* Starts over with other rows (--by): 0 or -errno. */
int mw_top_regroup(struct top *top);
/* Ends the interval that runs, makes the table, starts the next: 0 or -errno. */
int mw_top_cut(struct top *top, uint64_t end_ns);
/* Sorts and filters what the table shows. */
void mw_top_sort(struct top *top);
bool mw_top_matches(const struct top *top, const struct mw_cell *row);

/* top-screen.c: until the user ends it. An exit code. */
int mw_top_screen(struct top *top);

/* top.c: reads what there is, for at most @timeout_ms. 1: more may come; 0: end; -errno. */
int mw_top_read(struct top *top, uint64_t until_ns, int timeout_ms);

#endif
