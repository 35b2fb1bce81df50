/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Writes traces as the preloaded library records them, into memory.
 */
#ifndef RECORDED_KIT_H
#define RECORDED_KIT_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "heap/trace-format.h"

/* A trace that is being written. */
struct recorded {
	uint8_t *bytes;
	size_t len;
	uint32_t chunk_bytes;
	size_t chunk;	/* where the current one begins */
	size_t at;	/* where its next event begins */
	uint64_t units; /* time of the last event */
	struct mw_trace_slot slots[MW_TRACE_SLOTS];
};

static inline struct mw_trace_header *recorded_header(struct recorded *r)
{
	return (struct mw_trace_header *)(void *)r->bytes;
}

static inline struct mw_trace_chunk *recorded_chunk(struct recorded *r)
{
	return (struct mw_trace_chunk *)(void *)(r->bytes + r->chunk);
}

static inline void recorded_begin(struct recorded *r, uint32_t chunk_bytes)
{
	struct mw_trace_header *h;

	*r = (struct recorded){ .chunk_bytes = chunk_bytes, .len = MW_TRACE_CHUNKS_OFFSET };
	r->bytes = calloc(1, r->len);
	h = recorded_header(r);
	memcpy(h->magic, MW_TRACE_MAGIC, sizeof(h->magic));
	h->version = MW_TRACE_VERSION;
	h->header_bytes = sizeof(*h);
	h->chunk_bytes = chunk_bytes;
	h->pid = 77;
	memcpy(h->comm, "program", 8);
	h->began = 1;
	h->state = MW_TRACE_STATE_ENDED;
}

/* Appends a chunk, to which the events go from now on. */
static inline void recorded_add_chunk(struct recorded *r, uint32_t stream, uint32_t sequence,
				      uint32_t tid, uint64_t base)
{
	struct mw_trace_chunk *chunk;

	r->chunk = r->len;
	r->len += r->chunk_bytes;
	r->bytes = realloc(r->bytes, r->len);
	memset(r->bytes + r->chunk, 0, r->chunk_bytes);
	recorded_header(r)->chunks++;
	chunk = recorded_chunk(r);
	*chunk = (struct mw_trace_chunk){
		.ready = MW_TRACE_CHUNK_READY,
		.used = sizeof(*chunk),
		.stream = stream,
		.sequence = sequence,
		.tid = tid,
		.base = base,
	};
	r->at = r->chunk + sizeof(*chunk);
	r->units = base;
	memset(r->slots, 0, sizeof(r->slots));
}

/* Whether one more event fits into the chunk. */
static inline bool recorded_has_room(const struct recorded *r)
{
	return r->at + MW_TRACE_EVENT_BYTES_MAX <= r->chunk + r->chunk_bytes;
}

static inline void recorded_byte(struct recorded *r, uint8_t byte)
{
	r->bytes[r->at++] = byte;
	recorded_chunk(r)->used = (uint32_t)(r->at - r->chunk);
}

static inline void recorded_varint(struct recorded *r, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		recorded_byte(r, (uint8_t)(value | 0x80));
	recorded_byte(r, (uint8_t)value);
}

static inline void recorded_number(struct recorded *r, uint64_t value, unsigned int bytes)
{
	for (unsigned int i = 0; i < bytes; i++)
		recorded_byte(r, (uint8_t)(value >> 8 * i));
}

/* How many bytes @value needs. */
static inline unsigned int recorded_bytes(uint64_t value)
{
	unsigned int bytes = 0;

	for (; value; value >>= 8)
		bytes++;
	return bytes;
}

/* @kind: of an event of which the slot lacks as much as it says. */
static inline void recorded_event(struct recorded *r, unsigned int kind, uint8_t number,
				  uint64_t units, uint32_t site, uint64_t size, uint64_t address)
{
	struct mw_trace_slot *slot = &r->slots[number];
	uint64_t elapsed = units - r->units, distance = address - slot->address;
	uint64_t code = (uint64_t)((int64_t)distance >> 3) << 1 ^ -(distance >> 63);
	unsigned int time = elapsed >> 32 ? 3 : elapsed >> 16 ? 2 : elapsed >> 8 ? 1 : 0;
	unsigned int length = recorded_bytes(code);

	if (length > 6 || distance % 8)
		length = MW_TRACE_ADDRESS_ITSELF;
	recorded_byte(r, (uint8_t)(kind | time << MW_TRACE_TIME_SHIFT |
				   length << MW_TRACE_ADDRESS_SHIFT));
	recorded_byte(r, number);
	if (kind == MW_TRACE_MALLOC_SITE || kind == MW_TRACE_FREE_SITE)
		recorded_varint(r, site);
	if (kind == MW_TRACE_MALLOC_SITE || kind == MW_TRACE_MALLOC_SIZE)
		recorded_varint(r, size);
	recorded_number(r, elapsed, 1U << time);
	if (length == MW_TRACE_ADDRESS_ITSELF)
		recorded_number(r, address, 8);
	else
		recorded_number(r, code, length);
	r->units = units;
	slot->address = address;
	slot->site = site;
	if (kind <= MW_TRACE_MALLOC_SITE)
		slot->size = size;
}

static inline void recorded_malloc(struct recorded *r, uint8_t slot, uint64_t units, uint32_t site,
				   uint64_t size, uint64_t address)
{
	unsigned int kind = r->slots[slot].site != site	  ? MW_TRACE_MALLOC_SITE
			    : r->slots[slot].size != size ? MW_TRACE_MALLOC_SIZE
							  : MW_TRACE_MALLOC;

	recorded_event(r, kind, slot, units, site, size, address);
}

static inline void recorded_free(struct recorded *r, uint8_t slot, uint64_t units, uint32_t site,
				 uint64_t address)
{
	recorded_event(r, r->slots[slot].site != site ? MW_TRACE_FREE_SITE : MW_TRACE_FREE, slot,
		       units, site, 0, address);
}

/* The following events of the stream are of another thread. */
static inline void recorded_thread(struct recorded *r, uint32_t tid)
{
	recorded_byte(r, MW_TRACE_THREAD);
	recorded_varint(r, tid);
	recorded_byte(r, 0);
}

#endif /* RECORDED_KIT_H */
