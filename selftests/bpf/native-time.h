/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Tests of how the relay charges time: slots, owners, the clock, and states of a CPU.
 * Included by test_relay_native.c.
 */
#ifndef _MW_SELFTESTS_BPF_NATIVE_TIME_H
#define _MW_SELFTESTS_BPF_NATIVE_TIME_H

#include "native-rig.h"
#include "../prng.h"

static void test_slot(void)
{
	const uint64_t a = OWNER(1, 1), b = OWNER(2, 9);

	run_switch(500, 0, a);
	tap_ok(is_ring_empty(), "nothing is sent before the CPU is known to tick");
	run_tick(1000, a);
	check_records("the first tick is sent without samples", TICK(1000));
	tap_eq(got[0].tick.produced, 1, "the first tick is the first record");
	tap_eq(got[0].tick.dropped, 0, "the first tick says that nothing was dropped");
	tap_eq(got[0].tick.overruns, 2, "a tick contains the overruns");
	tap_eq(got[0].tick.period_ns, 1000000, "a tick contains the period");
	tap_eq(got[0].tick.expected_ns, 0, "a tick contains the expected time");

	run_switch(1100, a, b);
	run_switch(1250, b, b); /* between two threads of one process */
	run_switch(1300, b, a);
	run_switch(1600, a, 0);
	run_switch(1601, 0, a);
	tap_ok(is_ring_empty(), "nothing is sent between ticks");
	run_tick(2000, a);
	check_records("a tick follows one sample for each RMID that ran",
		      SAMPLE(1000, 2000, a, 100 + 300 + 399), SAMPLE(1000, 2000, b, 200),
		      SAMPLE(1000, 2000, 0, 1), TICK(2000));
	tap_eq(got[0].sample.status[0], MEMWATCH_STATUS_UNAVAILABLE,
	       "the first counter, which was not opened, is unavailable");
	tap_eq(got[0].sample.status[3], MEMWATCH_STATUS_UNAVAILABLE,
	       "the last counter, which was not opened, is unavailable");
	tap_eq(got[0].sample.counter[0], 0, "an unavailable counter has the value 0");
	tap_eq(got[0].sample.running_ppm, 1000000, "an unavailable counter is not multiplexed");

	run_tick(3000, a);
	check_records("a slot without a switch is charged to the current owner",
		      SAMPLE(2000, 3000, a, 1000), TICK(3000));
	tap_eq(got[1].tick.produced, 7, "a tick counts itself and everything before it");
	tap_eq(rig_failures_all(&rig), 0, "no failure is counted in regular slots");
}

/* Continues after test_slot(). */
static void test_irregular_slot(void)
{
	const uint64_t a = OWNER(1, 1), b = OWNER(2, 9);

	run_switch(3100, a, b);
	run_switch(3200, b, a);
	run_switch(3300, a, OWNER(2, 10));
	run_switch(3400, OWNER(2, 10), a);
	run_tick(4000, a);
	check_records("a new generation of an RMID is not added to the old one",
		      SAMPLE(3000, 3300, a, 200), SAMPLE(3000, 3300, b, 100),
		      SAMPLE(3300, 4000, OWNER(2, 10), 100), SAMPLE(3300, 4000, a, 600),
		      TICK(4000));
	tap_eq(rig_failures(&rig, MW_RELAY_FAIL_EARLY), 1, "samples before the tick are counted");

	run_switch(3900, a, b);
	run_tick(4500, b);
	check_records("a switch with a time of the past charges no time", SAMPLE(4000, 4500, a, 0),
		      SAMPLE(4000, 4500, b, 500), TICK(4500));
	tap_eq(rig_failures(&rig, MW_RELAY_FAIL_CLOCK), 1, "a clock that stepped back is counted");
	run_tick(4400, b);
	check_records("a tick with a time of the past gets the time of its samples",
		      SAMPLE(4500, 4500, b, 0), TICK(4500));

	run_switch(4600, a, 0);
	tap_eq(rig_failures(&rig, MW_RELAY_FAIL_OWNER), 1,
	       "a change of owner without a switch is counted");
	run_switch(4700, 0, OWNER(600, 1));
	run_switch(4800, OWNER(600, 1), 0);
	run_tick(5000, 0);
	check_records("an RMID out of range is sent as a sample of its own",
		      SAMPLE(4500, 4700, a, 100), SAMPLE(4500, 4700, 0, 100),
		      SAMPLE(4700, 4800, OWNER(600, 1), 100), SAMPLE(4800, 5000, 0, 200),
		      TICK(5000));
	tap_eq(rig_failures(&rig, MW_RELAY_FAIL_RMID_RANGE), 1, "an RMID out of range is counted");
}

#define PARTITION_RMIDS	      100
#define PARTITION_GENERATIONS 4

/* What the samples say, and what really ran. */
struct account {
	enum mw_relay_mode mode;
	uint64_t want[PARTITION_RMIDS][PARTITION_GENERATIONS];
	uint64_t got[PARTITION_RMIDS][PARTITION_GENERATIONS];
	uint64_t start_ns, end_ns, sum_ns;
	uint64_t produced;
	unsigned int generation[PARTITION_RMIDS];
	unsigned int gaps, switches, samples, ticks;
};

/* Reads what was sent; an interval must begin where the one before it ended. */
static void account_read(struct account *account)
{
	union rig_record rec;

	while (rig_next(&rig, cpu, &rec) == 1) {
		if (rec.h.type == MEMWATCH_RECORD_TICK) {
			account->gaps += rec.h.time_ns != account->end_ns;
			account->produced = rec.tick.produced;
			continue;
		}
		account->samples++;
		account->got[rec.sample.rmid][rec.sample.generation] += rec.sample.run_ns;
		if (rec.h.time_ns != account->end_ns || account->mode == MW_RELAY_SWITCH) {
			account->gaps += rec.sample.begin_ns != account->end_ns;
			account->gaps += account->sum_ns != account->end_ns - account->start_ns;
		}
		account->end_ns = rec.h.time_ns;
		account->sum_ns += rec.sample.run_ns;
	}
}

/* 20000 random switches and ticks; returns the time of the last tick. */
static uint64_t account_play(struct account *account)
{
	uint64_t now = account->start_ns, last = now, owner = 0, next;
	struct prng prng = { 1 };

	run_tick(now, owner);
	for (int i = 0; i < 20000; i++) {
		now += prng_below(&prng, 3) ? prng_below(&prng, 5000) : 0;
		account->want[(uint32_t)owner][owner >> 32] += now - last;
		last = now;
		if (!prng_below(&prng, 80)) {
			run_tick(now, owner);
			account->ticks++;
		} else {
			uint32_t rmid = prng_below(&prng,
						   prng_below(&prng, 4) ? 8 : PARTITION_RMIDS);

			if (rmid && !prng_below(&prng, 50))
				account->generation[rmid] = (account->generation[rmid] + 1) %
							    PARTITION_GENERATIONS;
			next = OWNER(rmid, rmid ? account->generation[rmid] : 0);
			run_switch(now, owner, next);
			owner = next;
			account->switches++;
		}
		if (i % 16 == 0)
			account_read(account);
	}
	run_tick(now, owner);
	account->ticks++;
	account_read(account);
	return now;
}

/*
 * Random switches among more RMIDs than a CPU can accumulate, with changing generations,
 * compared with the time that each owner really ran.
 */
static void test_partition(enum mw_relay_mode mode)
{
	const char *name = mode == MW_RELAY_SLOT ? "slot" : "switch";
	static struct account account;
	uint64_t now, early;

	account = (struct account){ .mode = mode, .start_ns = 1000000, .end_ns = 1000000 };
	if (!open_rig(mode, 0, PARTITION_RMIDS, 64))
		return;
	now = account_play(&account);
	early = rig_failures(&rig, MW_RELAY_FAIL_EARLY);
	tap_eq(account.gaps, 0, "mode %s: the intervals have no gaps and no overlaps", name);
	tap_eq(account.end_ns, now, "mode %s: the samples reach up to the last tick", name);
	tap_eq(account.sum_ns, now - account.start_ns,
	       "mode %s: the run_ns of all samples add up to the time", name);
	tap_ok(!memcmp(account.want, account.got, sizeof(account.want)),
	       "mode %s: each owner is charged the time that it ran", name);
	if (mode == MW_RELAY_SWITCH) {
		tap_eq(account.samples, account.switches + account.ticks,
		       "mode switch: there is one sample for each switch and tick");
	} else {
		tap_ok(account.samples < account.switches / 2,
		       "mode slot: there are fewer samples (%u) than switches (%u)",
		       account.samples, account.switches);
		tap_ok(early > 10, "mode slot: samples are sent before the tick (%llu times)",
		       (unsigned long long)early);
	}
	tap_eq(account.produced, rig.rings[cpu].received,
	       "mode %s: the last tick counts the records in the ring", name);
	tap_eq(account.produced, rig_cpu(&rig, cpu).produced,
	       "mode %s: the last tick counts what the state counts", name);
	tap_eq(rig_cpu(&rig, cpu).dropped, 0, "mode %s: nothing is dropped", name);
	rig_close(&rig);
}

static void test_states(void)
{
	const uint64_t a = OWNER(1, 1);

	if (!open_rig(MW_RELAY_SLOT, 0, 512, 8))
		return;
	run_cpu_state(1000, MEMWATCH_CPU_ONLINE, 0);
	run_switch(1200, 0, a);
	run_switch(1500, a, 0);
	run_cpu_state(1600, MEMWATCH_CPU_IDLE, 1000);
	check_records("IDLE follows the samples since ONLINE", STATE(1000, MEMWATCH_CPU_ONLINE),
		      SAMPLE(1000, 1600, 0, 300), SAMPLE(1000, 1600, a, 300),
		      STATE(1600, MEMWATCH_CPU_IDLE));
	tap_eq(got[3].cpu.since_ns, 1000, "a CPU state keeps the time of the state before");

	run_cpu_state(90000000, MEMWATCH_CPU_BUSY, 1600);
	run_switch(90000001, 0, a);
	run_cpu_state(90000100, MEMWATCH_CPU_OFFLINE, 0);
	run_switch(90000200, a, 0);
	check_records("idle time is charged to RMID 0, and OFFLINE ends charging",
		      SAMPLE(1600, 90000000, 0, 90000000 - 1600),
		      STATE(90000000, MEMWATCH_CPU_BUSY), SAMPLE(90000000, 90000100, 0, 1),
		      SAMPLE(90000000, 90000100, a, 99), STATE(90000100, MEMWATCH_CPU_OFFLINE));

	run_cpu_state(95000000, MEMWATCH_CPU_ONLINE, 0);
	run_cpu_state(95000500, MEMWATCH_CPU_STOPPED, 0);
	run_switch(95000600, 0, a);
	run_tick(96000000, a);
	check_records("offline time is not charged, and after STOPPED a tick starts charging",
		      STATE(95000000, MEMWATCH_CPU_ONLINE), SAMPLE(95000000, 95000500, 0, 500),
		      STATE(95000500, MEMWATCH_CPU_STOPPED), TICK(96000000));
	tap_eq(rig_failures_all(&rig), 0, "no failure is counted when the state changes");
	rig_close(&rig);
}

static void test_time(void)
{
	if (open_rig(MW_RELAY_SLOT, 0, 512, 8)) {
		test_slot();
		test_irregular_slot();
		rig_close(&rig);
	}
	test_partition(MW_RELAY_SLOT);
	test_partition(MW_RELAY_SWITCH);
	test_states();
}

#endif /* _MW_SELFTESTS_BPF_NATIVE_TIME_H */
