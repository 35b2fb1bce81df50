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
#include "relay-charge.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/*
 * Copies the module's record at @from to @rec, which has @size bytes. The
 * record must have a type from @first to @last. A longer record, from a newer module, is cut
 * to @size. Returns 0 or -1.
 */
static __always_inline int copy_record(void *rec, __u32 size, __u16 first, __u16 last, __u64 from)
{
	struct memwatch_record_header *h = rec;
	__u32 bytes;

	/* Usually both know the same records. */
	if (!bpf_probe_read_kernel(rec, size, (const void *)from) && h->size == size &&
	    h->type >= first && h->type <= last) {
		h->flags = 0;
		return 0;
	}
	__builtin_memset(rec, 0, size);
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

/*
 * record, tick_follows
 *
 * A reading in a tick waits for the next one or for the tick: the last one has the same time as
 * the tick, and is sent with it. A call of the kernel costs as much as reading four counters.
 */
SEC("raw_tp/memwatch_rdt_sample")
int on_rdt_sample(struct bpf_raw_tracepoint_args *ctx)
{
	struct mw_relay_cpu *cpu = this_cpu();
	struct single_batch one = { .rdt = {} };

	if (!cpu || copy_record(&one.h, sizeof(one.rdt), MEMWATCH_RECORD_RDT, MEMWATCH_RECORD_RDT,
				ctx->args[0]))
		return 0;
	send_waiting(ctx, cpu);
	if (ctx->args[1] && cpu->active) {
		cpu->rdt = one.rdt;
		cpu->rdt_waits = 1;
	} else {
		send_single(ctx, cpu, &one, sizeof(one.rdt));
	}
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

	/* A frame begins with a sample. */
	if (cpu->rdt.h.time_ns != now || !cpu->touched_count)
		send_waiting(ctx, cpu);
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
