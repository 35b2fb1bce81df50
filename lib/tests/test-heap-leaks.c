// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The leak view: which call stacks, and which groups of them, grow from snapshot to snapshot.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include <memwatch/heap.h>

#include "heap/estimate.h"
#include "heap/model.h"
#include "heap-kit.h"
#include "../../selftests/prng.h"
#include "../../selftests/tap.h"

#define FRAMES	  3
#define SNAPSHOTS 12
#define RUNS	  100U

static struct memwatch_ctx *ctx;

static void add_snapshot(struct memwatch_heap *heap, uint64_t hour)
{
	struct memwatch_heap_info *info;

	if (mw_heap_add_profile(heap, "snapshot"))
		exit(EXIT_FAILURE);
	info = &mw_heap_last(heap)->info;
	info->format = MEMWATCH_HEAP_MEMWATCH;
	info->metrics = 15;
	info->rate_bytes = 100000;
	info->end_ns = (1000 + hour) * 3600000000000ULL;
}

/* Live samples of 1000 bytes, numbers @from to @to, of a stack, whose innermost frame is first. */
static void add_stack(struct memwatch_heap *heap, const uint64_t *addresses, uint32_t nr,
		      uint64_t from, uint64_t to)
{
	struct mw_prof_sample sample = { .count = 1, .birth_ns = 0 };
	uint32_t locations[FRAMES];

	for (uint32_t i = 0; i < nr; i++) {
		struct mw_prof_location location = { .address = addresses[i],
						     .mapping = MW_PROF_NONE };

		if (mw_heap_add_location(heap, &location, &locations[i]))
			exit(EXIT_FAILURE);
	}
	if (mw_heap_add_stack(heap, locations, nr, &sample.stack))
		exit(EXIT_FAILURE);
	mw_heap_unsample(1, 1000, 100000, &sample.sum[MEMWATCH_HEAP_LIVE_OBJECTS],
			 &sample.sum[MEMWATCH_HEAP_LIVE_BYTES]);
	for (uint64_t i = from; i < to; i++) {
		sample.identity = addresses[nr - 1] << 32 | (i + 1);
		if (mw_heap_add_sample(heap, &sample))
			exit(EXIT_FAILURE);
	}
}

static void add_live(struct memwatch_heap *heap, uint64_t address, uint64_t from, uint64_t to)
{
	add_stack(heap, &address, 1, from, to);
}

/*
 * Site 1 keeps the same 1000 samples and gains 20; site 2 has 1000 other samples in each
 * snapshot, and gains 20 too; site 3 stays as it is.
 */
static void test_growth(void)
{
	struct memwatch_heap *heap = heap_kit_new(ctx);
	struct memwatch_heap_view *view;
	MEMWATCH_OPTS(memwatch_heap_row, row);
	double weight = 1000 / (1 - exp(-0.01));

	for (uint64_t i = 0; i < 6; i++) {
		add_snapshot(heap, i);
		add_live(heap, 1, 0, 1000 + 4 * i);
		add_live(heap, 2, 10000 * i, 10000 * i + 1000 + 4 * i);
		add_live(heap, 3, 0, 1000);
	}
	view = heap_kit_view(ctx, heap, MEMWATCH_HEAP_BY_SITE, MEMWATCH_HEAP_GROWTH);
	memwatch_heap_view_get_row(view, 0, &row);
	tap_eq(row.frame->address, 1, "the site that keeps its samples and gains more comes first");
	tap_ok(fabs(row.growth.value - 4 * weight) < 1, "its growth is the slope");
	tap_ok(row.growth.low > 0, "its growth is significant");
	tap_eq(row.leak, 1, "it is a leak");
	tap_ok(fabs(row.flat[0].value - 1020 * weight) < 1,
	       "values are those of the last snapshot");
	memwatch_heap_view_get_row(view, 1, &row);
	tap_eq(row.frame->address, 3, "a site that does not change comes second");
	tap_eq(row.growth.value, 0, "it does not grow");
	tap_eq(row.leak, 0, "it is no leak");
	memwatch_heap_view_get_row(view, 2, &row);
	tap_ok(row.growth.low < 0, "equal growth among new samples may be chance");
	tap_eq(row.leak, 0, "what may be chance is no leak");
	memwatch_heap_view_unref(view);
	memwatch_heap_unref(heap);
}

/* A site gains three samples an hour, and has up to 40 others that each snapshot has alone. */
static void test_growth_hidden(void)
{
	static const uint64_t work[] = { 12, 0, 40, 3, 25, 38, 1, 17, 40, 8, 0, 29 };
	struct memwatch_heap *heap = heap_kit_new(ctx);
	struct memwatch_heap_view *view;
	MEMWATCH_OPTS(memwatch_heap_row, row);
	double weight = 1000 / (1 - exp(-0.01));

	for (uint64_t i = 0; i < 12; i++) {
		add_snapshot(heap, i);
		add_live(heap, 1, 0, 3 * i);
		add_live(heap, 1, 1000 * (i + 1), 1000 * (i + 1) + work[i]);
		add_live(heap, 2, 1000 * (i + 1), 1000 * (i + 1) + work[11 - i]);
	}
	view = heap_kit_view(ctx, heap, MEMWATCH_HEAP_BY_SITE, MEMWATCH_HEAP_GROWTH);
	memwatch_heap_view_get_row(view, 0, &row);
	tap_eq(row.frame->address, 1, "a leak comes before memory of the current work");
	tap_eq(row.leak, 1, "memory of the current work does not hide a leak");
	tap_ok(fabs(row.growth.value - 3 * weight) < 1, "the growth of a hidden leak is its own");
	tap_ok(fabs(row.flat[0].value - 62 * weight) < 1, "the live bytes have all samples");
	memwatch_heap_view_get_row(view, 1, &row);
	tap_eq(row.leak, 0, "memory of the current work is no leak");
	memwatch_heap_view_unref(view);
	memwatch_heap_unref(heap);
}

/* 40 stacks that share two frames gain one sample each, at different times. */
static void add_spread(struct memwatch_heap *heap, uint64_t hour)
{
	for (uint64_t i = 0; i < 40; i++) {
		uint64_t stack[] = { 1, 2, 100 + i };

		if (hour > i * (SNAPSHOTS - 1) / 40)
			add_stack(heap, stack, 3, 0, 1);
	}
	/* Others share the innermost frame alone, and keep what they have. */
	for (uint64_t i = 0; i < 20; i++) {
		uint64_t stack[] = { 1, 3, 200 + i };

		add_stack(heap, stack, 3, 0, 5);
	}
}

static void check_frames(struct memwatch_heap_view *view, uint64_t index, const uint64_t *addresses,
			 uint32_t nr, const char *title)
{
	MEMWATCH_OPTS(memwatch_heap_frame, frame);
	uint32_t same = 0;

	while (same < nr && memwatch_heap_view_get_frame(view, index, same, &frame) == 1 &&
	       frame.address == addresses[same])
		same++;
	tap_ok(same == nr && memwatch_heap_view_get_frame(view, index, nr, &frame) == 0, "%s",
	       title);
}

static void test_spread_leak(void)
{
	static const uint64_t shared[] = { 1, 2 };
	struct memwatch_heap *heap = heap_kit_new(ctx);
	struct memwatch_heap_view *view;
	MEMWATCH_OPTS(memwatch_heap_row, row);
	double weight = 1000 / (1 - exp(-0.01));

	for (uint64_t i = 0; i < SNAPSHOTS; i++) {
		add_snapshot(heap, i);
		add_spread(heap, i);
	}
	view = heap_kit_view(ctx, heap, MEMWATCH_HEAP_BY_SITE, MEMWATCH_HEAP_GROWTH);
	memwatch_heap_view_get_row(view, 0, &row);
	tap_eq(row.leak, 1, "a leak that is spread over many stacks is found");
	tap_eq(row.stacks, 40, "it has all its stacks");
	tap_eq(row.samples, 40, "it has all their samples");
	tap_ok(fabs(row.flat[0].value - 40 * weight) < 1, "it has all their bytes");
	check_frames(view, 0, shared, 2, "its frames are those that the stacks have in common");
	memwatch_heap_view_get_row(view, 1, &row);
	tap_eq(row.leak, 0, "stacks that share only one frame of it are no leak");
	tap_eq(row.stacks, 1, "they stay apart");
	tap_eq(memwatch_heap_view_get_row(view, 21, &row), 0, "no stack is counted twice");
	memwatch_heap_view_unref(view);
	memwatch_heap_unref(heap);
}

static void test_leak_within_a_leak(void)
{
	static const uint64_t own[] = { 1, 2, 50 }, shared[] = { 1, 2 };
	struct memwatch_heap *heap = heap_kit_new(ctx);
	struct memwatch_heap_view *view;
	MEMWATCH_OPTS(memwatch_heap_row, row);

	for (uint64_t i = 0; i < SNAPSHOTS; i++) {
		add_snapshot(heap, i);
		add_spread(heap, i);
		add_stack(heap, own, 3, 0, 10 * i);
	}
	view = heap_kit_view(ctx, heap, MEMWATCH_HEAP_BY_SITE, MEMWATCH_HEAP_GROWTH);
	memwatch_heap_view_get_row(view, 0, &row);
	tap_eq(row.leak, 1, "a stack that leaks is found among others that leak together");
	tap_eq(row.samples, 110, "it has its own samples alone");
	check_frames(view, 0, own, 3, "it has all its frames");
	memwatch_heap_view_get_row(view, 1, &row);
	tap_eq(row.leak, 1, "what the others leak is found without it");
	tap_eq(row.samples, 40, "that has their samples");
	check_frames(view, 1, shared, 2, "its frames are shared with the stack");
	memwatch_heap_view_unref(view);
	memwatch_heap_unref(heap);
}

/* What a stack allocated at the time @born is the same whenever it is asked for. */
static void add_survivors(struct memwatch_heap *heap, uint64_t seed, uint64_t stack, uint64_t born,
			  uint64_t now, uint64_t longest)
{
	uint64_t addresses[] = { 1 + stack % 4, 10 + stack % 16, 100 + stack };
	struct prng random = { seed << 32 | stack << 16 | born };
	uint64_t nr = prng_next(&random) % 7;

	for (uint64_t i = 0; i < nr; i++)
		if (now <= born + prng_next(&random) % longest)
			add_stack(heap, addresses, 3, born << 8 | i, (born << 8 | i) + 1);
}

/* 64 stacks of 4 functions allocate at random, and all lives for at most @longest snapshots. */
static bool has_chance_leak(uint64_t seed, uint64_t longest)
{
	struct memwatch_heap *heap = heap_kit_new(ctx);
	struct memwatch_heap_view *view;
	MEMWATCH_OPTS(memwatch_heap_row, row);

	for (uint64_t now = longest; now < longest + SNAPSHOTS; now++) {
		add_snapshot(heap, now);
		for (uint64_t stack = 0; stack < 64; stack++)
			for (uint64_t born = now - longest + 1; born <= now; born++)
				add_survivors(heap, seed, stack, born, now, longest);
	}
	view = heap_kit_view(ctx, heap, MEMWATCH_HEAP_BY_SITE, MEMWATCH_HEAP_GROWTH);
	memwatch_heap_view_get_row(view, 0, &row);
	memwatch_heap_view_unref(view);
	memwatch_heap_unref(heap);
	return row.leak;
}

static void test_chance(void)
{
	static const uint64_t longest[] = { 1, 2, 6 };

	for (int i = 0; i < 3; i++) {
		unsigned int leaks = 0;

		for (uint64_t run = 0; run < RUNS; run++)
			leaks += has_chance_leak(run + 1, longest[i]);
		tap_note("%u of %u views show a leak", leaks, RUNS);
		tap_ok(leaks <= RUNS / 50,
		       "at most one of 50 programs without a leak has one, if objects live for up "
		       "to %d snapshots",
		       (int)longest[i]);
	}
}

static void test_growth_needs(void)
{
	MEMWATCH_OPTS(memwatch_heap_view_opts, opts, .flags = MEMWATCH_HEAP_GROWTH);
	struct memwatch_heap *heap = heap_kit_new(ctx);
	struct memwatch_heap_view *view;

	add_snapshot(heap, 1);
	tap_eq(memwatch_heap_view_new(heap, &opts, &view), -ENODATA,
	       "one snapshot shows no growth");
	add_snapshot(heap, 1);
	tap_eq(memwatch_heap_view_new(heap, &opts, &view), -ENODATA,
	       "two snapshots of one time show no growth");
	memwatch_heap_unref(heap);
}

int main(void)
{
	tap_start();
	if (memwatch_ctx_new(NULL, &ctx))
		return EXIT_FAILURE;
	test_growth();
	test_growth_hidden();
	test_growth_needs();
	test_spread_leak();
	test_leak_within_a_leak();
	test_chance();
	memwatch_ctx_unref(ctx);
	return tap_done();
}
