// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * "heap run": runs a command with the heap profiler preloaded.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmds/heap/heap.h"
#include "cmds/heap/preload.h"
#include "cmds/heap/processes.h"
#include "common/clock.h"
#include "common/message.h"
#include "common/parse.h"

/* How often the command is looked at. */
#define STEP_NS 50000000
/* The profiler refuses less. */
#define SNAPSHOT_BYTES_LEAST (1U << 20)
/* The profiler takes 8M for less, and its default for more. */
#define MAX_BYTES_LEAST (UINT64_C(8) << 20)
#define MAX_BYTES_MOST	(UINT64_C(1) << 30)
/* The profiler does not watch more objects. */
#define ISOLATE_MOST 1000U

struct run_config {
	uint64_t rate;
	uint64_t max;
	uint64_t interval;
	uint64_t isolate;
	const char *output;
	const char *library;
	const char *snapshot;
	bool dormant;
	bool mmap;
	bool no_children;
};

static const struct run_config run_defaults = {
	.rate = HEAP_NOT_GIVEN,
	.max = HEAP_NOT_GIVEN,
	.interval = HEAP_NOT_GIVEN,
};

#define MEMBER(name) offsetof(struct run_config, name)

static const struct mw_option run_options[] = {
	{ "output", 'o', MW_OPTION_FILE, MEMBER(output), "DIR",
	  "directory for the profiles; it is created if it does not exist", NULL },
	{ "rate", 'r', MW_OPTION_BYTES, MEMBER(rate), "BYTES",
	  "mean number of bytes between two samples, 1 to 1T (512K)", NULL },
	{ "max-size", 0, MW_OPTION_BYTES, MEMBER(max), "BYTES",
	  "most memory of the profiler, profile included, 8M to 1G (60M)", NULL },
	{ "mmap", 0, MW_OPTION_FLAG, MEMBER(mmap), NULL,
	  "also profile anonymous memory that a program maps itself", NULL },
	{ "isolate", 0, MW_OPTION_UINT, MEMBER(isolate), "N",
	  "watch up to N sampled objects, each on pages of its own, for accesses (1000 at most)",
	  NULL },
	{ "snapshot", 's', MW_OPTION_STRING, MEMBER(snapshot), "WHEN",
	  "have each process copy its profile: bytes=BYTES, peak, exit, max=N", NULL },
	{ "interval", 'i', MW_OPTION_DURATION, MEMBER(interval), "TIME",
	  "copy the profile of the command every TIME", NULL },
	{ "dormant", 0, MW_OPTION_FLAG, MEMBER(dormant), NULL,
	  "take no samples before \"heap start\"", NULL },
	{ "no-children", 0, MW_OPTION_FLAG, MEMBER(no_children), NULL,
	  "do not profile processes that the command forks", NULL },
	{ "library", 0, MW_OPTION_FILE, MEMBER(library), "FILE",
	  "the profiler, if it is not installed with memwatchctl", NULL },
	{ 0 },
};

struct run {
	const struct run_config *config;
	struct memwatch_ctx *ctx;
	struct heap_preload preload;
	char snapshot[128]; /* MEMWATCH_HEAP_SNAPSHOT, or "" */
	uint64_t next_ns;
	unsigned int snapshots;
};

/* Adds a word of --snapshot to what the profiler is told, which knows no units. */
static bool add_snapshot_word(const char *word, char *list, size_t size)
{
	size_t len = strlen(list);
	uint64_t value;

	list += len;
	size -= len;
	if (!strncmp(word, "bytes=", 6) && !mw_parse_bytes(word + 6, &value) &&
	    value >= SNAPSHOT_BYTES_LEAST)
		return snprintf(list, size, "bytes=%" PRIu64 ",", value) < (int)size;
	if (!strncmp(word, "max=", 4) && !mw_parse_uint(word + 4, &value) && value <= UINT32_MAX)
		return snprintf(list, size, "max=%" PRIu64 ",", value) < (int)size;
	if (!strcmp(word, "peak") || !strcmp(word, "exit"))
		return snprintf(list, size, "%s,", word) < (int)size;
	return false;
}

/* The profiler itself prints nothing about words that it does not know. */
static int read_snapshot(struct run *r)
{
	char words[sizeof(r->snapshot)], *rest = words, *word;

	if (!r->config->snapshot)
		return 0;
	if (snprintf(words, sizeof(words), "%s", r->config->snapshot) >= (int)sizeof(words))
		return mw_error(MW_EXIT_USAGE, "heap run", "--snapshot: the list is too long");
	while ((word = strsep(&rest, ",")))
		if (!add_snapshot_word(word, r->snapshot, sizeof(r->snapshot)))
			return mw_error(MW_EXIT_USAGE, "heap run",
					"--snapshot: '%s' is not one of bytes=BYTES (1M or more), "
					"peak, exit, max=N",
					word);
	r->snapshot[strlen(r->snapshot) - 1] = '\0';
	return 0;
}

static int set_environment(const struct run *r)
{
	const struct run_config *c = r->config;
	int err = heap_preload_number("MEMWATCH_HEAP_RATE", c->rate);

	if (!err)
		err = heap_preload_number("MEMWATCH_HEAP_MAX", c->max);
	if (!err)
		err = heap_preload_number("MEMWATCH_HEAP_DORMANT", c->dormant);
	if (!err)
		err = heap_preload_number("MEMWATCH_HEAP_MMAP", c->mmap);
	if (!err)
		err = heap_preload_number("MEMWATCH_HEAP_ISOLATE", c->isolate);
	if (!err && *r->snapshot && setenv("MEMWATCH_HEAP_SNAPSHOT", r->snapshot, 1))
		err = -errno;
	if (!err && c->no_children && setenv("MEMWATCH_HEAP_FORK", "stop", 1))
		err = -errno;
	return err;
}

/* Cuts @suffix off. Returns false if @name does not end in it. */
static bool cut_suffix(char *name, const char *suffix)
{
	size_t len = strlen(name), tail = strlen(suffix);

	if (len < tail || strcmp(name + len - tail, suffix))
		return false;
	name[len - tail] = '\0';
	return true;
}

/* The name of a profile without its suffix: "COMM.PID". The file may have been removed. */
static bool find_profile_name(int fd, char *ret, size_t size)
{
	char link[64], path[PATH_MAX];
	const char *slash;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	cut_suffix(path, " (deleted)");
	slash = strrchr(path, '/');
	if (!slash || !cut_suffix(path, ".mwheap"))
		return false;
	snprintf(ret, size, "%s", slash + 1);
	return true;
}

/* Copies the profile of the command to "DIR/COMM.PID-0001.mwheap". */
static void take_snapshot(struct run *r)
{
	char path[PATH_MAX + NAME_MAX + 32], name[NAME_MAX + 1];
	int fd;

	if (memwatch_heap_find(r->ctx, (uint32_t)r->preload.child.pid, 0, &fd))
		return;
	if (find_profile_name(fd, name, sizeof(name))) {
		/* With --snapshot the process makes copies, too. */
		do
			snprintf(path, sizeof(path), "%s/%s-%04u.mwheap", r->preload.directory,
				 name, ++r->snapshots);
		while (!access(path, F_OK));
		heap_snapshot_write(r->ctx, fd, "profile", path);
	}
	close(fd);
}

static void wait_for_command(struct run *r)
{
	const struct timespec step = { .tv_nsec = STEP_NS };

	if (r->config->interval == HEAP_NOT_GIVEN) {
		mw_child_wait(&r->preload.child);
		return;
	}
	r->next_ns = mw_clock_add(mw_clock_ns(CLOCK_MONOTONIC), r->config->interval);
	while (!mw_child_poll(&r->preload.child)) {
		if (mw_clock_ns(CLOCK_MONOTONIC) >= r->next_ns) {
			take_snapshot(r);
			r->next_ns = mw_clock_add(r->next_ns, r->config->interval);
		}
		nanosleep(&step, NULL);
	}
}

static const char *const run_usage[] = {
	"heap run -o DIR [--rate BYTES] [--interval TIME] [--snapshot WHEN] -- COMMAND...",
	"",
	"Runs a command with the heap profiler. Each process has a profile in DIR,",
	"COMM.PID.mwheap, which \"heap report\" can read at any time, also after the process was",
	"killed. With --interval, copies of the command's profile are COMM.PID-NNNN.mwheap.",
	"The exit status is that of the command, or 128 and the number of its signal.",
	NULL,
};

static int check_config(const struct run_config *c)
{
	int rc;

	if (!c->output)
		return mw_error(MW_EXIT_USAGE, "heap run", "-o DIR is missing");
	if (c->isolate > ISOLATE_MOST)
		return mw_error(MW_EXIT_USAGE, "heap run", "--isolate: at most %u objects",
				ISOLATE_MOST);
	rc = heap_rate_check(c->rate);
	if (!rc)
		rc = heap_option_check("--max-size", c->max, MAX_BYTES_LEAST, MAX_BYTES_MOST,
				       "from 8M to 1G");
	if (!rc)
		rc = heap_option_check("--interval", c->interval, 1, UINT64_MAX, "above 0");
	return rc;
}

static int run_run(const struct mw_cli *cli, void *config, int argc, char **argv)
{
	mw_cleanup_ctx struct memwatch_ctx *ctx = NULL;
	struct run r = { .config = config, .preload = { .cli = cli, .what = "heap run" } };
	int err, rc;

	(void)argc;
	rc = check_config(r.config) ?: read_snapshot(&r) ?: mw_library_new(cli, &ctx);
	r.ctx = ctx;
	if (!rc)
		rc = heap_preload_init(&r.preload, argv[0], r.config->library, r.config->output);
	if (rc)
		return rc;
	err = set_environment(&r);
	rc = err ? mw_error_errno(err, argv[0]) : heap_preload_fork(&r.preload, argv);
	if (!rc)
		rc = heap_preload_start(&r.preload, argv);
	if (rc)
		return rc;
	wait_for_command(&r);
	return heap_preload_end(&r.preload);
}

const struct mw_cmd mw_cmd_heap_run = {
	.name = "run",
	.summary = "run a command with the heap profiler",
	.usage = run_usage,
	.options = run_options,
	.run = run_run,
	.flags = MW_CMD_PASS_ARGS,
	.defaults = &run_defaults,
	.config_size = sizeof(struct run_config),
	.operands_min = 1,
	.operands_max = -1,
};
