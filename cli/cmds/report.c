// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * report: adds up a recording by process, cgroup, RMID, CPU or slot.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "summary/feed.h"
#include "common/clock.h"
#include "common/library.h"
#include "common/message.h"
#include "summary/recording-info.h"
#include "summary/rows.h"

struct report_config {
	int by;
	int sort; /* index into mw_sort_names; -1: the default of the rows */
	uint64_t top;
	uint64_t from;
	uint64_t to;
	uint64_t max_memory;
};

static const struct report_config report_defaults = { .sort = -1, .to = UINT64_MAX };

#define MEMBER(name) offsetof(struct report_config, name)

static const struct mw_option report_options[] = {
	{ "by", 'b', MW_OPTION_CHOICE, MEMBER(by), "WHAT", "what makes a row", mw_by_names },
	{ "from", 0, MW_OPTION_DURATION, MEMBER(from), "TIME",
	  "skip slots before TIME, counted from the start", NULL },
	{ "to", 0, MW_OPTION_DURATION, MEMBER(to), "TIME",
	  "skip slots from TIME on, counted from the start", NULL },
	{ "sort", 's', MW_OPTION_CHOICE, MEMBER(sort), "KEY", "order of the rows", mw_sort_names },
	{ "top", 'n', MW_OPTION_UINT, MEMBER(top), "N", "only the first N rows", NULL },
	MW_LIMITS_OPTION(struct report_config, max_memory),
	{ 0 },
};

struct report {
	const struct mw_cli *cli;
	const struct report_config *config;
	const char *path;
	struct mw_limits limits;
	struct mw_feed feed;
	uint64_t from_ns, to_ns;
	struct mw_rows rows;
	struct mw_pool pool;
	struct mw_table table;	    /* rows that are shown */
	struct mw_table unassigned; /* at most one row */
	struct mw_table totals;	    /* one row */
	size_t hidden;		    /* rows beyond --top */
	struct memwatch_stream_stats stream;
	struct memwatch_slots_stats slots;
};

/* Whether a row is shown apart; by RMID, number 0 is one of them. */
static bool is_apart(const struct report *r, const struct memwatch_summary_row *row)
{
	return (r->rows.by == MEMWATCH_BY_CGROUP || r->rows.by == MEMWATCH_BY_PROCESS) &&
	       mw_row_is_unassigned(row, r->rows.by);
}

static int add_row(struct report *r, struct mw_table *table, const struct memwatch_summary_row *row)
{
	struct mw_cell *cells = mw_table_row(table);

	return cells ? mw_rows_fill(&r->rows, row, &r->pool, cells) : -ENOMEM;
}

static int collect_rows(struct report *r)
{
	const struct memwatch_summary_row *row;
	int name = r->config->sort < 0 ? mw_sort_default(r->rows.by) : r->config->sort;
	size_t position = 0;
	bool descending;
	unsigned int key = mw_sort_key(name, &descending);
	int err = memwatch_summary_sort(r->feed.summary, key, descending);

	while (!err && memwatch_summary_next(r->feed.summary, &position, &row) == 1) {
		if (is_apart(r, row))
			err = add_row(r, &r->unassigned, row);
		else if (r->config->top && r->table.nr_rows >= r->config->top)
			r->hidden++;
		else
			err = add_row(r, &r->table, row);
	}
	if (!err)
		err = memwatch_summary_get_total(r->feed.summary, &row);
	if (!err)
		err = add_row(r, &r->totals, row);
	/* The total is not about any process. */
	for (size_t i = 0; !err && i < r->rows.first_value; i++)
		r->totals.cells[i] = (struct mw_cell){ .missing = true };
	return err;
}

/* The summary applies --from and --to to all records but those of growth. */
static bool is_in_time(const struct report *r, const struct memwatch_record_header *record)
{
	return record->time_ns >= r->from_ns && record->time_ns <= r->to_ns;
}

static int read_records(struct report *r)
{
	const struct memwatch_record_header *record;
	int rc;

	while ((rc = memwatch_stream_next(r->feed.stream, &record)) == 1) {
		rc = mw_feed_record(&r->feed, record);
		if (!rc && record->type == MEMWATCH_RECORD_GROWTH && is_in_time(r, record))
			rc = mw_rows_growth(&r->rows, (const void *)record);
		if (rc)
			return rc;
	}
	return rc ?: mw_feed_finish(&r->feed);
}

static void print_report_json(const struct report *r)
{
	size_t skip = r->rows.first_value;
	struct mw_json json;

	mw_json_init(&json, stdout);
	mw_json_string(&json, "file", r->path);
	mw_recording_json(&json, memwatch_stream_get_info(r->feed.stream), r->feed.first_ns,
			  r->feed.last_ns);
	mw_period_json(&json, r->feed.period_ns);
	mw_losses_json(&json, &r->stream, &r->slots);
	mw_json_string(&json, "by", mw_by_names[r->rows.by]);
	mw_table_json(&r->table, &json, mw_by_arrays[r->rows.by]);
	if (r->rows.by == MEMWATCH_BY_PROCESS || r->rows.by == MEMWATCH_BY_CGROUP) {
		mw_json_object(&json, "unassigned");
		if (r->unassigned.nr_rows)
			mw_members_json(r->rows.columns, r->rows.nr_columns, r->unassigned.cells,
					&json);
		mw_json_object_end(&json);
	}
	mw_json_object(&json, "totals");
	mw_members_json(r->rows.columns + skip, r->rows.nr_columns - skip, r->totals.cells + skip,
			&json);
	mw_json_object_end(&json);
	mw_json_finish(&json);
}

static void print_report_csv(const struct report *r)
{
	mw_table_csv(&r->table, stdout);
	if (r->unassigned.nr_rows)
		mw_row_csv(r->rows.columns, r->rows.nr_columns, r->unassigned.cells, stdout);
}

/* Copies the rows of @from below the others; @total: they are the total. */
static int append_rows(struct report *r, const struct mw_table *from, bool total)
{
	for (size_t i = 0; i < from->nr_rows; i++) {
		struct mw_cell *cells = mw_table_row(&r->table);

		if (!cells)
			return -ENOMEM;
		memcpy(cells, from->cells + i * from->nr_columns,
		       from->nr_columns * sizeof(*cells));
		if (total)
			cells[r->rows.name < r->rows.nr_identities ? r->rows.name : 0].total = true;
	}
	return 0;
}

static int print_report_table(struct report *r)
{
	const struct memwatch_stream_info *info = memwatch_stream_get_info(r->feed.stream);
	int rc;

	mw_recording_print(r->path, info, r->feed.first_ns, r->feed.last_ns);
	mw_period_print(stdout, info, r->feed.period_ns);
	mw_losses_print(&r->stream, &r->slots);
	putchar('\n');
	if (append_rows(r, &r->unassigned, false) || append_rows(r, &r->totals, true))
		return mw_error_errno(-ENOMEM, "report");
	rc = mw_table_print(&r->table);
	if (rc)
		return rc;
	if (r->hidden)
		printf("%zu more rows are not shown (--top %" PRIu64 ").\n", r->hidden,
		       r->config->top);
	if (!r->cli->quiet) {
		putchar('\n');
		mw_unavailable_print(info);
		mw_table_legend(&r->table);
		if (r->unassigned.nr_rows)
			puts(info->nr_rmids
				     ? "(unassigned) is RMID 0: idle time, the kernel, and "
				       "processes without an RMID."
				     : "(unassigned) is idle time and the kernel. Without the "
				       "module, all processes have RMID 0.");
	}
	return MW_EXIT_DONE;
}

static int print_report(struct report *r)
{
	bool empty = !r->table.nr_rows && !r->unassigned.nr_rows;
	int rc = MW_EXIT_DONE;

	if (r->cli->format == MW_FORMAT_JSON)
		print_report_json(r);
	else if (r->cli->format == MW_FORMAT_CSV)
		print_report_csv(r);
	else if (!empty)
		rc = print_report_table(r);
	if (!rc && empty) {
		mw_warn(r->cli, "%s: nothing was measured in this time range", r->path);
		rc = MW_EXIT_NOTHING;
	}
	return rc;
}

static int prepare_report(struct report *r, struct memwatch_ctx *ctx)
{
	const struct report_config *c = r->config;
	struct memwatch_stream *stream;
	uint64_t first = 0, last = 0, origin;
	int err, rc = mw_open_recording(ctx, r->path, &stream);

	if (rc)
		return rc;
	err = mw_recording_span(ctx, r->path, &first, &last);
	if (err) {
		memwatch_stream_unref(stream);
		return mw_file_failed(ctx, err, r->path);
	}
	origin = mw_feed_origin(memwatch_stream_get_info(stream), first);
	mw_rows_init(&r->rows, (unsigned int)c->by, origin);
	r->rows.growth.max = r->limits.rows;
	r->from_ns = c->from ? mw_clock_add(origin, c->from) : 0;
	r->to_ns = mw_clock_add(origin, c->to);
	/* Without --from, the interval that ends with the first record counts too. */
	err = mw_feed_init(&r->feed, ctx, stream, (unsigned int)c->by, r->from_ns, r->to_ns, 0,
			   &r->limits);
	if (err)
		return mw_error_errno(err, "report");
	mw_table_init(&r->table, r->rows.columns, r->rows.nr_columns);
	mw_table_init(&r->unassigned, r->rows.columns, r->rows.nr_columns);
	mw_table_init(&r->totals, r->rows.columns, r->rows.nr_columns);
	return 0;
}

static const char *const report_usage[] = {
	"report FILE [--by WHAT] [--from TIME] [--to TIME] [--sort KEY] [--top N]",
	"",
	"Adds up a recording, one row for each process, cgroup, RMID, CPU or slot.",
	"Times count from the start of the recording and are written as 1.5 or 250ms.",
	"Values that were not measured are shown as \"-\", with the reason below the",
	"table. A file that was cut off is read up to its last complete block. The exit",
	"status is 4 if nothing was measured between --from and --to.",
	NULL,
};

static int report_run(const struct mw_cli *cli, void *config, int argc, char **argv)
{
	mw_cleanup_ctx struct memwatch_ctx *ctx = NULL;
	struct report r = { .cli = cli, .config = config, .path = argv[0] };
	int err, rc;

	(void)argc;
	if (r.config->from >= r.config->to)
		return mw_error(MW_EXIT_USAGE, "report", "--from is not before --to");
	rc = mw_limits_init(&r.limits, r.config->max_memory, "report");
	if (!rc)
		rc = mw_library_new(cli, &ctx) ?: prepare_report(&r, ctx);
	if (rc)
		return rc;
	r.stream.sz = sizeof(r.stream);
	r.slots.sz = sizeof(r.slots);
	err = read_records(&r) ?: collect_rows(&r) ?: memwatch_stream_get_stats(r.feed.stream, &r.stream)
		?: memwatch_slots_get_stats(r.feed.slots, &r.slots);
	if (err) {
		rc = mw_file_failed(ctx, err, r.path);
	} else {
		int damage = mw_check_damage(cli, r.feed.stream, r.path);

		rc = print_report(&r);
		if (damage && (!rc || rc == MW_EXIT_NOTHING))
			rc = damage;
	}
	mw_table_uninit(&r.table);
	mw_table_uninit(&r.unassigned);
	mw_table_uninit(&r.totals);
	mw_pool_free(&r.pool);
	mw_rows_uninit(&r.rows);
	mw_feed_uninit(&r.feed);
	return rc;
}

const struct mw_cmd mw_cmd_report = {
	.name = "report",
	.summary = "add up a recording by process, cgroup, RMID, CPU or slot",
	.usage = report_usage,
	.options = report_options,
	.run = report_run,
	.flags = MW_CMD_JSON | MW_CMD_CSV,
	.defaults = &report_defaults,
	.config_size = sizeof(struct report_config),
	.operands_min = 1,
	.operands_max = 1,
};
