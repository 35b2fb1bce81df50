/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The interface of the backends of a stream. A backend implements struct mw_backend_ops,
 * embeds struct memwatch_stream as its first member and completes it with
 * mw_stream_init(). stream.c holds what all backends have in common; each backend counts
 * its own statistics.
 */
#ifndef MW_STREAM_BACKEND_H
#define MW_STREAM_BACKEND_H

#include <memwatch/stream.h>

/**
 * struct mw_backend_ops - a backend
 * @name: for messages
 * @next: as memwatch_stream_next()
 * @poll: as memwatch_stream_poll(); NULL: always ready
 * @fd: as memwatch_stream_fd(); NULL: always ready
 * @stop: as memwatch_stream_stop(); called once, and the stream ends also if it fails. NULL: the
 *	stream ends without further work
 * @stats: as memwatch_stream_get_stats(); @ret is of full size and zeroed
 * @cpu_stats: as memwatch_stream_get_cpu_stats(), with @ret like that; NULL: no rings
 * @failure: as memwatch_stream_get_failure(); NULL: no failure counters
 * @close: frees the backend, including the stream in it. The caller drops the reference
 *	to the context.
 */
struct mw_backend_ops {
	const char *name;
	int (*next)(struct memwatch_stream *stream, const struct memwatch_record_header **ret);
	int (*poll)(struct memwatch_stream *stream, int timeout_ms);
	int (*fd)(struct memwatch_stream *stream);
	int (*stop)(struct memwatch_stream *stream);
	int (*stats)(struct memwatch_stream *stream, struct memwatch_stream_stats *ret);
	int (*cpu_stats)(struct memwatch_stream *stream, unsigned int index,
			 struct memwatch_stream_cpu_stats *ret);
	int (*failure)(struct memwatch_stream *stream, unsigned int index, const char **name,
		       __u64 *count);
	void (*close)(struct memwatch_stream *stream);
};

/**
 * struct memwatch_stream - common part of all backends
 * @ctx: the context, with a reference
 * @ops: the backend
 * @info: filled in by the backend before mw_stream_init() and constant afterwards; the
 *	strings belong to the backend and are valid until @close
 * @stopped: memwatch_stream_stop() has been called
 * @ready_fd: a descriptor that is always readable, if @has_ready_fd is set
 * @has_ready_fd: memwatch_stream_fd() has opened it
 */
struct memwatch_stream {
	struct memwatch_ctx *ctx;
	const struct mw_backend_ops *ops;
	struct memwatch_stream_info info;
	int stopped;
	int ready_fd;
	int has_ready_fd;
};

/*
 * Takes a reference to @ctx and completes @info: sz, schema, version, and "" for strings
 * that are NULL.
 */
void mw_stream_init(struct memwatch_stream *stream, struct memwatch_ctx *ctx,
		    const struct mw_backend_ops *ops);

/* Storage for two strings of struct memwatch_stream_info. */
struct mw_host_info {
	char hostname[256];
	char kernel[128];
};

/* Fills in the start times, hostname and kernel of @info; the strings are in @host. */
void mw_stream_info_host(struct memwatch_stream_info *info, struct mw_host_info *host);

#endif /* MW_STREAM_BACKEND_H */
