// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A summary when memory runs out: each allocation that feeding a slot makes fails once. The
 * next slots, which are smaller, are fed all the same.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include <memwatch/slots.h>
#include <memwatch/summary.h>

#include "../../selftests/tap.h"

#define MS    1000000ULL
#define RMIDS 300 /* so many that the arrays of the summary grow more than once */
#define SLOTS 4
#define LIMIT 100 /* allocations; far more than feeding one slot makes */

/* The address sanitizer checks what these functions return. */
void *__interceptor_malloc(size_t size);
void *__interceptor_calloc(size_t count, size_t size);
void *__interceptor_realloc(void *old, size_t size);

/* The allocation that fails is so many allocations away; 0, none fails. */
static unsigned int fails_after;

static bool allocation_fails(void)
{
	return fails_after && !--fails_after;
}

void *malloc(size_t size)
{
	return allocation_fails() ? NULL : __interceptor_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return allocation_fails() ? NULL : __interceptor_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	return allocation_fails() ? NULL : __interceptor_realloc(old, size);
}

static struct memwatch_ctx *ctx;

/* In slot 1 all RMIDs run and are read, in the others RMID 1 only. */
static void feed_slot_records(struct memwatch_slots *slots, uint32_t number)
{
	for (uint32_t rmid = 1; rmid <= (number == 1 ? RMIDS : 1); rmid++) {
		uint64_t time_ns = (1000 + number) * MS + rmid;
		struct memwatch_record_rmid born = {
			.h = { .time_ns = time_ns,
			       .type = MEMWATCH_RECORD_RMID_ALLOC,
			       .size = sizeof(born) },
			.rmid = rmid,
			.generation = 1,
			.tgid = 500 + rmid,
			.alloc_time_ns = time_ns,
			.comm = "x",
		};
		struct memwatch_record_rdt read = {
			.h = { .time_ns = time_ns + 1000,
			       .type = MEMWATCH_RECORD_RDT,
			       .size = sizeof(read) },
			.rmid = rmid,
			.generation = 1,
			.status = { MEMWATCH_STATUS_OK },
			.value = { 4096 },
		};

		if (!number || (number == 1 && rmid > 1))
			memwatch_slots_feed(slots, &born.h);
		memwatch_slots_feed(slots, &read.h);
	}
}

/*
 * Feeds all slots to a summary while one allocation of the first slot with all RMIDs fails.
 * Returns whether it did.
 */
static bool feed_with_failure(unsigned int after, uint64_t from_ns, unsigned int *wrong)
{
	MEMWATCH_OPTS(memwatch_slots_opts, slot_opts, .slot_ns = MS);
	MEMWATCH_OPTS(memwatch_summary_opts, opts, .by = MEMWATCH_BY_PROCESS, .from_ns = from_ns);
	struct memwatch_summary *summary;
	const struct memwatch_slot *slot;
	struct memwatch_slots *slots;
	bool failed = false;

	if (memwatch_slots_new(ctx, NULL, &slot_opts, &slots) ||
	    memwatch_summary_new(ctx, &opts, &summary))
		abort();
	for (uint32_t i = 0; i < SLOTS; i++)
		feed_slot_records(slots, i);
	memwatch_slots_finish(slots);
	while (memwatch_slots_next(slots, &slot) == 1) {
		int err;

		fails_after = slot->nr_entries > RMIDS / 2 ? after : 0;
		err = memwatch_summary_feed(summary, slot);
		if (err < 0)
			failed = true;
		*wrong += err < 0 && err != -ENOMEM;
		fails_after = 0;
	}
	memwatch_summary_unref(summary);
	memwatch_slots_unref(slots);
	return failed;
}

static void test_failures(uint64_t from_ns, const char *when)
{
	unsigned int after = 1, wrong = 0;

	while (after < LIMIT && feed_with_failure(after, from_ns, &wrong))
		after++;
	tap_ok(after > 1, "%s: %u allocations of a slot fail, one at a time", when, after - 1);
	tap_ok(after < LIMIT, "%s: at last none is left to fail", when);
	tap_eq(wrong, 0, "%s: each failure is reported as -ENOMEM", when);
}

int main(void)
{
	tap_start();
	if (memwatch_ctx_new(NULL, &ctx))
		return EXIT_FAILURE;
	test_failures(0, "in the range");
	test_failures(2000 * MS, "before the range");
	memwatch_ctx_unref(ctx);
	return tap_done();
}
