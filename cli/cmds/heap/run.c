// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * "heap run": runs a command with the heap profiler preloaded.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cmds/heap/command.h"
#include "cmds/heap/heap.h"
#include "cmds/heap/processes.h"
#include "common/child.h"
#include "common/clock.h"
#include "common/message.h"
#include "common/parse.h"

#define LIBRARY "libmemwatch-heap.so"
/* How often the command is looked at. */
#define STEP_NS 50000000
/* The profiler refuses less. */
#define SNAPSHOT_BYTES_LEAST (1U << 20)

struct run_config {
	uint64_t rate;
	uint64_t max;
	uint64_t interval;
	const char *output;
	const char *library;
	const char *snapshot;
	bool dormant;
	bool mmap;
	bool no_children;
};

#define MEMBER(name) offsetof(struct run_config, name)

static const struct mw_option run_options[] = {
	{ "output", 'o', MW_OPTION_FILE, MEMBER(output), "DIR",
	  "directory for the profiles; it is created if it does not exist", NULL },
	{ "rate", 'r', MW_OPTION_BYTES, MEMBER(rate), "BYTES",
	  "mean number of bytes between two samples (512K)", NULL },
	{ "max-size", 0, MW_OPTION_BYTES, MEMBER(max), "BYTES", "largest size of a profile (60M)",
	  NULL },
	{ "mmap", 0, MW_OPTION_FLAG, MEMBER(mmap), NULL,
	  "also profile anonymous memory that a program maps itself", NULL },
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
	const struct mw_cli *cli;
	const struct run_config *config;
	struct memwatch_ctx *ctx;
	struct mw_child child;
	char directory[PATH_MAX];
	char library[PATH_MAX];
	char snapshot[128]; /* MEMWATCH_HEAP_SNAPSHOT, or "" */
	uint64_t next_ns;
	unsigned int snapshots;
};

/* The profiler is installed beside libmemwatch, and built into a folder beside this program's. */
static int find_library(struct run *r)
{
	static const char *const places[] = { "../lib/" LIBRARY, "../lib/memwatch/" LIBRARY,
					      "../heap/" LIBRARY };
	char self[PATH_MAX - 64], path[PATH_MAX], *slash;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (r->config->library && realpath(r->config->library, r->library))
		return 0;
	if (r->config->library)
		return mw_error_errno(-errno, "--library");
	self[n > 0 ? n : 0] = '\0';
	slash = strrchr(self, '/');
	for (size_t i = 0; slash && i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - self), self, places[i]);
		if (realpath(path, r->library) && !access(r->library, R_OK))
			return 0;
	}
	mw_error(MW_EXIT_UNSUPPORTED, "heap run", LIBRARY " was not found");
	mw_hint("name it with --library FILE");
	return MW_EXIT_UNSUPPORTED;
}

static int create_directory(struct run *r)
{
	if (mkdir(r->config->output, 0700) && errno != EEXIST)
		return mw_error_errno(-errno, r->config->output);
	if (!realpath(r->config->output, r->directory))
		return mw_error_errno(-errno, r->config->output);
	return 0;
}

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

static int set_number(const char *name, uint64_t value)
{
	char text[32];

	if (!value)
		return 0;
	snprintf(text, sizeof(text), "%" PRIu64, value);
	return setenv(name, text, 1) ? -errno : 0;
}

/* The child inherits the environment of this process, which loads nothing any more. */
static int set_environment(const struct run *r)
{
	const struct run_config *c = r->config;
	const char *others = getenv("LD_PRELOAD");
	char *preload = NULL;
	int err;

	if (asprintf(&preload, "%s%s%s", r->library, others && *others ? ":" : "",
		     others ? others : "") < 0)
		return -ENOMEM;
	err = setenv("LD_PRELOAD", preload, 1) ? -errno : 0;
	free(preload);
	if (!err && setenv("MEMWATCH_HEAP_DIR", r->directory, 1))
		err = -errno;
	if (!err)
		err = set_number("MEMWATCH_HEAP_RATE", c->rate);
	if (!err)
		err = set_number("MEMWATCH_HEAP_MAX", c->max);
	if (!err)
		err = set_number("MEMWATCH_HEAP_DORMANT", c->dormant);
	if (!err)
		err = set_number("MEMWATCH_HEAP_MMAP", c->mmap);
	if (!err && *r->snapshot && setenv("MEMWATCH_HEAP_SNAPSHOT", r->snapshot, 1))
		err = -errno;
	if (!err && c->no_children && setenv("MEMWATCH_HEAP_FORK", "stop", 1))
		err = -errno;
	return err;
}

/* Copies the profile of the command to "DIR/COMM.PID-0001.mwheap". */
static void take_snapshot(struct run *r)
{
	MEMWATCH_OPTS(memwatch_heap_info, info);
	char path[PATH_MAX + 128], comm[64];
	struct memwatch_heap *heap;
	int fd;

	if (memwatch_heap_find(r->ctx, (uint32_t)r->child.pid, 0, &fd))
		return;
	if (!heap_header_read(r->ctx, fd, "profile", &heap, &info)) {
		snprintf(comm, sizeof(comm), "%s", info.comm);
		memwatch_heap_unref(heap);
		for (char *p = comm; *p; p++)
			if (*p == '/' || *p < ' ')
				*p = '_';
		/* With --snapshot the process makes copies, too. */
		do
			snprintf(path, sizeof(path), "%s/%s.%d-%04u.mwheap", r->directory, comm,
				 (int)r->child.pid, ++r->snapshots);
		while (!access(path, F_OK));
		heap_snapshot_write(r->ctx, fd, "profile", path);
	}
	close(fd);
}

static void wait_for_command(struct run *r)
{
	const struct timespec step = { .tv_nsec = STEP_NS };

	if (!r->config->interval) {
		mw_child_wait(&r->child);
		return;
	}
	r->next_ns = mw_clock_ns(CLOCK_MONOTONIC) + r->config->interval;
	while (!mw_child_poll(&r->child)) {
		if (mw_clock_ns(CLOCK_MONOTONIC) >= r->next_ns) {
			take_snapshot(r);
			r->next_ns += r->config->interval;
		}
		nanosleep(&step, NULL);
	}
}

/* The status of the command is that of this program, as env(1) and others do it. */
static int command_status(const struct run *r)
{
	char text[128];

	if (!WIFSIGNALED(r->child.status))
		return WEXITSTATUS(r->child.status);
	mw_warn(r->cli, "the command %s", mw_child_status_text(&r->child, text, sizeof(text)));
	return 128 + WTERMSIG(r->child.status);
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

static int run_run(const struct mw_cli *cli, void *config, int argc, char **argv)
{
	mw_cleanup_ctx struct memwatch_ctx *ctx = NULL;
	struct run r = { .cli = cli, .config = config };
	int err, rc;

	(void)argc;
	if (!r.config->output)
		return mw_error(MW_EXIT_USAGE, "heap run", "-o DIR is missing");
	rc = read_snapshot(&r) ?: mw_library_new(cli, &ctx);
	r.ctx = ctx;
	if (!rc)
		rc = heap_command_check(argv[0]);
	if (!rc)
		rc = find_library(&r);
	if (!rc)
		rc = create_directory(&r);
	if (rc)
		return rc;
	err = set_environment(&r) ?: mw_child_fork(&r.child, argv);
	if (!err)
		err = mw_child_start(&r.child);
	if (err) {
		mw_child_uninit(&r.child);
		return mw_error_errno(err, argv[0]);
	}
	wait_for_command(&r);
	rc = command_status(&r);
	mw_child_uninit(&r.child);
	return rc;
}

const struct mw_cmd mw_cmd_heap_run = {
	.name = "run",
	.summary = "run a command with the heap profiler",
	.usage = run_usage,
	.options = run_options,
	.run = run_run,
	.flags = MW_CMD_PASS_ARGS,
	.config_size = sizeof(struct run_config),
	.operands_min = 1,
	.operands_max = -1,
};
