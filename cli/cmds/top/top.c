// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * top: the command, the loop that reads records, and the output in batch mode.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/interrupt.h"
#include "common/library.h"
#include "common/message.h"
#include "summary/recording-info.h"
#include "cmds/top/top.h"
#include "text/escape.h"

#define MEMBER(name) offsetof(struct top_config, name)

static const struct top_config top_defaults = { .delay = 1000000000 };

static const char *const by_names[] = { "process", "cgroup", NULL };

static const struct mw_option top_options[] = {
	{ "by", 0, MW_OPTION_CHOICE, MEMBER(by), "WHAT", "what makes a row", by_names },
	{ "sort", 's', MW_OPTION_CHOICE, MEMBER(sort), "KEY", "order of the rows",
	  mw_top_layout.sort_names },
	{ "filter", 'f', MW_OPTION_STRING, MEMBER(filter), "TEXT",
	  "show only rows whose name contains TEXT or whose PID is TEXT", NULL },
	{ "delay", 'd', MW_OPTION_DURATION, MEMBER(delay), "TIME", "length of an interval", NULL },
	{ "iterations", 'n', MW_OPTION_UINT, MEMBER(iterations), "N", "stop after N intervals",
	  NULL },
	{ "rows", 0, MW_OPTION_UINT, MEMBER(rows), "N", "at most N rows in an interval", NULL },
	{ "batch", 'b', MW_OPTION_FLAG, MEMBER(batch), NULL,
	  "print tables one after the other, also on a terminal", NULL },
	{ "growth", 0, MW_OPTION_FLAG, MEMBER(growth), NULL,
	  "also run a growth monitor and show its verdicts", NULL },
	{ "replay", 0, MW_OPTION_FILE, MEMBER(replay), "FILE", "show a recording instead", NULL },
	MW_LIMITS_OPTION(struct top_config, max_memory),
	MW_LIVE_OPTIONS(struct top_config, live),
	{ 0 },
};

int mw_top_read(struct top *top, uint64_t until_ns, int timeout_ms)
{
	uint64_t start_ns = mw_clock_ns(CLOCK_MONOTONIC);
	const struct memwatch_record_header *record;
	unsigned int n = 0;
	int rc = 0;

	if (!top->replay)
		mw_live_limit(&top->share, top->cli);
	if (top->monitor.watch)
		rc = mw_background_monitor_poll(&top->monitor, NULL, NULL);
	if (rc)
		return rc;
	while ((rc = memwatch_stream_next(top->feed.stream, &record)) == 1) {
		rc = mw_feed_record(&top->feed, record);
		rc = rc ?: mw_top_idle_note(&top->idle, &top->feed, record);
		if (!rc && record->type == MEMWATCH_RECORD_GROWTH)
			rc = mw_top_growth(top, (const void *)record);
		if (rc)
			return rc;
		if (top->replay) {
			/* In a recording, time is that of the records. */
			if (!top->begin_ns) {
				top->begin_ns = record->time_ns;
				return 1;
			}
			if (record->time_ns >= until_ns)
				return 1;
		} else if (!(++n & 1023) && mw_clock_ns(CLOCK_MONOTONIC) >= until_ns) {
			return 1; /* although more records wait */
		}
	}
	if (rc != -EAGAIN)
		return rc;
	top->emptied_ns = start_ns;
	rc = memwatch_stream_poll(top->feed.stream, timeout_ms);
	return rc < 0 && rc != -EINTR ? rc : 1;
}

/* ----------------------------------------------------------------- batch */

static void filter_rows(struct top *top)
{
	size_t nr_columns = top->table.nr_columns, kept = 0;

	for (size_t i = 0; i < top->table.nr_rows; i++) {
		const struct mw_cell *row = top->table.cells + i * nr_columns;

		if (top->config.rows && kept >= top->config.rows)
			break;
		if (mw_top_matches(top, row))
			memmove(top->table.cells + kept++ * nr_columns, row,
				nr_columns * sizeof(*row));
	}
	top->table.nr_rows = kept;
}

static void print_interval_json(const struct top *top, struct mw_json *json)
{
	struct mw_cell unassigned = mw_top_unassigned(top);

	mw_json_object(json, NULL);
	mw_json_uint(json, "end_ns", top->end_ns);
	mw_json_uint(json, "interval_ns", top->interval_ns);
	mw_members_json(&mw_top_unassigned_column, 1, &unassigned, json);
	mw_json_uint(json, "lost", top->stats.lost);
	mw_json_uint(json, "late", top->stats.late);
	mw_table_json(&top->table, json, mw_by_arrays[top->config.by]);
	mw_top_groups_json(top, json);
	mw_json_object_end(json);
	fflush(stdout);
}

static void print_interval_csv(const struct top *top, bool first)
{
	const struct mw_table *t = &top->table;

	if (first) {
		printf("end_ns,interval_ns,");
		mw_head_csv(t->columns, t->nr_columns, stdout);
	}
	for (size_t i = 0; i < t->nr_rows; i++) {
		printf("%" PRIu64 ",%" PRIu64 ",", top->end_ns, top->interval_ns);
		mw_row_csv(t->columns, t->nr_columns, t->cells + i * t->nr_columns, stdout);
	}
	fflush(stdout);
}

static int print_interval_table(const struct top *top, bool first)
{
	struct mw_cell unassigned = mw_top_unassigned(top);
	char interval[32], percent[32], sentence[TOP_SENTENCE];
	int rc = 0;

	if (!first)
		putchar('\n');
	mw_escape_line(
		stdout, "%s, %u CPUs, %s; unassigned %s; %" PRIu64 " lost, %" PRIu64 " late",
		mw_human_uint(top->interval_ns, MW_UNIT_NS, interval, sizeof(interval)),
		memwatch_stream_get_info(top->feed.stream)->nr_cpus,
		memwatch_stream_get_info(top->feed.stream)->backend,
		mw_cell_human(&mw_top_unassigned_column, &unassigned, percent, sizeof(percent)),
		(uint64_t)top->stats.lost, (uint64_t)top->stats.late);
	for (size_t i = 0; i < top->nr_groups; i++)
		mw_escape_line(stdout, "%s",
			       mw_top_group_sentence(&top->groups[i], sentence, sizeof(sentence)));
	if (top->table.nr_rows)
		rc = mw_table_print(&top->table);
	fflush(stdout);
	return rc;
}

static int print_interval(struct top *top, struct mw_json *json, bool first)
{
	filter_rows(top);
	switch (top->cli->format) {
	case MW_FORMAT_JSON:
		print_interval_json(top, json);
		return MW_EXIT_DONE;
	case MW_FORMAT_CSV:
		print_interval_csv(top, first);
		return MW_EXIT_DONE;
	default:
		return print_interval_table(top, first);
	}
}

static int batch_loop(struct top *top, struct mw_json *json)
{
	uint64_t shown = 0;
	int more = 1;

	while (more > 0 && !mw_interrupted() &&
	       (!top->config.iterations || shown < top->config.iterations)) {
		int err, rc;

		more = mw_top_read(top, mw_top_due(top), 50);
		if (more < 0)
			return mw_module_failed(top->ctx, more, "top", NULL);
		if (!more && (err = mw_top_finish(top)))
			return mw_error_errno(err, "top");
		if (!top->begin_ns || (more && !mw_top_is_due(top)))
			continue;
		err = mw_top_cut(top, more ? mw_top_closed_ns(top) : top->feed.last_ns);
		if (err)
			return mw_error_errno(err, "top");
		rc = print_interval(top, json, !shown++);
		if (rc || ferror(stdout))
			return rc;
	}
	return MW_EXIT_DONE;
}

static int run_batch(struct top *top)
{
	const struct memwatch_stream_info *info = memwatch_stream_get_info(top->feed.stream);
	bool json = top->cli->format == MW_FORMAT_JSON;
	struct mw_json writer;
	int rc;

	mw_interrupt_init();
	if (json) {
		mw_json_init(&writer, stdout);
		mw_recording_json(&writer, info, 0, 0);
		mw_json_array(&writer, "intervals");
	}
	rc = batch_loop(top, &writer);
	if (json) {
		mw_json_array_end(&writer);
		mw_json_finish(&writer);
	} else if (!rc && top->cli->format == MW_FORMAT_TABLE && !top->cli->quiet) {
		putchar('\n');
		mw_unavailable_print(info);
	}
	if (!rc && top->replay)
		rc = mw_check_damage(top->cli, top->feed.stream, top->config.replay);
	return rc;
}

static int open_stream(const struct mw_cli *cli, const struct top_config *config,
		       struct memwatch_ctx *ctx, struct mw_live_share *share,
		       struct memwatch_stream **ret)
{
	MEMWATCH_OPTS(memwatch_live_opts, opts);

	if (config->replay)
		return mw_open_recording(ctx, config->replay, ret);
	mw_live_raise(share, &config->live, cli);
	return mw_live_open(cli, ctx, &config->live, &opts, "top", ret);
}

static const char *const top_usage[] = {
	"top [--by process|cgroup] [--sort KEY] [--filter TEXT] [--delay TIME] [--batch] [-n N]",
	"    [--growth]",
	"top --replay FILE [OPTIONS]",
	"",
	"Shows for each interval which processes run, occupy the cache, move memory and",
	"grow. On a terminal it fills the screen; the key h explains the keys. Elsewhere,",
	"and with --batch, it prints one table after the other. A process that neither ran",
	"nor was measured in the interval is not listed.",
	NULL,
};

static int top_run(const struct mw_cli *cli, void *config, int argc, char **argv)
{
	mw_cleanup_ctx struct memwatch_ctx *ctx = NULL;
	struct memwatch_stream *stream;
	struct top top = { .cli = cli, .config = *(struct top_config *)config };
	int err, rc;

	(void)argc;
	(void)argv;
	if (top.config.delay < 50000000)
		return mw_error(MW_EXIT_USAGE, "top", "--delay is shorter than 50ms");
	if (top.config.growth && top.config.replay)
		return mw_error(MW_EXIT_USAGE, "top",
				"--growth cannot be used with --replay: it watches the running "
				"machine, not the recording");
	rc = mw_limits_init(&top.limits, top.config.max_memory, "top")
		     ?: mw_live_check(&top.config.live, "top");
	if (!rc)
		rc = mw_library_new(cli, &ctx)
			     ?: open_stream(cli, &top.config, ctx, &top.share, &stream);
	if (rc)
		return rc;
	top.ctx = ctx;
	top.replay = top.config.replay;
	if (top.config.growth)
		rc = mw_background_monitor_open(&top.monitor, cli, ctx, "top");
	err = mw_top_init(&top, stream);
	if (err) {
		rc = mw_error_errno(err, "top");
	} else if (!rc) {
		if (!top.replay)
			top.begin_ns = top.first_ns =
				memwatch_stream_get_info(stream)->start_monotonic_ns;
		rc = top.config.batch || cli->format != MW_FORMAT_TABLE || !isatty(STDOUT_FILENO) ||
				     !isatty(STDIN_FILENO)
			     ? run_batch(&top)
			     : mw_top_screen(&top);
	}
	mw_top_uninit(&top);
	return rc;
}

const struct mw_cmd mw_cmd_top = {
	.name = "top",
	.summary = "live table of processes or cgroups",
	.usage = top_usage,
	.options = top_options,
	.run = top_run,
	.flags = MW_CMD_JSON | MW_CMD_CSV,
	.defaults = &top_defaults,
	.config_size = sizeof(struct top_config),
};
