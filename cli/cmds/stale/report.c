// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * "stale report": replays a trace and shows what is leaked.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmds/stale/stale.h"
#include "common/clock.h"
#include "common/interrupt.h"
#include "common/library.h"
#include "common/message.h"

#define DEFAULT_TOP 20
#define PROGRESS_NS 200000000

enum stale_clock { CLOCK_ACTIVE, CLOCK_WALL };

static const char *const clock_names[] = { "active", "wall", NULL };
const char *const stale_scheme_names[] = { "hybrid", "local", "global", NULL };

static const struct stale_report_config report_defaults = { .top = UINT64_MAX };

#define MEMBER(name) offsetof(struct stale_report_config, name)

static const struct mw_option report_options[] = {
	{ "import", 'i', MW_OPTION_FILE, MEMBER(import), "TRACE",
	  "the trace; \"-\": standard input", NULL },
	{ "pid", 0, MW_OPTION_UINT, MEMBER(pid), "PID",
	  "of the traces in DIR that of this process; default: the largest one", NULL },
	{ "follow", 0, MW_OPTION_OPTIONAL, MEMBER(follow), "INTERVAL",
	  "report again and again what a process has recorded so far (10s)", NULL },
	{ "no-symbols", 0, MW_OPTION_FLAG, MEMBER(no_symbols), NULL,
	  "do not look for the names of functions", NULL },
	{ "sysroot", 0, MW_OPTION_FILE, MEMBER(sysroot), "DIR",
	  "where the programs and libraries of a recorded trace are", NULL },
	{ "objects", 0, MW_OPTION_FLAG, MEMBER(objects), NULL, "one row for each live object",
	  NULL },
	{ "top", 'n', MW_OPTION_UINT, MEMBER(top), "N", "only the first N rows; 0: all", NULL },
	{ "scheme", 0, MW_OPTION_CHOICE, MEMBER(scheme), "SCHEME",
	  "compare with objects of the same site, with all, or first the one, then the other",
	  stale_scheme_names },
	{ "fence", 0, MW_OPTION_STRING, MEMBER(fence), "C",
	  "coefficient of the fence of the boxplot; default: 3", NULL },
	{ "share", 0, MW_OPTION_STRING, MEMBER(share), "PERCENT",
	  "of the live memory that a site must have stale to be compared with all; default: 1",
	  NULL },
	{ "clock", 0, MW_OPTION_CHOICE, MEMBER(clock), "CLOCK",
	  "judge by the time in which the program was active, or by all time", clock_names },
	{ "any-growth", 0, MW_OPTION_FLAG, MEMBER(any_growth), NULL,
	  "also take what does not become more for a leak", NULL },
	{ "sort-memory", 0, MW_OPTION_BYTES, MEMBER(sort_memory), "SIZE",
	  "memory for sorting the trace; the rest goes to $TMPDIR or /var/tmp; default: 256M",
	  NULL },
	{ 0 },
};

/* Parses a decimal fraction from 0 to @max. Returns 0 or an exit code after an error message. */
static int parse_fraction(const char *text, double max, const char *what, double *ret)
{
	char *end;

	if (!text)
		return 0;
	*ret = strtod(text, &end);
	if (!*text || *end || strspn(text, "0123456789.") != strlen(text) || *ret > max)
		return mw_error(MW_EXIT_USAGE, what, "'%s' is not a number from 0 to %g", text,
				max);
	return 0;
}

static int make_opts(const struct stale_report_config *c, struct memwatch_stale_opts *opts)
{
	double fence = 0, percent = 0;
	int rc = parse_fraction(c->fence, 1000, "--fence", &fence);

	if (!rc)
		rc = parse_fraction(c->share, 100, "--share", &percent);
	if (!rc && c->fence && fence == 0)
		rc = mw_error(MW_EXIT_USAGE, "--fence", "must be above 0");
	opts->scheme = (uint32_t)c->scheme;
	opts->flags = (c->clock == CLOCK_WALL ? MEMWATCH_STALE_WALL_TIME : 0) |
		      (c->any_growth ? MEMWATCH_STALE_ANY_GROWTH : 0);
	opts->fence = fence;
	/* 0 stands for the default, and a negative number for 0. */
	opts->share = c->share && percent == 0 ? -1 : percent / 100;
	opts->sort_bytes = c->sort_memory;
	opts->directory = getenv("TMPDIR");
	return rc;
}

static void show_progress(struct memwatch_stale *stale, uint64_t *shown_ns)
{
	MEMWATCH_OPTS(memwatch_stale_progress, progress);
	uint64_t now = mw_clock_ns(CLOCK_MONOTONIC);

	if (now - *shown_ns < PROGRESS_NS)
		return;
	*shown_ns = now;
	memwatch_stale_get_progress(stale, &progress);
	if (progress.all)
		fprintf(stderr, "\rreplaying the trace: %3" PRIu64 " %%\033[K",
			(uint64_t)(100 * progress.done / progress.all));
	else
		fprintf(stderr, "\rreading the trace\033[K");
	fflush(stderr);
}

int stale_replay(const struct mw_cli *cli, struct memwatch_stale *stale)
{
	uint64_t begin_ns = mw_clock_ns(CLOCK_MONOTONIC), shown_ns = begin_ns;
	bool progress = !cli->quiet && isatty(STDERR_FILENO);
	int rc = 0;

	while (!mw_interrupted() && (rc = memwatch_stale_step(stale)) == 1)
		if (progress)
			show_progress(stale, &shown_ns);
	if (progress && shown_ns != begin_ns)
		fputs("\r\033[K", stderr);
	if (mw_interrupted())
		return -EINTR;
	return rc ? rc : memwatch_stale_judge(stale);
}

/* What makes the result of an imported trace less than exact. */
static void warn_about_import(const struct stale_result *r)
{
	const struct memwatch_stale_info *info = &r->info;

	if (info->cut_off)
		mw_warn(r->cli, "%s: the last line is cut off and was left out", r->path);
	if (info->unmatched_frees)
		mw_warn(r->cli, "%s: frees of addresses where no object began: %" PRIu64, r->path,
			(uint64_t)info->unmatched_frees);
	if (info->overlaps)
		mw_warn(r->cli,
			"%s: objects that were left out, because their memory was allocated again "
			"before they were freed: %" PRIu64,
			r->path, (uint64_t)info->overlaps);
	if (info->sorted)
		mw_note(r->cli, "%s: the lines were not in the order of time, and were sorted",
			r->path);
	if (!info->accesses)
		mw_warn(r->cli,
			"%s: contains no accesses; the age of objects stands for their staleness",
			r->path);
}

/* The same for one that the profiler has recorded. */
static void warn_about_recording(const struct stale_result *r)
{
	const struct memwatch_stale_info *info = &r->info;

	if (info->cut_off || info->damaged)
		mw_warn(r->cli, "%s: is damaged or cut off; what can be read is shown", r->path);
	if (info->state == MEMWATCH_STALE_STATE_FULL)
		mw_warn(r->cli, "%s: ends early, because %s", r->path,
			info->limits & MEMWATCH_STALE_FILE_SIZE
				? "it reached its largest size (--max-size)"
				: "the disk was full");
	if (info->lost)
		mw_warn(r->cli, "%s: events that were not recorded: %" PRIu64, r->path,
			(uint64_t)info->lost);
	if (info->began == MEMWATCH_STALE_BEGAN_LATER)
		mw_warn(r->cli, "%s: what was allocated before the recording began is not known",
			r->path);
	if (info->began == MEMWATCH_STALE_BEGAN_FORK)
		mw_note(r->cli, "%s: what was allocated before the fork is not known", r->path);
	if (info->unmatched_frees)
		mw_note(r->cli, "%s: frees of objects from before the trace: %" PRIu64, r->path,
			(uint64_t)info->unmatched_frees);
	if (info->overlaps)
		mw_warn(r->cli, "%s: objects whose end was not recorded: %" PRIu64, r->path,
			(uint64_t)info->overlaps);
	if (info->access_lost || info->access_throttled)
		mw_warn(r->cli,
			"%s: samples of accesses are missing (lost: %" PRIu64
			", throttled: %" PRIu64 ")",
			r->path, (uint64_t)info->access_lost, (uint64_t)info->access_throttled);
	if (info->access_damaged)
		mw_warn(r->cli, "%s: the file of accesses is damaged; what can be read is used",
			r->path);
	if (!r->named)
		mw_warn(r->cli, "%s: without the profile beside it, sites have no names", r->path);
}

static int print_result(const struct stale_result *r)
{
	int rc = 0;

	if (r->info.recorded)
		warn_about_recording(r);
	else
		warn_about_import(r);
	if (r->cli->format == MW_FORMAT_JSON)
		stale_print_json(r);
	else if (r->objects)
		rc = stale_print_objects(r);
	else
		rc = stale_print_sites(r);
	if (!rc && r->cli->format == MW_FORMAT_TABLE)
		stale_print_summary(r);
	return !rc && !r->info.leaked_objects ? MW_EXIT_NOTHING : rc;
}

/* What has failed before a pipe is no program without leaks. */
static bool is_empty_import(const struct memwatch_stale_info *info)
{
	return !info->recorded && !info->allocations && !info->frees && !info->accesses &&
	       !info->unmatched_frees;
}

int stale_print_report(struct stale_result *r, struct memwatch_ctx *ctx,
		       const struct stale_report_config *c, int err)
{
	int rc;

	r->info.sz = sizeof(r->info);
	if (!err)
		err = memwatch_stale_get_info(r->stale, &r->info);
	if (err == -EINTR) {
		rc = mw_error(MW_EXIT_FAILED, r->path, "interrupted");
	} else if (err) {
		rc = mw_error(mw_exit_of(err), r->path, "%s", memwatch_ctx_error(ctx));
	} else if (!c->import && !r->info.recorded) {
		rc = mw_error(MW_EXIT_FAILED, r->path, "was not recorded by \"stale run\"");
		mw_hint("a trace as text is read with --import");
	} else if (is_empty_import(&r->info)) {
		rc = mw_error(MW_EXIT_FAILED, r->path, "contains no events%s",
			      r->info.cut_off ? "; its last line is cut off" : "");
	} else {
		r->scheme = (uint32_t)c->scheme;
		r->top = c->top != UINT64_MAX		     ? c->top
			 : r->cli->format == MW_FORMAT_TABLE ? DEFAULT_TOP
							     : 0;
		rc = print_result(r);
	}
	return rc;
}

static int report_import(const struct mw_cli *cli, const struct stale_report_config *c,
			 const struct memwatch_stale_opts *opts)
{
	mw_cleanup_ctx struct memwatch_ctx *ctx = NULL;
	struct stale_result r = { .cli = cli, .path = c->import, .objects = c->objects };
	int err, rc = mw_library_new(cli, &ctx);

	if (rc)
		return rc;
	err = memwatch_stale_new(ctx, opts, &r.stale);
	if (!err)
		err = memwatch_stale_open(r.stale, c->import);
	if (!err)
		err = stale_replay(cli, r.stale);
	rc = stale_print_report(&r, ctx, c, err);
	memwatch_stale_unref(r.stale);
	return rc;
}

static const char *const report_usage[] = {
	"stale report DIR|FILE [--pid PID] [--follow[=INTERVAL]] [--no-symbols] [--sysroot DIR]",
	"             [OPTIONS]",
	"stale report --import TRACE [OPTIONS]",
	"             OPTIONS: [--objects] [--top N] [--scheme hybrid|local|global] [--fence C]",
	"             [--share PERCENT] [--clock active|wall] [--any-growth]",
	"             [--sort-memory SIZE]",
	"",
	"Replays a trace of allocations, frees and memory accesses, and shows which live",
	"objects were not used for longer than the statistics of their allocation site",
	"explain, and become more. DIR is that of \"stale run\"; without --accesses there, the age",
	"of an object stands for its staleness. With --follow, the report is repeated with what",
	"was recorded since, until the process ends. The lines of TRACE are \"m TIME THREAD "
	"ADDRESS",
	"SIZE SITE\", \"f TIME THREAD ADDRESS SITE\" and \"a TIME THREAD ADDRESS PLACE\"; TIME is "
	"in",
	"nanoseconds. The exit status is 4 if no leak was found.",
	NULL,
};

static int report_run(const struct mw_cli *cli, void *config, int argc, char **argv)
{
	MEMWATCH_OPTS(memwatch_stale_opts, opts);
	const struct stale_report_config *c = config;
	int rc;

	if (!c->import == !argc)
		return mw_error(MW_EXIT_USAGE, "stale report",
				argc ? "DIR and --import exclude each other"
				     : "DIR or --import TRACE is missing");
	if (c->follow && (c->import || cli->format == MW_FORMAT_CSV))
		return mw_error(MW_EXIT_USAGE, "--follow",
				c->import ? "is for DIR, not for --import"
					  : "cannot be used with --format csv");
	rc = make_opts(c, &opts);
	if (rc)
		return rc;
	mw_interrupt_init();
	if (c->import)
		return report_import(cli, c, &opts);
	return stale_report_recording(cli, c, &opts, argv[0]);
}

const struct mw_cmd mw_cmd_stale_report = {
	.name = "report",
	.summary = "show which memory nobody uses any more",
	.usage = report_usage,
	.options = report_options,
	.run = report_run,
	.flags = MW_CMD_JSON | MW_CMD_CSV,
	.defaults = &report_defaults,
	.config_size = sizeof(struct stale_report_config),
	.operands_max = 1,
};
