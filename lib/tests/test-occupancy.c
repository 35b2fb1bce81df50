// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The mean of the occupancy is weighted by time. The oracle knows nothing of slots and rows: it
 * draws the levels of all RMIDs and domains on a line of 10 microseconds and adds them up.
 */
#include <stdlib.h>
#include <string.h>

#include <memwatch/slots.h>
#include <memwatch/summary.h>

#include "../../selftests/prng.h"
#include "../../selftests/tap.h"

#define MS	1000000ULL
#define STEP	10000ULL
#define BASE	(5000 * MS)
#define STEPS	400000 /* 4 s */
#define RMIDS	12
#define DOMAINS 2
#define RECORDS 200000

static struct memwatch_ctx *ctx;
static struct memwatch_slots *slots;

/* All records of a test, which are fed in the order of time. */
static struct {
	struct memwatch_record_header *record;
	uint64_t time_ns;
	uint32_t order;
} queue[RECORDS];
static uint32_t queued;

/* What holds at each step: the level of each RMID and domain, and whether there is one. */
static uint32_t level[RMIDS][DOMAINS][STEPS];
static bool known[RMIDS][STEPS];

static void put(const void *record)
{
	const struct memwatch_record_header *h = record;

	queue[queued].record = malloc(h->size);
	if (!queue[queued].record)
		abort();
	memcpy(queue[queued].record, record, h->size);
	queue[queued].time_ns = h->time_ns;
	queue[queued].order = queued;
	queued++;
}

static int compare_queued(const void *a, const void *b)
{
	const __typeof__(queue[0]) *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

static void put_rmid(uint16_t type, uint32_t rmid, uint32_t step)
{
	struct memwatch_record_rmid r = {
		.h = { .time_ns = BASE + step * STEP, .type = type, .size = sizeof(r) },
		.rmid = rmid,
		.generation = rmid ? 1 : 0,
		.tgid = 500 + rmid,
		.alloc_time_ns = BASE + step * STEP,
		.cgroup_id = 1 + rmid % 3,
		.reason = MEMWATCH_REASON_FORK,
		.comm = "x",
	};

	put(&r);
}

static void put_sample(uint32_t rmid, uint32_t from, uint32_t to)
{
	struct memwatch_record_sample s = {
		.h = { .time_ns = BASE + to * STEP,
		       .type = MEMWATCH_RECORD_SAMPLE,
		       .size = sizeof(s) },
		.rmid = rmid,
		.generation = rmid ? 1 : 0,
		.begin_ns = BASE + from * STEP,
		.run_ns = (to - from) * STEP,
	};

	put(&s);
}

/* A reading that holds up to the step @until, unless another one comes before. */
static void put_reading(uint32_t rmid, uint32_t domain, uint32_t step, uint32_t until,
			uint32_t bytes)
{
	struct memwatch_record_rdt r = {
		.h = { .time_ns = BASE + step * STEP,
		       .type = MEMWATCH_RECORD_RDT,
		       .size = sizeof(r) },
		.rmid = rmid,
		.generation = rmid ? 1 : 0,
		.domain = domain,
		.status = { MEMWATCH_STATUS_OK },
		.value = { bytes },
	};

	put(&r);
	for (uint32_t i = step; i < until; i++) {
		level[rmid][domain][i] = bytes;
		known[rmid][i] = true;
	}
}

static void start_test(void)
{
	queued = 0;
	memset(level, 0, sizeof(level));
	memset(known, 0, sizeof(known));
}

/* Feeds all records with slots of a length to a summary. */
static struct memwatch_summary *summarize(uint32_t by, uint64_t slot_ns, uint64_t from_ns,
					  uint64_t to_ns)
{
	MEMWATCH_OPTS(memwatch_slots_opts, slot_opts, .slot_ns = slot_ns);
	MEMWATCH_OPTS(memwatch_summary_opts, opts, .by = by, .from_ns = from_ns, .to_ns = to_ns);
	struct memwatch_summary *summary;
	const struct memwatch_slot *slot;

	qsort(queue, queued, sizeof(queue[0]), compare_queued);
	if (memwatch_slots_new(ctx, NULL, &slot_opts, &slots) ||
	    memwatch_summary_new(ctx, &opts, &summary))
		abort();
	for (uint32_t i = 0; i <= queued; i++) {
		if (i < queued)
			memwatch_slots_feed(slots, queue[i].record);
		else
			memwatch_slots_finish(slots);
		while (memwatch_slots_next(slots, &slot) == 1)
			memwatch_summary_feed(summary, slot);
	}
	slots = memwatch_slots_unref(slots);
	return summary;
}

static void end_test(void)
{
	for (uint32_t i = 0; i < queued; i++)
		free(queue[i].record);
}

/* The mean of a set of RMIDs over the steps in which one of them has a level. */
static uint64_t true_mean(uint32_t set, uint32_t from, uint32_t to, uint64_t *max)
{
	uint64_t area = 0, steps = 0;

	*max = 0;
	for (uint32_t i = from; i < to; i++) {
		uint64_t sum = 0;
		bool any = false;

		for (uint32_t rmid = 0; rmid < RMIDS; rmid++)
			for (uint32_t d = 0; set >> rmid & 1 && d < DOMAINS; d++) {
				sum += level[rmid][d][i];
				any |= known[rmid][i];
			}
		area += sum;
		steps += any;
		*max = sum > *max ? sum : *max;
	}
	return steps ? area / steps : 0;
}

static bool is_near(uint64_t value, uint64_t truth)
{
	return value + 1 >= truth && value <= truth + 1;
}

/* ---------------------------------------------------------------- sleeper */

/* It runs for 100 ms with 11 MB, and sleeps for 3.9 s, in which it is read once a second. */
static void test_sleeper(void)
{
	const struct memwatch_summary_row *row;
	struct memwatch_summary *summary;
	uint64_t max;
	size_t position = 0;

	start_test();
	put_rmid(MEMWATCH_RECORD_RMID_ALLOC, 1, 0);
	put_sample(0, 0, STEPS);
	for (uint32_t i = 0; i < 10; i++) {
		put_sample(1, i * 1000, (i + 1) * 1000);
		put_reading(1, 0, i * 1000, STEPS, 11000000);
	}
	for (uint32_t i = 1; i < 4; i++)
		put_reading(1, 0, i * 100000, STEPS, 0);
	summary = summarize(MEMWATCH_BY_PROCESS, MS, 0, 0);
	while (memwatch_summary_next(summary, &position, &row))
		if (row->tgid == 501)
			break;
	/* 11 MB until the reading after one second, and nothing for three seconds. */
	tap_eq(true_mean(2, 0, STEPS, &max), 2750000, "the oracle knows the mean of a sleeper");
	tap_ok(is_near(row->occupancy_mean.value, 2750000),
	       "the mean occupancy of a sleeper is weighted by time: %llu",
	       (unsigned long long)row->occupancy_mean.value);
	tap_eq(row->occupancy_max.value, 11000000, "the largest occupancy of a sleeper");
	tap_eq(row->occupancy_mean.status, MEMWATCH_STATUS_OK, "the mean of a sleeper is exact");
	memwatch_summary_unref(summary);
	end_test();
}

/* --------------------------------------------------------- losses, statuses */

static void feed_all(struct memwatch_summary *summary)
{
	const struct memwatch_slot *slot;

	for (uint32_t i = 0; i < queued; i++) {
		memwatch_slots_feed(slots, queue[i].record);
		while (memwatch_slots_next(slots, &slot) == 1)
			memwatch_summary_feed(summary, slot);
	}
	end_test();
	queued = 0;
}

static void close_slots(struct memwatch_summary *summary)
{
	const struct memwatch_slot *slot;

	memwatch_slots_finish(slots);
	while (memwatch_slots_next(slots, &slot) == 1)
		memwatch_summary_feed(summary, slot);
}

static const struct memwatch_summary_row *find_row(struct memwatch_summary *summary,
						   uint32_t generation)
{
	const struct memwatch_summary_row *row;
	size_t position = 0;

	while (memwatch_summary_next(summary, &position, &row))
		if (memwatch_summary_rmid_at(row, 0)->rmid == 1 &&
		    memwatch_summary_rmid_at(row, 0)->generation == generation)
			return row;
	return NULL;
}

/* A reading of RMID 1 in domain 0. */
static void put_status(uint32_t generation, uint32_t step, uint32_t bytes, uint8_t status)
{
	struct memwatch_record_rdt r = {
		.h = { .time_ns = BASE + step * STEP,
		       .type = MEMWATCH_RECORD_RDT,
		       .size = sizeof(r) },
		.rmid = 1,
		.generation = generation,
		.status = { status },
		.value = { bytes },
	};

	put(&r);
}

static struct memwatch_summary *start_by_rmid(void)
{
	MEMWATCH_OPTS(memwatch_summary_opts, opts, .by = MEMWATCH_BY_RMID);
	struct memwatch_summary *summary;

	start_test();
	if (memwatch_slots_new(ctx, NULL, NULL, &slots) ||
	    memwatch_summary_new(ctx, &opts, &summary))
		abort();
	return summary;
}

static void stop_by_rmid(struct memwatch_summary *summary)
{
	memwatch_summary_unref(summary);
	slots = memwatch_slots_unref(slots);
}

static void test_unavailable(void)
{
	struct memwatch_summary *summary = start_by_rmid();
	const struct memwatch_summary_row *row;

	put_rmid(MEMWATCH_RECORD_RMID_ALLOC, 1, 0);
	put_status(1, 0, 4000, MEMWATCH_STATUS_OK);
	put_status(1, 1000, 0, MEMWATCH_STATUS_UNAVAILABLE);
	put_status(1, 3000, 2000, MEMWATCH_STATUS_OK);
	put_sample(0, 3990, 4000);
	feed_all(summary);
	close_slots(summary);
	row = find_row(summary, 1);
	/* 10 ms with 4000 bytes, 20 ms unknown, and 10 ms with 2000: the last slot ends at 40 ms.
	 */
	tap_eq(row->occupancy_mean.value, (10 * 4000 + 10 * 2000) / 20,
	       "while a reading is unavailable, no level holds");
	tap_eq(row->occupancy_mean.status, MEMWATCH_STATUS_ESTIMATED,
	       "a mean with an unavailable part is estimated");
	stop_by_rmid(summary);
}

static void test_lost_end(void)
{
	struct memwatch_summary *summary = start_by_rmid();

	put_rmid(MEMWATCH_RECORD_RMID_ALLOC, 1, 0);
	put_status(1, 0, 4000, MEMWATCH_STATUS_OK);
	put_status(2, 1000, 1000, MEMWATCH_STATUS_OK);
	put_sample(0, 1990, 2000);
	feed_all(summary);
	close_slots(summary);
	tap_eq(find_row(summary, 1)->occupancy_mean.value, 4000,
	       "if the end was lost, the next owner of the RMID ends the level");
	tap_eq(find_row(summary, 2)->occupancy_mean.value, 1000,
	       "the next owner of an RMID does not have the level of the one before");
	stop_by_rmid(summary);
}

static void test_loss(void)
{
	struct memwatch_record_lost lost = {
		.h = { .time_ns = BASE + 500 * STEP,
		       .type = MEMWATCH_RECORD_LOST,
		       .size = sizeof(lost) },
		.count = 5,
		.end_ns = BASE + 600 * STEP,
	};
	struct memwatch_summary *summary = start_by_rmid();

	put_rmid(MEMWATCH_RECORD_RMID_ALLOC, 1, 0);
	put_status(1, 0, 4000, MEMWATCH_STATUS_OK);
	put(&lost);
	put_status(1, 1000, 2000, MEMWATCH_STATUS_OK);
	put_sample(0, 1990, 2000);
	feed_all(summary);
	close_slots(summary);
	tap_eq(find_row(summary, 1)->occupancy_mean.status, MEMWATCH_STATUS_ESTIMATED,
	       "a mean over a loss of records is estimated");
	stop_by_rmid(summary);
}

static void test_read_after_end(void)
{
	struct memwatch_summary *summary = start_by_rmid();

	put_rmid(MEMWATCH_RECORD_RMID_ALLOC, 1, 0);
	put_sample(1, 0, 100);
	put_rmid(MEMWATCH_RECORD_RMID_FREE, 1, 100);
	put_status(1, 150, 4000, MEMWATCH_STATUS_OK);
	put_sample(0, 1990, 2000);
	feed_all(summary);
	close_slots(summary);
	tap_eq(find_row(summary, 1)->occupancy_mean.value, 4000,
	       "the only reading of a process counts although it came after its end");
	stop_by_rmid(summary);
}

/* An RMID is taken from a process that sleeps: nothing else happens in that slot. */
static void test_revoked(void)
{
	struct memwatch_summary *summary = start_by_rmid();
	const struct memwatch_summary_row *total;

	put_rmid(MEMWATCH_RECORD_RMID_ALLOC, 1, 0);
	put_status(1, 0, 4000, MEMWATCH_STATUS_OK);
	put_sample(0, 0, 100);
	put_rmid(MEMWATCH_RECORD_RMID_FREE, 1, 1000);
	put_sample(0, 3990, 4000);
	feed_all(summary);
	close_slots(summary);
	memwatch_summary_get_total(summary, &total);
	tap_eq(total->occupancy_mean.value, 4000,
	       "after its end, the level of a process that slept does not hold");
	stop_by_rmid(summary);
}

/* A process sleeps from the beginning with a level of 4000, and the table begins anew at its end.
 */
static void fill_first_table(struct memwatch_summary *summary)
{
	put_rmid(MEMWATCH_RECORD_RMID_ALLOC, 1, 0);
	put_status(1, 0, 4000, MEMWATCH_STATUS_OK);
	put_sample(0, 9900, 10000);
	feed_all(summary);
	close_slots(summary);
	memwatch_summary_reset(summary);
}

/* A live table begins anew each second; a process that sleeps is read less often. */
static void test_reset(void)
{
	struct memwatch_summary *summary = start_by_rmid();
	const struct memwatch_summary_row *row;

	fill_first_table(summary);
	put_sample(1, 15000, 15010);
	put_status(1, 15100, 1000, MEMWATCH_STATUS_OK);
	put_sample(0, 19900, 20000);
	feed_all(summary);
	close_slots(summary);
	row = find_row(summary, 1);
	/* From 100 ms, the end of the first table, to 151 ms and from there to 200 ms. */
	tap_eq(row->occupancy_mean.value, (51 * 4000 + 49 * 1000) / 100,
	       "what was read before the table began anew still holds");
	tap_eq(row->occupancy_max.value, 4000, "what still holds counts for the maximum");
	stop_by_rmid(summary);
}

/* That a process has ended is read only after the table has begun anew. */
static void test_late_end(void)
{
	struct memwatch_summary *summary = start_by_rmid();
	const struct memwatch_summary_row *total;

	fill_first_table(summary);
	put_rmid(MEMWATCH_RECORD_RMID_FREE, 1, 5000);
	put_reading(0, 0, 10000, STEPS, 1000);
	put_sample(0, 19900, 20000);
	feed_all(summary);
	close_slots(summary);
	memwatch_summary_get_total(summary, &total);
	tap_eq(total->occupancy_mean.value, 1000,
	       "a level whose end comes late does not count in the table that follows");
	stop_by_rmid(summary);
}

/* A process that only ends in the table that follows held its level until then. */
static void test_end_of_sleeper(void)
{
	struct memwatch_summary *summary = start_by_rmid();
	const struct memwatch_summary_row *row;

	fill_first_table(summary);
	put_rmid(MEMWATCH_RECORD_RMID_FREE, 1, 15000);
	put_sample(0, 19900, 20000);
	feed_all(summary);
	close_slots(summary);
	row = find_row(summary, 1);
	tap_eq(row ? row->occupancy_mean.value : 0, 4000,
	       "a process that slept in a table up to its end has a row with its level");
	stop_by_rmid(summary);
}

/* ----------------------------------------------------------------- random */

/* Processes that begin, are read in two domains at random times, and mostly end. */
static void put_random(struct prng *random)
{
	start_test();
	put_sample(0, 0, STEPS);
	put_reading(0, 0, 0, STEPS, 5000);
	for (uint32_t rmid = 1; rmid < RMIDS; rmid++) {
		uint32_t begin = (uint32_t)(prng_next(random) % (STEPS / 4));
		uint32_t end = STEPS - (uint32_t)(prng_next(random) % (STEPS / 2));
		uint32_t at = begin;

		if (rmid % 4 == 0)
			end = STEPS;
		put_rmid(MEMWATCH_RECORD_RMID_ALLOC, rmid, begin);
		put_sample(rmid, begin, begin + 50);
		for (;;) {
			at += 1 + (uint32_t)(prng_next(random) % (rmid % 2 ? 2000 : 60000));
			if (at >= end)
				break;
			put_reading(rmid, (uint32_t)(prng_next(random) % DOMAINS), at, end,
				    (uint32_t)(prng_next(random) % 10000000));
			if (prng_next(random) % 4 == 0)
				put_sample(rmid, at - 1, at);
		}
		if (end < STEPS)
			put_rmid(MEMWATCH_RECORD_RMID_FREE, rmid, end);
	}
	/* So that the last slot ends with the last step. */
	put_sample(0, STEPS - 1, STEPS);
}

static uint32_t set_of(const struct memwatch_summary_row *row, uint32_t by)
{
	uint32_t set = 0;

	if (by != MEMWATCH_BY_CGROUP)
		return 1U << memwatch_summary_rmid_at(row, 0)->rmid;
	if (!row->cgroup_id)
		return 1;
	for (uint32_t rmid = 1; rmid < RMIDS; rmid++)
		if (1 + rmid % 3 == row->cgroup_id)
			set |= 1U << rmid;
	return set;
}

static void judge_rows(uint32_t by, uint64_t slot_ns, uint32_t from, uint32_t to, const char *what)
{
	struct memwatch_summary *summary = summarize(by, slot_ns, BASE + from * STEP,
						     BASE + to * STEP);
	const struct memwatch_summary_row *row;
	uint64_t max, rows = 0, wrong = 0, truth;
	size_t position = 0;

	while (memwatch_summary_next(summary, &position, &row)) {
		uint32_t first = from, last = to;

		if (by == MEMWATCH_BY_SLOT) {
			if (row->flags & MEMWATCH_ROW_LATE)
				continue;
			first = (uint32_t)((row->first_ns - BASE) / STEP);
			last = (uint32_t)((row->last_ns - BASE) / STEP);
		}
		truth = true_mean(by == MEMWATCH_BY_SLOT ? ~0U : set_of(row, by), first, last,
				  &max);
		rows++;
		wrong += !is_near(row->occupancy_mean.value, truth);
		if (!is_near(row->occupancy_mean.value, truth) && wrong < 4)
			tap_note("%s: the mean is %llu and should be %llu", what,
				 (unsigned long long)row->occupancy_mean.value,
				 (unsigned long long)truth);
	}
	tap_eq(wrong, 0, "%s: the means of %llu rows agree with the oracle", what,
	       (unsigned long long)rows);
	memwatch_summary_get_total(summary, &row);
	truth = true_mean(~0U, from, to, &max);
	tap_ok(is_near(row->occupancy_mean.value, truth),
	       "%s: the mean of the total is %llu and should be %llu", what,
	       (unsigned long long)row->occupancy_mean.value, (unsigned long long)truth);
	memwatch_summary_unref(summary);
}

static void test_random(uint64_t seed)
{
	struct prng random = { .state = seed };

	tap_note("seed %llu", (unsigned long long)seed);
	put_random(&random);
	judge_rows(MEMWATCH_BY_PROCESS, MS, 0, STEPS, "by process");
	judge_rows(MEMWATCH_BY_RMID, MS, 0, STEPS, "by RMID");
	judge_rows(MEMWATCH_BY_CGROUP, MS, 0, STEPS, "by cgroup");
	judge_rows(MEMWATCH_BY_CGROUP, 100 * MS, 0, STEPS, "by cgroup, slots of 100 ms");
	judge_rows(MEMWATCH_BY_SLOT, 10 * MS, 0, STEPS, "by slot of 10 ms");
	judge_rows(MEMWATCH_BY_PROCESS, MS, STEPS / 2, STEPS / 2 + 50000, "a range of time");
	end_test();
}

int main(void)
{
	tap_start();
	if (memwatch_ctx_new(NULL, &ctx))
		return EXIT_FAILURE;
	test_sleeper();
	test_unavailable();
	test_lost_end();
	test_loss();
	test_read_after_end();
	test_revoked();
	test_reset();
	test_late_end();
	test_end_of_sleeper();
	for (uint64_t seed = 1; seed <= 3; seed++)
		test_random(seed);
	memwatch_ctx_unref(ctx);
	return tap_done();
}
