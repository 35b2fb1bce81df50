// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Fuzzes the slots with records of any time. The first byte of the input chooses the options.
 * The run time that comes out must be what went in, and the number of entries is limited.
 */
#include <errno.h>
#include <stdlib.h>

#include <memwatch/slots.h>

#include "fuzz.h"
#include "records.h"

#define ENTRIES_MAX 100

/* Saturates, as the sums of the library do. */
static void add_time(uint64_t *sum, uint64_t time_ns)
{
	if (__builtin_add_overflow(*sum, time_ns, sum))
		*sum = UINT64_MAX;
}

static void drain_slots(struct memwatch_slots *slots, uint64_t *run_ns)
{
	const struct memwatch_slot *slot;

	while (memwatch_slots_next(slots, &slot) == 1) {
		if (slot->begin_ns > slot->end_ns || slot->nr_entries > ENTRIES_MAX + 1)
			abort();
		for (uint32_t i = 0; i < slot->nr_entries; i++)
			add_time(run_ns, memwatch_slot_entry_at(slot, i)->cpu_time_ns.value);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t choice = size ? data[0] : 0;
	MEMWATCH_OPTS(memwatch_slots_opts, opts, .flags = choice & 3,
		      .window = 1 + (choice >> 2) % 40, .entries_max = ENTRIES_MAX);
	struct input input = { data + !!size, size - !!size, 1000000000 };
	uint64_t fed_ns = 0, run_ns = 0;
	struct memwatch_slots *slots;
	struct memwatch_ctx *ctx;
	union any_record record;

	if (memwatch_ctx_new(NULL, &ctx) || memwatch_slots_new(ctx, NULL, &opts, &slots))
		abort();
	while (take_record(&input, &record)) {
		int err = memwatch_slots_feed(slots, &record.h);

		if (err == -ENOMEM)
			abort();
		if (err >= 0 && record.h.type == MEMWATCH_RECORD_SAMPLE)
			add_time(&fed_ns, record.sample.run_ns);
		if (record.h.cpu)
			drain_slots(slots, &run_ns);
		if (record.h.cpu == 3 && record.h.time_ns % 7 == 0)
			memwatch_slots_finish(slots);
	}
	memwatch_slots_finish(slots);
	drain_slots(slots, &run_ns);
	/* Sums of single entries may have saturated before. */
	if (run_ns != fed_ns && fed_ns != UINT64_MAX)
		abort();
	memwatch_slots_unref(slots);
	memwatch_ctx_unref(ctx);
	return 0;
}
