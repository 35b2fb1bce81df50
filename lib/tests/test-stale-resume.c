// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A recorded trace that grows while it is read: what is new is replayed, nothing twice, and the
 * result is that of reading it at once.
 */
#include "stale-kit.h"

#include "recorded-kit.h"

#include "../../selftests/prng.h"
#include "../../selftests/tap.h"

#define SEED	    20261127
#define STREAMS	    7
#define EVENTS	    20000
#define OBJECTS	    2000
#define CHUNK_BYTES 512

static struct memwatch_ctx *ctx;

/* An event, and where it is in the file. */
struct happened {
	uint64_t units, address, size;
	uint32_t stream, site;
	bool is_free;
	size_t chunk, end;
};

static struct happened happened[EVENTS];

/* Threads that come and go: a stream is quiet for long times. */
static void make_events(void)
{
	static uint64_t live[OBJECTS];
	struct prng prng = { SEED };
	uint64_t units = 1000;

	tap_note("seed %d", SEED);
	for (int i = 0; i < EVENTS; i++) {
		struct happened *e = &happened[i];
		uint64_t n = prng_below(&prng, OBJECTS);

		units += prng_below(&prng, 300);
		*e = (struct happened){ .units = units, .is_free = live[n] != 0 };
		e->stream = (uint32_t)((units / 50000 + prng_below(&prng, 3)) % STREAMS);
		e->site = 1 + (uint32_t)(n % 40);
		e->address = e->is_free ? live[n] : 0x10000 + n * 4096;
		e->size = 1 + prng_below(&prng, 1000);
		live[n] = e->is_free ? 0 : e->address;
	}
}

static void write_events(struct recorded *r)
{
	recorded_begin(r, CHUNK_BYTES);
	for (uint32_t stream = 0; stream < STREAMS; stream++) {
		uint32_t sequence = 0;

		for (int i = 0; i < EVENTS; i++) {
			struct happened *e = &happened[i];

			if (e->stream != stream)
				continue;
			if (!sequence || !recorded_has_room(r))
				recorded_add_chunk(r, stream, sequence++, 100 + stream, e->units);
			if (e->is_free)
				recorded_free(r, (uint8_t)e->site, e->units, e->site, e->address);
			else
				recorded_malloc(r, (uint8_t)e->site, e->units, e->site, e->size,
						e->address);
			e->chunk = r->chunk;
			e->end = r->at - r->chunk;
		}
	}
}

/* Makes the file what it is when the first @events were written. Chunks are added out of order. */
static void show_events(int fd, const struct recorded *r, int events)
{
	static uint8_t bytes[8 << 20];

	memcpy(bytes, r->bytes, r->len);
	for (size_t at = MW_TRACE_CHUNKS_OFFSET; at < r->len; at += CHUNK_BYTES) {
		struct mw_trace_chunk *chunk = (void *)(bytes + at);

		chunk->used = sizeof(*chunk);
		chunk->ready = 0;
	}
	for (int i = 0; i < events; i++) {
		struct mw_trace_chunk *chunk = (void *)(bytes + happened[i].chunk);

		chunk->ready = MW_TRACE_CHUNK_READY;
		chunk->used = (uint32_t)happened[i].end;
	}
	if (events < EVENTS)
		((struct mw_trace_header *)bytes)->state = MW_TRACE_STATE_ACTIVE;
	if (pwrite(fd, bytes, r->len, 0) != (ssize_t)r->len)
		exit(EXIT_FAILURE);
}

static uint64_t events_until(uint64_t units)
{
	uint64_t n = 0;

	while (n < EVENTS && happened[n].units <= units)
		n++;
	return n;
}

static int replay_until(struct memwatch_stale *stale, uint64_t until)
{
	int rc = memwatch_stale_resume(stale, until);

	while (!rc && (rc = memwatch_stale_step(stale)) == 1)
		rc = 0;
	return rc ? rc : memwatch_stale_judge(stale);
}

/* The same trace, read at once. */
static void compare_with_whole(const struct recorded *r, struct memwatch_stale *grown)
{
	MEMWATCH_OPTS(memwatch_stale_object, x);
	MEMWATCH_OPTS(memwatch_stale_object, y);
	MEMWATCH_OPTS(memwatch_stale_info, a);
	MEMWATCH_OPTS(memwatch_stale_info, b);
	struct memwatch_stale *whole;
	uint64_t wrong = 0;

	replay_text(ctx, NULL, (char *)r->bytes, r->len, &whole);
	memwatch_stale_get_info(grown, &a);
	memwatch_stale_get_info(whole, &b);
	tap_eq(a.allocations + a.frees, EVENTS, "in the end all events were replayed, none twice");
	tap_eq(a.unmatched_frees + a.overlaps + a.damaged, 0, "they were in the order of time");
	tap_ok(a.live_objects == b.live_objects && a.live_bytes == b.live_bytes &&
		       a.leaked_objects == b.leaked_objects && a.sites == b.sites &&
		       a.active_ns == b.active_ns && a.state == b.state,
	       "the result is that of reading it at once");
	for (uint64_t i = 0; memwatch_stale_get_object(whole, i, &y) == 1; i++)
		wrong += memwatch_stale_get_object(grown, i, &x) != 1 || x.address != y.address ||
			 x.allocated_ns != y.allocated_ns || x.tid != y.tid || x.leak != y.leak;
	tap_eq(wrong, 0, "the objects are those of reading it at once");
	memwatch_stale_unref(whole);
}

/* Reads it @steps times while it grows; the last ones of the events are not settled yet. */
static void grow_trace(int steps, const char *title)
{
	MEMWATCH_OPTS(memwatch_stale_info, info);
	struct memwatch_stale *stale;
	uint64_t wrong = 0, failures = 0;
	struct recorded r;
	int fd;

	write_events(&r);
	fd = memory_file((char *)r.bytes, r.len);
	show_events(fd, &r, 0);
	if (memwatch_stale_new(ctx, NULL, &stale) || memwatch_stale_open_fd(stale, fd))
		exit(EXIT_FAILURE);
	for (int step = 0; step < steps; step++) {
		int events = EVENTS / steps * step;
		uint64_t until = events > 300 ? happened[events - 300].units : 0;

		show_events(fd, &r, events);
		failures += replay_until(stale, until) != 0;
		memwatch_stale_get_info(stale, &info);
		wrong += info.allocations + info.frees != events_until(until);
	}
	tap_note("%s", title);
	tap_eq(failures, 0, "a trace that grows is read again and again");
	tap_eq(wrong, 0, "each time it is replayed up to the given moment");
	show_events(fd, &r, EVENTS);
	tap_eq(replay_until(stale, UINT64_MAX), 0, "what is left is replayed in the end");
	compare_with_whole(&r, stale);
	tap_eq(replay_until(stale, UINT64_MAX), 0, "if nothing is new, nothing happens");
	memwatch_stale_get_info(stale, &info);
	tap_eq(info.allocations + info.frees, EVENTS, "without new events, none is replayed again");
	memwatch_stale_unref(stale);
	close(fd);
	free(r.bytes);
}

static void test_errors(void)
{
	struct memwatch_stale *stale;
	int fd = memory_file("m 1 1 4096 10 a\n", 16);

	if (memwatch_stale_new(ctx, NULL, &stale) || memwatch_stale_open_fd(stale, fd))
		exit(EXIT_FAILURE);
	tap_eq(memwatch_stale_resume(stale, 0), -EINVAL, "a text cannot be resumed");
	tap_eq(memwatch_stale_add_accesses_fd(stale, fd), -EINVAL, "it has its own accesses");
	memwatch_stale_unref(stale);
	close(fd);
}

int main(void)
{
	if (memwatch_ctx_new(NULL, &ctx))
		return EXIT_FAILURE;
	make_events();
	grow_trace(3, "in few steps");
	grow_trace(200, "in many steps");
	test_errors();
	memwatch_ctx_unref(ctx);
	return tap_done();
}
