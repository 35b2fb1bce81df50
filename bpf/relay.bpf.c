// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The relay: from the module's tracepoints to one perf event array. It reads
 * the hardware counters of the CPU it runs on, charges what they gained to the
 * RMID that ran, and passes on what the module has to say. It decides nothing
 * and keeps no history beyond the present slot.
 *
 * Contexts. on_switch, on_tick and on_cpu_state run with interrupts off on the
 * CPU they are about (under its runqueue lock, in its hard timer, in its hotplug
 * callback): none of them interrupts another, so the state of the CPU needs no
 * lock. The other programs may run anywhere and may be interrupted by these;
 * of the state they touch only "produced" and "dropped", atomically.
 *
 * The programs are raw tracepoints: they are found by name, need no BTF of the
 * module and cost no copy of the arguments.
 */
#include <linux/bpf.h>
#include <linux/memwatch.h>
#include <bpf/bpf_helpers.h>
#include "relay.h"

#define EINVAL	   22
#define ENOENT	   2
#define ENOSPC	   28
#define EOPNOTSUPP 95

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Set by the library before loading; the verifier removes what they rule out. */
const volatile __u32 mode = MW_RELAY_SLOT; /* enum mw_relay_mode */
const volatile __u32 counters = 0xf;	   /* bit N: enum memwatch_counter N could be opened */

/* Sizes of all arrays but "current", "sums" and "failures" are those of the machine. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
} records SEC(".maps"), cycles SEC(".maps"), instructions SEC(".maps"), llc_references SEC(".maps"),
	llc_misses SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct mw_relay_cpu);
} current SEC(".maps");

/* Indexed by RMID; the library sets max_entries to the RMIDs of the module + 1. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 513);
	__type(key, __u32);
	__type(value, struct mw_relay_sum);
} sums SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MW_RELAY_FAIL_MAX);
	__type(key, __u32);
	__type(value, __u64);
} failures SEC(".maps");

/*
 * An argument as an index, one the verifier can follow: bounds that are checked
 * on one copy of a value do not hold for another, so there is to be only one.
 */
static __always_inline __u64 index_of(__u32 argument)
{
	__u64 index = argument;

	barrier_var(index);
	return index;
}

static __always_inline struct mw_relay_cpu *this_cpu(void)
{
	__u32 key = 0;

	return bpf_map_lookup_elem(&current, &key);
}

/* May be called from any of the contexts, hence atomic. */
static __noinline int failed(__u32 what)
{
	__u64 *count = bpf_map_lookup_elem(&failures, &what);

	if (count)
		__sync_fetch_and_add(count, 1);
	return 0;
}

static __always_inline void output_failed(struct mw_relay_cpu *cpu, long err)
{
	__sync_fetch_and_add(&cpu->dropped, 1);
	if (err == -ENOSPC)
		failed(MW_RELAY_FAIL_OUTPUT_FULL);
	else if (err == -ENOENT || err == -EOPNOTSUPP)
		failed(MW_RELAY_FAIL_OUTPUT_NO_RING);
	else
		failed(MW_RELAY_FAIL_OUTPUT);
}

/*
 * The only place that sends: a parcel, from its number of records on, with @size
 * bytes of records.
 */
static __always_inline long send(void *ctx, struct mw_relay_cpu *cpu, __u32 *parcel, __u64 size)
{
	long err = bpf_perf_event_output(ctx, &records, BPF_F_CURRENT_CPU, parcel,
					 sizeof(*parcel) + size);

	if (err)
		output_failed(cpu, err);
	return err;
}

/* A parcel of one record, of those that the module makes. */
struct letter {
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

static __always_inline void send_letter(void *ctx, struct mw_relay_cpu *cpu, struct letter *letter,
					__u64 size)
{
	letter->unsent = 0;
	letter->records = 1;
	__sync_fetch_and_add(&cpu->produced, 1);
	send(ctx, cpu, &letter->records, size);
}

static __always_inline void read_counter(struct mw_relay_cpu *cpu, void *map, __u32 i)
{
	struct mw_relay_reading *delta = &cpu->piece.delta[i], now;
	struct bpf_perf_event_value value = {};
	__u8 status;
	long err;

	delta->counter = 0;
	delta->enabled = 0;
	delta->running = 0;
	if (!(counters & (1U << i))) {
		cpu->piece.status[i] = MEMWATCH_STATUS_UNAVAILABLE;
		return;
	}

	err = bpf_perf_event_read_value(map, BPF_F_CURRENT_CPU, &value, sizeof(value));
	if (err) {
		cpu->have[i] = 0;
		failed(MW_RELAY_FAIL_READ_CYCLES + i);
		cpu->piece.status[i] = err == -ENOENT ? MEMWATCH_STATUS_UNAVAILABLE
						      : MEMWATCH_STATUS_ERROR;
		return;
	}
	now.counter = value.counter;
	now.enabled = value.enabled;
	now.running = value.running;
	if (cpu->have[i]) {
		status = mw_relay_delta(&cpu->last[i], &now, delta);
		if (status == MEMWATCH_STATUS_ERROR)
			failed(MW_RELAY_FAIL_COUNTER_BACK);
	} else {
		status = MEMWATCH_STATUS_FIRST;
		cpu->have[i] = 1;
	}
	cpu->piece.status[i] = status;
	cpu->last[i] = now;
}

/*
 * What the counters gained since they were read last, into the scratch.
 *
 * This and prepare() are global functions, with scalar arguments and their
 * results in the map, for the sake of the verifier: it checks them once, not
 * again for each path and each turn of the loop that leads to them.
 */
__noinline int measure(void)
{
	struct mw_relay_cpu *cpu = this_cpu();

	if (!cpu)
		return 0;
	read_counter(cpu, &cycles, MEMWATCH_COUNTER_CYCLES);
	read_counter(cpu, &instructions, MEMWATCH_COUNTER_INSTRUCTIONS);
	read_counter(cpu, &llc_references, MEMWATCH_COUNTER_LLC_REFERENCES);
	read_counter(cpu, &llc_misses, MEMWATCH_COUNTER_LLC_MISSES);
	return 0;
}

/* The sample of @rmid, or of the sum in the scratch, into the parcel. */
__noinline int prepare(__u32 rmid, __u32 alone, __u32 place)
{
	struct mw_relay_cpu *cpu = this_cpu();
	__u64 index = index_of(place);
	struct mw_relay_sum *sum;

	if (!cpu)
		return 0;
	sum = alone ? &cpu->alone : bpf_map_lookup_elem(&sums, &rmid);
	if (!sum || index >= MW_RELAY_TOUCHED_MAX)
		return 0;
	mw_relay_sample(&cpu->parcel.sample[index], sum, bpf_get_smp_processor_id(), cpu->begin_ns,
			cpu->last_ns);
	sum->used = 0;
	return 0;
}

/* From now on the time of this CPU is accounted for. */
static __always_inline void start(struct mw_relay_cpu *cpu, __u64 now, __u64 owner)
{
	int i;

	for (i = 0; i < MEMWATCH_COUNTER_MAX; i++)
		cpu->have[i] = 0;
	measure();
	cpu->owner = owner;
	cpu->last_ns = now;
	cpu->begin_ns = now;
	cpu->active = 1;
}

/* One record of a parcel that is gone: so the end of the one before it can be its number. */
__noinline int send_alone(struct bpf_raw_tracepoint_args *ctx, __u32 place, __u32 tick)
{
	struct mw_relay_cpu *cpu = this_cpu();
	__u64 index = index_of(place);
	struct memwatch_record_tick *rec;
	__u32 *number;

	if (!cpu || !index || index > MW_RELAY_TOUCHED_MAX)
		return 0;
	number = (__u32 *)&cpu->parcel.sample[index] - 1;
	*number = 1;
	if (tick) {
		rec = (struct memwatch_record_tick *)&cpu->parcel.sample[index];
		rec->dropped = cpu->dropped;
		send(ctx, cpu, number, sizeof(*rec));
	} else {
		send(ctx, cpu, number, sizeof(struct memwatch_record_sample));
	}
	return 0;
}

/*
 * @samples are in the parcel; the tick of the scratch goes behind them if there
 * is to be one. Returns 1 if it failed, and all but the first are to be sent alone.
 *
 * To the kernel a call that failed is one loss, however many records it was
 * about. So it is the loss of the first, and what the kernel counts and what we
 * count stays the same.
 */
__noinline int send_parcel(struct bpf_raw_tracepoint_args *ctx, __u32 samples, __u32 tick)
{
	struct mw_relay_cpu *cpu = this_cpu();
	__u64 index = index_of(samples), size;

	if (!cpu || index > MW_RELAY_TOUCHED_MAX)
		return 0;
	size = index * sizeof(struct memwatch_record_sample);
	cpu->parcel.records = samples;
	if (tick) {
		cpu->tick.produced = cpu->produced + samples + 1;
		cpu->tick.dropped = cpu->dropped;
		*(struct memwatch_record_tick *)&cpu->parcel.sample[index] = cpu->tick;
		cpu->parcel.records++;
		size += sizeof(cpu->tick);
	}
	if (!size)
		return 0;
	__sync_fetch_and_add(&cpu->produced, cpu->parcel.records);
	return send(ctx, cpu, &cpu->parcel.records, size) ? 1 : 0;
}

/*
 * Sends what was added up since begin_ns, with a tick behind it if there is to
 * be one, and starts the next stretch at last_ns, up to which everything has
 * been charged.
 */
static __noinline int flush(void *ctx, struct mw_relay_cpu *cpu, __u32 tick)
{
	__u32 i;

	for (i = 0; i < MW_RELAY_TOUCHED_MAX; i++) {
		if (i >= cpu->touched_count)
			break;
		prepare(cpu->touched[i], 0, i);
	}
	if (send_parcel(ctx, cpu->touched_count, tick)) {
		for (i = 1; i < MW_RELAY_TOUCHED_MAX; i++) {
			if (i >= cpu->touched_count)
				break;
			send_alone(ctx, i, 0);
		}
		if (tick && cpu->touched_count)
			send_alone(ctx, cpu->touched_count, 1);
	}
	cpu->touched_count = 0;
	cpu->begin_ns = cpu->last_ns;
	return 0;
}

/*
 * Charges the time and the counts since last_ns to @owner, who ran until @now.
 * A stamp before last_ns (the fast clock may step back a little around an
 * update of the time base) is taken for last_ns: order and sum stay right.
 */
static __always_inline void charge(void *ctx, struct mw_relay_cpu *cpu, __u64 owner, __u64 now)
{
	__u32 rmid = mw_relay_rmid(owner), slot;
	struct mw_relay_sum *sum = NULL;
	__u64 run_ns;

	if (now < cpu->last_ns) {
		failed(MW_RELAY_FAIL_CLOCK);
		now = cpu->last_ns;
	}
	run_ns = now - cpu->last_ns;
	if (owner != cpu->owner)
		failed(MW_RELAY_FAIL_OWNER);
	measure();

	if (mode == MW_RELAY_SLOT) {
		sum = bpf_map_lookup_elem(&sums, &rmid);
		if (!sum)
			failed(MW_RELAY_FAIL_RMID_RANGE);
	}
	if (!sum) {
		/* What was held back ends where this begins. */
		flush(ctx, cpu, 0);
		cpu->last_ns = now;
		mw_relay_sum_start(&cpu->alone, owner);
		mw_relay_sum_add(&cpu->alone, run_ns, &cpu->piece);
		prepare(0, 1, 0);
		cpu->parcel.records = 1;
		__sync_fetch_and_add(&cpu->produced, 1);
		send(ctx, cpu, &cpu->parcel.records, sizeof(cpu->parcel.sample[0]));
		cpu->begin_ns = now;
		return;
	}

	/* An older generation of the RMID, or one RMID more than can be held back. */
	if (sum->used ? sum->owner != owner : cpu->touched_count >= MW_RELAY_TOUCHED_MAX) {
		failed(MW_RELAY_FAIL_EARLY);
		flush(ctx, cpu, 0);
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
 * Copies the module's record at @from into @rec. A longer one, of a newer
 * module, is cut to what this relay knows; the tail of a shorter one is zero.
 */
static __always_inline int receive(void *rec, __u32 size, __u16 first, __u16 last, __u64 from)
{
	struct memwatch_record_header *h = rec;
	__u32 bytes;

	if (bpf_probe_read_kernel(h, sizeof(*h), (const void *)from)) {
		failed(MW_RELAY_FAIL_RECORD_READ);
		return -1;
	}
	bytes = h->size;
	if (h->type < first || h->type > last || bytes < sizeof(*h)) {
		failed(MW_RELAY_FAIL_RECORD_INVALID);
		return -1;
	}
	if (bytes > size)
		bytes = size;
	if (bpf_probe_read_kernel(rec, bytes, (const void *)from)) {
		failed(MW_RELAY_FAIL_RECORD_READ);
		return -1;
	}
	h->size = size;
	h->flags = 0;
	return 0;
}

static __always_inline int forward_rmid(struct bpf_raw_tracepoint_args *ctx, __u16 type)
{
	struct mw_relay_cpu *cpu = this_cpu();
	struct letter one = { .rmid = {} };

	if (cpu && !receive(&one.h, sizeof(one.rmid), type, type, ctx->args[0]))
		send_letter(ctx, cpu, &one, sizeof(one.rmid));
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
	struct letter one = { .dump = {} };

	if (cpu && !receive(&one.h, sizeof(one.dump), type, type, ctx->args[0]))
		send_letter(ctx, cpu, &one, sizeof(one.dump));
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
	struct letter one = { .rdt = {} };

	if (cpu && !receive(&one.h, sizeof(one.rdt), MEMWATCH_RECORD_RDT, MEMWATCH_RECORD_RDT,
			    ctx->args[0]))
		send_letter(ctx, cpu, &one, sizeof(one.rdt));
	return 0;
}

SEC("raw_tp/memwatch_notice")
int on_notice(struct bpf_raw_tracepoint_args *ctx)
{
	struct mw_relay_cpu *cpu = this_cpu();
	struct letter one = { .notice = {} };

	if (cpu && !receive(&one.h, sizeof(one.notice), MEMWATCH_RECORD_NOTICE,
			    MEMWATCH_RECORD_NOTICE, ctx->args[0]))
		send_letter(ctx, cpu, &one, sizeof(one.notice));
	return 0;
}

/*
 * The order from here on is the order of attaching, and backwards of detaching.
 * The last two make a CPU active: by then no switch goes unseen, and as long as
 * it is active none does.
 */

/* now_ns, prev_owner, next_owner, next_pid */
SEC("raw_tp/memwatch_switch")
int on_switch(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 prev = ctx->args[1], next = ctx->args[2];
	struct mw_relay_cpu *cpu;

	/* Threads of one process, and kernel threads among each other and idle. */
	if (mode == MW_RELAY_SLOT && prev == next)
		return 0;

	cpu = this_cpu();
	if (!cpu || !cpu->active)
		return 0;
	charge(ctx, cpu, prev, ctx->args[0]);
	cpu->owner = next;
	return 0;
}

/*
 * The time before a state belongs to the state before: an idle CPU's to
 * whoever it was charged to when it stopped ticking, which is RMID 0. Only
 * the time offline or stopped belongs to nobody.
 */
SEC("raw_tp/memwatch_cpu_state")
int on_cpu_state(struct bpf_raw_tracepoint_args *ctx)
{
	struct mw_relay_cpu *cpu = this_cpu();
	struct letter one = { .state = {} };
	__u64 owner;

	if (!cpu || receive(&one.h, sizeof(one.state), MEMWATCH_RECORD_CPU_STATE,
			    MEMWATCH_RECORD_CPU_STATE, ctx->args[0]))
		return 0;

	owner = cpu->owner;
	if (cpu->active) {
		charge(ctx, cpu, owner, one.h.time_ns);
		flush(ctx, cpu, 0);
		one.h.time_ns = cpu->last_ns;
	}
	switch (one.state.state) {
	case MEMWATCH_CPU_ONLINE:
		start(cpu, one.h.time_ns, 0);
		break;
	case MEMWATCH_CPU_BUSY:
		if (!cpu->active)
			start(cpu, one.h.time_ns, 0);
		break;
	case MEMWATCH_CPU_OFFLINE:
	case MEMWATCH_CPU_STOPPED:
		cpu->active = 0;
		break;
	}
	send_letter(ctx, cpu, &one, sizeof(one.state));
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
		charge(ctx, cpu, owner, now);
		cpu->owner = owner;
		now = cpu->last_ns;
	} else {
		start(cpu, now, owner);
	}

	rec = &cpu->tick;
	rec->h.time_ns = now;
	rec->h.type = MEMWATCH_RECORD_TICK;
	rec->h.size = sizeof(*rec);
	rec->h.cpu = bpf_get_smp_processor_id();
	rec->expected_ns = ctx->args[1];
	rec->period_ns = ctx->args[2];
	rec->overruns = ctx->args[3];
	flush(ctx, cpu, 1);
	return 0;
}
