/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What is behind a stream. A backend implements struct mw_backend_ops, embeds
 * struct memwatch_stream as its first member and gives it out with
 * mw_stream_init(). stream.c checks arguments and keeps what is common; it
 * counts nothing: each backend fills in its own statistics.
 */
#ifndef MW_BACKEND_H
#define MW_BACKEND_H

#include <memwatch/stream.h>

/**
 * struct mw_backend_ops - a backend
 * @name: for messages
 * @next: as memwatch_stream_next()
 * @poll: as memwatch_stream_poll(); NULL: always ready
 * @stop: as memwatch_stream_stop(); called at most once with success. NULL: the
 *	stream just ends
 * @stats: as memwatch_stream_stats(); @ret is complete and zeroed
 * @cpu_stats: as memwatch_stream_cpu_stats(), likewise; NULL: no rings
 * @failure: as memwatch_stream_failure(); NULL: none
 * @close: frees the whole backend, the stream in it included. The context's
 *	reference is dropped by the caller.
 */
struct mw_backend_ops {
	const char *name;
	int (*next)(struct memwatch_stream *stream, const struct memwatch_record_header **ret);
	int (*poll)(struct memwatch_stream *stream, int timeout_ms);
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
 * @ctx: a reference
 * @ops: the backend
 * @info: filled in by the backend before mw_stream_init(), never changed
 *	later; strings belong to the backend and live until @close
 * @stopped: memwatch_stream_stop() was called
 */
struct memwatch_stream {
	struct memwatch_ctx *ctx;
	const struct mw_backend_ops *ops;
	struct memwatch_stream_info info;
	int stopped;
};

/*
 * Takes a reference to @ctx, completes @info: sz, schema, version, and "" for
 * strings that are NULL.
 */
void mw_stream_init(struct memwatch_stream *stream, struct memwatch_ctx *ctx,
		    const struct mw_backend_ops *ops);

/*
 * Fills in the parts of @info that say when and where: the three start times,
 * taken together, hostname and kernel. The strings are static-sized buffers of
 * the caller.
 */
struct mw_host_info {
	char hostname[256];
	char kernel[128];
};
void mw_stream_info_host(struct memwatch_stream_info *info, struct mw_host_info *host);

/*
 * live.c implements memwatch_stream_open_live(). live-none.c implements it as
 * -ENOSYS and is linked when there is no relay.
 */

#endif /* MW_BACKEND_H */
