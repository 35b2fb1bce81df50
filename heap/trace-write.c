/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Recording events: trace-format.h says what they look like.
 *
 * The time of a free is taken before the allocator has the memory, and that of an allocation when
 * it has given it out, so that the events of an address are in the right order also if different
 * threads record them.
 *
 * thread->writing guards the writer against signal handlers; it is the address of a frame, so that
 * a mark that longjmp() has left behind is recognised.
 */
#include <errno.h>
#include <string.h>

#include "lock.h"
#include "stacks.h"
#include "trace-file.h"
#include "trace-site.h"
#include "trace-write.h"
#include "trace.h"

/* 512 KiB, so that adding a window takes little of what its events take. */
#define WINDOW_CHUNKS_MAX 8

/* Room for one event, and for the rest of its last store, which has eight bytes. */
#define EVENT_ROOM (MW_TRACE_EVENT_BYTES_MAX + 8)

static inline uint8_t *varint_put(uint8_t *at, uint64_t value)
{
	while (value >= 0x80) {
		*at++ = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	*at++ = (uint8_t)value;
	return at;
}

static inline uint32_t slot_of(uint32_t site)
{
	return (site * UINT32_C(0x9e3779b1)) >> 24;
}

_Static_assert(MW_TRACE_SLOTS == 256, "slots are numbered by one byte");

/* Two bits for each number of bytes, from 1 to 8: the logarithm of how many are written. */
#define TIME_LENGTHS 0xffa4u

/* Time and address, and the control byte at @begin. The event ends at what is returned. */
static inline uint8_t *event_finish(uint8_t *begin, uint8_t *at, enum mw_trace_kind kind,
				    uint64_t elapsed, struct mw_trace_slot *slot, uint64_t address)
{
	int64_t distance = (int64_t)(address - slot->address);
	uint64_t code = (uint64_t)(distance >> 3) << 1 ^ (uint64_t)(distance >> 63);
	/* Of 1, 2, 3 and 4, and 5 to 8 bytes, the power of two that is not less. */
	uint32_t bytes_less_1 = (63 - (uint32_t)__builtin_clzll(elapsed | 1)) / 8;
	uint32_t time_length = TIME_LENGTHS >> 2 * bytes_less_1 & MW_TRACE_TIME_MASK;
	uint32_t length = code ? (71 - (uint32_t)__builtin_clzll(code)) / 8 : 0;

	memcpy(at, &elapsed, sizeof(elapsed));
	at += 1u << time_length;
	if (mw_unlikely(length >= MW_TRACE_ADDRESS_ITSELF || distance % MW_TRACE_ADDRESS_DIVISOR)) {
		length = MW_TRACE_ADDRESS_ITSELF;
		memcpy(at, &address, sizeof(address));
		at += sizeof(address);
	} else {
		memcpy(at, &code, sizeof(code));
		at += length;
	}
	*begin = (uint8_t)(kind | time_length << MW_TRACE_TIME_SHIFT |
			   length << MW_TRACE_ADDRESS_SHIFT);
	slot->address = address;
	return at;
}

static inline void event_publish(struct mw_trace_writer *writer, uint8_t *at)
{
	writer->at = at;
	__atomic_store_n(&writer->chunk->used, (uint32_t)(at - (uint8_t *)writer->chunk),
			 __ATOMIC_RELEASE);
}

/* Time since the last event; clocks of processors may differ by a little. */
static inline uint64_t time_pass(struct mw_trace_writer *writer, uint64_t time)
{
	uint64_t elapsed = time > writer->time ? time - writer->time : 0;

	writer->time += elapsed;
	return elapsed;
}

static inline void allocation_put(struct mw_trace_writer *writer, uint64_t address, uint64_t size,
				  uint32_t site, uint64_t time)
{
	uint32_t number = slot_of(site);
	struct mw_trace_slot *slot = &writer->slots[number];
	uint8_t *begin = writer->at, *at = begin + 1;
	enum mw_trace_kind kind = MW_TRACE_MALLOC;

	*at++ = (uint8_t)number;
	if (mw_unlikely(slot->site != site)) {
		kind = MW_TRACE_MALLOC_SITE;
		slot->site = site;
		slot->size = size;
		at = varint_put(varint_put(at, site), size);
	} else if (slot->size != size) {
		kind = MW_TRACE_MALLOC_SIZE;
		slot->size = size;
		at = varint_put(at, size);
	}
	at = event_finish(begin, at, kind, time_pass(writer, time), slot, address);
	event_publish(writer, at);
}

static inline void free_put(struct mw_trace_writer *writer, uint64_t address, uint32_t site,
			    uint64_t time)
{
	uint32_t number = slot_of(site);
	struct mw_trace_slot *slot = &writer->slots[number];
	uint8_t *begin = writer->at, *at = begin + 1;
	enum mw_trace_kind kind = MW_TRACE_FREE;

	*at++ = (uint8_t)number;
	if (mw_unlikely(slot->site != site)) {
		kind = MW_TRACE_FREE_SITE;
		slot->site = site;
		at = varint_put(at, site);
	}
	at = event_finish(begin, at, kind, time_pass(writer, time), slot, address);
	event_publish(writer, at);
}

static void chunk_begin(struct mw_trace_writer *writer, uint64_t time)
{
	struct mw_trace_window *window = &writer->window;
	struct mw_trace_chunk *chunk = (void *)(window->memory +
						(size_t)window->used++ * MW_TRACE_CHUNK_BYTES);

	if (time < writer->time)
		time = writer->time;
	chunk->used = sizeof(*chunk);
	chunk->stream = writer->stream;
	chunk->sequence = writer->sequence++;
	chunk->tid = writer->tid;
	chunk->base = time;
	chunk->moment = mw_trace_moment_now();
	memset(writer->slots, 0, sizeof(writer->slots));
	writer->time = time;
	writer->chunk = chunk;
	writer->at = (uint8_t *)(chunk + 1);
	writer->end = (uint8_t *)chunk + MW_TRACE_CHUNK_BYTES - EVENT_ROOM;
	__atomic_store_n(&chunk->ready, MW_TRACE_CHUNK_READY, __ATOMIC_RELEASE);
}

/* A window has twice as many chunks as the one before, so that a short stream takes little room. */
static bool window_next(struct mw_trace_writer *writer)
{
	struct mw_trace_header *header = mw_trace.header;
	uint32_t chunks = writer->window.chunks, state;

	chunks = chunks ? chunks * 2 : 1;
	if (chunks > WINDOW_CHUNKS_MAX)
		chunks = WINDOW_CHUNKS_MAX;
	mw_trace_file_release(&writer->window);
	/* After the process has begun to exit, other destructors and threads go on. */
	state = __atomic_load_n(&header->state, __ATOMIC_RELAXED);
	if (state != MW_TRACE_STATE_ACTIVE && state != MW_TRACE_STATE_ENDED)
		return false;
	if (mw_trace_file_window(header, chunks, &writer->window))
		return true;
	__atomic_store_n(&header->state, MW_TRACE_STATE_FULL, __ATOMIC_RELAXED);
	return false;
}

/* The next chunk of the stream. False if there is none. */
static __attribute__((noinline, cold)) bool chunk_next(struct mw_trace_writer *writer,
						       uint64_t time)
{
	struct mw_interrupts were;
	int saved = errno;
	bool found;

	mw_interrupts_block(&were);
	writer->at = NULL;
	writer->chunk = NULL;
	found = writer->window.used < writer->window.chunks || window_next(writer);
	if (found)
		chunk_begin(writer, time);
	mw_interrupts_restore(&were);
	errno = saved;
	return found;
}

/* The stream has been that of another thread. */
static void thread_put(struct mw_trace_writer *writer, const struct mw_thread *thread)
{
	struct mw_trace_slot none = { 0 };
	uint8_t *at = varint_put(writer->at + 1, thread->tid);

	event_publish(writer, event_finish(writer->at, at, MW_TRACE_THREAD, 0, &none, 0));
	writer->tid = thread->tid;
}

/* A chunk with room, for another thread than before, or the next one. */
static __attribute__((noinline, cold)) bool
writer_change(struct mw_trace_writer *writer, const struct mw_thread *thread, uint64_t time)
{
	if (!(writer->at && writer->at < writer->end)) {
		writer->tid = thread->tid;
		return chunk_next(writer, time);
	}
	thread_put(writer, thread);
	return true;
}

static inline bool writer_prepare(struct mw_trace_writer *writer, const struct mw_thread *thread,
				  uint64_t time)
{
	return mw_likely(writer->at && writer->at < writer->end && writer->tid == thread->tid) ||
	       writer_change(writer, thread, time);
}

/* False in a signal handler that has interrupted the recorder. */
static inline bool writing_begin(struct mw_thread *thread)
{
	uintptr_t frame = (uintptr_t)__builtin_frame_address(0);

	if (mw_unlikely(thread->writing) && !mw_thread_mark_is_left(thread, thread->writing, frame))
		return false;
	thread->writing = frame;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return true;
}

static inline void writing_end(struct mw_thread *thread)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	thread->writing = 0;
}

/*
 * An event that is not written, because the thread has no writer for this trace. There are writers
 * for MW_TRACE_WRITERS_MAX threads; otherwise the trace has ended, or the process has forked, in a
 * signal handler or in the allocator, since it was found that there is an event.
 */
static __attribute__((noinline, cold)) void event_refuse(const struct mw_thread *thread)
{
	if (thread->traced && thread->instance == mw_runtime.instance && !thread->writer &&
	    mw_trace.instance)
		mw_trace_lose(&mw_trace.header->lost_no_room);
}

void mw_trace_allocation(struct mw_thread *thread, const void *address, size_t size,
			 const void *frame)
{
	struct mw_trace_writer *writer = thread->writer;
	uint32_t site;
	uint64_t time;

	if (mw_unlikely(!writing_begin(thread))) {
		mw_trace_lose(&mw_trace.header->lost_nested);
		return;
	}
	if (mw_likely(mw_trace_is_current(thread))) {
		site = mw_trace_site(thread, frame);
		time = mw_trace_now();
		if (mw_likely(writer_prepare(writer, thread, time)))
			allocation_put(writer, (uintptr_t)address, size, site, time);
		else
			mw_trace_lose(&mw_trace.header->lost_no_room);
	} else {
		event_refuse(thread);
	}
	writing_end(thread);
}

void mw_trace_free(struct mw_thread *thread, const void *address, uint64_t time, const void *frame)
{
	struct mw_trace_writer *writer = thread->writer;
	uint32_t site;

	if (mw_unlikely(!writing_begin(thread))) {
		mw_trace_lose(&mw_trace.header->lost_nested);
		return;
	}
	if (mw_likely(mw_trace_is_current(thread))) {
		site = mw_trace_site(thread, frame);
		if (!time)
			time = mw_trace_now();
		if (mw_likely(writer_prepare(writer, thread, time)))
			free_put(writer, (uintptr_t)address, site, time);
		else
			mw_trace_lose(&mw_trace.header->lost_no_room);
	} else {
		event_refuse(thread);
	}
	writing_end(thread);
}
