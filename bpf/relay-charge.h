/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Charges time and counts to the owner that ran, and sends the sums as samples at the end of a
 * slot. Included by the programs.
 */
#ifndef _MW_RELAY_CHARGE_H
#define _MW_RELAY_CHARGE_H

#include "relay-counters.h"
#include "relay-send.h"

/* Set by the library before loading; the verifier removes the code they make unreachable. */
const volatile __u32 mode = MW_RELAY_SLOT; /* enum mw_relay_mode */
const volatile __u32 places = 513;	   /* max_entries of sums */

/* Indexed by mw_relay_place(); the library sets max_entries. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 513);
	__type(key, __u32);
	__type(value, struct mw_relay_sum);
} sums SEC(".maps");

/*
 * Makes the sample of the sum that was touched as number @touched, or of cpu->alone, at @number of
 * the batch.
 */
__noinline int fill_sample(__u32 touched, __u32 alone, __u32 number)
{
	__u64 index = to_index(number), which = to_index(touched);
	struct mw_relay_cpu *cpu = this_cpu();
	struct mw_relay_sum *sum;
	__u32 place;

	if (!cpu || which >= MW_RELAY_TOUCHED_MAX || index >= MW_RELAY_SAMPLES_MAX)
		return 0;
	place = cpu->touched[which];
	sum = alone ? &cpu->alone : bpf_map_lookup_elem(&sums, &place);
	if (!sum)
		return 0;
	if (cpu->uneven)
		mw_relay_apply_times(cpu, sum);
	mw_relay_sample(&cpu->batch.sample[index], sum, bpf_get_smp_processor_id(), cpu->last_ns);
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
 * Sends record @place of the batch again, as a batch of its own: one of the samples, or the tick,
 * which is @last, or what precedes the tick. The number of records overwrites that of the batch,
 * or the end of the record before it, which are not needed any more.
 */
__noinline int resend_record(struct bpf_raw_tracepoint_args *ctx, __u32 place, __u32 last)
{
	struct mw_relay_cpu *cpu = this_cpu();
	__u64 size = sizeof(struct memwatch_record_sample), offset;
	struct memwatch_record_tick *rec;
	__u32 *number;

	if (!cpu)
		return 0;
	offset = place * size;
	if (place >= cpu->samples)
		size = place == last ? sizeof(cpu->tick) : sizeof(cpu->rdt);
	if (place > cpu->samples)
		offset += sizeof(cpu->rdt) - sizeof(struct memwatch_record_sample);
	barrier_var(offset);
	if (offset > sizeof(cpu->batch.sample) - sizeof(cpu->batch.sample[0]))
		return 0;
	rec = (void *)cpu->batch.sample + offset;
	if (rec->h.type == MEMWATCH_RECORD_TICK) {
		rec->produced = cpu->produced;
		rec->dropped = cpu->dropped;
	}
	number = (__u32 *)rec - 1;
	*number = 1;
	send_batch(ctx, cpu, number, size);
	return 0;
}

/* Appends the tick to @samples samples of the batch, and the RDT record that waits for it. */
static __always_inline __u64 append_tick(struct mw_relay_cpu *cpu, __u64 samples)
{
	void *end = &cpu->batch.sample[samples];
	__u64 size = sizeof(cpu->tick);

	if (cpu->rdt_waits) {
		cpu->rdt_waits = 0;
		*(struct memwatch_record_rdt *)end = cpu->rdt;
		end += sizeof(cpu->rdt);
		size += sizeof(cpu->rdt);
		cpu->batch.records++;
	}
	cpu->batch.records++;
	cpu->tick.produced = cpu->produced + cpu->batch.records;
	cpu->tick.dropped = cpu->dropped;
	*(struct memwatch_record_tick *)end = cpu->tick;
	return size;
}

/*
 * Sends the first @samples samples of the batch, followed by cpu->tick if @tick is set. Returns
 * whether samples were lost. Then the tick, and what precedes it, are sent again, one by one.
 *
 * The kernel counts one loss per failed call, however many records the call contained. To count
 * the same, all samples of a failed batch are one record, or the first record is lost if there
 * are none.
 */
__noinline int send_samples(struct bpf_raw_tracepoint_args *ctx, __u32 samples, __u32 tick)
{
	struct mw_relay_cpu *cpu = this_cpu();
	__u64 index = to_index(samples), size;
	__u32 records;
	long err;

	if (!cpu || index > MW_RELAY_SAMPLES_MAX)
		return 0;
	cpu->samples = samples;
	size = index * sizeof(struct memwatch_record_sample);
	cpu->batch.records = samples;
	if (tick)
		size += append_tick(cpu, index);
	if (!size)
		return 0;
	records = cpu->batch.records;
	__sync_fetch_and_add(&cpu->produced, records);
	err = send_batch(ctx, cpu, &cpu->batch.records, size);
	if (!err)
		return 0;
	index = 0;
	if (err != SPLIT) {
		index = samples ?: 1;
		__sync_fetch_and_add(&cpu->produced, 1 - index);
	}
	for (size = 0; size < MW_RELAY_SAMPLES_MAX + 2; size++) {
		if (size >= records)
			break;
		if (size >= index)
			resend_record(ctx, size, records - 1);
	}
	return err != SPLIT && samples;
}

/* Says whether the sum that was touched as number @number is in use. */
__noinline int use_sum(__u32 number, __u32 used)
{
	struct mw_relay_cpu *cpu = this_cpu();
	__u64 index = to_index(number);
	struct mw_relay_sum *sum;
	__u32 place;

	if (!cpu || index >= MW_RELAY_TOUCHED_MAX)
		return 0;
	place = cpu->touched[index];
	sum = bpf_map_lookup_elem(&sums, &place);
	if (sum)
		sum->used = used;
	return 0;
}

/*
 * Sends a sample of each of the owners that were touched last, as many as a batch can have. If
 * there is no room, nothing of their sums is lost. Returns how many owners are left, or -1 if
 * there is no room.
 */
__noinline int send_last(struct bpf_raw_tracepoint_args *ctx, __u32 tick)
{
	struct mw_relay_cpu *cpu = this_cpu();
	__u32 i, number, first = 0;

	if (!cpu)
		return 0;
	number = cpu->touched_count;
	if (number > MW_RELAY_SAMPLES_MAX) {
		number = MW_RELAY_SAMPLES_MAX;
		first = cpu->touched_count - number;
	}
	for (i = 0; i < MW_RELAY_SAMPLES_MAX; i++) {
		if (i >= number)
			break;
		fill_sample(first + i, 0, i);
	}
	if (!send_samples(ctx, number, tick && !first)) {
		cpu->touched_count = first;
		return first;
	}
	for (i = 0; i < MW_RELAY_SAMPLES_MAX; i++) {
		if (i >= number)
			break;
		use_sum(first + i, 1);
	}
	return -1;
}

/*
 * Sends a sample of each owner that has run, followed by cpu->tick if @tick is set. The next
 * interval begins at last_ns, up to which everything has been charged. The intervals of samples
 * for which there is no room go on.
 */
static __always_inline int flush_samples(void *ctx, struct mw_relay_cpu *cpu, __u32 tick)
{
	int i, left = 0;

	if (cpu->held)
		send_held(ctx);
	for (i = 0; i < MW_RELAY_BATCHES_MAX; i++) {
		left = send_last(ctx, tick);
		if (left <= 0)
			break;
	}
	/* The tick was not in the batch for which there was no room. */
	if (left < 0 && tick && cpu->touched_count > MW_RELAY_SAMPLES_MAX) {
		send_waiting(ctx, cpu);
		send_samples(ctx, 0, 1);
	}
	cpu->begin_ns = cpu->last_ns;
	if (cpu->uneven)
		cpu->exact = 1;
	cpu->uneven = 0;
	return 0;
}

/* All sums are lost. */
static __noinline int drop_sums(struct mw_relay_cpu *cpu)
{
	__u32 i;

	for (i = 0; i < MW_RELAY_TOUCHED_MAX; i++) {
		if (i >= cpu->touched_count)
			break;
		use_sum(i, 0);
	}
	cpu->touched_count = 0;
	return 0;
}

/* Must the sums be sent before @owner is charged? Its sum is that of another owner, or new. */
static __always_inline int is_flush_due(const struct mw_relay_cpu *cpu,
					const struct mw_relay_sum *sum, __u64 owner)
{
	if (sum->used)
		return sum->owner != owner;
	return cpu->touched_count && cpu->touched_count % MW_RELAY_SAMPLES_MAX == 0;
}

/*
 * Charges the time and the counts since last_ns to @owner, who ran until @now. The fast
 * clock may step back a little when the timekeeper is updated; then last_ns is used instead
 * of @now, so that order and sums stay correct.
 */
static __always_inline void charge_owner(void *ctx, struct mw_relay_cpu *cpu, __u64 owner,
					 __u64 now, int slot_ends)
{
	__u32 place = mw_relay_place(owner, places), slot;
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
		sum = bpf_map_lookup_elem(&sums, &place);
		if (!sum)
			count_failure(MW_RELAY_FAIL_RMID_RANGE);
	}
	if (sum)
		flush = is_flush_due(cpu, sum, owner);
	read_counters(slot_ends || flush || !sum || cpu->exact, run_ns);
	if (!sum) {
		/* the interval of the accumulated samples ends where this sample begins */
		flush_samples(ctx, cpu, 0);
		cpu->last_ns = now;
		mw_relay_sum_start(&cpu->alone, owner, cpu->begin_ns);
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
		if (cpu->touched_count >= MW_RELAY_TOUCHED_MAX)
			drop_sums(cpu);
	}
	if (!sum->used) {
		slot = cpu->touched_count;
		if (slot < MW_RELAY_TOUCHED_MAX) {
			cpu->touched[slot] = place;
			cpu->touched_count = slot + 1;
		}
	}
	if (!sum->used || sum->owner != owner)
		mw_relay_sum_start(sum, owner, cpu->begin_ns);
	mw_relay_sum_add(sum, run_ns, &cpu->piece);
	cpu->last_ns = now;
}

#endif /* _MW_RELAY_CHARGE_H */
