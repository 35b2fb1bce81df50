// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * "heap report": shows which function allocated.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cmds/heap/heap.h"
#include "cmds/heap/processes.h"
#include "cmds/heap/rss.h"
#include "common/message.h"
#include "output/human.h"
#include "text/escape.h"

#define DEFAULT_TOP 20

static const char *const sort_names[] = { "flat", "cum", NULL };

struct report_config {
	struct heap_choice choice;
	bool tree, lines, sites, modules;
	int sort;
	uint64_t top;
};

static const struct report_config report_defaults = { .top = UINT64_MAX };

#define MEMBER(name) offsetof(struct report_config, name)

static const struct mw_option report_options[] = {
	{ "diff", 0, MW_OPTION_FILE, MEMBER(choice.diff), "BASE", "subtract the profile BASE",
	  NULL },
	{ "leaks", 0, MW_OPTION_FLAG, MEMBER(choice.snapshots), NULL,
	  "show what grows from FILE to FILE, snapshots of one process", NULL },
	{ "rss", 0, MW_OPTION_FLAG, MEMBER(choice.rss), NULL,
	  "show what the resident set of the process consists of", NULL },
	{ "objects", 0, MW_OPTION_FLAG, MEMBER(choice.objects), NULL,
	  "show numbers of objects, not bytes", NULL },
	{ "allocated", 0, MW_OPTION_FLAG, MEMBER(choice.allocated), NULL,
	  "show all that was allocated, also what was freed", NULL },
	{ "sort", 's', MW_OPTION_CHOICE, MEMBER(sort), "KEY", "order of the rows", sort_names },
	{ "lines", 0, MW_OPTION_FLAG, MEMBER(lines), NULL, "one row for each line", NULL },
	{ "modules", 0, MW_OPTION_FLAG, MEMBER(modules), NULL,
	  "one row for each program or library", NULL },
	{ "sites", 0, MW_OPTION_FLAG, MEMBER(sites), NULL, "one block for each call stack", NULL },
	{ "tree", 0, MW_OPTION_FLAG, MEMBER(tree), NULL, "the calls as a tree", NULL },
	{ "top", 'n', MW_OPTION_UINT, MEMBER(top), "N", "only the first N rows; 0: all", NULL },
	{ "sysroot", 0, MW_OPTION_FILE, MEMBER(choice.sysroot), "DIR",
	  "look for programs and libraries below DIR", NULL },
	{ "native", 0, MW_OPTION_FLAG, MEMBER(choice.native), NULL,
	  "show the functions of the Python interpreter, too", NULL },
	{ "no-symbols", 0, MW_OPTION_FLAG, MEMBER(choice.no_symbols), NULL,
	  "do not look for symbols of addresses", NULL },
	{ 0 },
};

struct report {
	const struct mw_cli *cli;
	const struct report_config *config;
	char **files;
	int count;
	const char *path; /* of the profile that is shown */
	struct heap_profiles profiles;
	struct heap_rows rows;
	struct memwatch_heap_info info;
};

static const char *const format_names[] = {
	[MEMWATCH_HEAP_MEMWATCH] = "memwatch",
	[MEMWATCH_HEAP_PPROF] = "pprof",
	[MEMWATCH_HEAP_JEMALLOC] = "jemalloc",
	[MEMWATCH_HEAP_GPERFTOOLS] = "gperftools",
};

static uint32_t chosen_rows(const struct report_config *config)
{
	if (config->choice.snapshots || config->sites || config->choice.rss)
		return MEMWATCH_HEAP_BY_SITE;
	if (config->tree)
		return MEMWATCH_HEAP_BY_TREE;
	if (config->lines)
		return MEMWATCH_HEAP_BY_LINE;
	return config->modules ? MEMWATCH_HEAP_BY_MODULE : MEMWATCH_HEAP_BY_FUNCTION;
}

/* Opens a view; @r->rows describes it. Returns 0 or an exit code after an error message. */
static int open_view(struct report *r, uint32_t by)
{
	bool diff = r->profiles.base >= 0;
	MEMWATCH_OPTS(memwatch_heap_view_opts, opts, .by = by, .metric = r->rows.metric,
		      .flags = (r->config->sort ? MEMWATCH_HEAP_CUM : 0) |
			       (diff ? MEMWATCH_HEAP_BASE : 0) |
			       (r->config->choice.snapshots ? MEMWATCH_HEAP_GROWTH : 0),
		      .base = diff ? (uint32_t)r->profiles.base : 0);
	int err;

	memwatch_heap_view_unref(r->rows.view);
	r->rows.view = NULL;
	err = memwatch_heap_view_new(r->profiles.heap, &opts, &r->rows.view);
	if (err)
		return heap_view_failed(&r->profiles, err, r->path);
	r->rows.by = by;
	r->rows.is_diff = diff;
	r->rows.is_growth = r->config->choice.snapshots;
	return 0;
}

static void print_sampling(const struct memwatch_heap_info *info)
{
	char buf[32];

	if (info->rate_bytes == 1)
		printf(", every allocation recorded");
	else if (info->rate_bytes)
		printf(", one sample in %s",
		       mw_human_uint(info->rate_bytes, MW_UNIT_BYTES, buf, sizeof(buf)));
	if (info->from_start == 0)
		printf(", began after the start of the process");
}

static void print_total_value(const struct report *r, const struct memwatch_heap_row *total,
			      uint32_t bytes, const char *what)
{
	const struct memwatch_heap_estimate *e = &total->flat[bytes];
	char value[32], low[32], high[32], objects[64];

	if (!(r->info.metrics & 1U << bytes))
		return;
	printf("%s: %s", what, mw_human_double(e->value, MW_UNIT_BYTES, value, sizeof(value)));
	if (!isnan(e->low) && e->low < e->high)
		printf(" (%s to %s with a probability of 95 %%)",
		       mw_human_double(e->low, MW_UNIT_BYTES, low, sizeof(low)),
		       mw_human_double(e->high, MW_UNIT_BYTES, high, sizeof(high)));
	if (r->info.metrics & 2U << bytes)
		printf(" in %s %s",
		       mw_human_double(total->flat[bytes + 1].value, MW_UNIT_COUNT, value,
				       sizeof(value)),
		       mw_escape(r->rows.objects, objects, sizeof(objects)));
	putchar('\n');
}

/* What makes the values less exact than the rate says. */
static void warn_incomplete(const struct report *r)
{
	for (size_t i = 0; i < HEAP_LIMITS; i++)
		if (heap_limits[i].is_inexact && r->info.limits & heap_limits[i].bit)
			mw_warn(r->cli, "%s: %s", r->path, heap_limits[i].text);
	if (r->info.lost)
		mw_warn(r->cli,
			"%s: %" PRIu64 " samples were lost, which stand for %" PRIu64 " bytes",
			r->path, (uint64_t)r->info.lost, (uint64_t)r->info.lost_bytes);
	if (r->info.watch_refused)
		mw_warn(r->cli,
			"%s: %" PRIu64 " objects that were chosen could not be watched: what is "
			"said about touches may be biased",
			r->path, (uint64_t)r->info.watch_refused);
	if (r->info.state == MEMWATCH_HEAP_STATE_DORMANT)
		mw_warn(r->cli, "%s: sampling was never started", r->path);
}

/* What an interpreter keeps from being seen. */
static void warn_python(const struct report *r)
{
	const struct memwatch_heap_info *info = &r->info;

	if (info->python & MEMWATCH_HEAP_PYTHON_PYMALLOC)
		mw_warn(r->cli,
			"%s: CPython's own allocator (pymalloc) was on: its arenas are seen, if "
			"mappings are (heap run --mmap), and not the objects of up to 512 bytes "
			"in them; run the program with PYTHONMALLOC=malloc",
			r->path);
	if (info->python & MEMWATCH_HEAP_PYTHON_SEEN &&
	    !(info->python & MEMWATCH_HEAP_PYTHON_FRAMES))
		mw_warn(r->cli,
			"%s: functions of Python are shown for CPython 3.11, and for later "
			"versions only "
			"with -X perf",
			r->path);
}

static void python_json(const struct memwatch_heap_info *info, struct mw_json *json)
{
	char version[32];

	if (!(info->python & MEMWATCH_HEAP_PYTHON_SEEN)) {
		mw_json_null(json, "python");
		return;
	}
	snprintf(version, sizeof(version), "%u.%u.%u", info->python_version >> 24,
		 info->python_version >> 16 & 255, info->python_version >> 8 & 255);
	mw_json_row(json, "python");
	mw_json_string(json, "version", info->python_version ? version : NULL);
	mw_json_bool(json, "frames", info->python & MEMWATCH_HEAP_PYTHON_FRAMES);
	mw_json_bool(json, "pymalloc", info->python & MEMWATCH_HEAP_PYTHON_PYMALLOC);
	mw_json_object_end(json);
}

/* What is known about accesses, of a profile of memwatch. */
static void print_touched(const struct report *r, const struct memwatch_heap_row *total)
{
	const struct memwatch_heap_info *info = &r->info;
	char step[32], ago[32], least[32];

	if (!info->watch_max)
		return;
	if (!heap_touched_print(total, "Touched"))
		printf("When objects were touched last is not known of all: age and lifetime "
		       "only.\n");
	if (info->watch_ns)
		printf("Accesses are known to within %s, until %s before the end of the profile.\n",
		       mw_human_uint(info->watch_step_ns, MW_UNIT_NS, step, sizeof(step)),
		       mw_human_uint(info->end_ns - info->watch_ns, MW_UNIT_NS, ago, sizeof(ago)));
	if (info->watch_least)
		printf("With this allocator, objects below %s cannot be watched.\n",
		       mw_human_uint(info->watch_least, MW_UNIT_BYTES, least, sizeof(least)));
}

static void watch_json(const struct memwatch_heap_info *info, struct mw_json *json)
{
	if (!info->watch_max) {
		mw_json_null(json, "watch");
		return;
	}
	mw_json_row(json, "watch");
	mw_json_uint(json, "max", info->watch_max);
	mw_json_uint(json, "watched", info->watched);
	mw_json_uint(json, "refused", info->watch_refused);
	mw_json_uint(json, "least_bytes", info->watch_least);
	if (info->watch_ns) {
		mw_json_double(json, "step_seconds", (double)info->watch_step_ns / 1e9);
		mw_json_double(json, "age_seconds", (double)(info->end_ns - info->watch_ns) / 1e9);
	} else {
		mw_json_null(json, "step_seconds");
		mw_json_null(json, "age_seconds");
	}
	mw_json_object_end(json);
}

static void print_head(const struct report *r)
{
	MEMWATCH_OPTS(memwatch_heap_row, total);
	char name[256], comm[64];

	printf("%s: heap profile of %s", mw_escape(r->path, name, sizeof(name)),
	       format_names[r->info.format]);
	if (r->info.pid)
		printf(", process %u (%s)", r->info.pid,
		       mw_escape(r->info.comm, comm, sizeof(comm)));
	print_sampling(&r->info);
	putchar('\n');
	memwatch_heap_view_get_total(r->rows.view, &total);
	if (r->rows.is_diff) {
		printf("Values are differences from %s.\n",
		       mw_escape(r->config->choice.diff, name, sizeof(name)));
	} else {
		print_total_value(r, &total, MEMWATCH_HEAP_LIVE_BYTES, "Live");
		print_total_value(r, &total, MEMWATCH_HEAP_ALLOCATED_BYTES, "Allocated");
		print_touched(r, &total);
	}
	putchar('\n');
}

static void profile_json(const struct report *r, struct mw_json *json)
{
	const struct memwatch_heap_info *info = &r->info;

	mw_json_object(json, "profile");
	mw_json_string(json, "file", r->path);
	mw_json_string(json, "format", format_names[info->format]);
	if (info->pid)
		mw_json_uint(json, "pid", info->pid);
	else
		mw_json_null(json, "pid");
	mw_json_string(json, "comm", *info->comm ? info->comm : NULL);
	if (info->from_start < 0)
		mw_json_null(json, "from_start");
	else
		mw_json_bool(json, "from_start", info->from_start);
	if (info->rate_bytes)
		mw_json_uint(json, "rate_bytes", info->rate_bytes);
	else
		mw_json_null(json, "rate_bytes");
	mw_json_uint(json, "samples", info->samples);
	mw_json_string(json, "objects", info->objects);
	mw_json_row(json, "stacks");
	mw_json_uint(json, "frame_pointer", info->frame_pointer);
	mw_json_uint(json, "unwound", info->unwound);
	mw_json_uint(json, "truncated", info->truncated);
	mw_json_object_end(json);
	python_json(info, json);
	watch_json(info, json);
	mw_json_object_end(json);
}

/* Rows are in the order of how much they grow at least, which one that also shrank may lead. */
static int judge_growth(const struct report *r)
{
	MEMWATCH_OPTS(memwatch_heap_row, row);

	if (!r->config->choice.snapshots)
		return MW_EXIT_DONE;
	for (uint64_t i = 0; memwatch_heap_view_get_row(r->rows.view, i, &row) == 1; i++)
		if (row.leak)
			return MW_EXIT_DONE;
	return MW_EXIT_NOTHING;
}

static int print_json(struct report *r)
{
	uint32_t by = chosen_rows(r->config);
	int rc = open_view(r, MEMWATCH_HEAP_BY_SITE), verdict;
	struct mw_json json;

	if (rc)
		return rc;
	mw_json_init(&json, stdout);
	profile_json(r, &json);
	if (r->rows.is_diff)
		mw_json_string(&json, "base", r->config->choice.diff);
	if (r->config->choice.rss)
		rc = heap_rss_json(&r->profiles, &r->rows, r->path, &json);
	heap_sites_json(&r->rows, &json, "sites");
	verdict = judge_growth(r);
	if (!rc && by != MEMWATCH_HEAP_BY_SITE) {
		rc = open_view(r, by);
		if (!rc)
			heap_rows_json(&r->rows, &json, "rows");
	}
	mw_json_finish(&json);
	return rc ?: verdict;
}

static int print_text(struct report *r)
{
	uint32_t by = chosen_rows(r->config);
	int rc = open_view(r, by);

	if (rc)
		return rc;
	if (r->config->choice.rss)
		return heap_rss_print(&r->profiles, &r->rows, r->path);
	if (r->cli->format == MW_FORMAT_CSV)
		return heap_rows_print(&r->rows);
	print_head(r);
	if (by != MEMWATCH_HEAP_BY_SITE)
		return heap_rows_print(&r->rows);
	heap_sites_print(&r->rows);
	rc = judge_growth(r);
	if (rc == MW_EXIT_NOTHING)
		printf("No call stack grows steadily.\n");
	return rc;
}

static const char *const report_usage[] = {
	"heap report FILE [--diff BASE] [--lines | --modules | --sites | --tree]",
	"            [--objects] [--allocated] [--sort KEY] [--top N] [--native]",
	"heap report --leaks FILE FILE... [--top N]",
	"heap report --rss PID|FILE",
	"",
	"Shows which functions allocated the memory that is still in use. FLAT is what a",
	"function allocated itself, CUM includes the functions that it called, ERROR is half",
	"of the interval that contains the true value with a probability of 95 %.",
	"--leaks shows the call stacks whose live bytes grow steadily from file to file, the",
	"fastest first; the files are snapshots of one process, in any order. The exit",
	"status is 4 if nothing was found. --rss shows what the memory of a process is used",
	"for, and why there is more of it than live bytes. FILE may be the number of a process.",
	NULL,
};

/* Blocks with a call stack each are no rows. */
static int check_format(const struct mw_cli *cli, const struct report_config *c)
{
	if (cli->format != MW_FORMAT_CSV || !(c->choice.snapshots || c->sites))
		return 0;
	mw_error(MW_EXIT_USAGE, "heap report", "--format csv is not supported with %s",
		 c->choice.snapshots ? "--leaks" : "--sites");
	mw_hint("it supports table, json");
	return MW_EXIT_USAGE;
}

static int check_config(const struct report_config *c, int argc)
{
	if (c->choice.snapshots + c->tree + c->lines + c->sites + c->modules + c->choice.rss > 1)
		return mw_error(MW_EXIT_USAGE, "heap report",
				"--leaks, --lines, --modules, --rss, --sites and --tree exclude "
				"each other");
	if (c->choice.rss && (c->choice.diff || c->choice.objects || c->choice.allocated))
		return mw_error(MW_EXIT_USAGE, "heap report",
				"--rss is about live bytes and has no base");
	if (c->choice.snapshots && (c->choice.diff || c->choice.objects || c->choice.allocated))
		return mw_error(MW_EXIT_USAGE, "heap report",
				"--leaks is about live bytes and has no base");
	if (c->choice.snapshots && argc < 2)
		return mw_error(MW_EXIT_USAGE, "heap report",
				"--leaks needs two or more snapshots of one process");
	if (!c->choice.snapshots && argc > 1)
		return mw_error(MW_EXIT_USAGE, "heap report",
				"only --leaks reads more than one FILE; use --diff BASE to compare "
				"two");
	return 0;
}

static uint64_t rows_wanted(const struct report *r)
{
	if (r->config->top != UINT64_MAX)
		return r->config->top;
	return r->cli->format == MW_FORMAT_TABLE ? DEFAULT_TOP : 0;
}

static int report_profiles(void *data)
{
	struct report *r = data;
	const struct heap_choice *choice = &r->config->choice;
	int rc = heap_profiles_open(&r->profiles, r->cli, choice, r->count, r->files);

	r->info.sz = sizeof(r->info);
	/* Of snapshots, that is the latest. */
	if (!rc && !memwatch_heap_get_info(r->profiles.heap, (unsigned int)r->count - 1, &r->info))
		r->path = r->info.name;
	if (!rc)
		rc = heap_metric(&r->profiles, choice, r->path, &r->rows.metric);
	if (!rc) {
		r->rows.cli = r->cli;
		r->rows.metrics = r->info.metrics;
		r->rows.objects = r->info.objects;
		r->rows.top = rows_wanted(r);
		warn_incomplete(r);
		warn_python(r);
		rc = r->cli->format == MW_FORMAT_JSON ? print_json(r) : print_text(r);
	}
	memwatch_heap_view_unref(r->rows.view);
	heap_profiles_close(&r->profiles);
	return rc;
}

static int report_run(const struct mw_cli *cli, void *config, int argc, char **argv)
{
	struct report r = { .cli = cli, .config = config, .files = argv, .count = argc };
	int rc = check_config(r.config, argc) ?: check_format(cli, r.config);

	r.path = argv[argc - 1];
	return rc ? rc : heap_profiles_run(report_profiles, &r);
}

const struct mw_cmd mw_cmd_heap_report = {
	.name = "report",
	.summary = "show which function allocated",
	.usage = report_usage,
	.options = report_options,
	.run = report_run,
	.flags = MW_CMD_JSON | MW_CMD_CSV,
	.defaults = &report_defaults,
	.config_size = sizeof(struct report_config),
	.operands_min = 1,
	.operands_max = -1,
};
