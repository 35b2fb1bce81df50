/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Profiles that are named by a process or by a file, and their headers.
 */
#ifndef MW_CMDS_HEAP_PROCESSES_H
#define MW_CMDS_HEAP_PROCESSES_H

#include "cmds/heap/profiles.h"

/* Opens the profile of the process, or the file, that @name is: a number is a process. */
int heap_process_open(struct memwatch_ctx *ctx, const char *name, int *ret);

/* The path of an open file. Returns @buf. */
const char *heap_fd_path(int fd, char *buf, size_t size);

/* Prints the error message for a call about @name that failed. Returns the exit code. */
int heap_process_failed(struct memwatch_ctx *ctx, int err, const char *name);

/*
 * Asks the profiler in the process @name, which is a number, for @control, with the rate of
 * memwatch_heap_request(). @what is the command that says if @name is none. Returns an exit code.
 */
int heap_process_request(const struct mw_cli *cli, const char *what, const char *name,
			 enum memwatch_heap_control control, uint64_t rate);

/*
 * Reads the header of the profile @fd. Returns 0 or a negative errno. Strings of @info belong
 * to @heap, which the caller frees with memwatch_heap_unref().
 */
int heap_header_read(struct memwatch_ctx *ctx, int fd, const char *name,
		     struct memwatch_heap **heap, struct memwatch_heap_info *info);

/*
 * Copies the profile @fd to the new file @path. Returns 0, or an exit code after an error
 * message; then there is no file.
 */
int heap_snapshot_write(struct memwatch_ctx *ctx, int fd, const char *name, const char *path);

const char *heap_state_name(uint32_t state);

/*
 * What a profiler could not do. @bit: MEMWATCH_HEAP_LIMIT_*. @is_inexact: values are less exact
 * than was asked for. @key: in JSON.
 */
struct heap_limit {
	uint32_t bit;
	bool is_inexact;
	const char *key, *text;
};

#define HEAP_LIMITS 7
extern const struct heap_limit heap_limits[HEAP_LIMITS];

#endif
