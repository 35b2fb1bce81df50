// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * "stale run": runs a command and records all its allocations and frees.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmds/heap/preload.h"
#include "cmds/stale/stale.h"
#include "common/message.h"

struct run_config {
	uint64_t depth, max;
	const char *output;
	const char *library;
	bool no_children;
};

#define MEMBER(name) offsetof(struct run_config, name)

static const struct mw_option run_options[] = {
	{ "output", 'o', MW_OPTION_FILE, MEMBER(output), "DIR",
	  "directory for the traces; it is created if it does not exist", NULL },
	{ "depth", 0, MW_OPTION_UINT, MEMBER(depth), "N",
	  "frames that tell allocation sites apart, 1 to 16 (4)", NULL },
	{ "max-size", 0, MW_OPTION_BYTES, MEMBER(max), "BYTES", "largest size of a trace (16G)",
	  NULL },
	{ "no-children", 0, MW_OPTION_FLAG, MEMBER(no_children), NULL,
	  "do not trace processes that the command forks", NULL },
	{ "library", 0, MW_OPTION_FILE, MEMBER(library), "FILE",
	  "the profiler, if it is not installed with memwatchctl", NULL },
	{ 0 },
};

static int set_environment(const struct run_config *c)
{
	int err = heap_preload_number("MEMWATCH_HEAP_TRACE", 1);

	if (!err)
		err = heap_preload_number("MEMWATCH_HEAP_TRACE_DEPTH", c->depth);
	if (!err)
		err = heap_preload_number("MEMWATCH_HEAP_TRACE_MAX", c->max);
	if (!err && c->no_children && setenv("MEMWATCH_HEAP_FORK", "stop", 1))
		err = -errno;
	return err;
}

static const char *const run_usage[] = {
	"stale run -o DIR [--depth N] [--max-size BYTES] [--no-children] -- COMMAND...",
	"",
	"Runs a command and records every allocation and free. Each process has a trace in DIR,",
	"COMM.PID.mwtrace, and a heap profile beside it, COMM.PID.mwheap. \"stale report DIR\" can",
	"read them at any time, also after the process was killed. The exit status is that of the",
	"command, or 128 and the number of its signal.",
	NULL,
};

static int run_run(const struct mw_cli *cli, void *config, int argc, char **argv)
{
	struct heap_preload preload = { .cli = cli, .what = "stale run" };
	const struct run_config *c = config;
	int err, rc;

	(void)argc;
	if (!c->output)
		return mw_error(MW_EXIT_USAGE, "stale run", "-o DIR is missing");
	if (c->depth > 16)
		return mw_error(MW_EXIT_USAGE, "--depth", "must be from 1 to 16");
	rc = heap_preload_init(&preload, argv[0], c->library, c->output);
	if (rc)
		return rc;
	err = set_environment(c);
	rc = err ? mw_error_errno(err, argv[0]) : heap_preload_start(&preload, argv);
	if (rc)
		return rc;
	mw_child_wait(&preload.child);
	return heap_preload_end(&preload);
}

const struct mw_cmd mw_cmd_stale_run = {
	.name = "run",
	.summary = "record all allocations and frees of a command",
	.usage = run_usage,
	.options = run_options,
	.run = run_run,
	.flags = MW_CMD_PASS_ARGS,
	.config_size = sizeof(struct run_config),
	.operands_min = 1,
	.operands_max = -1,
};
