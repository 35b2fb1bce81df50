/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Decodes one stream of a trace of the preloaded library: its chunks one after the other. The
 * layout is in heap/trace-format.h. What a chunk contains is checked; a damaged one is left at the
 * damage, and the stream goes on with the next one.
 */
#ifndef MW_STALE_EVENT_STREAM_H
#define MW_STALE_EVENT_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "heap/trace-format.h"
#include "stale/sim.h"

/* A profile does not have so many stacks. */
#define MW_EVENT_SITES_MAX (1U << 20)

/* A chunk of a file, as found when the file was opened. */
struct mw_event_chunk {
	uint32_t stream, sequence;
	uint64_t base; /* not after the time of its first event */
	uint64_t offset;
};

/**
 * struct mw_event_stream - a stream
 * @chunks: its chunks in order, not owned
 * @count: number of chunks
 * @next: the chunk that is decoded next
 * @number: of the stream in the file
 * @taken: bytes of the chunk before @next that were decoded, if there is no @buffer; UINT32_MAX: it
 *	is damaged
 * @damaged: the rest of the current chunk is
 * @key: no event before this time, in units, is left
 * @buffer: the current chunk, or NULL; owned
 * @at, @end: what of it is left
 * @units: time of the last event
 * @tid: thread of the next event
 * @pending: whether @event has been decoded and not been taken
 */
struct mw_event_stream {
	const struct mw_event_chunk *chunks;
	uint32_t count, next, number, taken;
	bool damaged;
	uint64_t key;
	uint8_t *buffer;
	const uint8_t *at, *end;
	uint64_t units;
	uint32_t tid;
	bool pending;
	struct mw_event event;
	struct mw_trace_slot *slots;
};

/* What is wrong with a file. */
struct mw_event_faults {
	uint64_t damaged; /* chunks of which a part could not be decoded */
	uint64_t missing; /* chunks between two others of a stream */
};

/**
 * struct mw_event_source - where chunks are read from
 * @fd: the file
 * @chunk_bytes: size of a chunk
 * @faults: counted here
 */
struct mw_event_source {
	int fd;
	uint32_t chunk_bytes;
	struct mw_event_faults faults;
};

/* Whether nothing of the stream is left, at present. */
static inline bool mw_event_stream_has_ended(const struct mw_event_stream *stream)
{
	return stream->key == UINT64_MAX;
}

/* A stream has at least one chunk. */
void mw_event_stream_init(struct mw_event_stream *stream, const struct mw_event_chunk *chunks,
			  uint32_t count);
void mw_event_stream_uninit(struct mw_event_stream *stream);

/*
 * Goes on with a stream of which more was written: @chunks begin with those of before. Returns 0,
 * -ENOMEM or any errno of read().
 */
int mw_event_stream_resume(struct mw_event_stream *stream, struct mw_event_source *source,
			   const struct mw_event_chunk *chunks, uint32_t count);

/*
 * Decodes events up to the time @limit, in units, and at most @max. Their time is in units, their
 * place is the number of a stack. Sets @stream->key. Returns how many there are, or a negative
 * errno. 0 does not mean the end, which is @key UINT64_MAX.
 */
int mw_event_stream_take(struct mw_event_stream *stream, struct mw_event_source *source,
			 uint64_t limit, struct mw_event *events, uint32_t max);

#endif /* MW_STALE_EVENT_STREAM_H */
