// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The relay: from the tracepoints of the module to one perf event array. It reads the
 * hardware counters of the CPU that it runs on, charges their increments to the RMID that
 * ran, and forwards the records of the module. It has no policy of its own and no state
 * beyond the current slot.
 *
 * Contexts: all programs run with interrupts off, because the module sends every record so:
 * under the runqueue lock, in an hrtimer, under a raw lock, or in a hotplug callback. None of
 * them can interrupt another one, so the state of the CPU needs no lock.
 *
 * The programs are attached to raw tracepoints: these are found by name, need no BTF of the
 * module and do not copy the arguments.
 */
#include <linux/bpf.h>
#include <linux/memwatch.h>
#include <bpf/bpf_helpers.h>
#include "relay.h"
#include "relay-cpu.h"
#include "relay-counters.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Set by the library before loading; the verifier removes the code they make unreachable. */
const volatile __u32 mode = MW_RELAY_SLOT; /* enum mw_relay_mode */

/* The rings, indexed by CPU; libbpf sets the size to the number of CPUs. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
} records SEC(".maps");

/* Indexed by RMID; the library sets max_entries to the number of RMIDs plus 1. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 513);
	__type(key, __u32);
	__type(value, struct mw_relay_sum);
} sums SEC(".maps");

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

/*
 * Sends the batches that wait for a ring, as far as there is one: those of a CPU that has come
 * online, its state record first. Returns how many still wait.
 */
__noinline int send_held(struct bpf_raw_tracepoint_args *ctx)
{
	struct mw_relay_cpu *cpu = this_cpu();
	struct mw_relay_held *batch;
	__u32 i, key;
	__u64 size;
	long err;

	if (!cpu)
		return 0;
	for (i = 0; i < MW_RELAY_HELD_MAX; i++) {
		if (i >= cpu->held)
			break;
		/* The verifier of 6.1 does not track a number on the stack. */
		key = i;
		barrier_var(i);
		batch = bpf_map_lookup_elem(&held, &key);
		if (!batch)
			break;
		size = batch->size;
		if (size > MW_RELAY_HELD_BYTES)
			break;
		err = bpf_perf_event_output(ctx, &records, BPF_F_CURRENT_CPU, &batch->records,
					    sizeof(batch->records) + size);
		/* A ring is there from the first batch on, or for none of them. */
		if (is_ring_missing(err))
			return cpu->held;
		if (err) {
			count_dropped(cpu, err);
			__sync_fetch_and_add(&cpu->dropped, batch->records - 1);
		}
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
 * Sends a batch. @number points to the number of records, @size bytes of records follow it.
 * Returns 0; or an error if its records were dropped, of which the first one was counted; or
 * SPLIT if they cannot wait for a ring together, and each has to be sent on its own.
 */
static __always_inline long send_batch(void *ctx, struct mw_relay_cpu *cpu, __u32 *number,
				       __u64 size)
{
	long err = -ENOENT;

	if (!cpu->held || !send_held(ctx))
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

static __always_inline void send_single(void *ctx, struct mw_relay_cpu *cpu,
					struct single_batch *batch, __u64 size)
{
	batch->unsent = 0;
	batch->records = 1;
	__sync_fetch_and_add(&cpu->produced, 1);
	send_batch(ctx, cpu, &batch->records, size);
}

/* Makes the sample of @rmid, or of cpu->alone if @alone is set, at index @place of the batch. */
__noinline int fill_sample(__u32 rmid, __u32 alone, __u32 place)
{
	struct mw_relay_cpu *cpu = this_cpu();
	__u64 index = to_index(place);
	struct mw_relay_sum *sum;

	if (!cpu)
		return 0;
	sum = alone ? &cpu->alone : bpf_map_lookup_elem(&sums, &rmid);
	if (!sum || index >= MW_RELAY_TOUCHED_MAX)
		return 0;
	if (cpu->uneven)
		mw_relay_apply_times(cpu, sum);
	mw_relay_sample(&cpu->batch.sample[index], sum, bpf_get_smp_processor_id(), cpu->begin_ns,
			cpu->last_ns);
	sum->used = 0;
	return 0;
}

/* From @now on, the time of this CPU is charged. */
static __always_inline void activate_cpu(struct mw_relay_cpu *cpu, __u64 now, __u64 owner)
{
	int i;

	for (i = 0; i < MEMWATCH_COUNTER_MAX; i++)
		cpu->have[i] = 0;
	cpu->exact = mode == MW_RELAY_SWITCH;
	cpu->uneven = 0;
	read_counters(1, 0);
	cpu->owner = owner;
	cpu->last_ns = now;
	cpu->begin_ns = now;
	cpu->active = 1;
}

/*
 * Sends the record at index @place again, as a batch of its own. The number of records
 * overwrites that of the batch, or the end of the record before it, which are not needed any more.
 */
__noinline int resend_record(struct bpf_raw_tracepoint_args *ctx, __u32 place, __u32 tick)
{
	struct mw_relay_cpu *cpu = this_cpu();
	__u64 index = to_index(place);
	struct memwatch_record_tick *rec;
	__u32 *number;

	if (!cpu || index > MW_RELAY_TOUCHED_MAX)
		return 0;
	number = (__u32 *)&cpu->batch.sample[index] - 1;
	*number = 1;
	if (tick) {
		rec = (struct memwatch_record_tick *)&cpu->batch.sample[index];
		rec->dropped = cpu->dropped;
		send_batch(ctx, cpu, number, sizeof(*rec));
	} else {
		send_batch(ctx, cpu, number, sizeof(struct memwatch_record_sample));
	}
	return 0;
}

/*
 * Sends the first @samples samples of the batch, followed by cpu->tick if @tick is set.
 * Returns at which index the records begin that must be sent again if that failed; or -1.
 *
 * The kernel counts one loss per failed call, however many records the call contained. So a
 * failed batch counts as the loss of its first record only, to count the same as the kernel.
 */
__noinline int send_samples(struct bpf_raw_tracepoint_args *ctx, __u32 samples, __u32 tick)
{
	struct mw_relay_cpu *cpu = this_cpu();
	__u64 index = to_index(samples), size;
	long err;

	if (!cpu || index > MW_RELAY_TOUCHED_MAX)
		return -1;
	size = index * sizeof(struct memwatch_record_sample);
	cpu->batch.records = samples;
	if (tick) {
		cpu->tick.produced = cpu->produced + samples + 1;
		cpu->tick.dropped = cpu->dropped;
		*(struct memwatch_record_tick *)&cpu->batch.sample[index] = cpu->tick;
		cpu->batch.records++;
		size += sizeof(cpu->tick);
	}
	if (!size)
		return -1;
	__sync_fetch_and_add(&cpu->produced, cpu->batch.records);
	err = send_batch(ctx, cpu, &cpu->batch.records, size);
	return !err ? -1 : err != SPLIT;
}

/*
 * Sends a sample of each RMID that has run since begin_ns, followed by cpu->tick if @tick is
 * set. The next interval begins at last_ns, up to which everything has been charged.
 */
static __noinline int flush_samples(void *ctx, struct mw_relay_cpu *cpu, __u32 tick)
{
	__u32 i;
	int again;

	for (i = 0; i < MW_RELAY_TOUCHED_MAX; i++) {
		if (i >= cpu->touched_count)
			break;
		fill_sample(cpu->touched[i], 0, i);
	}
	again = send_samples(ctx, cpu->touched_count, tick);
	if (again >= 0) {
		for (i = 0; i < MW_RELAY_TOUCHED_MAX; i++) {
			if (i >= cpu->touched_count)
				break;
			if (i || !again)
				resend_record(ctx, i, 0);
		}
		if (tick && cpu->touched_count)
			resend_record(ctx, cpu->touched_count, 1);
	}
	cpu->touched_count = 0;
	cpu->begin_ns = cpu->last_ns;
	if (cpu->uneven)
		cpu->exact = 1;
	cpu->uneven = 0;
	return 0;
}

/*
 * Charges the time and the counts since last_ns to @owner, who ran until @now. The fast
 * clock may step back a little when the timekeeper is updated; then last_ns is used instead
 * of @now, so that order and sums stay correct.
 */
static __always_inline void charge_owner(void *ctx, struct mw_relay_cpu *cpu, __u64 owner,
					 __u64 now, int slot_ends)
{
	__u32 rmid = mw_relay_rmid(owner), slot;
	struct mw_relay_sum *sum = NULL;
	int flush = 0;
	__u64 run_ns;

	if (now < cpu->last_ns) {
		count_failure(MW_RELAY_FAIL_CLOCK);
		now = cpu->last_ns;
	}
	run_ns = now - cpu->last_ns;
	if (owner != cpu->owner)
		count_failure(MW_RELAY_FAIL_OWNER);

	if (mode == MW_RELAY_SLOT) {
		sum = bpf_map_lookup_elem(&sums, &rmid);
		if (!sum)
			count_failure(MW_RELAY_FAIL_RMID_RANGE);
	}
	/* another generation of the RMID, or more RMIDs than can be accumulated */
	if (sum)
		flush = sum->used ? sum->owner != owner
				  : cpu->touched_count >= MW_RELAY_TOUCHED_MAX;
	read_counters(slot_ends || flush || !sum || cpu->exact, run_ns);
	if (!sum) {
		/* the interval of the accumulated samples ends where this sample begins */
		flush_samples(ctx, cpu, 0);
		cpu->last_ns = now;
		mw_relay_sum_start(&cpu->alone, owner);
		mw_relay_sum_add(&cpu->alone, run_ns, &cpu->piece);
		fill_sample(0, 1, 0);
		cpu->batch.records = 1;
		__sync_fetch_and_add(&cpu->produced, 1);
		send_batch(ctx, cpu, &cpu->batch.records, sizeof(cpu->batch.sample[0]));
		cpu->begin_ns = now;
		return;
	}

	if (flush) {
		count_failure(MW_RELAY_FAIL_EARLY);
		flush_samples(ctx, cpu, 0);
	}
	if (!sum->used) {
		mw_relay_sum_start(sum, owner);
		slot = cpu->touched_count;
		if (slot < MW_RELAY_TOUCHED_MAX) {
			cpu->touched[slot] = rmid;
			cpu->touched_count = slot + 1;
		}
	}
	mw_relay_sum_add(sum, run_ns, &cpu->piece);
	cpu->last_ns = now;
}

/*
 * Copies the module's record at @from to @rec, which is zeroed and has @size bytes. The
 * record must have a type from @first to @last. A longer record, from a newer module, is cut
 * to @size. Returns 0 or -1.
 */
static __always_inline int copy_record(void *rec, __u32 size, __u16 first, __u16 last, __u64 from)
{
	struct memwatch_record_header *h = rec;
	__u32 bytes;

	if (bpf_probe_read_kernel(h, sizeof(*h), (const void *)from)) {
		count_failure(MW_RELAY_FAIL_RECORD_READ);
		return -1;
	}
	bytes = h->size;
	if (h->type < first || h->type > last || bytes < sizeof(*h)) {
		count_failure(MW_RELAY_FAIL_RECORD_INVALID);
		return -1;
	}
	if (bytes > size)
		bytes = size;
	if (bpf_probe_read_kernel(rec, bytes, (const void *)from)) {
		count_failure(MW_RELAY_FAIL_RECORD_READ);
		return -1;
	}
	h->size = size;
	h->flags = 0;
	return 0;
}

static __always_inline int forward_rmid(struct bpf_raw_tracepoint_args *ctx, __u16 type)
{
	struct mw_relay_cpu *cpu = this_cpu();
	struct single_batch one = { .rmid = {} };

	if (cpu && !copy_record(&one.h, sizeof(one.rmid), type, type, ctx->args[0]))
		send_single(ctx, cpu, &one, sizeof(one.rmid));
	return 0;
}

SEC("raw_tp/memwatch_rmid_alloc")
int on_rmid_alloc(struct bpf_raw_tracepoint_args *ctx)
{
	return forward_rmid(ctx, MEMWATCH_RECORD_RMID_ALLOC);
}

SEC("raw_tp/memwatch_rmid_existing")
int on_rmid_existing(struct bpf_raw_tracepoint_args *ctx)
{
	return forward_rmid(ctx, MEMWATCH_RECORD_RMID_EXISTING);
}

SEC("raw_tp/memwatch_rmid_exec")
int on_rmid_exec(struct bpf_raw_tracepoint_args *ctx)
{
	return forward_rmid(ctx, MEMWATCH_RECORD_RMID_EXEC);
}

SEC("raw_tp/memwatch_rmid_free")
int on_rmid_free(struct bpf_raw_tracepoint_args *ctx)
{
	return forward_rmid(ctx, MEMWATCH_RECORD_RMID_FREE);
}

static __always_inline int forward_dump(struct bpf_raw_tracepoint_args *ctx, __u16 type)
{
	struct mw_relay_cpu *cpu = this_cpu();
	struct single_batch one = { .dump = {} };

	if (cpu && !copy_record(&one.h, sizeof(one.dump), type, type, ctx->args[0]))
		send_single(ctx, cpu, &one, sizeof(one.dump));
	return 0;
}

SEC("raw_tp/memwatch_dump_begin")
int on_dump_begin(struct bpf_raw_tracepoint_args *ctx)
{
	return forward_dump(ctx, MEMWATCH_RECORD_DUMP_BEGIN);
}

SEC("raw_tp/memwatch_dump_end")
int on_dump_end(struct bpf_raw_tracepoint_args *ctx)
{
	return forward_dump(ctx, MEMWATCH_RECORD_DUMP_END);
}

SEC("raw_tp/memwatch_rdt_sample")
int on_rdt_sample(struct bpf_raw_tracepoint_args *ctx)
{
	struct mw_relay_cpu *cpu = this_cpu();
	struct single_batch one = { .rdt = {} };

	if (cpu && !copy_record(&one.h, sizeof(one.rdt), MEMWATCH_RECORD_RDT, MEMWATCH_RECORD_RDT,
				ctx->args[0]))
		send_single(ctx, cpu, &one, sizeof(one.rdt));
	return 0;
}

SEC("raw_tp/memwatch_notice")
int on_notice(struct bpf_raw_tracepoint_args *ctx)
{
	struct mw_relay_cpu *cpu = this_cpu();
	struct single_batch one = { .notice = {} };

	if (cpu && !copy_record(&one.h, sizeof(one.notice), MEMWATCH_RECORD_NOTICE,
				MEMWATCH_RECORD_NOTICE, ctx->args[0]))
		send_single(ctx, cpu, &one, sizeof(one.notice));
	return 0;
}

/*
 * The library attaches the programs in the order of this file and detaches them in reverse
 * order. on_cpu_state and on_tick, which can activate a CPU, follow on_switch: so every
 * switch is seen as long as a CPU is active.
 */

/* now_ns, prev_owner, next_owner, next_pid */
SEC("raw_tp/memwatch_switch")
int on_switch(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 prev = ctx->args[1], next = ctx->args[2];
	struct mw_relay_cpu *cpu;

	/* both threads belong to one process, or both are kernel threads or idle */
	if (mode == MW_RELAY_SLOT && prev == next)
		return 0;

	cpu = this_cpu();
	if (!cpu || !cpu->active)
		return 0;
	charge_owner(ctx, cpu, prev, ctx->args[0], 0);
	cpu->owner = next;
	return 0;
}

/*
 * The time before a change of state is charged to the current owner: for an idle CPU, that is
 * the owner when it stopped its tick, which is RMID 0. Only the time while a CPU is offline or
 * stopped is not charged.
 */
SEC("raw_tp/memwatch_cpu_state")
int on_cpu_state(struct bpf_raw_tracepoint_args *ctx)
{
	struct mw_relay_cpu *cpu = this_cpu();
	struct single_batch one = { .state = {} };
	__u64 owner;

	if (!cpu || copy_record(&one.h, sizeof(one.state), MEMWATCH_RECORD_CPU_STATE,
				MEMWATCH_RECORD_CPU_STATE, ctx->args[0]))
		return 0;

	owner = cpu->owner;
	if (cpu->active) {
		charge_owner(ctx, cpu, owner, one.h.time_ns, 1);
		flush_samples(ctx, cpu, 0);
		one.h.time_ns = cpu->last_ns;
	}
	switch (one.state.state) {
	case MEMWATCH_CPU_ONLINE:
		activate_cpu(cpu, one.h.time_ns, 0);
		break;
	case MEMWATCH_CPU_BUSY:
		if (!cpu->active)
			activate_cpu(cpu, one.h.time_ns, 0);
		break;
	case MEMWATCH_CPU_OFFLINE:
	case MEMWATCH_CPU_STOPPED:
		cpu->active = 0;
		break;
	}
	send_single(ctx, cpu, &one, sizeof(one.state));
	return 0;
}

/* now_ns, expected_ns, period_ns, overruns, owner */
SEC("raw_tp/memwatch_tick")
int on_tick(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 now = ctx->args[0], owner = ctx->args[4];
	struct mw_relay_cpu *cpu = this_cpu();
	struct memwatch_record_tick *rec;

	if (!cpu)
		return 0;
	if (cpu->active) {
		charge_owner(ctx, cpu, owner, now, 1);
		cpu->owner = owner;
		now = cpu->last_ns;
	} else {
		activate_cpu(cpu, now, owner);
	}

	rec = &cpu->tick;
	rec->h.time_ns = now;
	rec->h.type = MEMWATCH_RECORD_TICK;
	rec->h.size = sizeof(*rec);
	rec->h.cpu = bpf_get_smp_processor_id();
	rec->expected_ns = ctx->args[1];
	rec->period_ns = ctx->args[2];
	rec->overruns = ctx->args[3];
	flush_samples(ctx, cpu, 1);
	return 0;
}
