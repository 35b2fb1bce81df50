// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The reader of lines.
 */
#include "stale/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_BYTES (256U << 10)

int mw_lines_init(struct mw_lines *lines, int fd)
{
	*lines = (struct mw_lines){
		.fd = fd,
		.start = lseek(fd, 0, SEEK_CUR),
		.buffer = malloc(BUFFER_BYTES),
	};
	return lines->buffer ? 0 : -ENOMEM;
}

void mw_lines_uninit(struct mw_lines *lines)
{
	free(lines->buffer);
	lines->buffer = NULL;
}

/* Moves what is left to the start of the buffer and fills the rest. */
static int fill_buffer(struct mw_lines *lines)
{
	ssize_t n;

	lines->end -= lines->begin;
	memmove(lines->buffer, lines->buffer + lines->begin, lines->end);
	lines->begin = 0;
	do
		n = read(lines->fd, lines->buffer + lines->end, BUFFER_BYTES - lines->end);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	lines->at_end = !n;
	lines->end += (size_t)n;
	return 0;
}

int mw_lines_next(struct mw_lines *lines, struct mw_text *line)
{
	char *begin, *newline;
	size_t len;
	int err;

	for (;;) {
		begin = lines->buffer + lines->begin;
		len = lines->end - lines->begin;
		newline = len ? memchr(begin, '\n', len) : NULL;
		if (newline || lines->at_end || len > MW_LINE_MAX)
			break;
		err = fill_buffer(lines);
		if (err)
			return err;
	}
	if (!newline && !len)
		return 0;
	lines->complete = newline;
	lines->number++;
	if (newline)
		len = (size_t)(newline - begin);
	if (len > MW_LINE_MAX)
		return -EMSGSIZE;
	lines->begin += len + !!newline;
	lines->offset += len + !!newline;
	if (len && newline && begin[len - 1] == '\r')
		len--;
	*line = (struct mw_text){ begin, len };
	return 1;
}

int mw_lines_rewind(struct mw_lines *lines)
{
	if (lseek(lines->fd, lines->start, SEEK_SET) < 0)
		return -errno;
	lines->begin = lines->end = 0;
	lines->at_end = false;
	lines->number = lines->offset = 0;
	return 0;
}
