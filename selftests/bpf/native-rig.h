/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Runs the programs of the relay with BPF_PROG_TEST_RUN, on one CPU and with arguments of the
 * test's choice, and compares the records that they send with the expected ones.
 */
#ifndef _MW_SELFTESTS_BPF_NATIVE_RIG_H
#define _MW_SELFTESTS_BPF_NATIVE_RIG_H

#include <stdio.h>
#include <stdlib.h>

#include "rig.h"

#define OWNER(rmid, generation) ((uint64_t)(generation) << 32 | (rmid))
#define RECORDS_MAX		8

static struct rig rig;
static int cpu; /* the CPU of all programs and rings that are tested */

static bool run_program(struct bpf_program *prog, uint64_t *args, size_t count)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = count * sizeof(*args),
		    .flags = BPF_F_TEST_RUN_ON_CPU, .cpu = cpu);
	int err = bpf_prog_test_run_opts(bpf_program__fd(prog), &opts);

	if (err || opts.retval) {
		tap_note("running %s: error %d, returned %u", bpf_program__name(prog), err,
			 opts.retval);
		exit(1);
	}
	return true;
}

static void run_switch(uint64_t now, uint64_t prev, uint64_t next)
{
	uint64_t args[] = { now, prev, next, 4711 };

	run_program(rig.skel->progs.on_switch, args, 4);
}

static void run_tick(uint64_t now, uint64_t owner)
{
	uint64_t args[] = { now, now / 1000000 * 1000000, 1000000, 2, owner };

	run_program(rig.skel->progs.on_tick, args, 5);
}

/*
 * Kernel memory for the records of the module: the value of a map that is mapped into this
 * process. A small program finds out its address in the kernel.
 */
static struct {
	uint64_t address;
	uint8_t *bytes;
} arena;

static bool open_arena(void)
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

/* Runs a program that gets a record of the module. */
static void run_record(struct bpf_program *prog, const void *rec, size_t bytes)
{
	uint64_t args[] = { arena.address, 0 };

	memset(arena.bytes, 0xa5, 256);
	memcpy(arena.bytes, rec, bytes);
	run_program(prog, args, 2);
}

/* A reading of RDT counters in a tick. */
static void run_reading(uint64_t now)
{
	const struct memwatch_record_rdt rec = {
		.h = { now, MEMWATCH_RECORD_RDT, sizeof(rec), cpu, 0 },
		.value = { now },
	};
	uint64_t args[] = { arena.address, 1 };

	memcpy(arena.bytes, &rec, sizeof(rec));
	run_program(rig.skel->progs.on_rdt_sample, args, 2);
}

static void run_cpu_state(uint64_t now, uint32_t state, uint64_t since)
{
	struct memwatch_record_cpu rec = {
		.h = { .time_ns = now,
		       .type = MEMWATCH_RECORD_CPU_STATE,
		       .size = sizeof(rec),
		       .cpu = cpu },
		.state = state,
		.since_ns = since,
	};

	run_record(rig.skel->progs.on_cpu_state, &rec, sizeof(rec));
}

static bool open_rig(enum mw_relay_mode mode, uint32_t counters, uint32_t nr_rmids, size_t pages)
{
	int err = rig_open(&rig, mode, counters, nr_rmids, pages);

	if (err)
		tap_ok(false, "load the relay and open its rings: %s", strerror(-err));
	return !err;
}

/* A record that is expected; @begin_ns, @owner and @run_ns of samples, @state of CPU states. */
struct expected {
	uint16_t type;
	uint64_t begin_ns, time_ns, owner, run_ns;
	uint32_t state;
};

#define SAMPLE(begin, end, owner, run)                                                             \
	{                                                                                          \
		MEMWATCH_RECORD_SAMPLE, begin, end, owner, run, 0                                  \
	}
#define TICK(time)                                                                                 \
	{                                                                                          \
		MEMWATCH_RECORD_TICK, 0, time, 0, 0, 0                                             \
	}
#define STATE(time, state)                                                                         \
	{                                                                                          \
		MEMWATCH_RECORD_CPU_STATE, 0, time, 0, 0, state                                    \
	}

#define READING(time)                                                                              \
	{                                                                                          \
		MEMWATCH_RECORD_RDT, 0, time, 0, 0, 0                                              \
	}

static bool matches_expected(const union rig_record *rec, const struct expected *expected)
{
	if (rec->h.type != expected->type || rec->h.time_ns != expected->time_ns ||
	    rec->h.cpu != cpu || rec->h.flags)
		return false;
	switch (expected->type) {
	case MEMWATCH_RECORD_SAMPLE:
		return rec->h.size == sizeof(rec->sample) &&
		       OWNER(rec->sample.rmid, rec->sample.generation) == expected->owner &&
		       rec->sample.begin_ns == expected->begin_ns &&
		       rec->sample.run_ns == expected->run_ns;
	case MEMWATCH_RECORD_TICK:
		return rec->h.size == sizeof(rec->tick);
	default:
		return rec->cpu.state == expected->state;
	}
}

/* The records that check_records() has read. */
static union rig_record got[RECORDS_MAX];

/* Reads all records of the ring; they must be the expected ones. */
static void check_sent(const char *title, const struct expected *expected, int count)
{
	int n = 0;

	memset(got, 0, sizeof(got));
	while (n < RECORDS_MAX && rig_next(&rig, cpu, &got[n]) == 1)
		n++;
	tap_eq(n, count, "%s: number of records", title);
	for (int i = 0; i < count; i++)
		tap_ok(i < n && matches_expected(&got[i], &expected[i]),
		       "%s: record %d is as expected", title, i + 1);
}

#define check_records(title, ...)                                                                  \
	check_sent(title, (const struct expected[]){ __VA_ARGS__ },                                \
		   sizeof((const struct expected[]){ __VA_ARGS__ }) / sizeof(struct expected))

static bool is_ring_empty(void)
{
	union rig_record rec;

	return !rig_next(&rig, cpu, &rec);
}

#endif /* _MW_SELFTESTS_BPF_NATIVE_RIG_H */
