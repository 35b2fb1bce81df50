/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * top: what its parts share: the table of an interval, batch output and the full screen.
 */
#ifndef MW_TOP_H
#define MW_TOP_H

#include <memwatch/memwatch.h>

#include "cmds/top/idle.h"
#include "common/cgroup.h"
#include "common/live.h"
#include "summary/feed.h"
#include "growth/background.h"
#include "summary/rows.h"
#include "output/json.h"
#include "output/table.h"

/*
 * How far the records must be beyond the end of an interval before it is shown, rounded down to
 * whole periods, but two at least: until then its slots are open.
 */
#define TOP_LAG_NS 32000000ULL

/* An interval waits for a record for three periods and this at most. */
#define TOP_SILENT_NS 100000000ULL

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
	uint64_t max_memory;
	struct mw_live_config live;
};

/*
 * Columns, in the order of the table: these, then one for each metric that people read,
 * then the name. Those of the metrics come from the library's table.
 */
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
	TOP_FIRST_METRIC,
};

#define TOP_COLUMNS_MAX 32

/**
 * struct top_layout - the columns of the table and how rows can be sorted
 * @columns: as they are by process
 * @nr_columns: length of @columns
 * @name: the column with the name of the process or cgroup: the last one
 * @metric: by column: the metric that it shows, NULL for other columns
 * @rate: by column: the metric is shown for each second
 * @width: by column: characters on the full screen, the gap included
 * @sort_names: names of the sort keys, for MW_OPTION_CHOICE; ends with NULL
 * @sort_column: by sort key: its column
 * @nr_sorts: how many sort keys there are
 *
 * It is made before main(), because the table of options is constant, and does not
 * change after that.
 */
struct top_layout {
	struct mw_column columns[TOP_COLUMNS_MAX];
	size_t nr_columns;
	size_t name;
	const struct memwatch_metric_info *metric[TOP_COLUMNS_MAX];
	bool rate[TOP_COLUMNS_MAX];
	int width[TOP_COLUMNS_MAX];
	const char *sort_names[TOP_COLUMNS_MAX];
	size_t sort_column[TOP_COLUMNS_MAX];
	int nr_sorts;
};

extern struct top_layout mw_top_layout;

/* The number of a sort key, -1 if there is no such key. */
int mw_top_find_sort(const char *name);

/* The memory of a process or cgroup in the last interval. */
struct top_rss {
	uint64_t id, start, bytes;
};

/* How many notices and alerts of cgroups are shown, and the room for the words of one. */
#define TOP_GROUPS   8
#define TOP_SENTENCE 2048

/* A cgroup, or the machine, with a notice or an alert. */
struct top_group {
	struct memwatch_growth_group group;
	struct memwatch_growth_row row;
	char path[1024];
};

struct top {
	const struct mw_cli *cli;
	struct top_config config; /* the keys change it */
	bool reverse;
	bool replay;
	struct mw_live_share share;
	struct memwatch_ctx *ctx;
	struct mw_limits limits;
	struct mw_feed feed;
	struct mw_cgroups *cgroups;
	struct mw_column columns[TOP_COLUMNS_MAX]; /* as the rows of now need them */
	/* The interval that is shown: */
	struct mw_table table;
	struct mw_pool pool;
	uint64_t interval_ns, end_ns;
	struct memwatch_value unassigned; /* CPU time */
	struct top_idle idle;
	struct memwatch_stream_stats stats;
	struct mw_background_monitor monitor; /* --growth */
	struct mw_growth_latest recorded;     /* growth in a recording */
	struct top_group groups[TOP_GROUPS];  /* those with an alert come first */
	size_t nr_groups;
	uint64_t first_ns;   /* when the monitor began */
	uint64_t emptied_ns; /* the last reading that left no record in the stream began then */
	/* The interval that is being measured: */
	uint64_t begin_ns;
	struct top_rss *rss;
	size_t nr_rss;
};

/* data.c */

/* Takes the stream over, also on failure. Returns 0 or a negative errno. */
int mw_top_init(struct top *top, struct memwatch_stream *stream);
void mw_top_uninit(struct top *top);
/* Notes a record of growth from a recording. Returns 0 or -ENOMEM. */
int mw_top_growth(struct top *top, const struct memwatch_record_growth *record);
/* Starts again with the rows that config.by asks for. Returns 0 or a negative errno. */
int mw_top_regroup(struct top *top);
/* When the current interval has the length of --delay, and its last records have come. */
uint64_t mw_top_due(const struct top *top);
/* Whether they have come. */
bool mw_top_is_due(const struct top *top);
/* The end of the interval: the summary has what is before this time, and nothing else. */
uint64_t mw_top_closed_ns(const struct top *top);
/* To be called at the end of the stream: closes all slots. Returns 0 or a negative errno. */
int mw_top_finish(struct top *top);
/* Ends the current interval, makes its table and starts the next. 0 or a negative errno. */
int mw_top_cut(struct top *top, uint64_t end_ns);
/* Ends it without a table. */
void mw_top_skip(struct top *top, uint64_t end_ns);
void mw_top_sort(struct top *top);
/* The CPU time of RMID 0 in the interval, in percent of one CPU. */
extern const struct mw_column mw_top_unassigned_column;
struct mw_cell mw_top_unassigned(const struct top *top);
/* Whether a row passes the filter. */
bool mw_top_matches(const struct top *top, const struct mw_cell *row);

/* groups.c */

/* Takes the notices and alerts of cgroups and of the machine from the monitor. */
void mw_top_take_groups(struct top *top);
/* A line about one of them, without the newline. Returns @buf. */
const char *mw_top_group_sentence(const struct top_group *group, char *buf, size_t size);
/* Writes all of them as a member of the object that is open; nothing without a monitor. */
void mw_top_groups_json(const struct top *top, struct mw_json *json);

/* screen.c: runs until the user ends it. Returns an exit code. */
int mw_top_screen(struct top *top);

/*
 * top.c: reads the records up to @until_ns, and waits at most @timeout_ms for the first.
 * Returns 1 if more may come, 0 at the end, or a negative errno.
 */
int mw_top_read(struct top *top, uint64_t until_ns, int timeout_ms);

#endif
