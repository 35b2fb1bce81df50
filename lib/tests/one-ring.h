/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A merge with one ring, and ticks that are written to it and read from the merge.
 */
#ifndef MW_TESTS_ONE_RING_H
#define MW_TESTS_ONE_RING_H

#include "rings.h"

static struct mw_merge *merge;
static struct writer writer;

static inline void open_ring(size_t size, uint64_t grace_ns)
{
	struct mw_merge_opts opts = { .grace_ns = grace_ns, .silent_ns = 1000000 };

	writer_init(&writer, size);
	mw_merge_new(&opts, &merge);
	mw_merge_ring_add(merge, 0, &writer.ring);
}

static inline void close_ring(void)
{
	mw_merge_free(merge);
	writer_free(&writer);
}

static inline struct memwatch_record_tick tick_at(uint64_t time_ns)
{
	return (struct memwatch_record_tick){
		.h = { .time_ns = time_ns,
		       .type = MEMWATCH_RECORD_TICK,
		       .size = sizeof(struct memwatch_record_tick) },
		.expected_ns = time_ns * 3,
		.produced = time_ns,
		.dropped = ~time_ns,
	};
}

/* The numbers below are sizes of this frame: a tick needs 64 bytes of the ring. */
static inline bool put_tick(uint64_t time_ns)
{
	struct memwatch_record_tick tick = tick_at(time_ns);

	return writer_output(&writer, &tick, sizeof(tick));
}

static inline const struct memwatch_record_header *next_record(uint64_t now_ns)
{
	return next_of(merge, now_ns);
}

/* The next record is the tick that put_tick() made for @time_ns, whatever its flags. */
static inline bool next_is_tick(uint64_t time_ns, uint64_t now_ns)
{
	const struct memwatch_record_tick *got = (const void *)next_record(now_ns);
	struct memwatch_record_tick want = tick_at(time_ns);

	if (!got)
		return false;
	want.h.flags = got->h.flags;
	return !memcmp(got, &want, sizeof(want));
}

static inline struct memwatch_stream_stats get_stats(void)
{
	struct memwatch_stream_stats stats = { .sz = sizeof(stats) };

	mw_merge_stats(merge, &stats);
	return stats;
}

/* Two rings of one size; the second is the caller's. */
static inline void open_two_rings(struct writer *other, size_t size,
				  const struct mw_merge_opts *opts)
{
	writer_init(&writer, size);
	writer_init(other, size);
	mw_merge_new(opts, &merge);
	mw_merge_ring_add(merge, 0, &writer.ring);
	mw_merge_ring_add(merge, 1, &other->ring);
}

#endif /* MW_TESTS_ONE_RING_H */
