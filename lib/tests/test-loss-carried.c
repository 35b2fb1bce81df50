// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Samples for which there was no room. There is room for the tick behind such a sample, so the loss
 * ends with it; the sample goes on until there is room again, and spreads what was measured during
 * the loss over slots behind it.
 */
#include <stdint.h>

#include <memwatch/slots.h>

#include "../../selftests/tap.h"

#define MS   1000000ULL
#define BASE 1000 /* number of the first slot */
#define LOST 10	  /* number of the slot in which there is no room, counted from BASE */

static struct memwatch_slots *slots;

static uint64_t slot_ns(uint64_t slot)
{
	return (BASE + slot) * MS;
}

/* How many values of RMID 1 in the slots @first to @last have which status. */
struct range {
	uint64_t first, last;
	unsigned int ok, estimated;
};

static void count_status(const struct memwatch_slot *slot, struct range *range)
{
	uint64_t first = slot->begin_ns / MS - BASE, last = (slot->end_ns - 1) / MS - BASE;

	for (uint32_t i = 0; i < slot->nr_entries; i++) {
		const struct memwatch_slot_entry *entry = memwatch_slot_entry_at(slot, i);

		if (entry->rmid != 1 || last < range->first || first > range->last)
			continue;
		range->ok += entry->cpu_time_ns.status == MEMWATCH_STATUS_OK;
		range->estimated += entry->cpu_time_ns.status == MEMWATCH_STATUS_ESTIMATED;
	}
}

/* CPU 0 runs RMID 1, CPU 1 is idle. */
static void feed_sample(uint16_t cpu, uint64_t begin, uint64_t end)
{
	struct memwatch_record_sample sample = {
		.h = { slot_ns(end), MEMWATCH_RECORD_SAMPLE, sizeof(sample), cpu, 0 },
		.rmid = !cpu,
		.generation = !cpu,
		.begin_ns = slot_ns(begin),
		.run_ns = MS,
	};

	memwatch_slots_feed(slots, &sample.h);
}

static void feed_loss(void)
{
	struct memwatch_record_lost lost = {
		.h = { slot_ns(LOST), MEMWATCH_RECORD_LOST, sizeof(lost), 0, 0 },
		.end_ns = slot_ns(LOST + 1),
		.count = 1,
	};

	memwatch_slots_feed(slots, &lost.h);
}

static void feed_tick(void)
{
	struct memwatch_record_tick tick = {
		.h = { slot_ns(LOST + 1), MEMWATCH_RECORD_TICK, sizeof(tick), 0, 0 },
	};

	memwatch_slots_feed(slots, &tick.h);
}

static void feed_slot(uint64_t slot, uint64_t end)
{
	feed_sample(1, slot, slot + 1);
	if (slot < LOST || slot >= end)
		feed_sample(0, slot, slot + 1);
	if (slot == LOST - 1)
		feed_loss();
	if (slot == LOST)
		feed_tick();
	if (slot == end - 1)
		feed_sample(0, LOST, end);
}

/* The sample of CPU 0 goes on for @carried slots. */
static void test_carried(struct memwatch_ctx *ctx, uint64_t carried, const char *what)
{
	uint64_t end = LOST + carried;
	struct range before = { 0, LOST - 1, 0, 0 }, during = { LOST, end - 1, 0, 0 };
	struct range after = { end, end + 50, 0, 0 };
	const struct memwatch_slot *slot;

	memwatch_slots_new(ctx, NULL, NULL, &slots);
	for (uint64_t s = 0; s < end + 50; s++) {
		feed_slot(s, end);
		while (memwatch_slots_next(slots, &slot) == 1) {
			count_status(slot, &before);
			count_status(slot, &during);
			count_status(slot, &after);
		}
	}
	memwatch_slots_unref(slots);
	tap_ok(before.ok && !before.estimated, "%s: before it, values are OK", what);
	tap_ok(during.estimated && !during.ok, "%s: what it spreads over its slots is estimated",
	       what);
	tap_ok(after.ok && !after.estimated, "%s: after it, values are OK", what);
}

int main(void)
{
	struct memwatch_ctx *ctx;

	tap_start();
	memwatch_ctx_new(NULL, &ctx);
	test_carried(ctx, 2, "a sample that waits for one slot");
	test_carried(ctx, 200, "a sample that waits while its CPU is idle");
	memwatch_ctx_unref(ctx);
	return tap_done();
}
