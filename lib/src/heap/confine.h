/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A child process that parses what nobody has checked, such as ELF and debug files of another
 * user. Parsers of these formats are large, and have had holes. The child has no privileges,
 * no files but those it opens, and can only read files and write its answer to a pipe.
 */
#ifndef MW_HEAP_CONFINE_H
#define MW_HEAP_CONFINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <memwatch/ctx.h>

/**
 * struct mw_confined - a confined child
 * @pid: its process id
 * @answer: readable end of the pipe to which it writes
 */
struct mw_confined {
	pid_t pid;
	int answer;
};

/**
 * struct mw_confinement - what a child may do
 * @network: open sockets and write files, for debuginfod; root does not get that
 * @file_bytes: how large a file may become to which it writes
 * @keep, @nr_keep: descriptors that it keeps; the numbers are changed in the child
 * @prepare: NULL, or called with @data in the child before it gives anything up: it opens files,
 *	which a file system of a user may delay for ever, and may change @nr_keep
 */
struct mw_confinement {
	bool network;
	uint64_t file_bytes;
	int *const *keep;
	uint32_t nr_keep;
	void (*prepare)(void *data);
};

/*
 * Starts a child that calls @run with @data and the writable end of the pipe, and ends. As
 * root it runs as nobody. Returns 0 or a negative errno.
 */
int mw_confined_start(struct memwatch_ctx *ctx, void (*run)(void *data, int answer), void *data,
		      const struct mw_confinement *may, struct mw_confined *ret);

/* Kills the child, if it still runs, and closes the pipe. */
void mw_confined_stop(struct mw_confined *child);

#endif /* MW_HEAP_CONFINE_H */
