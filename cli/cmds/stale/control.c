// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * "stale start" and "stale stop": the trace of a running process, on and off.
 */
#include "cmds/heap/processes.h"
#include "cmds/stale/stale.h"

static const char *const start_usage[] = {
	"stale start PID",
	"",
	"Makes the profiler in a process record all allocations and frees from now on, in a new",
	"trace beside its heap profile. The process was started with \"stale run\" or \"heap "
	"run\",",
	"for example with --dormant. What it has allocated before is not in the trace.",
	NULL,
};

static int start_run(const struct mw_cli *cli, void *config, int argc, char **argv)
{
	(void)config;
	(void)argc;
	return heap_process_request(cli, "stale", argv[0], MEMWATCH_HEAP_TRACE_START, 0);
}

static const char *const stop_usage[] = {
	"stale stop PID",
	"",
	"Ends the trace of a process. What was recorded can still be reported, and with",
	"\"stale start\" the process begins another trace.",
	NULL,
};

static int stop_run(const struct mw_cli *cli, void *config, int argc, char **argv)
{
	(void)config;
	(void)argc;
	return heap_process_request(cli, "stale", argv[0], MEMWATCH_HEAP_TRACE_STOP, 0);
}

const struct mw_cmd mw_cmd_stale_start = {
	.name = "start",
	.summary = "start recording allocations and frees of a process",
	.usage = start_usage,
	.run = start_run,
	.operands_min = 1,
	.operands_max = 1,
};

const struct mw_cmd mw_cmd_stale_stop = {
	.name = "stop",
	.summary = "stop recording a process",
	.usage = stop_usage,
	.run = stop_run,
	.operands_min = 1,
	.operands_max = 1,
};
