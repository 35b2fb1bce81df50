/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Output files, in folders that other users may write to as well: no symbolic link is
 * followed at the name of the file, nothing that exists is written to, and only the owner can
 * read what is written. Pipes, character devices and open descriptors are used as they are.
 */
#ifndef MW_OUT_FILE_H
#define MW_OUT_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include <memwatch/memwatch.h>

/**
 * struct mw_out_file - an output file
 * @stream: where to write; standard output itself for "-"
 * @path: as given by the user, for messages
 * @sync: it is a file of its own, which must be on the disk when it is closed
 * @unnamed: the file, if it has not got its name yet
 * @replace: the name is that of another file
 */
struct mw_out_file {
	FILE *stream;
	const char *path;
	bool sync;
	struct memwatch_file *unnamed;
	bool replace;
};

/*
 * Opens @path, or standard output if it is NULL or "-". An existing file is replaced by a new
 * one if @force is set, or if it is empty and belongs to this user, as mktemp(1) makes it.
 * Returns 0, or an exit code after an error message.
 */
int mw_out_file_open(struct mw_out_file *out, struct memwatch_ctx *ctx, const char *path,
		     bool force);

/*
 * The same, but a file gets its name when it is closed without an error. Until then, what has the
 * name stays as it is.
 */
int mw_out_file_begin(struct mw_out_file *out, struct memwatch_ctx *ctx, const char *path,
		      bool force);

/*
 * Whether both paths lead to one file, which would be destroyed before it is read; or would do so
 * if the file existed.
 */
bool mw_out_file_is(const char *path, const char *other);

/* Whether @path is a name of standard output. */
bool mw_out_file_is_stdout(const char *path);

/*
 * Writes what is buffered, where another process closes the file. Returns 0, or an exit code after
 * an error message if something could not be written.
 */
int mw_out_file_flush(struct mw_out_file *out);

/*
 * Closes the file, unless it is standard output. Returns 0, or an exit code after an error
 * message if something could not be written.
 */
int mw_out_file_close(struct mw_out_file *out);

/*
 * Closes a file that is not complete, after an error message that said so. It is removed if it has
 * not got its name. (If a signal ends the command, the next one with the same name removes it.)
 */
void mw_out_file_abandon(struct mw_out_file *out);

/*
 * Checks whether a regular file can be created at @path, before anything is started. *@replace
 * says whether it would replace one. Returns 0, or an exit code after an error message.
 */
int mw_out_file_check(struct memwatch_ctx *ctx, const char *path, bool force, bool *replace);

#endif
