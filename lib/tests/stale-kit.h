/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Traces for the tests of stale objects: text in memory, which is replayed and judged.
 */
#ifndef STALE_KIT_H
#define STALE_KIT_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memwatch/stale.h>

#include "stale/stale.h"

/* A trace that is being written. */
struct trace {
	char *text;
	size_t len;
	FILE *out;
};

static inline void trace_begin(struct trace *trace)
{
	*trace = (struct trace){ 0 };
	trace->out = open_memstream(&trace->text, &trace->len);
}

__attribute__((format(printf, 2, 3))) static inline void trace_line(struct trace *trace,
								    const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(trace->out, format, args);
	va_end(args);
	fputc('\n', trace->out);
}

static inline void trace_end(struct trace *trace)
{
	fclose(trace->out);
}

static inline int memory_file(const char *text, size_t len)
{
	int fd = memfd_create("trace", MFD_CLOEXEC);

	if (fd < 0 || write(fd, text, len) != (ssize_t)len || lseek(fd, 0, SEEK_SET)) {
		perror("memfd");
		exit(EXIT_FAILURE);
	}
	return fd;
}

/* Replays what @fd has, and judges it. Returns 0 or the error of a step; *@ret is always set. */
static inline int replay_fd(struct memwatch_ctx *ctx, const struct memwatch_stale_opts *opts,
			    int fd, struct memwatch_stale **ret)
{
	int rc;

	if (memwatch_stale_new(ctx, opts, ret) || mw_stale_open_fd(*ret, fd))
		exit(EXIT_FAILURE);
	while ((rc = memwatch_stale_step(*ret)) == 1)
		;
	return rc ? rc : memwatch_stale_judge(*ret);
}

static inline int replay_text(struct memwatch_ctx *ctx, const struct memwatch_stale_opts *opts,
			      const char *text, size_t len, struct memwatch_stale **ret)
{
	return replay_fd(ctx, opts, memory_file(text, len), ret);
}

#endif /* STALE_KIT_H */
