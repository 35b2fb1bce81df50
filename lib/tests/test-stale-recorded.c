// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reading traces that the preloaded library has recorded: streams are merged in the order of time,
 * and a file that is cut off, damaged or hostile gives what can be read of it.
 */
#include <memwatch/stale-process.h>

#include "stale-kit.h"

#include "recorded-kit.h"

#include "../../selftests/prng.h"
#include "../../selftests/tap.h"

#define SEED	20261125
#define STREAMS 5
#define EVENTS	40000
#define OBJECTS 3000

static struct memwatch_ctx *ctx;

/* An event of the program that is traced. */
struct happened {
	uint64_t units, address, size;
	uint32_t stream, site, tid;
	bool is_free;
};

static struct happened happened[EVENTS];

/* Objects that are allocated in one thread and freed in another one. */
static void make_events(void)
{
	static struct {
		uint64_t address, size;
	} objects[OBJECTS];
	struct prng prng = { SEED };
	uint64_t units = 1000;

	tap_note("seed %d", SEED);
	for (int i = 0; i < EVENTS; i++) {
		struct happened *e = &happened[i];
		uint64_t n = prng_below(&prng, OBJECTS), far = prng_below(&prng, 1000);

		units += far ? prng_below(&prng, 300) : prng_below(&prng, 1ULL << 40);
		*e = (struct happened){ .units = units,
					.stream = (uint32_t)prng_below(&prng, STREAMS),
					.is_free = objects[n].address != 0 };
		e->tid = 100 + e->stream;
		e->site = 1 + (uint32_t)(prng_below(&prng, 300) + (e->is_free ? 500 : 0));
		if (e->is_free) {
			e->address = objects[n].address;
			objects[n].address = 0;
			continue;
		}
		/* Some are not aligned, and some far away. */
		e->address = 0x10000 + n * 4096 + 16 * prng_below(&prng, 100) +
			     (prng_below(&prng, 50) ? 0 : 3) +
			     (prng_below(&prng, 50) ? 0 : 0x7f0000000000);
		e->size = prng_below(&prng, 5) ? prng_below(&prng, 1000) : 0;
		objects[n].address = e->address;
	}
}

/* Stream after stream, so that nothing is in the order of time in the file. */
static void write_events(struct recorded *r, uint32_t chunk_bytes)
{
	recorded_begin(r, chunk_bytes);
	for (uint32_t stream = 0; stream < STREAMS; stream++) {
		uint32_t sequence = 0;

		for (int i = 0; i < EVENTS; i++) {
			const struct happened *e = &happened[i];
			uint8_t slot = (uint8_t)(e->site * 7);

			if (e->stream != stream)
				continue;
			if (!sequence || !recorded_has_room(r))
				recorded_add_chunk(r, stream, sequence++, e->tid, e->units);
			if (e->is_free)
				recorded_free(r, slot, e->units, e->site, e->address);
			else
				recorded_malloc(r, slot, e->units, e->site, e->size, e->address);
		}
	}
}

static void test_merge(void)
{
	MEMWATCH_OPTS(memwatch_stale_info, info);
	MEMWATCH_OPTS(memwatch_stale_object, object);
	struct mw_sim sim;
	struct memwatch_stale *stale;
	struct recorded r;
	uint64_t wrong = 0;

	mw_sim_init(&sim, true);
	for (int i = 0; i < EVENTS; i++) {
		const struct happened *e = &happened[i];
		struct mw_event event = {
			.time_ns = e->units,
			.address = e->address,
			.size = e->size,
			.place = e->site,
			.tid = e->tid,
			.kind = e->is_free ? MW_EVENT_FREE : MW_EVENT_MALLOC,
		};

		mw_sim_feed(&sim, &event);
	}
	write_events(&r, 1024);
	tap_eq(replay_text(ctx, NULL, (char *)r.bytes, r.len, &stale), 0, "a trace is replayed");
	memwatch_stale_get_info(stale, &info);
	tap_eq(info.allocations + info.frees, EVENTS, "all its events are there");
	tap_eq(info.unmatched_frees + info.overlaps + info.damaged + info.cut_off, 0,
	       "streams are merged in the order of time");
	tap_ok(info.recorded && info.pid == 77 && !strcmp(info.comm, "program") &&
		       info.began == MEMWATCH_STALE_BEGAN_START &&
		       info.state == MEMWATCH_STALE_STATE_ENDED && info.threads == STREAMS,
	       "it is known whose trace it is");
	tap_eq(info.live_objects, sim.objects.live, "as many objects live as in the program");
	tap_eq(info.live_bytes, sim.live_bytes, "they have the right size");
	tap_eq(info.sites, sim.nr_sites, "they are of the right sites");
	for (uint64_t i = 0; memwatch_stale_get_object(stale, i, &object) == 1; i++) {
		struct mw_ranges_spot spot = { 0 };
		uint64_t start;
		uint32_t number;

		mw_ranges_seek(&sim.ranges, object.address, &spot);
		wrong += !mw_ranges_before(&sim.ranges, &spot, &start, &number) ||
			 start != object.address ||
			 mw_objects_at(&sim.objects, number)->birth_ns != object.allocated_ns ||
			 mw_objects_at(&sim.objects, number)->tid != object.tid;
	}
	tap_eq(wrong, 0, "each object has its address, time and thread");
	memwatch_stale_unref(stale);
	mw_sim_uninit(&sim);
	free(r.bytes);
}

/* The header is enough to know who has recorded a trace. */
static void test_process(void)
{
	MEMWATCH_OPTS(memwatch_stale_process, process);
	int fd = memfd_create("trace", MFD_CLOEXEC);
	struct recorded r;

	recorded_begin(&r, 1024);
	recorded_header(&r)->pid_namespace = 4026531836;
	recorded_header(&r)->start_time_ticks = 12345;
	recorded_header(&r)->chunks = 1000;
	write(fd, r.bytes, r.len);
	tap_eq(memwatch_stale_get_process(ctx, fd, &process), 0,
	       "the process is known without chunks");
	tap_ok(process.pid == 77 && process.pid_namespace == 4026531836 &&
		       process.start_time_ticks == 12345,
	       "the process has its number, its namespace and the time of its start");
	ftruncate(fd, 100);
	tap_eq(memwatch_stale_get_process(ctx, fd, &process), -EBADMSG,
	       "a header that is cut off is said to be damaged");
	ftruncate(fd, 0);
	tap_eq(memwatch_stale_get_process(ctx, fd, &process), -ENOMSG, "an empty file is no trace");
	free(r.bytes);
	close(fd);
}

/* The clock of a processor, with a moment at the beginning and another one in a chunk. */
static void test_time(void)
{
	MEMWATCH_OPTS(memwatch_stale_info, info);
	struct memwatch_stale *stale;
	struct recorded r;

	recorded_begin(&r, 512);
	recorded_header(&r)->clock = MW_TRACE_CLOCK_CYCLES;
	recorded_header(&r)->first = (struct mw_trace_moment){ 1000, 5000000 };
	recorded_header(&r)->second = (struct mw_trace_moment){ 1010, 5000039 };
	recorded_add_chunk(&r, 0, 0, 1, 2000);
	recorded_chunk(&r)->moment = (struct mw_trace_moment){ 2001000, 13000000 };
	recorded_malloc(&r, 1, 2000, 1, 10, 4096);
	recorded_malloc(&r, 1, 1001000, 1, 10, 8192);
	tap_eq(replay_text(ctx, NULL, (char *)r.bytes, r.len, &stale), 0,
	       "a trace with cycles is replayed");
	memwatch_stale_get_info(stale, &info);
	tap_eq(info.first_ns, 5004000, "times come from the first moment and the last one");
	tap_eq(info.last_ns, 9000000, "times between them are on a straight line");
	memwatch_stale_unref(stale);
	free(r.bytes);
}

static void test_threads(void)
{
	MEMWATCH_OPTS(memwatch_stale_object, object);
	struct memwatch_stale *stale;
	struct recorded r;
	uint32_t tids = 0;

	recorded_begin(&r, 512);
	recorded_add_chunk(&r, 3, 0, 11, 1);
	recorded_malloc(&r, 1, 1, 1, 10, 4096);
	recorded_thread(&r, 70000);
	recorded_malloc(&r, 1, 2, 1, 10, 8192);
	replay_text(ctx, NULL, (char *)r.bytes, r.len, &stale);
	for (uint64_t i = 0; memwatch_stale_get_object(stale, i, &object) == 1; i++)
		tids += object.tid;
	tap_eq(tids, 70011, "a stream goes on with another thread");
	memwatch_stale_unref(stale);
	free(r.bytes);
}

/* At any byte; the header alone is no trace. */
static void test_cut(void)
{
	uint64_t failures = 0, last = 0, shrinks = 0;
	struct recorded r;

	recorded_begin(&r, 256);
	for (uint32_t n = 0; n < 6; n++) {
		recorded_add_chunk(&r, n % 2, n / 2, 5, 100 * n);
		for (uint64_t i = 0; recorded_has_room(&r); i++)
			recorded_malloc(&r, 9, 100 * n + i, 1 + n, i, 65536 * (n + 1) + 512 * i);
	}
	for (size_t len = sizeof(struct mw_trace_header); len <= r.len; len++) {
		MEMWATCH_OPTS(memwatch_stale_info, info);
		struct memwatch_stale *stale;

		if (replay_text(ctx, NULL, (char *)r.bytes, len, &stale))
			failures++;
		else
			memwatch_stale_get_info(stale, &info);
		shrinks += info.allocations < last;
		last = info.allocations;
		memwatch_stale_unref(stale);
	}
	tap_eq(failures, 0, "a trace can be cut off at any byte behind its header");
	tap_eq(shrinks, 0, "a longer one has more events");
	free(r.bytes);
}

/* Replays it and returns what is wrong with it; -1: it was refused. */
static int64_t damage_of(const struct recorded *r, uint64_t *allocations)
{
	MEMWATCH_OPTS(memwatch_stale_info, info);
	int fd = memory_file((const char *)r->bytes, r->len), rc;
	struct memwatch_stale *stale;

	if (memwatch_stale_new(ctx, NULL, &stale))
		exit(EXIT_FAILURE);
	rc = memwatch_stale_open_fd(stale, fd);
	close(fd);
	while (!rc && memwatch_stale_step(stale) == 1)
		;
	if (!rc && !memwatch_stale_judge(stale))
		memwatch_stale_get_info(stale, &info);
	*allocations = info.allocations;
	memwatch_stale_unref(stale);
	return rc ? -1 : (int64_t)info.damaged;
}

/* Three chunks of one stream, of which the second one is to be damaged. */
static void begin_damage(struct recorded *r)
{
	recorded_begin(r, 512);
	for (uint32_t n = 0; n < 3; n++) {
		recorded_add_chunk(r, 0, n, 5, 100 * n);
		recorded_malloc(r, 1, 100 * n + 1, 1, 10, 4096 * (n + 1));
		recorded_malloc(r, 1, 100 * n + 2, 1, 10, 65536 * (n + 1));
	}
	r->chunk -= 512;
}

static void test_damage(void)
{
	uint64_t events;
	struct recorded r;

	begin_damage(&r);
	tap_ok(damage_of(&r, &events) == 0 && events == 6, "a trace of three chunks is whole");
	recorded_chunk(&r)->ready = 0;
	tap_ok(damage_of(&r, &events) == 1 && events == 4, "a chunk that is missing is counted");
	free(r.bytes);
	begin_damage(&r);
	r.bytes[r.chunk + sizeof(struct mw_trace_chunk)] |= MW_TRACE_KIND_MASK;
	tap_ok(damage_of(&r, &events) == 1 && events == 4,
	       "a chunk with an unknown event is left there");
	free(r.bytes);
	begin_damage(&r);
	recorded_chunk(&r)->used = 4000;
	tap_ok(damage_of(&r, &events) == 1 && events == 4, "an impossible length is not believed");
	free(r.bytes);
	begin_damage(&r);
	recorded_chunk(&r)->used--;
	tap_ok(damage_of(&r, &events) == 1 && events == 5, "an event that is cut off is left out");
	free(r.bytes);
	begin_damage(&r);
	recorded_header(&r)->chunk_bytes = 16;
	tap_eq(damage_of(&r, &events), -1, "an impossible size of chunks is refused");
	recorded_header(&r)->chunk_bytes = 512;
	recorded_header(&r)->version++;
	tap_eq(damage_of(&r, &events), -1, "a newer version is refused");
	free(r.bytes);
}

static void test_impossible(void)
{
	uint64_t events;
	struct recorded r;

	recorded_begin(&r, 512);
	recorded_add_chunk(&r, 0, 0, 5, 100);
	recorded_malloc(&r, 1, 101, 1, UINT64_MAX, 4096);
	tap_ok(damage_of(&r, &events) == 1 && !events, "an impossible size is damage");
	free(r.bytes);
	recorded_begin(&r, 512);
	recorded_add_chunk(&r, 0, 0, 5, 100);
	recorded_malloc(&r, 1, 101, UINT32_MAX, 10, 4096);
	tap_ok(damage_of(&r, &events) == 1 && !events, "an impossible site is damage");
	free(r.bytes);
	recorded_begin(&r, 512);
	recorded_add_chunk(&r, 0, 0, 5, UINT64_MAX - 10);
	recorded_malloc(&r, 1, UINT64_MAX - 5, 1, 10, 4096);
	recorded_malloc(&r, 1, 5, 1, 10, 8192);
	tap_ok(damage_of(&r, &events) == 1 && events <= 1, "time that overflows is damage");
	free(r.bytes);
}

int main(void)
{
	tap_start();
	if (memwatch_ctx_new(NULL, &ctx))
		return EXIT_FAILURE;
	make_events();
	test_merge();
	test_process();
	test_time();
	test_threads();
	test_cut();
	test_damage();
	test_impossible();
	memwatch_ctx_unref(ctx);
	return tap_done();
}
