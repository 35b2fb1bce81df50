// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * "heap start", "heap stop", "heap stats" and "heap snapshot".
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "cmds/heap/heap.h"
#include "cmds/heap/preload.h"
#include "cmds/heap/processes.h"
#include "common/message.h"
#include "output/human.h"
#include "output/json.h"
#include "text/escape.h"

struct start_config {
	uint64_t rate;
};

static const struct start_config start_defaults = { .rate = HEAP_NOT_GIVEN };

static const struct mw_option start_options[] = {
	{ "rate", 'r', MW_OPTION_BYTES, offsetof(struct start_config, rate), "BYTES",
	  "mean number of bytes between two samples", NULL },
	{ 0 },
};

static const char *const start_usage[] = {
	"heap start PID [--rate BYTES]",
	"",
	"Makes the profiler in a process take samples. The process was started with",
	"\"heap run\", for example with --dormant.",
	NULL,
};

static int start_run(const struct mw_cli *cli, void *config, int argc, char **argv)
{
	const struct start_config *c = config;
	/* The profiler takes 0 for the rate that it was started with. */
	uint64_t rate = c->rate == HEAP_NOT_GIVEN ? 0 : c->rate;

	(void)argc;
	return heap_rate_check(c->rate)
		       ?: heap_process_request(cli, "heap", argv[0], MEMWATCH_HEAP_START, rate);
}

static const char *const stop_usage[] = {
	"heap stop PID",
	"",
	"Makes the profiler in a process take no further samples. It still follows the frees",
	"of those it has taken, so that what remains is what was not freed.",
	NULL,
};

static int stop_run(const struct mw_cli *cli, void *config, int argc, char **argv)
{
	(void)config;
	(void)argc;
	return heap_process_request(cli, "heap", argv[0], MEMWATCH_HEAP_STOP, 0);
}

static void print_stats_json(const struct memwatch_heap_info *info)
{
	struct mw_json json;

	mw_json_init(&json, stdout);
	mw_json_string(&json, "file", info->name);
	mw_json_uint(&json, "pid", info->pid);
	mw_json_string(&json, "comm", info->comm);
	mw_json_string(&json, "state", heap_state_name(info->state));
	mw_json_bool(&json, "from_start", info->from_start > 0);
	mw_json_uint(&json, "start_realtime_ns", info->start_ns);
	mw_json_uint(&json, "rate_bytes", info->rate_bytes);
	mw_json_uint(&json, "configured_rate_bytes", info->configured_rate_bytes);
	mw_json_uint(&json, "live_bytes", info->live_bytes);
	mw_json_uint(&json, "live_samples", info->samples);
	mw_json_uint(&json, "sampled", info->sampled);
	mw_json_uint(&json, "freed", info->freed);
	mw_json_uint(&json, "lost", info->lost);
	mw_json_uint(&json, "lost_bytes", info->lost_bytes);
	mw_json_uint(&json, "peak_live_bytes", info->peak_live_bytes);
	mw_json_uint(&json, "sample_ns", info->sample_ns);
	mw_json_uint(&json, "file_bytes", info->file_bytes);
	mw_json_row(&json, "stacks");
	mw_json_uint(&json, "frame_pointer", info->frame_pointer);
	mw_json_uint(&json, "unwound", info->unwound);
	mw_json_uint(&json, "truncated", info->truncated);
	mw_json_object_end(&json);
	mw_json_row(&json, "limits");
	for (size_t i = 0; i < HEAP_LIMITS; i++)
		mw_json_bool(&json, heap_limits[i].key, info->limits & heap_limits[i].bit);
	mw_json_object_end(&json);
	mw_json_finish(&json);
}

static void print_value(const char *title, uint64_t value, enum mw_unit unit)
{
	char buf[32];

	printf("%-26s %s\n", title, mw_human_uint(value, unit, buf, sizeof(buf)));
}

static void print_stats(const struct memwatch_heap_info *info)
{
	char comm[64], name[256];

	printf("%-26s %u (%s)\n", "Process", info->pid, mw_escape(info->comm, comm, sizeof(comm)));
	printf("%-26s %s\n", "File", mw_escape(info->name, name, sizeof(name)));
	print_value("Size of the file", info->file_bytes, MW_UNIT_BYTES);
	printf("%-26s %s%s\n", "State", heap_state_name(info->state),
	       info->from_start ? "" : ", began after the start of the process");
	print_value("Bytes between samples", info->rate_bytes, MW_UNIT_BYTES);
	if (info->configured_rate_bytes && info->configured_rate_bytes != info->rate_bytes)
		print_value("  asked for", info->configured_rate_bytes, MW_UNIT_BYTES);
	print_value("Live bytes (estimate)", info->live_bytes, MW_UNIT_BYTES);
	print_value("  highest", info->peak_live_bytes, MW_UNIT_BYTES);
	print_value("Live samples", info->samples, MW_UNIT_NONE);
	print_value("Samples since the start", info->sampled, MW_UNIT_NONE);
	print_value("  freed", info->freed, MW_UNIT_NONE);
	print_value("  lost", info->lost, MW_UNIT_NONE);
	print_value("Time for samples", info->sample_ns, MW_UNIT_NS);
	print_value("Stacks by unwind tables", info->unwound, MW_UNIT_NONE);
	print_value("Stacks by frame pointers", info->frame_pointer, MW_UNIT_NONE);
	print_value("Stacks that were cut off", info->truncated, MW_UNIT_NONE);
	for (size_t i = 0; i < HEAP_LIMITS; i++)
		if (info->limits & heap_limits[i].bit)
			printf("Limit: %s.\n", heap_limits[i].text);
}

static const char *const stats_usage[] = {
	"heap stats PID|FILE",
	"",
	"Shows what the profiler in a process does and what it has cost.",
	NULL,
};

struct stats {
	const struct mw_cli *cli;
	const char *name;
};

static int show_stats(void *data)
{
	mw_cleanup_ctx struct memwatch_ctx *ctx = NULL;
	MEMWATCH_OPTS(memwatch_heap_info, info);
	const struct stats *stats = data;
	struct memwatch_heap *heap;
	char path[4096];
	int fd, err, rc = mw_library_new(stats->cli, &ctx);

	if (rc)
		return rc;
	err = heap_process_open(ctx, stats->name, &fd);
	if (err)
		return heap_process_failed(ctx, err, stats->name);
	heap_fd_path(fd, path, sizeof(path));
	err = heap_give_up_root(ctx) ?: heap_header_read(ctx, fd, path, &heap, &info);
	close(fd);
	if (err)
		return heap_process_failed(ctx, err, stats->name);
	if (stats->cli->format == MW_FORMAT_JSON)
		print_stats_json(&info);
	else
		print_stats(&info);
	memwatch_heap_unref(heap);
	return MW_EXIT_DONE;
}

static int stats_run(const struct mw_cli *cli, void *config, int argc, char **argv)
{
	struct stats stats = { .cli = cli, .name = argv[0] };

	(void)config;
	(void)argc;
	return heap_profiles_run(show_stats, &stats);
}

struct snapshot_config {
	const char *output;
};

static const struct mw_option snapshot_options[] = {
	{ "output", 'o', MW_OPTION_FILE, offsetof(struct snapshot_config, output), "FILE",
	  "write the copy to FILE, which must not exist", NULL },
	{ 0 },
};

static const char *const snapshot_usage[] = {
	"heap snapshot PID|FILE -o FILE",
	"",
	"Copies the profile of a process, without stopping it.",
	NULL,
};

static int snapshot_run(const struct mw_cli *cli, void *config, int argc, char **argv)
{
	mw_cleanup_ctx struct memwatch_ctx *ctx = NULL;
	const struct snapshot_config *c = config;
	int fd, err, rc;

	(void)argc;
	if (!c->output)
		return mw_error(MW_EXIT_USAGE, "heap snapshot", "-o FILE is missing");
	rc = mw_library_new(cli, &ctx);
	if (rc)
		return rc;
	err = heap_process_open(ctx, argv[0], &fd);
	if (err)
		return heap_process_failed(ctx, err, argv[0]);
	rc = heap_snapshot_write(ctx, fd, argv[0], c->output);
	close(fd);
	return rc;
}

const struct mw_cmd mw_cmd_heap_start = {
	.name = "start",
	.summary = "start sampling in a process",
	.usage = start_usage,
	.options = start_options,
	.run = start_run,
	.defaults = &start_defaults,
	.config_size = sizeof(struct start_config),
	.operands_min = 1,
	.operands_max = 1,
};

const struct mw_cmd mw_cmd_heap_stop = {
	.name = "stop",
	.summary = "stop sampling in a process",
	.usage = stop_usage,
	.run = stop_run,
	.operands_min = 1,
	.operands_max = 1,
};

const struct mw_cmd mw_cmd_heap_stats = {
	.name = "stats",
	.summary = "show what the profiler in a process does",
	.usage = stats_usage,
	.run = stats_run,
	.flags = MW_CMD_JSON,
	.operands_min = 1,
	.operands_max = 1,
};

const struct mw_cmd mw_cmd_heap_snapshot = {
	.name = "snapshot",
	.summary = "copy the profile of a process",
	.usage = snapshot_usage,
	.options = snapshot_options,
	.run = snapshot_run,
	.config_size = sizeof(struct snapshot_config),
	.operands_min = 1,
	.operands_max = 1,
};
