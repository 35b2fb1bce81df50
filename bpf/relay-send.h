/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Batches of records, from a CPU to its ring, and batches that wait until it has one. Included
 * by the programs.
 */
#ifndef _MW_RELAY_SEND_H
#define _MW_RELAY_SEND_H

#include "relay-cpu.h"

/* The rings, indexed by CPU; libbpf sets the size to the number of CPUs. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
} records SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MW_RELAY_HELD_MAX);
	__type(key, __u32);
	__type(value, struct mw_relay_held);
} held SEC(".maps");

/* Counts calls that found no ring: when it changes, the library opens one. */
__u64 missing_rings;

/*
 * Turns an argument into an index that the verifier can track: it does not apply the bounds
 * of one copy of a value to another copy, so the compiler must not make a second one.
 */
static __always_inline __u64 to_index(__u32 argument)
{
	__u64 index = argument;

	barrier_var(index);
	return index;
}

#define SPLIT 1

static __always_inline int is_ring_missing(long err)
{
	return err == -ENOENT || err == -EOPNOTSUPP;
}

static __always_inline void count_dropped(struct mw_relay_cpu *cpu, long err)
{
	__sync_fetch_and_add(&cpu->dropped, 1);
	if (err == -ENOSPC)
		count_failure(MW_RELAY_FAIL_OUTPUT_FULL);
	else if (is_ring_missing(err))
		count_failure(MW_RELAY_FAIL_OUTPUT_NO_RING);
	else
		count_failure(MW_RELAY_FAIL_OUTPUT);
}

/* Sends the batch that waits as number @number. Returns whether there is no ring for it. */
__noinline int send_held_batch(struct bpf_raw_tracepoint_args *ctx, __u32 number)
{
	struct mw_relay_held *batch = bpf_map_lookup_elem(&held, &number);
	struct mw_relay_cpu *cpu = this_cpu();
	__u64 size;
	long err;

	if (!cpu || !batch)
		return 0;
	size = batch->size;
	if (size > MW_RELAY_HELD_BYTES)
		return 0;
	err = bpf_perf_event_output(ctx, &records, BPF_F_CURRENT_CPU, &batch->records,
				    sizeof(batch->records) + size);
	if (is_ring_missing(err))
		return 1;
	if (err) {
		count_dropped(cpu, err);
		__sync_fetch_and_add(&cpu->dropped, batch->records - 1);
	}
	return 0;
}

/*
 * Sends the batches that wait for a ring, if there is one: those of a CPU that has come online, its
 * state record first. As long as some wait, send_batch() lets others wait behind them.
 */
__noinline int send_held(struct bpf_raw_tracepoint_args *ctx)
{
	struct mw_relay_cpu *cpu = this_cpu();
	__u32 i;

	if (!cpu)
		return 0;
	for (i = 0; i < MW_RELAY_HELD_MAX; i++) {
		if (i >= cpu->held)
			break;
		/* A ring is there from the first batch on, or for none of them. */
		if (send_held_batch(ctx, i))
			return 0;
	}
	cpu->held = 0;
	cpu->held_records = 0;
	return 0;
}

/* Keeps a batch until the CPU has a ring. Returns 0, or -1 if there is no room. */
static __always_inline int hold_batch(struct mw_relay_cpu *cpu, const __u32 *number, __u64 size)
{
	__u32 place = cpu->held;
	struct mw_relay_held *batch = bpf_map_lookup_elem(&held, &place);

	/* The verifier of 6.1 does not track a number on the stack. */
	barrier_var(size);
	if (!batch || size > MW_RELAY_HELD_BYTES ||
	    bpf_probe_read_kernel(batch->bytes, size, number + 1))
		return -1;
	batch->records = *number;
	batch->size = size;
	cpu->held = place + 1;
	cpu->held_records += *number;
	count_failure(MW_RELAY_FAIL_HELD);
	return 0;
}

/*
 * Sends a batch, after send_held(). @number points to the number of records, @size bytes of records
 * follow it. Returns 0; or an error if its records were dropped, of which the first one was
 * counted; or SPLIT if they cannot wait for a ring together, and each has to be sent on its own.
 */
static __always_inline long send_batch(void *ctx, struct mw_relay_cpu *cpu, __u32 *number,
				       __u64 size)
{
	long err = -ENOENT;

	if (!cpu->held)
		err = bpf_perf_event_output(ctx, &records, BPF_F_CURRENT_CPU, number,
					    sizeof(*number) + size);
	if (!err)
		return 0;
	if (is_ring_missing(err)) {
		__sync_fetch_and_add(&missing_rings, 1);
		if (size > MW_RELAY_HELD_BYTES)
			return SPLIT;
		if (!hold_batch(cpu, number, size))
			return 0;
	}
	count_dropped(cpu, err);
	return err;
}

/* A batch of one record of the module, laid out as struct mw_relay_batch. */
struct single_batch {
	__u32 unsent;
	__u32 records;
	union {
		struct memwatch_record_header h;
		struct memwatch_record_rmid rmid;
		struct memwatch_record_dump dump;
		struct memwatch_record_cpu state;
		struct memwatch_record_rdt rdt;
		struct memwatch_record_notice notice;
	};
};

/* Returns 0, or an error if it was dropped. */
static __always_inline long send_single(void *ctx, struct mw_relay_cpu *cpu,
					struct single_batch *batch, __u64 size)
{
	batch->unsent = 0;
	batch->records = 1;
	__sync_fetch_and_add(&cpu->produced, 1);
	if (cpu->held)
		send_held(ctx);
	return send_batch(ctx, cpu, &batch->records, size);
}

/*
 * The same from a program that others may interrupt. It must not touch what waits for a ring: if
 * there is none, the record is dropped.
 */
static __always_inline long send_interruptible(void *ctx, struct mw_relay_cpu *cpu,
					       struct single_batch *batch, __u64 size)
{
	long err;

	batch->unsent = 0;
	batch->records = 1;
	__sync_fetch_and_add(&cpu->produced, 1);
	err = bpf_perf_event_output(ctx, &records, BPF_F_CURRENT_CPU, &batch->records,
				    sizeof(batch->records) + size);
	if (err)
		count_dropped(cpu, err);
	return err;
}

/* Sends the RDT record that waits for a tick, if there is one. */
static __noinline int send_waiting(void *ctx, struct mw_relay_cpu *cpu)
{
	struct single_batch one = { .rdt = {} };

	if (!cpu->rdt_waits)
		return 0;
	cpu->rdt_waits = 0;
	one.rdt = cpu->rdt;
	send_single(ctx, cpu, &one, sizeof(one.rdt));
	return 0;
}

#endif /* _MW_RELAY_SEND_H */
