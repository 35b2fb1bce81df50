// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * "heap list": the processes that have a profile, or the profiles in a directory.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cmds/heap/heap.h"
#include "cmds/heap/processes.h"
#include "common/array.h"
#include "common/message.h"
#include "common/parse.h"
#include "output/table.h"
#include "common/pool.h"

enum column {
	COLUMN_PID,
	COLUMN_COMM,
	COLUMN_STATE,
	COLUMN_RATE,
	COLUMN_LIVE,
	COLUMN_SAMPLES,
	COLUMN_SIZE,
	COLUMN_FILE,
	COLUMNS,
};

static const struct mw_column list_columns[COLUMNS] = {
	[COLUMN_PID] = { "pid", "PID", MW_KIND_UINT, MW_UNIT_NONE, 0 },
	[COLUMN_COMM] = { "comm", "COMM", MW_KIND_TEXT, MW_UNIT_NONE, 0 },
	[COLUMN_STATE] = { "state", "STATE", MW_KIND_TEXT, MW_UNIT_NONE, 0 },
	[COLUMN_RATE] = { "rate_bytes", "RATE", MW_KIND_UINT, MW_UNIT_BYTES, 0 },
	[COLUMN_LIVE] = { "live_bytes", "LIVE", MW_KIND_UINT, MW_UNIT_BYTES, 0 },
	[COLUMN_SAMPLES] = { "samples", "SAMPLES", MW_KIND_UINT, MW_UNIT_NONE, 0 },
	[COLUMN_SIZE] = { "file_bytes", "SIZE", MW_KIND_UINT, MW_UNIT_BYTES, 0 },
	[COLUMN_FILE] = { "file", "FILE", MW_KIND_TEXT, MW_UNIT_NONE, MW_COLUMN_LAST },
};

/* A profile that is open, but not read yet. */
struct found {
	int fd;
	uint64_t pid; /* 0: that of the profile */
	const char *name;
};

struct list {
	const struct mw_cli *cli;
	const char *dir; /* NULL: processes */
	struct memwatch_ctx *ctx;
	struct found *found;
	size_t nr_found, capacity;
	struct mw_pool pool;
	struct mw_table table;
	uint64_t denied; /* processes that could not be looked at */
};

/* Adds a row for a profile. What is no profile is left out. */
static int read_profile(struct list *l, const struct found *found)
{
	MEMWATCH_OPTS(memwatch_heap_info, info);
	struct memwatch_heap *heap;
	struct mw_cell *cells;
	char *comm;

	if (heap_header_read(l->ctx, found->fd, found->name, &heap, &info))
		return 0;
	comm = mw_pool_copy(&l->pool, info.comm);
	cells = comm ? mw_table_row(&l->table) : NULL;
	memwatch_heap_unref(heap);
	if (!cells)
		return -ENOMEM;
	cells[COLUMN_PID] = (struct mw_cell){ .number = found->pid ?: info.pid };
	cells[COLUMN_COMM] = (struct mw_cell){ .text = comm };
	cells[COLUMN_STATE] = (struct mw_cell){ .text = heap_state_name(info.state) };
	cells[COLUMN_RATE] = (struct mw_cell){ .number = info.rate_bytes };
	cells[COLUMN_LIVE] = (struct mw_cell){ .number = info.live_bytes };
	cells[COLUMN_SAMPLES] = (struct mw_cell){ .number = info.samples };
	cells[COLUMN_SIZE] = (struct mw_cell){ .number = info.file_bytes };
	cells[COLUMN_FILE] = (struct mw_cell){ .text = found->name };
	return 0;
}

/* Takes @fd over. */
static int add_found(struct list *l, int fd, const char *name, uint64_t pid)
{
	char *copy = mw_pool_copy(&l->pool, name);

	if (!copy || mw_array_reserve(l->found, l->capacity, l->nr_found + 1)) {
		close(fd);
		return -ENOMEM;
	}
	l->found[l->nr_found++] = (struct found){ fd, pid, copy };
	return 0;
}

static int add_process(struct list *l, const char *name)
{
	char path[4096];
	uint64_t pid;
	int fd, err;

	if (mw_parse_uint(name, &pid) || pid > INT32_MAX)
		return 0;
	err = memwatch_heap_find(l->ctx, (uint32_t)pid, 0, &fd);
	if (!err)
		return add_found(l, fd, heap_fd_path(fd, path, sizeof(path)), pid);
	l->denied += err == -EACCES || err == -EPERM;
	return 0;
}

static int add_file(struct list *l, const char *name)
{
	const char *dot = strrchr(name, '.');
	char path[4096];
	int fd;

	if (!dot || strcmp(dot, ".mwheap"))
		return 0;
	if (snprintf(path, sizeof(path), "%s/%s", l->dir, name) >= (int)sizeof(path))
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	return fd < 0 ? 0 : add_found(l, fd, path, 0);
}

/* All profiles are open at the same time, because they are opened as root and read as nobody. */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int find_profiles(struct list *l)
{
	struct dirent **entries;
	char proc[4096];
	int count, err = 0;

	snprintf(proc, sizeof(proc), "%s/proc", l->cli->root ? l->cli->root : "");
	count = scandir(l->dir ? l->dir : proc, &entries, NULL, versionsort);
	if (count < 0)
		return -errno;
	for (int i = 0; i < count; i++) {
		if (!err)
			err = l->dir ? add_file(l, entries[i]->d_name)
				     : add_process(l, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return err;
}

static int fill_list(struct list *l)
{
	int err;

	raise_file_limit();
	err = find_profiles(l) ?: heap_give_up_root(l->ctx);
	for (size_t i = 0; i < l->nr_found; i++) {
		if (!err)
			err = read_profile(l, &l->found[i]);
		close(l->found[i].fd);
	}
	free(l->found);
	return err;
}

static int print_list(const struct mw_cli *cli, const struct list *l)
{
	struct mw_json json;

	if (cli->format == MW_FORMAT_TABLE)
		return l->table.nr_rows ? mw_table_print(&l->table) : MW_EXIT_DONE;
	if (cli->format == MW_FORMAT_CSV) {
		mw_table_csv(&l->table, stdout);
		return MW_EXIT_DONE;
	}
	mw_json_init(&json, stdout);
	mw_table_json(&l->table, &json, "profiles");
	mw_json_finish(&json);
	return MW_EXIT_DONE;
}

static const char *const list_usage[] = {
	"heap list [DIR]",
	"",
	"Lists the processes that have a heap profile of memwatch, or the profiles in the",
	"directory DIR, also those of processes that have ended. Only root sees the processes",
	"of other users. The exit status is 4 if there are none.",
	NULL,
};

static int show_list(void *data)
{
	mw_cleanup_ctx struct memwatch_ctx *ctx = NULL;
	struct list *l = data;
	int err, rc = mw_library_new(l->cli, &ctx);

	if (rc)
		return rc;
	l->ctx = ctx;
	mw_table_init(&l->table, list_columns, COLUMNS);
	err = fill_list(l);
	if (err)
		rc = mw_error_errno(err, l->dir ? l->dir : "/proc");
	else
		rc = print_list(l->cli, l);
	if (!rc && !l->table.nr_rows) {
		mw_warn(l->cli, "there are no heap profiles");
		rc = MW_EXIT_NOTHING;
	}
	if (l->denied && !l->dir)
		mw_note(l->cli, "%" PRIu64 " processes belong to other users and were left out",
			l->denied);
	mw_table_uninit(&l->table);
	mw_pool_free(&l->pool);
	return rc;
}

static int list_run(const struct mw_cli *cli, void *config, int argc, char **argv)
{
	struct list l = { .cli = cli, .dir = argc ? argv[0] : NULL };

	(void)config;
	return heap_profiles_run(show_list, &l);
}

const struct mw_cmd mw_cmd_heap_list = {
	.name = "list",
	.summary = "list processes with a heap profile",
	.usage = list_usage,
	.run = list_run,
	.flags = MW_CMD_JSON | MW_CMD_CSV,
	.operands_max = 1,
};
