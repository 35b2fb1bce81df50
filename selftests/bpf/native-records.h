/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Tests of what the relay sends: records of the module, and what a full ring loses. Included
 * by test_relay_native.c.
 */
#ifndef _MW_SELFTESTS_BPF_NATIVE_RECORDS_H
#define _MW_SELFTESTS_BPF_NATIVE_RECORDS_H

#include "native-rig.h"

static const struct memwatch_record_rmid rmid_record = {
	.h = { 123456789, MEMWATCH_RECORD_RMID_ALLOC, sizeof(rmid_record), 7, 0 },
	.rmid = 5,
	.generation = 6,
	.tgid = 7,
	.parent_tgid = 8,
	.start_time_ns = 9,
	.alloc_time_ns = 10,
	.cgroup_id = 11,
	.uid = 12,
	.reason = MEMWATCH_REASON_FORK,
	.comm = "a name, 15 long",
};

static const struct memwatch_record_dump dump_record = {
	.h = { 5, MEMWATCH_RECORD_DUMP_BEGIN, sizeof(dump_record), 1, 0 },
	.sequence = 3,
	.count = 4,
	.unmeasured = 5,
};

static const struct memwatch_record_rdt rdt_record = {
	.h = { 6, MEMWATCH_RECORD_RDT, sizeof(rdt_record), 1, 0 },
	.rmid = 1,
	.generation = 2,
	.domain = 3,
	.status = { 1, 2, 3 },
	.value = { 1ULL << 60, 2, 3 },
	.age_ns = 4,
};

static const struct memwatch_record_notice notice_record = {
	.h = { 7, MEMWATCH_RECORD_NOTICE, sizeof(notice_record), 1, 0 },
	.kind = MEMWATCH_NOTICE_FOREIGN_WRITE,
	.count = 9,
	.value = 1ULL << 40 | 7,
};

/* The next record in the ring equals @want. */
static void check_forwarded(const void *want, size_t size, const char *title)
{
	union rig_record rec;

	tap_ok(rig_next(&rig, cpu, &rec) == 1 && !memcmp(&rec, want, size), "%s", title);
}

static void test_forwarded_records(void)
{
	const struct {
		struct bpf_program *prog;
		uint16_t type;
		const void *record;
		size_t size;
		const char *what;
	} cases[] = {
		{ rig.skel->progs.on_rmid_alloc, MEMWATCH_RECORD_RMID_ALLOC, &rmid_record,
		  sizeof(rmid_record), "the record of an allocation is forwarded unchanged" },
		{ rig.skel->progs.on_rmid_existing, MEMWATCH_RECORD_RMID_EXISTING, &rmid_record,
		  sizeof(rmid_record), "the record of an assignment is forwarded unchanged" },
		{ rig.skel->progs.on_rmid_exec, MEMWATCH_RECORD_RMID_EXEC, &rmid_record,
		  sizeof(rmid_record), "the record of an exec is forwarded unchanged" },
		{ rig.skel->progs.on_rmid_free, MEMWATCH_RECORD_RMID_FREE, &rmid_record,
		  sizeof(rmid_record), "the record of a freed RMID is forwarded unchanged" },
		{ rig.skel->progs.on_dump_begin, MEMWATCH_RECORD_DUMP_BEGIN, &dump_record,
		  sizeof(dump_record), "the begin of a dump is forwarded unchanged" },
		{ rig.skel->progs.on_dump_end, MEMWATCH_RECORD_DUMP_END, &dump_record,
		  sizeof(dump_record), "the end of a dump is forwarded unchanged" },
		{ rig.skel->progs.on_rdt_sample, MEMWATCH_RECORD_RDT, &rdt_record,
		  sizeof(rdt_record), "an RDT sample is forwarded unchanged" },
		{ rig.skel->progs.on_notice, MEMWATCH_RECORD_NOTICE, &notice_record,
		  sizeof(notice_record), "a notice is forwarded unchanged" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		union rig_record sent = { 0 };

		memcpy(&sent, cases[i].record, cases[i].size);
		sent.h.type = cases[i].type;
		run_record(cases[i].prog, &sent, cases[i].size);
		check_forwarded(&sent, cases[i].size, cases[i].what);
	}
}

static void test_record_sizes(void)
{
	struct memwatch_record_rmid rmid = rmid_record;
	struct memwatch_record_rdt rdt = rdt_record;

	rmid.h.size = sizeof(rmid) + 40;
	run_record(rig.skel->progs.on_rmid_alloc, &rmid, sizeof(rmid));
	rmid.h.size = sizeof(rmid);
	check_forwarded(&rmid, sizeof(rmid), "a longer record of a newer module is cut");
	rdt.h.size = sizeof(rdt) - 8;
	run_record(rig.skel->progs.on_rdt_sample, &rdt, sizeof(rdt));
	rdt.h.size = sizeof(rdt);
	rdt.age_ns = 0;
	check_forwarded(&rdt, sizeof(rdt), "a shorter record of an older module ends in zeros");
	tap_eq(rig_failures_all(&rig), 0, "no failure is counted for records of other sizes");
}

static void test_invalid_records(void)
{
	struct memwatch_record_rmid rmid = rmid_record;
	uint64_t nowhere = 0;

	rmid.h.type = MEMWATCH_RECORD_RMID_FREE;
	run_record(rig.skel->progs.on_rmid_alloc, &rmid, sizeof(rmid));
	tap_ok(is_ring_empty(), "a record of another type is not sent");
	rmid.h.type = MEMWATCH_RECORD_RMID_ALLOC;
	rmid.h.size = 8;
	run_record(rig.skel->progs.on_rmid_alloc, &rmid, sizeof(rmid));
	tap_ok(is_ring_empty(), "a record shorter than its header is not sent");
	tap_eq(rig_failures(&rig, MW_RELAY_FAIL_RECORD_INVALID), 2, "invalid records are counted");
	run_program(rig.skel->progs.on_rmid_alloc, &nowhere, 1);
	tap_ok(is_ring_empty(), "a record that cannot be read is not sent");
	tap_eq(rig_failures(&rig, MW_RELAY_FAIL_RECORD_READ), 1,
	       "a record that cannot be read is counted");
}

/* Readings in a tick are sent before it. */
static void test_readings(void)
{
	const uint64_t a = OWNER(1, 1);

	if (!open_rig(MW_RELAY_SLOT, 0, 512, 8))
		return;
	run_reading(900);
	check_records("a reading before the first tick is sent at once", READING(900));
	run_tick(1000, a);
	check_records("the first tick is sent after a reading", TICK(1000));
	run_reading(1990);
	tap_ok(is_ring_empty(), "a reading waits for the tick");
	run_reading(2000);
	run_tick(2000, a);
	check_records("readings precede their tick", READING(1990), SAMPLE(1000, 2000, a, 1000),
		      READING(2000), TICK(2000));
	tap_eq(got[2].rdt.value[0], 2000, "a reading that waits is sent unchanged");
	tap_eq(got[3].tick.produced, 6, "a tick counts the reading that is sent with it");
	run_tick(3000, a);
	check_records("a reading is sent once", SAMPLE(2000, 3000, a, 1000), TICK(3000));
	run_reading(3500);
	run_tick(4000, a);
	check_records("a reading that is older than its tick is sent before its samples",
		      READING(3500), SAMPLE(3000, 4000, a, 1000), TICK(4000));
	tap_eq(rig_failures_all(&rig), 0, "no failure is counted for readings");
	rig_close(&rig);
}

static void test_full_ring(void)
{
	uint64_t now = 1000, received = 0, reported = 0;
	struct mw_relay_cpu state;
	union rig_record rec;

	if (!open_rig(MW_RELAY_SWITCH, 0, 512, 1))
		return;
	run_tick(now, 0);
	for (int i = 0; i < 1000; i++)
		run_switch(now += 10, i & 1 ? OWNER(1, 1) : 0, i & 1 ? 0 : OWNER(1, 1));
	state = rig_cpu(&rig, cpu);
	tap_eq(state.produced, 1001, "each attempt to send a record is counted");
	tap_ok(state.dropped > 900, "a full ring drops records (%llu)", state.dropped);
	tap_eq(rig_failures(&rig, MW_RELAY_FAIL_OUTPUT_FULL), state.dropped,
	       "each record that a full ring drops is counted as a failure");
	while (rig_next(&rig, cpu, &rec) == 1)
		received++;
	tap_eq(received + state.dropped, state.produced, "produced = delivered + dropped");
	tap_ok(received > 30, "the ring contains what fitted (%llu)", (unsigned long long)received);
	tap_eq(rig.rings[cpu].lost, 0, "the kernel reports no loss before the next record");
	run_tick(now += 10, 0);
	while (rig_next(&rig, cpu, &rec) == 1) {
		received++;
		if (rec.h.type == MEMWATCH_RECORD_TICK)
			reported = rec.tick.dropped;
	}
	tap_eq(rig.rings[cpu].lost, state.dropped, "the kernel reports the loss with the record");
	tap_eq(reported, state.dropped, "the tick reports the same loss");

	rig_close(&rig);
}

/* Reads the ring of the CPU to its end, and checks that the times do not decrease. */
static uint64_t count_in_order(uint64_t *first_ns, uint64_t *dropped)
{
	uint64_t received = 0, last_ns = 0, wrong = 0;
	union rig_record rec;

	while (rig_next(&rig, cpu, &rec) == 1) {
		if (!received++)
			*first_ns = rec.h.time_ns;
		wrong += rec.h.time_ns < last_ns;
		last_ns = rec.h.time_ns;
		if (rec.h.type == MEMWATCH_RECORD_TICK)
			*dropped = rec.tick.dropped;
	}
	tap_eq(wrong, 0, "records that waited for a ring are sent in their order");
	return received;
}

/* A CPU that comes online has no ring for some slots. */
static void test_no_ring(void)
{
	uint64_t now = 1000, first_ns = 0, dropped = 0, received;

	if (!open_rig(MW_RELAY_SLOT, 0, 512, 8))
		return;
	rig_ring_close(&rig, cpu);
	for (int i = 0; i < MW_RELAY_HELD_MAX; i++)
		run_tick(now += 10, 0);
	tap_eq(rig_cpu(&rig, cpu).dropped, 0, "records of a CPU without a ring wait");
	tap_eq(rig_failures(&rig, MW_RELAY_FAIL_HELD), MW_RELAY_HELD_MAX,
	       "batches that wait for a ring are counted");
	tap_eq(rig_cpu(&rig, cpu).held_records, 2 * MW_RELAY_HELD_MAX - 1,
	       "records that wait for a ring are counted");
	tap_ok(!rig_ring_open(&rig, cpu, 8), "a ring can be added later");
	run_tick(now += 10, 0);
	received = count_in_order(&first_ns, &dropped);
	tap_eq(received, 2 * MW_RELAY_HELD_MAX + 1, "what has waited is sent into the added ring");
	tap_eq(first_ns, 1010, "the first record that has waited is the oldest one");
	tap_eq(rig_cpu(&rig, cpu).held_records, 0, "nothing waits any more");

	rig_ring_close(&rig, cpu);
	for (int i = 0; i < MW_RELAY_HELD_MAX + 3; i++)
		run_tick(now += 10, 0);
	tap_eq(rig_cpu(&rig, cpu).dropped, 6,
	       "what does not fit while there is no ring is dropped");
	tap_eq(rig_failures(&rig, MW_RELAY_FAIL_OUTPUT_NO_RING), 6,
	       "records of a CPU without a ring that are dropped are counted as failures");
	tap_ok(!rig_ring_open(&rig, cpu, 8), "a ring can be added again");
	run_tick(now += 10, 0);
	received += count_in_order(&first_ns, &dropped);
	tap_eq(dropped, 6, "the tick reports what was lost without a ring");
	tap_eq(received + dropped, rig_cpu(&rig, cpu).produced,
	       "without a ring for some time, produced = delivered + dropped");
	rig_close(&rig);
}

/* A slot of more samples than a batch that waits has room for. */
static void test_no_ring_for_many(void)
{
	uint64_t now = 1000, first_ns = 0, dropped = 0, received;

	if (!open_rig(MW_RELAY_SLOT, 0, 512, 8))
		return;
	run_tick(now, 0);
	received = count_in_order(&first_ns, &dropped);
	rig_ring_close(&rig, cpu);
	for (int i = 0; i <= MW_RELAY_SAMPLES_MAX; i++)
		run_switch(now += 10, i ? OWNER(i, 1) : 0,
			   i < MW_RELAY_SAMPLES_MAX ? OWNER(i + 1, 1) : 0);
	run_reading(now += 10);
	run_tick(now, 0);
	tap_eq(rig_cpu(&rig, cpu).dropped, 0, "the records of a large batch wait for a ring");
	tap_ok(!rig_ring_open(&rig, cpu, 8), "a ring can be added after a large batch");
	run_tick(now += 10, 0);
	received += count_in_order(&first_ns, &dropped);
	tap_eq(received, rig_cpu(&rig, cpu).produced, "all records of a large batch are sent");
	tap_eq(dropped, 0, "the tick reports no loss of a large batch");
	rig_close(&rig);
}

/*
 * Slots of many samples into a ring of one page that is read now and then: some batches fit,
 * some fit in parts, some do not fit. The kernel counts one loss per call.
 */
static void test_partial_batches(void)
{
	uint64_t now = 1000, received = 0, ticks = 0, wrong = 0;
	struct mw_relay_cpu state;
	union rig_record rec;

	if (!open_rig(MW_RELAY_SLOT, 0, 512, 1))
		return;
	run_tick(now, 0);
	for (int slot = 0; slot < 600; slot++) {
		int owners = slot % (MW_RELAY_SAMPLES_MAX + 3);

		for (int i = 0; i <= owners; i++)
			run_switch(now += 10, i ? OWNER(i, 1) : 0,
				   i < owners ? OWNER(i + 1, 1) : 0);
		now += 10;
		if (slot & 1)
			run_reading(now);
		run_tick(now, 0);
		for (int i = 0; slot % 3 && i < 25 && rig_next(&rig, cpu, &rec) == 1; i++) {
			received++;
			if (rec.h.type != MEMWATCH_RECORD_TICK)
				continue;
			/* a tick counts all losses before it, those of its own slot included */
			wrong += rec.tick.produced != received + rec.tick.dropped;
			ticks++;
		}
	}
	while (rig_next(&rig, cpu, &rec) == 1)
		received++;
	/* the kernel reports the last loss with the record that follows it */
	run_tick(now += 10, 0);
	while (rig_next(&rig, cpu, &rec) == 1)
		received++;
	state = rig_cpu(&rig, cpu);
	tap_eq(state.produced, received + state.dropped,
	       "produced = delivered + dropped when batches fit in parts");
	tap_eq(rig.rings[cpu].lost, state.dropped,
	       "kernel and relay count the same when batches fit in parts");
	tap_eq(wrong, 0, "each tick is right when batches fit in parts");
	tap_ok(state.dropped > 100, "many records did not fit (%llu)", state.dropped);
	tap_ok(ticks > 20, "ticks were delivered between losses (%llu)", (unsigned long long)ticks);
	tap_ok(received > 500, "many records fitted (%llu)", (unsigned long long)received);
	rig_close(&rig);
}

/* A ring of one page that nobody reads for a while: what did not fit is sent with what follows. */
static void test_carried_samples(void)
{
	const uint64_t owners[] = { OWNER(1, 1), OWNER(2, 7), 0 };
	uint64_t now = 1000, run[3] = { 0 }, begin[3] = { 1000, 1000, 1000 }, early = 0,
		 longest = 0;
	union rig_record rec;

	if (!open_rig(MW_RELAY_SLOT, 0, 512, 1))
		return;
	run_tick(now, owners[0]);
	for (int slot = 0; slot < 200; slot++) {
		for (int i = 0; i < 3; i++)
			run_switch(now += 10 + (uint64_t)i, owners[i], owners[(i + 1) % 3]);
		run_tick(now += 5, owners[0]);
	}
	tap_ok(rig_cpu(&rig, cpu).dropped > 100, "slots do not fit into a full ring");
	for (int slot = 0; slot < 2; slot++) {
		while (rig_next(&rig, cpu, &rec) == 1) {
			for (int i = 0; rec.h.type == MEMWATCH_RECORD_SAMPLE && i < 3; i++) {
				if (rec.sample.rmid != (uint32_t)owners[i])
					continue;
				run[i] += rec.sample.run_ns;
				early += rec.sample.begin_ns < begin[i];
				begin[i] = rec.h.time_ns;
				if (rec.h.time_ns - rec.sample.begin_ns > longest)
					longest = rec.h.time_ns - rec.sample.begin_ns;
			}
		}
		run_tick(now += 5, owners[0]);
	}
	tap_eq(run[0], 200 * 15 + 5, "the first process has all its time after a loss");
	tap_eq(run[1], 200 * 11, "the second process has all its time after a loss");
	tap_eq(run[2], 200 * 12, "time without a process is complete after a loss");
	tap_eq(early, 0, "the intervals of the samples of a process do not overlap");
	tap_ok(longest > 1000, "a sample after a loss says when its interval began (%llu ns)",
	       (unsigned long long)longest);
	tap_eq(rig.rings[cpu].lost, rig_cpu(&rig, cpu).dropped,
	       "kernel and relay count the same when samples are carried over a loss");
	rig_close(&rig);
}

static void test_records(void)
{
	if (open_rig(MW_RELAY_SLOT, 0, 512, 8)) {
		test_forwarded_records();
		test_record_sizes();
		test_invalid_records();
		rig_close(&rig);
	}
	test_readings();
	test_full_ring();
	test_no_ring();
	test_no_ring_for_many();
	test_partial_batches();
	test_carried_samples();
}

#endif /* _MW_SELFTESTS_BPF_NATIVE_RECORDS_H */
