// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * "stale run": runs a command and records all its allocations and frees, and samples its memory
 * accesses if asked to.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <memwatch/access.h>

#include "cmds/heap/preload.h"
#include "cmds/stale/stale.h"
#include "common/library.h"
#include "common/message.h"

#define POLL_MS 100
/* The profiler takes no more frames for a site. */
#define DEPTH_MOST 16

struct run_config {
	uint64_t depth, max, period;
	const char *output;
	const char *library;
	const char *accesses; /* "": any event; NULL: none */
	bool no_children, dormant;
};

/**
 * struct run - a command
 * @access: NULL: its accesses are not sampled
 */
struct run {
	const struct mw_cli *cli;
	const struct run_config *config;
	struct memwatch_ctx *ctx;
	struct memwatch_access *access;
	struct heap_preload preload;
};

static const struct run_config run_defaults = {
	.depth = HEAP_NOT_GIVEN,
	.max = HEAP_NOT_GIVEN,
	.period = HEAP_NOT_GIVEN,
};

#define MEMBER(name) offsetof(struct run_config, name)

static const struct mw_option run_options[] = {
	{ "output", 'o', MW_OPTION_FILE, MEMBER(output), "DIR",
	  "directory for the traces; it is created if it does not exist", NULL },
	{ "depth", 0, MW_OPTION_UINT, MEMBER(depth), "N",
	  "frames that tell allocation sites apart, 1 to 16 (4)", NULL },
	{ "max-size", 0, MW_OPTION_BYTES, MEMBER(max), "BYTES", "largest size of a trace (16G)",
	  NULL },
	{ "accesses", 0, MW_OPTION_OPTIONAL, MEMBER(accesses), "EVENT",
	  "also sample memory accesses: auto, page-faults, or PMU/TERMS/", NULL },
	{ "period", 0, MW_OPTION_UINT, MEMBER(period), "N",
	  "mean number of accesses between two samples of a thread (100000)", NULL },
	{ "dormant", 0, MW_OPTION_FLAG, MEMBER(dormant), NULL,
	  "record nothing until \"stale start\"", NULL },
	{ "no-children", 0, MW_OPTION_FLAG, MEMBER(no_children), NULL,
	  "do not trace processes that the command forks", NULL },
	{ "library", 0, MW_OPTION_FILE, MEMBER(library), "FILE",
	  "the profiler, if it is not installed with memwatchctl", NULL },
	{ 0 },
};

static int set_environment(const struct run_config *c)
{
	int err = heap_preload_number(c->dormant ? "MEMWATCH_HEAP_DORMANT" : "MEMWATCH_HEAP_TRACE",
				      1);

	if (!err)
		err = heap_preload_number("MEMWATCH_HEAP_TRACE_DEPTH", c->depth);
	if (!err)
		err = heap_preload_number("MEMWATCH_HEAP_TRACE_MAX", c->max);
	if (!err && c->no_children && setenv("MEMWATCH_HEAP_FORK", "stop", 1))
		err = -errno;
	return err;
}

/* Says why there are no accesses, and what can be done. */
static int accesses_failed(const struct run *r, int err)
{
	int rc = err == -EINVAL
			 ? mw_error(MW_EXIT_USAGE, "--accesses", "%s", memwatch_ctx_error(r->ctx))
			 : mw_error(mw_exit_of(err), "--accesses", "%s",
				    memwatch_ctx_error(r->ctx));

	if (err == -EOPNOTSUPP)
		mw_hint("without --accesses, the age of objects stands for their staleness; "
			"--accesses=page-faults works everywhere, and sees the first access to "
			"each page only; accesses from elsewhere: \"stale report --import\"");
	return rc;
}

static int find_accesses(struct run *r)
{
	bool has_period = r->config->period != HEAP_NOT_GIVEN;
	MEMWATCH_OPTS(memwatch_access_opts, opts, .period = has_period ? r->config->period : 0);
	int err, rc;

	if (!r->config->accesses)
		return has_period ? mw_error(MW_EXIT_USAGE, "--period", "is for --accesses") : 0;
	if (*r->config->accesses)
		opts.event = r->config->accesses;
	rc = mw_library_new(r->cli, &r->ctx);
	if (rc)
		return rc;
	err = memwatch_access_new(r->ctx, &opts, &r->access);
	return err ? accesses_failed(r, err) : 0;
}

/* Says what is sampled: that it is less than all kinds of accesses must not be overlooked. */
static void describe_accesses(const struct run *r)
{
	MEMWATCH_OPTS(memwatch_access_info, info);

	memwatch_access_get_info(r->access, &info);
	if (info.page_faults)
		mw_warn(r->cli, "accesses: only the first one to each page is seen (%s)",
			info.event);
	else
		mw_note(r->cli, "accesses: one in %" PRIu64 " is sampled (%s)",
			(uint64_t)info.period, info.event);
	if (info.user_only)
		mw_warn(r->cli,
			"accesses of system calls are not sampled, so what only these use looks "
			"stale; that needs CAP_PERFMON or kernel.perf_event_paranoid of at most 1");
}

static int start_accesses(struct run *r)
{
	int err;

	if (!r->access)
		return 0;
	err = memwatch_access_record(r->access, (uint32_t)r->preload.child.pid,
				     r->preload.directory);
	if (err)
		return accesses_failed(r, err);
	describe_accesses(r);
	return 0;
}

static void end_accesses(struct run *r, int err)
{
	MEMWATCH_OPTS(memwatch_access_info, info);
	int end = memwatch_access_end(r->access);

	if (err || end)
		mw_warn(r->cli, "accesses: %s", memwatch_ctx_error(r->ctx));
	memwatch_access_get_info(r->access, &info);
	if (info.lost)
		mw_warn(r->cli, "accesses: samples that were lost: %" PRIu64, (uint64_t)info.lost);
	if (!info.samples)
		mw_warn(r->cli, "accesses: none was sampled");
}

static void wait_with_accesses(struct run *r)
{
	bool running = true;
	int rc, err = 0;

	while (running && !mw_child_poll(&r->preload.child)) {
		rc = memwatch_access_poll(r->access, POLL_MS);
		/* What cannot be written is still read, so that the kernel does not wait. */
		if (rc < 0)
			err = rc;
		running = rc != 0;
	}
	end_accesses(r, err);
}

static int run_command(struct run *r, char **argv)
{
	int rc = heap_preload_fork(&r->preload, argv);

	if (rc)
		return rc;
	rc = start_accesses(r);
	if (rc) {
		mw_child_uninit(&r->preload.child);
		return rc;
	}
	rc = heap_preload_start(&r->preload, argv);
	if (rc)
		return rc;
	if (r->access)
		wait_with_accesses(r);
	mw_child_wait(&r->preload.child);
	return heap_preload_end(&r->preload);
}

static const char *const run_usage[] = {
	"stale run -o DIR [--accesses[=EVENT]] [--period N] [--dormant] [--depth N]",
	"          [--max-size BYTES] [--no-children] -- COMMAND...",
	"",
	"Runs a command and records every allocation and free. Each process has a trace in DIR,",
	"COMM.PID.mwtrace, and a heap profile beside it, COMM.PID.mwheap. \"stale report DIR\" can",
	"read them at any time, also after the process was killed. With --accesses, samples of",
	"the memory accesses of all its processes are in accesses.mwaccess; this needs a processor",
	"and a machine that offer them. The exit status is that of the command, or 128 and the",
	"number of its signal.",
	NULL,
};

static int check_config(const struct run_config *c)
{
	int rc;

	if (!c->output)
		return mw_error(MW_EXIT_USAGE, "stale run", "-o DIR is missing");
	rc = heap_option_check("--depth", c->depth, 1, DEPTH_MOST, "from 1 to 16");
	if (!rc)
		rc = heap_option_check("--max-size", c->max, 1, INT64_MAX, "from 1 to 8388607T");
	if (!rc)
		rc = heap_option_check("--period", c->period, 1, UINT64_MAX, "above 0");
	return rc;
}

static int run_run(const struct mw_cli *cli, void *config, int argc, char **argv)
{
	struct run r = { .cli = cli,
			 .config = config,
			 .preload = { .cli = cli, .what = "stale run" } };
	int err, rc;

	(void)argc;
	r.preload.trace = !r.config->dormant;
	rc = check_config(r.config) ?: find_accesses(&r);
	if (!rc)
		rc = heap_preload_init(&r.preload, argv[0], r.config->library, r.config->output);
	err = rc ? 0 : set_environment(r.config);
	if (err)
		rc = mw_error_errno(err, argv[0]);
	if (!rc)
		rc = run_command(&r, argv);
	memwatch_access_unref(r.access);
	memwatch_ctx_unref(r.ctx);
	return rc;
}

const struct mw_cmd mw_cmd_stale_run = {
	.name = "run",
	.summary = "record all allocations and frees of a command",
	.usage = run_usage,
	.options = run_options,
	.run = run_run,
	.flags = MW_CMD_PASS_ARGS,
	.defaults = &run_defaults,
	.config_size = sizeof(struct run_config),
	.operands_min = 1,
	.operands_max = -1,
};
