// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The relay's real programs on the running kernel, without the module: they
 * are run with BPF_PROG_TEST_RUN, on a chosen CPU, with chosen arguments, and
 * write into real rings. Counters are software events that the test can move.
 */
#include <sched.h>

#include "rig.h"

#define OWNER(rmid, generation) ((uint64_t)(generation) << 32 | (rmid))

static struct rig rig;
static int cpu; /* everything happens here */

static uint64_t seed = 88172645463325252ULL;

static uint64_t any(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static bool run(struct bpf_program *prog, uint64_t *args, size_t count)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = count * sizeof(*args),
		    .flags = BPF_F_TEST_RUN_ON_CPU, .cpu = cpu);
	int err = bpf_prog_test_run_opts(bpf_program__fd(prog), &opts);

	if (err || opts.retval) {
		tap_note("running %s: %d, returned %u", bpf_program__name(prog), err, opts.retval);
		exit(1);
	}
	return true;
}

static void do_switch(uint64_t now, uint64_t prev, uint64_t next)
{
	uint64_t args[] = { now, prev, next, 4711 };

	run(rig.skel->progs.on_switch, args, 4);
}

static void do_tick(uint64_t now, uint64_t owner)
{
	uint64_t args[] = { now, now / 1000000 * 1000000, 1000000, 2, owner };

	run(rig.skel->progs.on_tick, args, 5);
}

/*
 * Kernel memory with contents of our choice: the value of a map that is mapped
 * here. A program of four instructions tells where the kernel has it.
 */
static struct {
	uint64_t address;
	uint8_t *bytes;
} arena;

static bool arena_open(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, mappable, .map_flags = BPF_F_MMAPABLE);
	int data = bpf_map_create(BPF_MAP_TYPE_ARRAY, "arena", 4, 4096, 1, &mappable);
	int where = bpf_map_create(BPF_MAP_TYPE_ARRAY, "where", 4, 8, 1, NULL);
	struct bpf_insn insns[] = {
		{ .code = BPF_LD | BPF_IMM | BPF_DW,
		  .dst_reg = 1,
		  .src_reg = BPF_PSEUDO_MAP_VALUE,
		  .imm = data },
		{ 0 },
		{ .code = BPF_LD | BPF_IMM | BPF_DW,
		  .dst_reg = 2,
		  .src_reg = BPF_PSEUDO_MAP_VALUE,
		  .imm = where },
		{ 0 },
		{ .code = BPF_STX | BPF_MEM | BPF_DW, .dst_reg = 2, .src_reg = 1 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	uint32_t key = 0;
	int prog;

	prog = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "where", "GPL", insns,
			     sizeof(insns) / sizeof(insns[0]), NULL);
	if (data < 0 || where < 0 || prog < 0 || bpf_prog_test_run_opts(prog, &opts) ||
	    bpf_map_lookup_elem(where, &key, &arena.address))
		return false;
	arena.bytes = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, data, 0);
	return arena.bytes != MAP_FAILED && arena.address;
}

static void do_record(struct bpf_program *prog, const void *rec, size_t bytes)
{
	memset(arena.bytes, 0xa5, 256);
	memcpy(arena.bytes, rec, bytes);
	run(prog, &arena.address, 1);
}

static void do_cpu_state(uint64_t now, uint32_t state, uint64_t since)
{
	struct memwatch_record_cpu rec = {
		.h = { .time_ns = now,
		       .type = MEMWATCH_RECORD_CPU_STATE,
		       .size = sizeof(rec),
		       .cpu = cpu },
		.state = state,
		.since_ns = since,
	};

	do_record(rig.skel->progs.on_cpu_state, &rec, sizeof(rec));
}

static bool begin(enum mw_relay_mode mode, uint32_t counters, uint32_t nr_rmids, size_t pages)
{
	int err = rig_open(&rig, mode, counters, nr_rmids, pages);

	if (err)
		tap_ok(false, "load the relay and open its rings: %s", strerror(-err));
	return !err;
}

static bool is_tick(const union rig_record *rec, uint64_t now)
{
	return rec->h.type == MEMWATCH_RECORD_TICK && rec->h.size == sizeof(rec->tick) &&
	       rec->h.time_ns == now && rec->h.cpu == cpu && !rec->h.flags;
}

static bool is_sample(const union rig_record *rec, uint64_t begin_ns, uint64_t end_ns,
		      uint64_t owner, uint64_t run_ns)
{
	return rec->h.type == MEMWATCH_RECORD_SAMPLE && rec->h.size == sizeof(rec->sample) &&
	       rec->h.time_ns == end_ns && rec->h.cpu == cpu && !rec->h.flags &&
	       rec->sample.rmid == (uint32_t)owner &&
	       rec->sample.generation == (uint32_t)(owner >> 32) &&
	       rec->sample.begin_ns == begin_ns && rec->sample.run_ns == run_ns;
}

static void test_slot(void)
{
	const uint64_t a = OWNER(1, 1), b = OWNER(2, 9);
	union rig_record rec[8];
	int n = 0;

	if (!begin(MW_RELAY_SLOT, 0, 512, 8))
		return;
	do_switch(500, 0, a);
	tap_ok(!rig_next(&rig, cpu, rec), "nothing is sent before the CPU is known to tick");
	do_tick(1000, a);
	tap_ok(rig_next(&rig, cpu, rec) == 1 && is_tick(rec, 1000) && rec->tick.produced == 1 &&
		       !rec->tick.dropped && rec->tick.overruns == 2 &&
		       rec->tick.period_ns == 1000000 && !rec->tick.expected_ns,
	       "the first tick comes alone");

	do_switch(1100, a, b);
	do_switch(1250, b, b); /* another thread of it */
	do_switch(1300, b, a);
	do_switch(1600, a, 0);
	do_switch(1601, 0, a);
	tap_ok(!rig_next(&rig, cpu, rec), "nothing is sent between ticks");
	do_tick(2000, a);
	while (n < 8 && rig_next(&rig, cpu, &rec[n]) == 1)
		n++;
	tap_ok(n == 4 && is_sample(&rec[0], 1000, 2000, a, 100 + 300 + 399) &&
		       is_sample(&rec[1], 1000, 2000, b, 200) &&
		       is_sample(&rec[2], 1000, 2000, 0, 1) && is_tick(&rec[3], 2000),
	       "one sample for each RMID that ran, then the tick (%d records)", n);
	tap_ok(!rec[0].sample.status[0] && !rec[0].sample.status[3] && !rec[0].sample.counter[0] &&
		       rec[0].sample.running_ppm == 1000000,
	       "counters that were not opened are unavailable");
	do_tick(3000, a);
	n = 0;
	while (n < 8 && rig_next(&rig, cpu, &rec[n]) == 1)
		n++;
	tap_ok(n == 2 && is_sample(&rec[0], 2000, 3000, a, 1000) && is_tick(&rec[1], 3000) &&
		       rec[1].tick.produced == 7,
	       "a slot without a switch belongs to who runs");
	tap_ok(!rig_failures_all(&rig), "no failure was counted");

	/* A new owner of RMID 2 in the same slot. */
	do_switch(3100, a, b);
	do_switch(3200, b, a);
	do_switch(3300, a, OWNER(2, 10));
	do_switch(3400, OWNER(2, 10), a);
	do_tick(4000, a);
	n = 0;
	while (n < 8 && rig_next(&rig, cpu, &rec[n]) == 1)
		n++;
	tap_ok(n == 5 && is_sample(&rec[0], 3000, 3300, a, 200) &&
		       is_sample(&rec[1], 3000, 3300, b, 100) &&
		       is_sample(&rec[2], 3300, 4000, OWNER(2, 10), 100) &&
		       is_sample(&rec[3], 3300, 4000, a, 600) && is_tick(&rec[4], 4000) &&
		       rig_failures(&rig, MW_RELAY_FAIL_EARLY) == 1,
	       "a new generation of an RMID is kept apart from the old one (%d records)", n);

	do_switch(3900, a, b); /* the clock stepped back */
	do_tick(4500, b);
	n = 0;
	while (n < 8 && rig_next(&rig, cpu, &rec[n]) == 1)
		n++;
	tap_ok(n == 3 && is_sample(&rec[0], 4000, 4500, a, 0) &&
		       is_sample(&rec[1], 4000, 4500, b, 500) &&
		       rig_failures(&rig, MW_RELAY_FAIL_CLOCK) == 1,
	       "a stamp of the past charges nothing and is counted");
	do_tick(4400, b);
	n = 0;
	while (n < 8 && rig_next(&rig, cpu, &rec[n]) == 1)
		n++;
	tap_ok(n == 2 && is_sample(&rec[0], 4500, 4500, b, 0) && is_tick(&rec[1], 4500),
	       "a tick of the past is stamped not before its samples");

	do_switch(4600, a, 0);
	tap_ok(rig_failures(&rig, MW_RELAY_FAIL_OWNER) == 1,
	       "an owner that changed unannounced is counted");
	do_switch(4700, 0, OWNER(600, 1));
	do_switch(4800, OWNER(600, 1), 0);
	do_tick(5000, 0);
	n = 0;
	while (n < 8 && rig_next(&rig, cpu, &rec[n]) == 1)
		n++;
	tap_ok(n == 5 && is_sample(&rec[0], 4500, 4700, a, 100) &&
		       is_sample(&rec[1], 4500, 4700, 0, 100) &&
		       is_sample(&rec[2], 4700, 4800, OWNER(600, 1), 100) &&
		       is_sample(&rec[3], 4800, 5000, 0, 200) && is_tick(&rec[4], 5000) &&
		       rig_failures(&rig, MW_RELAY_FAIL_RMID_RANGE) == 1,
	       "an RMID out of range is sent by itself, with its time (%d records)", n);
	rig_close(&rig);
}

/*
 * Random switches among more RMIDs than can be held back, with generations
 * that change, against a plain account of who ran how long.
 */
static void test_partition(enum mw_relay_mode mode)
{
	enum { RMIDS = 100, GENERATIONS = 4 };
	static uint64_t want[RMIDS][GENERATIONS], got[RMIDS][GENERATIONS];
	uint64_t now = 1000000, last, owner = 0, start = now, end = now, sum = 0, produced = 0;
	unsigned int generation[RMIDS] = { 0 }, bad = 0, switches = 0, samples = 0, ticks = 0;
	union rig_record rec;

	memset(want, 0, sizeof(want));
	memset(got, 0, sizeof(got));
	if (!begin(mode, 0, RMIDS, 64))
		return;
	do_tick(now, owner);
	last = now;
	for (int i = 0; i < 20000; i++) {
		uint64_t next;

		now += any() % 3 ? any() % 5000 : 0;
		want[(uint32_t)owner][owner >> 32] += now - last;
		last = now;
		if (any() % 80 == 0) {
			do_tick(now, owner);
			ticks++;
		} else {
			uint32_t rmid = any() % (any() % 4 ? 8 : RMIDS);

			if (rmid && any() % 50 == 0)
				generation[rmid] = (generation[rmid] + 1) % GENERATIONS;
			next = OWNER(rmid, rmid ? generation[rmid] : 0);
			do_switch(now, owner, next);
			owner = next;
			switches++;
		}
		if (i % 16 == 0 || i == 19999) {
			if (i == 19999) {
				do_tick(now, owner);
				ticks++;
			}
			while (rig_next(&rig, cpu, &rec) == 1) {
				if (rec.h.type == MEMWATCH_RECORD_TICK) {
					bad += rec.h.time_ns != end;
					produced = rec.tick.produced;
					continue;
				}
				samples++;
				got[rec.sample.rmid][rec.sample.generation] += rec.sample.run_ns;
				/* A stretch starts where the one before it ended. */
				if (rec.h.time_ns != end || mode == MW_RELAY_SWITCH) {
					bad += rec.sample.begin_ns != end;
					bad += sum != end - start;
				}
				end = rec.h.time_ns;
				sum += rec.sample.run_ns;
			}
		}
	}
	tap_ok(!bad && end == now && sum == now - start,
	       "%s: run_ns of all samples partitions the time (%llu of %llu ns, %u gaps)",
	       mode == MW_RELAY_SLOT ? "slot" : "switch", (unsigned long long)sum,
	       (unsigned long long)(now - start), bad);
	tap_ok(!memcmp(want, got, sizeof(want)), "%s: every owner got what it ran",
	       mode == MW_RELAY_SLOT ? "slot" : "switch");
	if (mode == MW_RELAY_SWITCH)
		tap_ok(samples == switches + ticks, "switch: one sample for each switch and tick");
	else
		tap_ok(samples < switches / 2 && rig_failures(&rig, MW_RELAY_FAIL_EARLY) > 10,
		       "slot: %u samples for %u switches, %llu sent early", samples, switches,
		       (unsigned long long)rig_failures(&rig, MW_RELAY_FAIL_EARLY));
	tap_ok(produced == rig.rings[cpu].received && produced == rig_cpu(&rig, cpu).produced &&
		       !rig_cpu(&rig, cpu).dropped,
	       "produced = delivered (%llu)", (unsigned long long)produced);
	rig_close(&rig);
}

static void test_states(void)
{
	const uint64_t a = OWNER(1, 1);
	union rig_record rec[8];
	int n = 0;

	if (!begin(MW_RELAY_SLOT, 0, 512, 8))
		return;
	do_cpu_state(1000, MEMWATCH_CPU_ONLINE, 0);
	do_switch(1200, 0, a);
	do_switch(1500, a, 0);
	do_cpu_state(1600, MEMWATCH_CPU_IDLE, 1000);
	while (n < 8 && rig_next(&rig, cpu, &rec[n]) == 1)
		n++;
	tap_ok(n == 4 && rec[0].h.type == MEMWATCH_RECORD_CPU_STATE && rec[0].h.time_ns == 1000 &&
		       rec[0].cpu.state == MEMWATCH_CPU_ONLINE &&
		       is_sample(&rec[1], 1000, 1600, 0, 300) &&
		       is_sample(&rec[2], 1000, 1600, a, 300) &&
		       rec[3].cpu.state == MEMWATCH_CPU_IDLE && rec[3].h.time_ns == 1600 &&
		       rec[3].cpu.since_ns == 1000,
	       "ONLINE starts, IDLE sends what was held back before itself (%d records)", n);

	do_cpu_state(90000000, MEMWATCH_CPU_BUSY, 1600);
	do_switch(90000001, 0, a);
	do_cpu_state(90000100, MEMWATCH_CPU_OFFLINE, 0);
	do_switch(90000200, a, 0);
	n = 0;
	while (n < 8 && rig_next(&rig, cpu, &rec[n]) == 1)
		n++;
	tap_ok(n == 5 && is_sample(&rec[0], 1600, 90000000, 0, 90000000 - 1600) &&
		       rec[1].cpu.state == MEMWATCH_CPU_BUSY &&
		       is_sample(&rec[2], 90000000, 90000100, 0, 1) &&
		       is_sample(&rec[3], 90000000, 90000100, a, 99) &&
		       rec[4].cpu.state == MEMWATCH_CPU_OFFLINE,
	       "idle time is RMID 0's, OFFLINE is the end (%d records)", n);

	do_cpu_state(95000000, MEMWATCH_CPU_ONLINE, 0);
	do_cpu_state(95000500, MEMWATCH_CPU_STOPPED, 0);
	do_switch(95000600, 0, a);
	do_tick(96000000, a);
	n = 0;
	while (n < 8 && rig_next(&rig, cpu, &rec[n]) == 1)
		n++;
	tap_ok(n == 4 && rec[0].cpu.state == MEMWATCH_CPU_ONLINE &&
		       is_sample(&rec[1], 95000000, 95000500, 0, 500) &&
		       rec[2].cpu.state == MEMWATCH_CPU_STOPPED && is_tick(&rec[3], 96000000),
	       "offline time is nobody's, after STOPPED only a tick or ONLINE starts again (%d)",
	       n);
	tap_ok(!rig_failures_all(&rig), "no failure was counted");
	rig_close(&rig);
}

static void test_notice(void)
{
	struct memwatch_record_notice notice = {
		.h = { 7, MEMWATCH_RECORD_NOTICE, sizeof(notice), 1, 0 },
		.kind = MEMWATCH_NOTICE_FOREIGN_WRITE,
		.count = 9,
		.value = 1ULL << 40 | 7,
	};
	union rig_record rec;

	do_record(rig.skel->progs.on_notice, &notice, sizeof(notice));
	tap_ok(rig_next(&rig, cpu, &rec) == 1 && !memcmp(&rec, &notice, sizeof(notice)),
	       "so does a notice");
}

static void test_records(void)
{
	struct memwatch_record_rmid rmid = {
		.h = { 123456789, MEMWATCH_RECORD_RMID_ALLOC, sizeof(rmid), 7, 0 },
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
	struct memwatch_record_dump dump = {
		.h = { 5, MEMWATCH_RECORD_DUMP_BEGIN, sizeof(dump), 1, 0 },
		.sequence = 3,
		.count = 4,
		.unmeasured = 5,
	};
	struct memwatch_record_rdt rdt = {
		.h = { 6, MEMWATCH_RECORD_RDT, sizeof(rdt), 1, 0 },
		.rmid = 1,
		.generation = 2,
		.domain = 3,
		.status = { 1, 2, 3 },
		.value = { 1ULL << 60, 2, 3 },
		.age_ns = 4,
	};
	struct {
		struct bpf_program *prog;
		__u16 type;
	} rmid_progs[4];
	union rig_record rec;
	uint64_t nowhere = 0;
	bool good = true;

	if (!begin(MW_RELAY_SLOT, 0, 512, 8))
		return;
	rmid_progs[0].prog = rig.skel->progs.on_rmid_alloc;
	rmid_progs[0].type = MEMWATCH_RECORD_RMID_ALLOC;
	rmid_progs[1].prog = rig.skel->progs.on_rmid_existing;
	rmid_progs[1].type = MEMWATCH_RECORD_RMID_EXISTING;
	rmid_progs[2].prog = rig.skel->progs.on_rmid_exec;
	rmid_progs[2].type = MEMWATCH_RECORD_RMID_EXEC;
	rmid_progs[3].prog = rig.skel->progs.on_rmid_free;
	rmid_progs[3].type = MEMWATCH_RECORD_RMID_FREE;
	for (int i = 0; i < 4; i++) {
		rmid.h.type = rmid_progs[i].type;
		do_record(rmid_progs[i].prog, &rmid, sizeof(rmid));
		good &= rig_next(&rig, cpu, &rec) == 1 && !memcmp(&rec, &rmid, sizeof(rmid));
	}
	tap_ok(good, "the four records of an RMID arrive as they are");
	do_record(rig.skel->progs.on_dump_begin, &dump, sizeof(dump));
	good = rig_next(&rig, cpu, &rec) == 1 && !memcmp(&rec, &dump, sizeof(dump));
	dump.h.type = MEMWATCH_RECORD_DUMP_END;
	do_record(rig.skel->progs.on_dump_end, &dump, sizeof(dump));
	good &= rig_next(&rig, cpu, &rec) == 1 && !memcmp(&rec, &dump, sizeof(dump));
	tap_ok(good, "so do the markers of a dump");
	do_record(rig.skel->progs.on_rdt_sample, &rdt, sizeof(rdt));
	tap_ok(rig_next(&rig, cpu, &rec) == 1 && !memcmp(&rec, &rdt, sizeof(rdt)),
	       "so does an RDT sample");
	test_notice();

	rmid.h.type = MEMWATCH_RECORD_RMID_ALLOC;
	rmid.h.size = sizeof(rmid) + 40;
	do_record(rig.skel->progs.on_rmid_alloc, &rmid, sizeof(rmid));
	rmid.h.size = sizeof(rmid);
	tap_ok(rig_next(&rig, cpu, &rec) == 1 && !memcmp(&rec, &rmid, sizeof(rmid)),
	       "a longer record of a newer module is cut");
	rdt.h.size = sizeof(rdt) - 8;
	do_record(rig.skel->progs.on_rdt_sample, &rdt, sizeof(rdt));
	rdt.h.size = sizeof(rdt);
	rdt.age_ns = 0;
	tap_ok(rig_next(&rig, cpu, &rec) == 1 && !memcmp(&rec, &rdt, sizeof(rdt)),
	       "a shorter one of an older module ends in zeros");
	tap_ok(!rig_failures_all(&rig), "no failure was counted");

	rmid.h.type = MEMWATCH_RECORD_RMID_FREE;
	do_record(rig.skel->progs.on_rmid_alloc, &rmid, sizeof(rmid));
	rmid.h.type = MEMWATCH_RECORD_RMID_ALLOC;
	rmid.h.size = 8;
	do_record(rig.skel->progs.on_rmid_alloc, &rmid, sizeof(rmid));
	tap_ok(!rig_next(&rig, cpu, &rec) && rig_failures(&rig, MW_RELAY_FAIL_RECORD_INVALID) == 2,
	       "what is not the record it should be is counted, not sent");
	run(rig.skel->progs.on_rmid_alloc, &nowhere, 1);
	tap_ok(!rig_next(&rig, cpu, &rec) && rig_failures(&rig, MW_RELAY_FAIL_RECORD_READ) == 1,
	       "so is what cannot be read");
	rig_close(&rig);
}

static void test_loss(void)
{
	struct mw_relay_cpu state;
	uint64_t now = 1000, received = 0, told = 0;
	union rig_record rec;

	if (!begin(MW_RELAY_SWITCH, 0, 512, 1))
		return;
	do_tick(now, 0);
	for (int i = 0; i < 1000; i++)
		do_switch(now += 10, i & 1 ? OWNER(1, 1) : 0, i & 1 ? 0 : OWNER(1, 1));
	state = rig_cpu(&rig, cpu);
	tap_ok(state.produced == 1001 && state.dropped > 900 &&
		       rig_failures(&rig, MW_RELAY_FAIL_OUTPUT_FULL) == state.dropped,
	       "a full ring drops and counts (%llu of %llu)", state.dropped, state.produced);
	while (rig_next(&rig, cpu, &rec) == 1)
		received++;
	tap_ok(received + state.dropped == state.produced && received > 30,
	       "produced = delivered + dropped (%llu + %llu)", (unsigned long long)received,
	       state.dropped);
	tap_ok(!rig.rings[cpu].lost, "the kernel tells a loss only before the next record");
	do_tick(now += 10, 0);
	while (rig_next(&rig, cpu, &rec) == 1) {
		received++;
		if (rec.h.type == MEMWATCH_RECORD_TICK)
			told = rec.tick.dropped;
	}
	tap_ok(rig.rings[cpu].lost == state.dropped && told == state.dropped,
	       "then the kernel, the tick and the relay count the same (%llu)",
	       (unsigned long long)rig.rings[cpu].lost);

	rig_ring_close(&rig, cpu);
	do_tick(now += 10, 0);
	tap_ok(rig_cpu(&rig, cpu).dropped == state.dropped + 2 &&
		       rig_failures(&rig, MW_RELAY_FAIL_OUTPUT_NO_RING) == 2,
	       "records of a CPU without a ring are dropped and counted");
	tap_ok(!rig_ring_open(&rig, cpu, 1), "a ring can be put in later");
	do_tick(now += 10, 0);
	tap_ok(rig_next(&rig, cpu, &rec) == 1 && rig_next(&rig, cpu, &rec) == 1 &&
		       rec.h.type == MEMWATCH_RECORD_TICK && rec.tick.dropped == state.dropped + 2,
	       "and the next tick tells what was lost without one");
	rig_close(&rig);
}

/*
 * Slots of many samples into a ring of one page that is read now and then: some
 * arrive whole, some in part, some not. To the kernel a call is one loss.
 */
static void test_loss_of_parcels(void)
{
	uint64_t now = 1000, received = 0, told, ticks = 0, wrong = 0;
	struct mw_relay_cpu state;
	union rig_record rec;

	if (!begin(MW_RELAY_SLOT, 0, 512, 1))
		return;
	do_tick(now, 0);
	for (int slot = 0; slot < 300; slot++) {
		int owners = slot % (MW_RELAY_TOUCHED_MAX + 3);

		for (int i = 0; i <= owners; i++)
			do_switch(now += 10, i ? OWNER(i, 1) : 0, i < owners ? OWNER(i + 1, 1) : 0);
		do_tick(now += 10, 0);
		for (int i = 0; slot % 3 && i < 25 && rig_next(&rig, cpu, &rec) == 1; i++) {
			received++;
			if (rec.h.type != MEMWATCH_RECORD_TICK)
				continue;
			/* what was lost before it is in the tick, that of its own slot too */
			wrong += rec.tick.produced != received + rec.tick.dropped;
			ticks++;
		}
	}
	while (rig_next(&rig, cpu, &rec) == 1)
		received++;
	/* the kernel tells of the last loss with the record that follows it */
	do_tick(now += 10, 0);
	while (rig_next(&rig, cpu, &rec) == 1)
		received++;
	state = rig_cpu(&rig, cpu);
	told = rig.rings[cpu].lost;
	tap_ok(state.produced == received + state.dropped && told == state.dropped && !wrong,
	       "parcels in part: produced %llu = delivered %llu + dropped %llu, the kernel told "
	       "%llu",
	       (unsigned long long)state.produced, (unsigned long long)received,
	       (unsigned long long)state.dropped, (unsigned long long)told);
	tap_ok(state.dropped > 100 && ticks > 20 && received > 500,
	       "and there were both, with %llu ticks between", (unsigned long long)ticks);
	rig_close(&rig);
}

static int counter_fd;

static int counter_open(struct bpf_map *map, uint64_t config)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .config = config };
	int fd = rig_perf_event(&attr, cpu);

	if (fd >= 0 && bpf_map_update_elem(bpf_map__fd(map), &cpu, &fd, BPF_ANY)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Others on this CPU have page faults too: an upper limit of what can be charged. */
static uint64_t counter_now(void)
{
	uint64_t value = 0;

	return read(counter_fd, &value, sizeof(value)) == sizeof(value) ? value : 0;
}

static void touch(unsigned int pages)
{
	size_t page = sysconf(_SC_PAGESIZE);
	volatile char *p = mmap(NULL, pages * page, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise((void *)p, pages * page, MADV_NOHUGEPAGE);
	for (unsigned int i = 0; i < pages; i++)
		p[i * page] = 1;
	munmap((void *)p, pages * page);
}

/* The samples of two owners in the ring; the rest is skipped. */
static bool find_samples(uint64_t a, struct memwatch_record_sample *of_a, uint64_t b,
			 struct memwatch_record_sample *of_b)
{
	union rig_record rec;
	bool found = false;

	while (rig_next(&rig, cpu, &rec) == 1) {
		uint64_t owner = OWNER(rec.sample.rmid, rec.sample.generation);

		if (rec.h.type != MEMWATCH_RECORD_SAMPLE)
			continue;
		if (owner == b)
			*of_b = rec.sample;
		if (owner == a)
			*of_a = rec.sample;
		found |= owner == a;
	}
	return found;
}

static bool find_sample(uint64_t owner, struct memwatch_record_sample *sample)
{
	struct memwatch_record_sample other;

	return find_samples(owner, sample, ~0ULL, &other);
}

static void test_counters(void)
{
	const uint64_t a = OWNER(1, 1), b = OWNER(2, 1);
	struct memwatch_record_sample s, t;
	uint64_t now = 1000000, before;
	int instructions;

	/* Cycles: page faults. Instructions: CPU clock. References: none there. Misses: off. */
	if (!begin(MW_RELAY_SLOT, 7, 512, 8))
		return;
	counter_fd = counter_open(rig.skel->maps.cycles, PERF_COUNT_SW_PAGE_FAULTS);
	instructions = counter_open(rig.skel->maps.instructions, PERF_COUNT_SW_CPU_CLOCK);
	if (counter_fd < 0 || instructions < 0) {
		tap_skip("counters", "software events of a CPU are not permitted");
		rig_close(&rig);
		return;
	}
	touch(1000);
	before = counter_now();
	do_tick(now, a);
	touch(300);
	do_switch(now += 1000, a, b);
	touch(5000);
	do_switch(now += 1000, b, a);
	touch(400);
	do_tick(now += 1000, a);
	before = counter_now() - before;
	memset(&s, 0, sizeof(s));
	find_samples(a, &s, b, &t);
	tap_ok(s.counter[0] >= 700 && t.counter[0] >= 5000 &&
		       s.counter[0] + t.counter[0] <= before && s.status[0] == MEMWATCH_STATUS_OK,
	       "what a counter gained goes to who ran (%llu and %llu of %llu page faults)",
	       s.counter[0], t.counter[0], (unsigned long long)before);
	before = counter_now();
	do_switch(now += 1000, a, b);
	touch(2000);
	do_tick(now += 1000, b);
	before = counter_now() - before;
	memset(&t, 0, sizeof(t));
	find_sample(b, &t);
	tap_ok(t.counter[0] >= 2000 && t.counter[0] <= before,
	       "and starts again with the slot (%llu of %llu)", t.counter[0],
	       (unsigned long long)before);
	tap_ok(s.counter[1] > 0 && s.status[1] == MEMWATCH_STATUS_OK && s.running_ppm == 1000000,
	       "a second counter is independent of it");
	tap_ok(s.status[2] == MEMWATCH_STATUS_UNAVAILABLE && !s.counter[2] &&
		       rig_failures(&rig, MW_RELAY_FAIL_READ_LLC_REFS) >= 5,
	       "a counter without an event is unavailable and each try is counted");
	tap_ok(s.status[3] == MEMWATCH_STATUS_UNAVAILABLE &&
		       !rig_failures(&rig, MW_RELAY_FAIL_READ_LLC_MISSES),
	       "one known to be missing is not tried");

	ioctl(counter_fd, PERF_EVENT_IOC_RESET, 0);
	do_tick(now += 1000, b);
	tap_ok(find_sample(b, &s) && s.status[0] == MEMWATCH_STATUS_ERROR && !s.counter[0] &&
		       rig_failures(&rig, MW_RELAY_FAIL_COUNTER_BACK) == 1,
	       "a counter that went backwards is an error, not 2^64");
	touch(100);
	do_tick(now += 1000, b);
	tap_ok(find_sample(b, &s) && s.status[0] == MEMWATCH_STATUS_OK && s.counter[0] >= 100 &&
		       s.counter[0] <= counter_now(),
	       "and counts on from there");

	bpf_map_delete_elem(bpf_map__fd(rig.skel->maps.cycles), &cpu);
	do_tick(now += 1000, b);
	tap_ok(find_sample(b, &s) && s.status[0] == MEMWATCH_STATUS_UNAVAILABLE,
	       "an event that was taken away is unavailable");
	touch(700);
	bpf_map_update_elem(bpf_map__fd(rig.skel->maps.cycles), &cpu, &counter_fd, BPF_ANY);
	before = counter_now();
	do_tick(now += 1000, b);
	tap_ok(find_sample(b, &s) && s.status[0] == MEMWATCH_STATUS_FIRST && !s.counter[0],
	       "one that came back has a first reading, which is no increment");
	touch(50);
	do_tick(now += 1000, b);
	before = counter_now() - before;
	tap_ok(find_sample(b, &s) && s.status[0] == MEMWATCH_STATUS_OK && s.counter[0] >= 50 &&
		       s.counter[0] <= before,
	       "and then increments");

	ioctl(counter_fd, PERF_EVENT_IOC_DISABLE, 0);
	do_tick(now += 1000, b);
	touch(50);
	do_tick(now += 1000000, b);
	tap_ok(find_sample(b, &s) && s.status[0] == MEMWATCH_STATUS_UNAVAILABLE,
	       "an event that is off is unavailable");
	close(counter_fd);
	close(instructions);
	rig_close(&rig);
}

/* Time in the program alone, by the kernel's own statistics. */
static void cost(const char *what, struct bpf_program *prog, uint64_t (*args)[5], size_t count,
		 unsigned int runs)
{
	struct bpf_prog_info before = { 0 }, after = { 0 };
	uint32_t size = sizeof(before);
	union rig_record rec;

	bpf_obj_get_info_by_fd(bpf_program__fd(prog), &before, &size);
	for (unsigned int i = 0; i < runs; i++) {
		uint64_t copy[5];

		memcpy(copy, args[i & 1], sizeof(copy));
		copy[0] += i * 1000;
		run(prog, copy, count);
		if (i % 64 == 0)
			while (rig_next(&rig, cpu, &rec) == 1)
				;
	}
	size = sizeof(after);
	bpf_obj_get_info_by_fd(bpf_program__fd(prog), &after, &size);
	if (after.run_cnt > before.run_cnt)
		tap_note("cost %s: %llu ns", what,
			 (unsigned long long)((after.run_time_ns - before.run_time_ns) /
					      (after.run_cnt - before.run_cnt)));
}

static void test_cost(void)
{
	int stats = bpf_enable_stats(BPF_STATS_RUN_TIME), fds[4] = { 0 };
	uint64_t change[2][5] = { { 2000000, 0, OWNER(1, 1) }, { 2000000, OWNER(1, 1), 0 } };
	uint64_t same[2][5] = { { 2000000, 0, 0 }, { 2000000, 0, 0 } };
	uint64_t tick[2][5] = { { 2000000, 0, 1000000, 0, 0 }, { 2000000, 0, 1000000, 0, 0 } };

	if (stats < 0) {
		tap_note("no cost: run time statistics are not permitted");
		return;
	}
	for (int counters = 0; counters < 2; counters++) {
		for (int mode = 0; mode < 2; mode++) {
			char what[64];

			if (!begin(mode, counters ? 0xf : 0, 512, 64))
				return;
			if (counters) {
				fds[0] = counter_open(rig.skel->maps.cycles,
						      PERF_COUNT_SW_CPU_CLOCK);
				fds[1] = counter_open(rig.skel->maps.instructions,
						      PERF_COUNT_SW_CPU_CLOCK);
				fds[2] = counter_open(rig.skel->maps.llc_references,
						      PERF_COUNT_SW_PAGE_FAULTS);
				fds[3] = counter_open(rig.skel->maps.llc_misses,
						      PERF_COUNT_SW_PAGE_FAULTS);
			}
			do_tick(1000000, 0);
			snprintf(what, sizeof(what),
				 "%s mode, %s counters: ", mode ? "switch" : "slot",
				 counters ? "4 software" : "no");
			tap_note("%s", what);
			cost("switch, same owner", rig.skel->progs.on_switch, same, 4, 20000);
			cost("switch, other owner", rig.skel->progs.on_switch, change, 4, 20000);
			cost("tick, one owner", rig.skel->progs.on_tick, tick, 5, 20000);
			for (int i = 0; counters && i < 4; i++)
				close(fds[i]);
			rig_close(&rig);
		}
	}
	close(stats);
}

int main(void)
{
	cpu_set_t set;

	tap_start();
	if (geteuid())
		tap_skip_all("needs root");
	cpu = sched_getcpu();
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);

	if (!tap_ok(!rig_verifier_stats(), "the verifier accepts every program"))
		return tap_done();
	if (!tap_ok(arena_open(), "memory of the kernel to put records into"))
		return tap_done();
	test_slot();
	test_partition(MW_RELAY_SLOT);
	test_partition(MW_RELAY_SWITCH);
	test_states();
	test_records();
	test_loss();
	test_loss_of_parcels();
	test_counters();
	test_cost();
	return tap_done();
}
