/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reads a trace of the preloaded library: merges its streams in the order of time. Memory follows
 * the streams that overlap, and the number of chunks, not their size. The program may still be
 * writing: the trace is read as it is when its chunks are reached.
 */
#ifndef MW_STALE_EVENT_FILE_H
#define MW_STALE_EVENT_FILE_H

#include <memwatch/ctx.h>

#include "stale/event-stream.h"

/**
 * struct mw_event_file - a trace
 * @header: as it was when the trace was opened or resumed
 * @source: the file, whose descriptor is not owned
 * @chunks: sorted by stream and sequence; owned
 * @nr_chunks, @room: their number, and room for as many
 * @scanned: as many chunks of the file were looked at and need not be looked at again
 * @streams: owned
 * @nr_streams: their number
 * @heap: numbers of the streams that are not at their end, the one with the lowest key first; owned
 * @live: how many these are
 * @first, @last, @ns_of_unit: a unit of time
 * @horizon_ns, @horizon: later events are left for the next time; the same in units
 * @done: how many chunks were replayed
 * @cut_off: the file ends before its last chunk
 */
struct mw_event_file {
	struct mw_trace_header header;
	struct mw_event_source source;
	struct mw_event_chunk *chunks;
	uint64_t nr_chunks, room, scanned;
	struct mw_event_stream *streams;
	uint32_t nr_streams;
	uint32_t *heap;
	uint32_t live;
	struct mw_trace_moment first, last;
	double ns_of_unit;
	uint64_t horizon_ns, horizon;
	uint64_t done;
	bool cut_off;
};

/* Whether a file begins as a trace does. */
bool mw_event_file_is(int fd);

/* Reads the header of a trace. Returns as mw_event_file_init(). */
int mw_event_file_header(struct memwatch_ctx *ctx, int fd, struct mw_trace_header *h);

/*
 * Reads the header and finds the chunks. @fd must stay open. Returns 0, -EBADMSG, -EPROTO, -ENOMEM,
 * or any errno of read(), with a message; the caller calls mw_event_file_uninit() in any case.
 */
int mw_event_file_init(struct mw_event_file *file, struct memwatch_ctx *ctx, int fd);
void mw_event_file_uninit(struct mw_event_file *file);

/*
 * Goes on with what was written since, up to the time @horizon_ns of CLOCK_MONOTONIC; UINT64_MAX:
 * all of it. Returns as mw_event_file_init().
 */
int mw_event_file_resume(struct mw_event_file *file, struct memwatch_ctx *ctx, uint64_t horizon_ns);

/* The next events, at most @max, with times in ns. Returns their number, 0 at the end, or -errno.
 */
int mw_event_file_next(struct mw_event_file *file, struct mw_event *events, uint32_t max);

#endif /* MW_STALE_EVENT_FILE_H */
