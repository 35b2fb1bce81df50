// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * "stale start" and "stale stop": the trace of a running process, on and off.
 */
#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "cmds/heap/processes.h"
#include "cmds/stale/stale.h"
#include "common/message.h"
#include "common/parse.h"

/* How long a process may take to follow; it looks when it allocates. */
#define FOLLOW_NS 1000000000ULL

static int send_request(const struct mw_cli *cli, const char *name,
			enum memwatch_heap_control control)
{
	mw_cleanup_ctx struct memwatch_ctx *ctx = NULL;
	uint64_t pid;
	int fd, err, rc = mw_library_new(cli, &ctx);

	if (rc)
		return rc;
	if (mw_parse_uint(name, &pid) || pid > INT32_MAX)
		return mw_error(MW_EXIT_USAGE, "stale", "PID must be the number of a process");
	err = memwatch_heap_find(ctx, (uint32_t)pid, 1, &fd);
	if (err)
		return heap_process_failed(ctx, err, name);
	err = memwatch_heap_request(ctx, fd, control, 0, FOLLOW_NS);
	close(fd);
	if (err == -ETIMEDOUT) {
		mw_warn(cli, "process %" PRIu64 " will follow when it allocates", pid);
		return MW_EXIT_DONE;
	}
	return err ? heap_process_failed(ctx, err, name) : MW_EXIT_DONE;
}

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
	return send_request(cli, argv[0], MEMWATCH_HEAP_TRACE_START);
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
	return send_request(cli, argv[0], MEMWATCH_HEAP_TRACE_STOP);
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
