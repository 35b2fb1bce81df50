// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * "growth replay": runs the detectors over a trace.
 */
#include <errno.h>
#include <limits.h>

#include "cmds/growth/growth.h"
#include "growth/group.h"
#include "growth/verdict.h"
#include "common/library.h"
#include "common/message.h"
#include "summary/rows.h"
#include "text/escape.h"

struct replay {
	struct memwatch_ctx *ctx;
	struct memwatch_growth *growth;
	const char *path;
	uint64_t samples, first_ns, last_ns;
};

static int replay_trace(struct replay *r)
{
	MEMWATCH_OPTS(memwatch_growth_sample, sample);
	struct memwatch_trace *trace;
	int err = memwatch_trace_open(r->ctx, r->path, &trace);

	if (err)
		return err;
	while ((err = memwatch_trace_next(trace, &sample)) == 1) {
		if (!r->samples++)
			r->first_ns = sample.time_ns;
		r->last_ns = sample.time_ns;
		err = memwatch_growth_feed(r->growth, &sample);
		if (err < 0)
			break;
	}
	memwatch_trace_close(trace);
	return err < 0 ? err : 0;
}

typedef int (*get_span_fn)(struct memwatch_growth *growth, unsigned int index, unsigned int span,
			   struct memwatch_growth_span *ret);

static void write_spans(const struct replay *r, get_span_fn get, unsigned int index,
			unsigned int level, const char *key, struct mw_json *json)
{
	MEMWATCH_OPTS(memwatch_growth_span, span);

	mw_json_array(json, key);
	for (unsigned int i = 0; get(r->growth, index, i, &span) == 1; i++)
		if (span.level == level)
			mw_verdict_span_json(&span, 0, json);
	mw_json_array_end(json);
}

/* Writes the notices and the alerts of a process or of a class of a cgroup. */
static void write_all_spans(const struct replay *r, get_span_fn get, unsigned int index,
			    struct mw_json *json)
{
	write_spans(r, get, index, MEMWATCH_GROWTH_NOTICE, "notices", json);
	write_spans(r, get, index, MEMWATCH_GROWTH_ALERT, "alerts", json);
}

static void write_group(const struct replay *r, unsigned int index,
			const struct memwatch_growth_group *group,
			const struct memwatch_growth_row *row, struct mw_json *json)
{
	mw_group_json_members(group, row, 0, json);
	write_all_spans(r, memwatch_growth_get_group_span, index, json);
}

/* Writes the cgroups, or the classes of the machine, as an array. */
static void write_groups(const struct replay *r, bool host, const char *key, struct mw_json *json)
{
	MEMWATCH_OPTS(memwatch_growth_group, group);
	MEMWATCH_OPTS(memwatch_growth_row, row);

	mw_json_array(json, key);
	for (unsigned int i = 0; memwatch_growth_get_group(r->growth, i, &group, &row) == 1; i++) {
		if (mw_group_is_host(&group) != host)
			continue;
		mw_json_row(json, NULL);
		write_group(r, i, &group, &row, json);
		mw_json_object_end(json);
	}
	mw_json_array_end(json);
}

/* An alert comes before a notice, and what grows fast before what grows slowly. */
static bool is_more_urgent(const struct memwatch_growth_row *a, const struct memwatch_growth_row *b)
{
	if ((a->first_alert_ns == MEMWATCH_GROWTH_NONE) !=
	    (b->first_alert_ns == MEMWATCH_GROWTH_NONE))
		return b->first_alert_ns == MEMWATCH_GROWTH_NONE;
	if (a->verdict != b->verdict)
		return a->verdict > b->verdict;
	return a->slope > b->slope;
}

/* The machine is the most urgent of its classes; all of them are in "classes". */
static void write_host(const struct replay *r, struct mw_json *json)
{
	MEMWATCH_OPTS(memwatch_growth_group, group);
	MEMWATCH_OPTS(memwatch_growth_row, row);
	struct memwatch_growth_row urgent = row;
	unsigned int at = UINT_MAX;

	for (unsigned int i = 0; memwatch_growth_get_group(r->growth, i, &group, &row) == 1; i++) {
		if (!mw_group_is_host(&group) || (at != UINT_MAX && !is_more_urgent(&row, &urgent)))
			continue;
		at = i;
		urgent = row;
	}
	if (at == UINT_MAX) {
		mw_json_null(json, "host");
		return;
	}
	memwatch_growth_get_group(r->growth, at, &group, &row);
	mw_json_object(json, "host");
	write_group(r, at, &group, &row, json);
	write_groups(r, true, "classes", json);
	mw_json_object_end(json);
}

static int print_replay_json(const struct replay *r)
{
	MEMWATCH_OPTS(memwatch_growth_row, row);
	struct mw_json json;

	mw_json_init(&json, stdout);
	mw_json_uint(&json, "samples", r->samples);
	mw_json_double(&json, "duration_seconds", (double)(r->last_ns - r->first_ns) / 1e9);
	mw_json_array(&json, "processes");
	for (unsigned int i = 0; memwatch_growth_get_row(r->growth, i, &row) == 1; i++) {
		mw_json_row(&json, NULL);
		mw_verdict_json_members(&row, 0, &json);
		write_all_spans(r, memwatch_growth_get_span, i, &json);
		mw_json_object_end(&json);
	}
	mw_json_array_end(&json);
	write_groups(r, false, "cgroups", &json);
	write_host(r, &json);
	mw_json_finish(&json);
	return MW_EXIT_DONE;
}

/* The cells point to a copy of the row, which lives as long as @pool. */
static int fill_replay_cells(const struct memwatch_growth_row *row, struct mw_pool *pool,
			     struct mw_cell *cells)
{
	struct memwatch_growth_row *copy = mw_pool_alloc(pool, sizeof(*copy));

	if (!copy || !cells)
		return -ENOMEM;
	*copy = *row;
	mw_verdict_fill_cells(copy, 0, cells);
	return 0;
}

/* A row for each class of a cgroup that has grown. The cells point to copies. */
static int add_group_rows(const struct replay *r, struct mw_pool *pool, struct mw_table *table)
{
	MEMWATCH_OPTS(memwatch_growth_group, group);
	MEMWATCH_OPTS(memwatch_growth_row, row);
	char name[4200];

	for (unsigned int i = 0; memwatch_growth_get_group(r->growth, i, &group, &row) == 1; i++) {
		struct mw_cell *cells;
		const char *copy;

		if (row.first_notice_ns == MEMWATCH_GROWTH_NONE &&
		    row.first_alert_ns == MEMWATCH_GROWTH_NONE)
			continue;
		copy = mw_pool_copy(pool, mw_group_name(&group, name, sizeof(name)));
		cells = mw_table_row(table);
		if (!copy || !cells)
			return -ENOMEM;
		mw_group_fill_cells(copy, &row, 0, cells);
	}
	return 0;
}

static void print_leak_sentences(const struct replay *r)
{
	MEMWATCH_OPTS(memwatch_growth_group, group);
	MEMWATCH_OPTS(memwatch_growth_row, row);
	char text[24576]; /* the path of a cgroup may take most of a line of the trace */

	for (unsigned int i = 0; memwatch_growth_get_row(r->growth, i, &row) == 1; i++)
		if (row.verdict == MEMWATCH_GROWTH_LEAK)
			mw_escape_line(stdout, "%s",
				       mw_verdict_sentence(&row, NULL, text, sizeof(text)));
	for (unsigned int i = 0; memwatch_growth_get_group(r->growth, i, &group, &row) == 1; i++)
		if (row.verdict == MEMWATCH_GROWTH_LEAK)
			mw_escape_line(stdout, "%s",
				       mw_group_sentence(&group, &row, NULL, text, sizeof(text)));
}

static int print_replay_table(const struct mw_cli *cli, const struct replay *r)
{
	MEMWATCH_OPTS(memwatch_growth_row, row);
	struct mw_pool pool = { 0 };
	struct mw_table table;
	int rc = 0;

	mw_table_init(&table, mw_verdict_columns, MW_VERDICT_COLUMNS);
	for (unsigned int i = 0; !rc && memwatch_growth_get_row(r->growth, i, &row) == 1; i++)
		rc = fill_replay_cells(&row, &pool, mw_table_row(&table));
	if (!rc && cli->format == MW_FORMAT_TABLE)
		rc = add_group_rows(r, &pool, &table);
	if (rc)
		rc = mw_error_errno(rc, "growth replay");
	else if (cli->format == MW_FORMAT_CSV)
		mw_table_csv(&table, stdout);
	else
		rc = mw_table_print(&table);
	if (!rc && cli->format == MW_FORMAT_TABLE)
		print_leak_sentences(r);
	mw_table_uninit(&table);
	mw_pool_free(&pool);
	return rc;
}

static const char *const replay_usage[] = {
	"growth replay TRACE",
	"",
	"Runs the detectors of \"growth watch\" over a trace, a CSV file with the columns",
	"time_s,pid,comm,anon_kb,file_kb,shmem_kb,swap_kb,vsz_kb,limit_kb. If TRACE is \"-\",",
	"standard input is read. The exit status is 4 if the trace contains no samples.",
	NULL,
};

static int replay_run(const struct mw_cli *cli, void *config, int argc, char **argv)
{
	mw_cleanup_ctx struct memwatch_ctx *ctx = NULL;
	struct replay r = { .path = argv[0] };
	int err, rc = mw_library_new(cli, &ctx);

	(void)config;
	(void)argc;
	if (rc)
		return rc;
	r.ctx = ctx;
	err = memwatch_growth_new(ctx, &r.growth);
	if (!err)
		err = replay_trace(&r);
	if (err)
		rc = mw_error(mw_exit_of(err), r.path, "%s", memwatch_ctx_error(ctx));
	else
		rc = cli->format == MW_FORMAT_JSON ? print_replay_json(&r)
						   : print_replay_table(cli, &r);
	if (!rc && !r.samples) {
		mw_warn(cli, "%s: contains no samples", r.path);
		rc = MW_EXIT_NOTHING;
	}
	memwatch_growth_unref(r.growth);
	return rc;
}

const struct mw_cmd mw_cmd_growth_replay = {
	.name = "replay",
	.summary = "run the detectors over a trace",
	.usage = replay_usage,
	.run = replay_run,
	.flags = MW_CMD_JSON | MW_CMD_CSV,
	.operands_min = 1,
	.operands_max = 1,
};
