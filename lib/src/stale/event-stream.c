// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The decoder of a stream.
 */
#include "stale/event-stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stale/varint.h"
#include "base/file-io.h"

void mw_event_stream_init(struct mw_event_stream *stream, const struct mw_event_chunk *chunks,
			  uint32_t count)
{
	*stream = (struct mw_event_stream){
		.chunks = chunks,
		.count = count,
		.number = chunks->stream,
		.key = chunks->base,
	};
}

static void free_buffers(struct mw_event_stream *stream)
{
	if (stream->buffer)
		stream->taken = stream->damaged ? UINT32_MAX
						: (uint32_t)(stream->at - stream->buffer);
	free(stream->buffer);
	free(stream->slots);
	stream->buffer = NULL;
	stream->slots = NULL;
	stream->at = stream->end = NULL;
}

void mw_event_stream_uninit(struct mw_event_stream *stream)
{
	free_buffers(stream);
}

/* Reads the next chunk. A file that was cut off meanwhile has an empty one. */
static int read_chunk(struct mw_event_stream *stream, struct mw_event_source *source)
{
	const struct mw_event_chunk *chunk = &stream->chunks[stream->next];
	struct mw_trace_chunk head = { 0 };
	ssize_t n;

	if (!stream->buffer)
		stream->buffer = malloc(source->chunk_bytes);
	if (!stream->slots)
		stream->slots = malloc(MW_TRACE_SLOTS * sizeof(*stream->slots));
	if (!stream->buffer || !stream->slots)
		return -ENOMEM;
	n = mw_file_read_at(source->fd, stream->buffer, source->chunk_bytes, chunk->offset);
	if (n < 0)
		return (int)n;
	stream->next++;
	stream->damaged = false;
	memset(stream->slots, 0, MW_TRACE_SLOTS * sizeof(*stream->slots));
	if ((size_t)n >= sizeof(head))
		memcpy(&head, stream->buffer, sizeof(head));
	if (head.used < sizeof(head) || head.used > (uint32_t)n) {
		source->faults.damaged++;
		stream->damaged = true;
		head.used = sizeof(head);
	}
	stream->at = stream->buffer + sizeof(head);
	stream->end = stream->buffer + head.used;
	/* Time does not go back. */
	if (chunk->base > stream->units)
		stream->units = chunk->base;
	stream->tid = head.tid;
	return 0;
}

static bool take_number(const uint8_t **at, const uint8_t *end, unsigned int bytes, uint64_t *ret)
{
	uint64_t value;

	if (end - *at >= 8) {
		/* A load of eight bytes, of which only some are part of the number. */
		memcpy(&value, *at, sizeof(value));
		if (bytes < 8)
			value &= (1ULL << 8 * bytes) - 1;
	} else if (end - *at >= (ptrdiff_t)bytes) {
		value = 0;
		memcpy(&value, *at, bytes);
	} else {
		return false;
	}
	*at += bytes;
	*ret = value;
	return true;
}

static bool take_thread(struct mw_event_stream *stream, const uint8_t **at)
{
	uint64_t tid;

	if (!mw_varint_take(at, stream->end, &tid) || tid > UINT32_MAX)
		return false;
	stream->tid = (uint32_t)tid;
	return true;
}

/* What an event says about its slot. */
static bool take_slot(const struct mw_event_stream *stream, const uint8_t **at, unsigned int kind,
		      struct mw_trace_slot **ret)
{
	struct mw_trace_slot *slot;
	uint64_t site;

	if (*at == stream->end)
		return false;
	slot = &stream->slots[*(*at)++];
	if (kind == MW_TRACE_MALLOC_SITE || kind == MW_TRACE_FREE_SITE) {
		if (!mw_varint_take(at, stream->end, &site) || site >= MW_EVENT_SITES_MAX)
			return false;
		slot->site = (uint32_t)site;
	}
	if ((kind == MW_TRACE_MALLOC_SITE || kind == MW_TRACE_MALLOC_SIZE) &&
	    !mw_varint_take(at, stream->end, &slot->size))
		return false;
	*ret = slot;
	return true;
}

static bool take_address(const struct mw_event_stream *stream, const uint8_t **at,
			 unsigned int length, struct mw_trace_slot *slot)
{
	uint64_t code;

	if (length == MW_TRACE_ADDRESS_ITSELF)
		return take_number(at, stream->end, 8, &slot->address);
	if (!take_number(at, stream->end, length, &code))
		return false;
	slot->address += (code >> 1 ^ -(code & 1)) * MW_TRACE_ADDRESS_DIVISOR;
	return true;
}

/* Decodes one event. Returns 1, 0 if it was none for the simulation, or -EBADMSG. */
static int decode_event(struct mw_event_stream *stream, struct mw_event *event)
{
	const uint8_t *at = stream->at;
	uint8_t control = *at++;
	unsigned int kind = control & MW_TRACE_KIND_MASK;
	unsigned int time_bytes = 1U << (control >> MW_TRACE_TIME_SHIFT & MW_TRACE_TIME_MASK);
	unsigned int length = control >> MW_TRACE_ADDRESS_SHIFT;
	struct mw_trace_slot *slot = NULL;
	uint64_t passed, units;

	if (kind > MW_TRACE_THREAD ||
	    !(kind == MW_TRACE_THREAD ? take_thread(stream, &at)
				      : take_slot(stream, &at, kind, &slot)) ||
	    !take_number(&at, stream->end, time_bytes, &passed) ||
	    (slot && !take_address(stream, &at, length, slot)) ||
	    __builtin_add_overflow(stream->units, passed, &units))
		return -EBADMSG;
	stream->units = units;
	stream->at = at;
	if (!slot)
		return 0;
	event->time_ns = stream->units;
	event->sequence = 0;
	event->address = slot->address;
	event->size = kind < MW_TRACE_FREE ? slot->size : 0;
	event->place = slot->site;
	event->tid = stream->tid;
	event->kind = kind < MW_TRACE_FREE ? MW_EVENT_MALLOC : MW_EVENT_FREE;
	if (event->kind == MW_EVENT_MALLOC && !mw_sim_fits(event->address, event->size))
		return -EBADMSG;
	return 1;
}

/* The next event. Returns 1, 0 at the end of the chunk, or of the stream if there is no other. */
static int next_event(struct mw_event_stream *stream, struct mw_event_source *source,
		      struct mw_event *event)
{
	while (stream->at < stream->end) {
		int rc = decode_event(stream, event);

		if (rc > 0)
			return 1;
		if (rc < 0) {
			source->faults.damaged++;
			stream->damaged = true;
			stream->at = stream->end;
		}
	}
	return 0;
}

static void count_missing(const struct mw_event_stream *stream, struct mw_event_source *source)
{
	const struct mw_event_chunk *chunk = &stream->chunks[stream->next];

	if (stream->next && chunk->sequence != chunk[-1].sequence + 1)
		source->faults.missing++;
}

/* Whether the chunk before the next one has more than the @taken bytes that were decoded of it. */
static int chunk_has_grown(const struct mw_event_stream *stream,
			   const struct mw_event_source *source, uint32_t taken)
{
	struct mw_trace_chunk head = { 0 };
	ssize_t n = mw_file_read_at(source->fd, &head, sizeof(head),
				    stream->chunks[stream->next - 1].offset);

	return n < 0 ? (int)n : head.used > taken && head.used <= source->chunk_bytes;
}

/* Reads the chunk before the next one again, up to where it was decoded before. */
static int reread_chunk(struct mw_event_stream *stream, struct mw_event_source *source,
			uint32_t taken)
{
	uint64_t units = stream->units;
	struct mw_event event;
	int err;

	stream->next--;
	stream->units = 0;
	err = read_chunk(stream, source);
	while (!err && stream->at < stream->end && stream->at - stream->buffer < (ptrdiff_t)taken &&
	       next_event(stream, source, &event))
		;
	if (stream->units < units)
		stream->units = units;
	return err;
}

int mw_event_stream_resume(struct mw_event_stream *stream, struct mw_event_source *source,
			   const struct mw_event_chunk *chunks, uint32_t count)
{
	uint32_t taken = stream->buffer ? (uint32_t)(stream->at - stream->buffer) : stream->taken;
	bool ended = mw_event_stream_has_ended(stream), damaged = stream->damaged;
	int rc = 0;

	stream->chunks = chunks;
	stream->count = count;
	if (stream->next > count)
		stream->next = count;
	if (stream->next && !damaged && taken != UINT32_MAX)
		rc = chunk_has_grown(stream, source,
				     stream->buffer ? (uint32_t)(stream->end - stream->buffer)
						    : taken);
	if (rc > 0)
		rc = reread_chunk(stream, source, taken) ?: 1;
	if (rc < 0)
		return rc;
	if (ended && (rc || stream->next < count))
		stream->key = stream->units;
	return 0;
}

int mw_event_stream_take(struct mw_event_stream *stream, struct mw_event_source *source,
			 uint64_t limit, struct mw_event *events, uint32_t max)
{
	uint32_t n = 0;

	if (stream->pending) {
		stream->pending = false;
		events[n++] = stream->event;
	}
	while (n < max) {
		if (!next_event(stream, source, &events[n])) {
			int err;

			if (stream->next == stream->count) {
				stream->key = UINT64_MAX;
				free_buffers(stream);
				return (int)n;
			}
			stream->key = stream->chunks[stream->next].base;
			if (stream->key < stream->units)
				stream->key = stream->units;
			if (stream->key > limit)
				return (int)n;
			count_missing(stream, source);
			err = read_chunk(stream, source);
			if (err)
				return err;
			continue;
		}
		if (events[n].time_ns > limit) {
			stream->event = events[n];
			stream->pending = true;
			stream->key = events[n].time_ns;
			return (int)n;
		}
		n++;
	}
	stream->key = stream->units;
	return (int)n;
}
