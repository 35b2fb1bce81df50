/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reads a trace into memory, for tests: a second reader, simple and without checks of its input.
 */
#ifndef _MW_HEAP_TESTS_TRACE_READ_H
#define _MW_HEAP_TESTS_TRACE_READ_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "heap/trace-format.h"

struct trace_event {
	uint64_t time, address, size;
	uint64_t order; /* where it is in the file */
	uint32_t site, tid;
	bool is_free;
};

struct trace {
	uint8_t *base;
	size_t bytes;
	const struct mw_trace_header *header;
	struct trace_event *events; /* in the order of time */
	size_t count, room;
	uint64_t used; /* bytes of chunks */
};

/* What a heap does with the events of a trace. */
struct trace_balance {
	uint64_t allocations, frees;
	uint64_t unmatched; /* frees of no object */
	uint64_t twice;	    /* allocations of an address that lives */
	struct trace_event *live;
	size_t live_count;
};

static inline uint64_t trace_varint(const uint8_t **at)
{
	uint64_t value = 0;
	unsigned int shift = 0;

	do {
		value |= (uint64_t)(**at & 0x7f) << shift;
		shift += 7;
	} while (*(*at)++ & 0x80);
	return value;
}

static inline uint64_t trace_number(const uint8_t **at, unsigned int bytes)
{
	uint64_t value = 0;

	memcpy(&value, *at, bytes);
	*at += bytes;
	return value;
}

static inline void trace_add(struct trace *trace, const struct trace_event *event)
{
	if (trace->count == trace->room) {
		trace->room = trace->room ? 2 * trace->room : 65536;
		trace->events = realloc(trace->events, trace->room * sizeof(*event));
	}
	trace->events[trace->count++] = *event;
}

/* One event; returns its end. */
static inline const uint8_t *trace_event(struct trace *trace, const uint8_t *at,
					 struct mw_trace_slot *slots, struct trace_event *state)
{
	uint8_t control = *at++, length = control >> MW_TRACE_ADDRESS_SHIFT;
	unsigned int kind = control & MW_TRACE_KIND_MASK;
	unsigned int time_bytes = 1u << (control >> MW_TRACE_TIME_SHIFT & MW_TRACE_TIME_MASK);
	struct mw_trace_slot *slot;
	uint64_t code;

	state->order = (uint64_t)(at - trace->base);
	if (kind == MW_TRACE_THREAD) {
		state->tid = (uint32_t)trace_varint(&at);
		return at + time_bytes + length;
	}
	slot = &slots[*at++];
	if (kind == MW_TRACE_MALLOC_SITE || kind == MW_TRACE_FREE_SITE)
		slot->site = (uint32_t)trace_varint(&at);
	if (kind == MW_TRACE_MALLOC_SITE || kind == MW_TRACE_MALLOC_SIZE)
		slot->size = trace_varint(&at);
	state->time += trace_number(&at, time_bytes);
	if (length == MW_TRACE_ADDRESS_ITSELF) {
		slot->address = trace_number(&at, 8);
	} else {
		code = trace_number(&at, length);
		slot->address += (code >> 1 ^ -(code & 1)) * MW_TRACE_ADDRESS_DIVISOR;
	}
	state->is_free = kind >= MW_TRACE_FREE;
	state->address = slot->address;
	state->size = state->is_free ? 0 : slot->size;
	state->site = slot->site;
	trace_add(trace, state);
	return at;
}

static inline int trace_compare(const void *a, const void *b)
{
	const struct trace_event *left = a, *right = b;

	if (left->time != right->time)
		return left->time < right->time ? -1 : 1;
	return left->order < right->order ? -1 : left->order > right->order;
}

static inline bool trace_open(struct trace *trace, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	memset(trace, 0, sizeof(*trace));
	if (fd < 0 || fstat(fd, &st))
		return false;
	trace->bytes = (size_t)st.st_size;
	trace->base = mmap(NULL, trace->bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	trace->header = (const void *)trace->base;
	if (memcmp(trace->header->magic, MW_TRACE_MAGIC, 8))
		return false;
	for (uint64_t n = 0; n < trace->header->chunks; n++) {
		uint64_t offset = MW_TRACE_CHUNKS_OFFSET + n * MW_TRACE_CHUNK_BYTES;
		const uint8_t *at = trace->base + offset;
		const struct mw_trace_chunk *chunk = (const void *)at;
		struct mw_trace_slot slots[MW_TRACE_SLOTS] = { 0 };
		struct trace_event state = { 0 };

		if (offset + MW_TRACE_CHUNK_BYTES > trace->bytes ||
		    chunk->ready != MW_TRACE_CHUNK_READY)
			continue;
		state.time = chunk->base;
		state.tid = chunk->tid;
		trace->used += chunk->used;
		for (const uint8_t *next = at + sizeof(*chunk); next < at + chunk->used;)
			next = trace_event(trace, next, slots, &state);
	}
	qsort(trace->events, trace->count, sizeof(*trace->events), trace_compare);
	return true;
}

/* How many streams have a beginning. */
static inline uint32_t trace_streams(const struct trace *trace)
{
	uint32_t streams = 0;

	for (uint64_t n = 0; n < trace->header->chunks; n++) {
		const struct mw_trace_chunk *chunk = (const void *)(trace->base +
								    MW_TRACE_CHUNKS_OFFSET +
								    n * MW_TRACE_CHUNK_BYTES);

		streams += chunk->ready == MW_TRACE_CHUNK_READY && chunk->sequence == 0;
	}
	return streams;
}

static inline void trace_close(struct trace *trace)
{
	munmap(trace->base, trace->bytes);
	free(trace->events);
}

/* A hash table of the live objects, with marks (address 1) where one has been. */
static inline struct trace_event *trace_place(struct trace_event *table, size_t mask,
					      uint64_t address)
{
	size_t i = (size_t)((address >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 20) & mask;

	while (table[i].address && table[i].address != address)
		i = (i + 1) & mask;
	return &table[i];
}

static inline void trace_balance(const struct trace *trace, struct trace_balance *ret)
{
	size_t size = 1024;
	struct trace_event *table;

	while (size < 2 * trace->count)
		size *= 2;
	table = calloc(size, sizeof(*table));
	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < trace->count; i++) {
		const struct trace_event *event = &trace->events[i];
		struct trace_event *place = trace_place(table, size - 1, event->address);
		bool lives = place->address && !place->is_free;

		ret->allocations += !event->is_free;
		ret->frees += event->is_free;
		ret->unmatched += event->is_free && !lives;
		ret->twice += !event->is_free && lives;
		*place = *event;
	}
	for (size_t i = 0; i < size; i++)
		if (table[i].address && !table[i].is_free)
			table[ret->live_count++] = table[i];
	ret->live = table;
}

#endif
