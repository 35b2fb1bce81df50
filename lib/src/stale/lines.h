/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reads a file line by line, by large blocks.
 */
#ifndef MW_STALE_LINES_H
#define MW_STALE_LINES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/text.h"

#define MW_LINE_MAX 4096U

/**
 * struct mw_lines - the reader
 * @fd: the file, not owned
 * @start: position from which it is read, negative if it cannot be sought
 * @buffer: owned
 * @begin, @end: what of it was not returned yet
 * @at_end: the file has no more
 * @complete: the line that was returned last ends with a newline
 * @number: of that line, counted from 1
 * @offset: bytes that were returned
 */
struct mw_lines {
	int fd;
	off_t start;
	char *buffer;
	size_t begin, end;
	bool at_end, complete;
	uint64_t number, offset;
};

/* Reads a file from its position on. Returns 0 or -ENOMEM. */
int mw_lines_init(struct mw_lines *lines, int fd);
void mw_lines_uninit(struct mw_lines *lines);

/*
 * The next line, without its end, valid until the next call. Returns 1, 0 at the end of the file,
 * -EMSGSIZE if a line has more than MW_LINE_MAX bytes, or any errno of read().
 */
int mw_lines_next(struct mw_lines *lines, struct mw_text *line);

/* Starts again at the first line of a file that can be sought. Returns 0 or a negative errno. */
int mw_lines_rewind(struct mw_lines *lines);

#endif /* MW_STALE_LINES_H */
