// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Profiles that are named by a process or by a file, and their headers.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "cmds/heap/processes.h"
#include "common/message.h"
#include "common/parse.h"

/* How long a process may take to follow; it looks when it allocates. */
#define FOLLOW_NS 1000000000ULL

static const char *const state_names[] = {
	[MEMWATCH_HEAP_STATE_UNKNOWN] = "starting", [MEMWATCH_HEAP_STATE_DORMANT] = "dormant",
	[MEMWATCH_HEAP_STATE_ACTIVE] = "active",    [MEMWATCH_HEAP_STATE_STOPPED] = "stopped",
	[MEMWATCH_HEAP_STATE_ENDED] = "ended",
};

const struct heap_limit heap_limits[HEAP_LIMITS] = {
	{ MEMWATCH_HEAP_LIMIT_NO_SPACE, true, "no_space", "the file system was full" },
	{ MEMWATCH_HEAP_LIMIT_FILE_SIZE, false, "file_size", "the file has its largest size" },
	{ MEMWATCH_HEAP_LIMIT_SAMPLES_FULL, true, "samples_full",
	  "the rate was raised to save room" },
	{ MEMWATCH_HEAP_LIMIT_STACKS_FULL, true, "stacks_full", "some samples have no stack" },
	{ MEMWATCH_HEAP_LIMIT_MODULES_FULL, true, "modules_full", "some frames have no module" },
	{ MEMWATCH_HEAP_LIMIT_SNAPSHOTS, false, "snapshots",
	  "a copy could not be written, or there are as many as allowed" },
	{ MEMWATCH_HEAP_LIMIT_CODE_FULL, true, "code_full",
	  "some functions of Python have no name" },
};

const char *heap_state_name(uint32_t state)
{
	return state < sizeof(state_names) / sizeof(state_names[0]) ? state_names[state]
								    : "unknown";
}

int heap_process_open(struct memwatch_ctx *ctx, const char *name, int *ret)
{
	uint64_t pid;
	int fd;

	if (!mw_parse_uint(name, &pid) && pid <= INT32_MAX)
		return memwatch_heap_find(ctx, (uint32_t)pid, 0, ret);
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	*ret = fd;
	return 0;
}

const char *heap_fd_path(int fd, char *buf, size_t size)
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, buf, size - 1);
	buf[n > 0 ? n : 0] = '\0';
	return buf;
}

int heap_process_failed(struct memwatch_ctx *ctx, int err, const char *name)
{
	const char *why = mw_library_explain(ctx, err);

	if (err == -ENODATA) {
		mw_error(MW_EXIT_NOTHING, name, "%s", why);
		mw_hint("start the program with 'memwatchctl heap run -o DIR -- COMMAND'");
		return MW_EXIT_NOTHING;
	}
	if (err == -EISDIR)
		return mw_error_errno(err, name);
	if (err == -ENOMSG) {
		mw_error(MW_EXIT_FAILED, name, "is not a heap profile of memwatch");
		mw_hint("'memwatchctl heap run -o DIR -- COMMAND' makes one");
		return MW_EXIT_FAILED;
	}
	mw_error(mw_exit_of(err), name, "%s", why);
	if (err == -EACCES || err == -EPERM)
		mw_hint("run memwatchctl as root, or as the user that the profile belongs to");
	return mw_exit_of(err);
}

int heap_process_request(const struct mw_cli *cli, const char *what, const char *name,
			 enum memwatch_heap_control control, uint64_t rate)
{
	mw_cleanup_ctx struct memwatch_ctx *ctx = NULL;
	uint64_t pid;
	int fd, err, rc = mw_library_new(cli, &ctx);

	if (rc)
		return rc;
	if (mw_parse_uint(name, &pid) || pid > INT32_MAX)
		return mw_error(MW_EXIT_USAGE, what, "PID must be the number of a process");
	err = memwatch_heap_find(ctx, (uint32_t)pid, 1, &fd);
	if (err)
		return heap_process_failed(ctx, err, name);
	err = memwatch_heap_request(ctx, fd, control, rate, FOLLOW_NS);
	close(fd);
	if (err == -ETIMEDOUT) {
		mw_warn(cli, "process %" PRIu64 " will follow when it allocates", pid);
		return MW_EXIT_DONE;
	}
	return err ? heap_process_failed(ctx, err, name) : MW_EXIT_DONE;
}

int heap_header_read(struct memwatch_ctx *ctx, int fd, const char *name,
		     struct memwatch_heap **heap, struct memwatch_heap_info *info)
{
	MEMWATCH_OPTS(memwatch_heap_opts, opts, .flags = MEMWATCH_HEAP_HEADER);
	struct memwatch_heap *h = NULL;
	int err = memwatch_heap_new(ctx, &opts, &h);

	if (!err)
		err = memwatch_heap_add_fd(h, fd, name);
	if (err >= 0)
		err = memwatch_heap_get_info(h, 0, info);
	if (err) {
		memwatch_heap_unref(h);
		return err;
	}
	*heap = h;
	return 0;
}

int heap_snapshot_write(struct memwatch_ctx *ctx, int fd, const char *name, const char *path)
{
	struct memwatch_file *file;
	int err = memwatch_file_create(ctx, path, &file), rc = 0;

	if (err)
		return mw_error_errno(err, path);
	err = memwatch_heap_snapshot(ctx, fd, memwatch_file_fd(file));
	if (err) {
		rc = heap_process_failed(ctx, err, name);
	} else {
		err = memwatch_file_commit(file, 0);
		rc = err ? mw_error_errno(err, path) : 0;
	}
	memwatch_file_close(file);
	if (err == -EEXIST)
		mw_hint("remove the file, or choose another name");
	return rc;
}
