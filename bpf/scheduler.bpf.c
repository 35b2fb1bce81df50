// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Measures without the module: from the tracepoints of the scheduler to the same records and the
 * same perf event array as the relay. Charging, counters and sending are those of the relay.
 * What the module does is done here: identities (scheduler-identity.h) and ticks.
 *
 * Ticks: the library runs a perf event of the CPU clock on each CPU, whose hrtimer expires just
 * after each multiple of the period. The first hrtimer, of whomever, that expires on a CPU after
 * such a time ends the slot. A CPU that is idle at a tick sends nothing more until it is busy.
 *
 * Contexts: on_switch runs under the run queue lock and on_timer in hard interrupt context, both
 * with interrupts off, so they never interrupt each other. on_exec, on_rename and on_hotplug run in
 * the context of a thread with interrupts on. They leave the state of the CPU alone, except for
 * the counts of records, which are changed atomically.
 */
#include <linux/bpf.h>
#include <linux/memwatch.h>
#include <bpf/bpf_helpers.h>
#include "relay.h"
#include "relay-charge.h"
#include "scheduler-identity.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Set by the library before loading. */
const volatile __u64 period_ns = MEMWATCH_PERIOD_DEFAULT_NS;

/* Set by the library: each CPU stops at its next tick. */
__u32 stopping;

/*
 * Set by the library before loading: where a CPU has struct kvm_steal_time, as the distance from
 * its run queue; 0 if it has none.
 */
const volatile __s64 steal_time = 0;

/* By how much CLOCK_MONOTONIC may run faster than the clock of the scheduler: 1/1024. */
#define DRIFT_SHIFT 10

/* More time that was counted for no thread is that of generation 0. */
#define GAP_NS 50000

/**
 * struct clock - the ticks of a CPU
 * @due_ns: when the next tick is due, a multiple of the period
 * @tick_ns: time of the last tick
 * @thread: the address of the task that runs, 0 if unknown
 * @exec_ns: the CPU time of @thread when it was switched in, as the scheduler counts it
 * @known: @exec_ns is known
 * @counted_ns: CPU time of the threads of the same owner that have run before @thread, since the
 *	owner was switched in
 * @charged_ns: time that was charged to the owner since then
 * @rq: the run queue of the CPU, 0 if unknown
 * @ahead_ns: CLOCK_MONOTONIC minus the clock of the scheduler, if it was read in a tracepoint
 * @ahead_at_ns: when that was found out, 0 if it was not
 * @idle_thread: the address of the task that runs when no other one does, 0 if unknown
 * @idle: the CPU was idle at the last tick
 * @leaving: the CPU goes offline, or is offline
 */
struct clock {
	__u64 due_ns;
	__u64 tick_ns;
	__u64 thread;
	__u64 exec_ns;
	__u64 known;
	__s64 counted_ns;
	__s64 charged_ns;
	__u64 rq;
	__s64 ahead_ns;
	__u64 ahead_at_ns;
	__u64 idle_thread;
	__u64 idle;
	__u64 leaving;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct clock);
} clocks SEC(".maps");

static __always_inline struct clock *this_clock(void)
{
	__u32 key = 0;

	return bpf_map_lookup_elem(&clocks, &key);
}

static __always_inline void send_state(struct bpf_raw_tracepoint_args *ctx,
				       struct mw_relay_cpu *cpu, __u32 state, __u64 now,
				       __u64 since)
{
	struct identities *ids = this_identities();
	struct single_batch *one;

	if (!ids)
		return;
	one = &ids->one;
	one->h.time_ns = now;
	one->h.type = MEMWATCH_RECORD_CPU_STATE;
	one->h.size = sizeof(one->state);
	one->h.cpu = bpf_get_smp_processor_id();
	one->h.flags = 0;
	one->state.state = state;
	one->state.reserved = 0;
	one->state.since_ns = since;
	send_single(ctx, cpu, one, sizeof(one->state));
}

static __always_inline int is_dead(const struct task_struct *task)
{
	const struct task_struct___old *old = (const void *)task;

	if (bpf_core_field_exists(task->__state))
		return BPF_CORE_READ(task, __state) & TASK_DEAD;
	return BPF_CORE_READ(old, state) & TASK_DEAD;
}

static __always_inline int is_idle(struct clock *clock, __u64 address)
{
	const struct task_struct *task = (const struct task_struct *)address;

	if (!clock->idle_thread && !BPF_CORE_READ(task, pid))
		clock->idle_thread = address;
	return address == clock->idle_thread;
}

/* The CPU was idle at its last tick and has sent nothing since. It ticks again. */
static __always_inline void leave_idle(struct bpf_raw_tracepoint_args *ctx,
				       struct mw_relay_cpu *cpu, struct clock *clock)
{
	flush_samples(ctx, cpu, 0);
	send_state(ctx, cpu, MEMWATCH_CPU_BUSY, cpu->last_ns, clock->tick_ns);
	clock->due_ns = (cpu->last_ns / period_ns + 1) * period_ns;
	clock->idle = 0;
}

static __always_inline __u64 cpu_time(__u64 address)
{
	const struct task_struct *task = (const struct task_struct *)address;

	return BPF_CORE_READ(task, se.sum_exec_runtime);
}

/* What the scheduler had counted for it when it was switched in. Right for normal tasks only. */
static __always_inline __u64 cpu_time_before(__u64 address)
{
	const struct task_struct *task = (const struct task_struct *)address;

	return BPF_CORE_READ(task, se.prev_sum_exec_runtime);
}

/* What the host has stolen since the scheduler has read its clock, which does not count it. */
static __always_inline __u64 stolen_since(const struct rq *rq)
{
	const struct kvm_steal_time *here;

	if (!steal_time || !bpf_core_field_exists(rq->prev_steal_time_rq))
		return 0;
	here = (const struct kvm_steal_time *)((const char *)rq + steal_time);
	return BPF_CORE_READ(here, steal) - BPF_CORE_READ(rq, prev_steal_time_rq);
}

/*
 * The CPU time of the thread that runs, as the scheduler would count it if it read its clock at
 * @now. The run queue of the CPU is known.
 */
static __always_inline __u64 cpu_time_until(const struct clock *clock, __u64 now)
{
	const struct task_struct *task = (const struct task_struct *)clock->thread;
	const struct rq *rq = (const struct rq *)clock->rq;
	__s64 since = (__s64)(now - (__u64)clock->ahead_ns - BPF_CORE_READ(rq, clock));
	__s64 stolen = (__s64)stolen_since(rq);

	since = since > stolen ? since - stolen : 0;
	return cpu_time(clock->thread) + BPF_CORE_READ(rq, clock_task) -
	       BPF_CORE_READ(task, se.exec_start) + (__u64)since;
}

/* Charges the time up to @now to the owner that runs. */
__noinline int charge(struct bpf_raw_tracepoint_args *ctx, __u64 now, __u32 slot_ends)
{
	struct mw_relay_cpu *cpu = this_cpu();
	struct clock *clock = this_clock();
	__u64 before;

	if (!cpu || !clock)
		return 0;
	before = cpu->last_ns;
	charge_owner(ctx, cpu, cpu->owner, now, slot_ends);
	clock->charged_ns += cpu->last_ns - before;
	return 0;
}

/*
 * When the switch to @next has begun whose tracepoint has the time @now: when the scheduler has
 * read its clock, which may be as early as the wake-up of @next. BPF cannot read that clock, but it
 * can see what the scheduler has read. So the smallest difference to CLOCK_MONOTONIC is that of
 * the two clocks, and what it is larger now, the switch has taken.
 */
static __always_inline __u64 switch_begin(const struct mw_relay_cpu *cpu, struct clock *clock,
					  __u64 next, __u64 now)
{
	const struct task_struct *task = (const struct task_struct *)next;
	const struct rq *rq;
	__s64 ahead, least;

	if (!clock->rq && bpf_core_field_exists(task->se.cfs_rq))
		clock->rq = (__u64)BPF_CORE_READ(task, se.cfs_rq, rq);
	if (!clock->rq)
		return now > cpu->last_ns ? now : cpu->last_ns;
	rq = (const struct rq *)clock->rq;
	ahead = (__s64)(now - BPF_CORE_READ(rq, clock));
	least = clock->ahead_ns + (__s64)((now - clock->ahead_at_ns) >> DRIFT_SHIFT);
	if (!clock->ahead_at_ns || ahead < least)
		least = ahead;
	clock->ahead_ns = least;
	clock->ahead_at_ns = now;
	return (__s64)(now - cpu->last_ns) > ahead - least ? now - (__u64)(ahead - least)
							   : cpu->last_ns;
}

/*
 * Until when the owner has run whose thread @prev is switched out, in a switch that began at
 * @begin: so long that it has been charged for what the scheduler has counted, which does not
 * include what the host has stolen. What does not fit in between is left for the next run of the
 * thread; it must not shorten that of the next thread.
 */
static __always_inline __u64 run_end(const struct mw_relay_cpu *cpu, const struct clock *clock,
				     __u64 prev, __u64 begin)
{
	struct thread *thread;
	__u64 end = begin;
	__s64 due, left;

	if (!cpu->owner || !clock->known)
		return begin;
	due = clock->counted_ns + (__s64)(cpu_time(prev) - clock->exec_ns) - clock->charged_ns;
	left = due - (__s64)(begin - cpu->last_ns);
	if (due >= 0 && left <= 0)
		return cpu->last_ns + due;
	if (due < 0) {
		end = cpu->last_ns;
		left = due;
	}
	thread = find_thread(prev);
	if (thread)
		thread->owed_ns = left;
	return end;
}

/*
 * The run of an owner ends in a switch to @next, which is @thread, NULL if that is idle or new.
 * Time that belongs to no task is that of generation 0.
 */
static __always_inline void end_run(struct bpf_raw_tracepoint_args *ctx, struct mw_relay_cpu *cpu,
				    struct clock *clock, __u64 prev, __u64 next, __u64 now,
				    const struct thread *thread)
{
	__u64 begin = switch_begin(cpu, clock, next, now);

	/*
	 * A tick between the moment when the scheduler has read its clock and the switch has
	 * charged generation 0 for too much, which @thread gets back.
	 */
	if (!cpu->owner && thread && thread->owed_ns > 0) {
		if (thread->owed_ns < (__s64)(begin - cpu->last_ns))
			begin -= (__u64)thread->owed_ns;
		else
			begin = cpu->last_ns;
	}
	charge(ctx, run_end(cpu, clock, prev, is_idle(clock, next) ? now : begin),
	       clock->idle != 0);
	if (clock->idle)
		leave_idle(ctx, cpu, clock);
	if ((__s64)(begin - cpu->last_ns) > GAP_NS) {
		cpu->owner = 0;
		charge(ctx, begin, 0);
	}
	clock->counted_ns = 0;
	clock->charged_ns = 0;
}

/*
 * @address runs, and had used @used_ns when it began. @thread: the same, NULL for the idle task and
 * for a new thread.
 */
static __always_inline void begin_thread(struct clock *clock, __u64 address, struct thread *thread,
					 __u64 used_ns)
{
	clock->thread = address;
	clock->exec_ns = used_ns;
	clock->known = 1;
	if (!thread)
		return;
	clock->counted_ns += thread->owed_ns;
	thread->owed_ns = 0;
}

/*
 * The thread at @address runs, but another one was switched in: some kernels do not trace each
 * switch. It has been running since @begin, and for @ran_ns of that the scheduler has counted it.
 */
__noinline int find_runner(struct bpf_raw_tracepoint_args *ctx, __u64 address, __u64 begin,
			   __u64 ran_ns)
{
	struct mw_relay_cpu *cpu = this_cpu();
	struct clock *clock = this_clock();
	struct thread *thread = NULL;
	__u64 owner = 0;

	if (!cpu || !clock)
		return 0;
	count_failure(MW_RELAY_FAIL_OWNER);
	charge(ctx, begin, clock->idle != 0);
	if (clock->idle)
		leave_idle(ctx, cpu, clock);
	if (!is_idle(clock, address)) {
		thread = find_thread(address);
		owner = thread_owner(ctx, address, cpu->last_ns, thread);
	}
	cpu->owner = owner;
	clock->counted_ns = 0;
	clock->charged_ns = 0;
	begin_thread(clock, address, thread, cpu_time(address) - ran_ns);
	return 0;
}

/* @prev is switched out, but another thread was switched in. */
static __always_inline void catch_up(struct bpf_raw_tracepoint_args *ctx, struct mw_relay_cpu *cpu,
				     struct clock *clock, __u64 prev, __u64 next, __u64 now)
{
	__u64 ran = cpu_time(prev) - cpu_time_before(prev), begin;

	begin = switch_begin(cpu, clock, next, now);
	if (ran > begin - cpu->last_ns)
		ran = begin - cpu->last_ns;
	find_runner(ctx, prev, begin - ran, ran);
}

/*
 * A tick finds @thread, but another one was switched in. The scheduler has read its clock when it
 * switched to @thread, and perhaps later.
 */
static __always_inline void catch_up_at_tick(struct bpf_raw_tracepoint_args *ctx,
					     struct mw_relay_cpu *cpu, struct clock *clock,
					     __u64 thread, __u64 now)
{
	const struct task_struct *task = (const struct task_struct *)thread;
	const struct rq *rq = (const struct rq *)clock->rq;
	__u64 ran = cpu_time(thread) - cpu_time_before(thread), read;

	if (!clock->rq) {
		find_runner(ctx, thread, cpu->last_ns, 0);
		return;
	}
	read = BPF_CORE_READ(task, se.exec_start) + BPF_CORE_READ(rq, clock) -
	       BPF_CORE_READ(rq, clock_task) + (__u64)clock->ahead_ns;
	if (read < cpu->last_ns || read > now)
		read = cpu->last_ns;
	if (ran > read - cpu->last_ns)
		ran = read - cpu->last_ns;
	find_runner(ctx, thread, read - ran, ran);
}

/* The CPU goes offline: what follows, which are the last steps of that, is not measured. */
static __always_inline void leave_cpu(struct bpf_raw_tracepoint_args *ctx, struct mw_relay_cpu *cpu,
				      struct clock *clock)
{
	flush_samples(ctx, cpu, 0);
	send_state(ctx, cpu, MEMWATCH_CPU_OFFLINE, cpu->last_ns, 0);
	cpu->active = 0;
	clock->due_ns = 0;
}

/* preempt, prev, next; and from 5.18 on the state of prev */
SEC("raw_tp/sched_switch")
int on_switch(struct bpf_raw_tracepoint_args *ctx)
{
	__u64 prev = ctx->args[1], next = ctx->args[2], now = bpf_ktime_get_ns(), owner = 0;
	struct mw_relay_cpu *cpu = this_cpu();
	struct clock *clock = this_clock();
	struct thread *thread = NULL;
	int idle;

	if (!cpu || !clock)
		return 0;
	if (cpu->active && clock->thread && clock->thread != prev)
		catch_up(ctx, cpu, clock, prev, next, now);
	idle = is_idle(clock, next);
	if (!idle)
		thread = find_thread(next);
	if (thread)
		owner = thread->owner;
	/* A new thread may have any owner. */
	if (cpu->active && (mode == MW_RELAY_SWITCH || owner != cpu->owner || clock->idle ||
			    clock->leaving || (!thread && !idle)))
		end_run(ctx, cpu, clock, prev, next, now, thread);
	else if (clock->known)
		clock->counted_ns += cpu_time(prev) - clock->exec_ns;
	if (cpu->active && clock->leaving)
		leave_cpu(ctx, cpu, clock);
	begin_thread(clock, next, thread, cpu_time(next));
	/* A new process begins where the one before it ends. */
	if (!idle)
		owner = thread_owner(ctx, next, cpu->active ? cpu->last_ns : now, thread);
	cpu->owner = owner;
	if (is_dead((const struct task_struct *)prev))
		end_thread(ctx, prev);
	return 0;
}

/* The process is current, and its leader: the other threads have ended. */
SEC("raw_tp/sched_process_exec")
int on_exec(struct bpf_raw_tracepoint_args *ctx)
{
	const struct task_struct *task = (const struct task_struct *)ctx->args[0];

	rename_process(ctx, task, (const char *)task + bpf_core_field_offset(task->comm),
		       MEMWATCH_REASON_EXEC);
	return 0;
}

/* task, and its new name. The name of a process is that of its leader. */
SEC("raw_tp/task_rename")
int on_rename(struct bpf_raw_tracepoint_args *ctx)
{
	const struct task_struct *task = (const struct task_struct *)ctx->args[0];

	if (is_executing(task) || BPF_CORE_READ(task, group_leader) != task)
		return 0;
	rename_process(ctx, task, (const char *)ctx->args[1], MEMWATCH_REASON_COMM);
	return 0;
}

/*
 * cpu, target, state: a step of bringing a CPU up or down. When CPUHP_AP_ACTIVE is left, which is
 * the first step down and runs on the CPU itself, its perf events still work. The next switch sends
 * OFFLINE; the kernel waits for all CPUs to switch before it goes on.
 */
SEC("raw_tp/cpuhp_enter")
int on_hotplug(struct bpf_raw_tracepoint_args *ctx)
{
	int target = (int)ctx->args[1], state = (int)ctx->args[2];
	struct clock *clock = this_clock();

	if (clock && (__u32)ctx->args[0] == bpf_get_smp_processor_id() &&
	    state == (int)bpf_core_enum_value(enum cpuhp_state, CPUHP_AP_ACTIVE))
		clock->leaving = target < state;
	return 0;
}

static __always_inline void fill_tick(struct mw_relay_cpu *cpu, const struct clock *clock,
				      __u64 now)
{
	struct memwatch_record_tick *rec = &cpu->tick;

	rec->h.time_ns = now;
	rec->h.type = MEMWATCH_RECORD_TICK;
	rec->h.size = sizeof(*rec);
	rec->h.cpu = bpf_get_smp_processor_id();
	rec->expected_ns = now - now % period_ns;
	rec->period_ns = period_ns;
	rec->overruns = 0;
	if (clock->due_ns && rec->expected_ns > clock->due_ns)
		rec->overruns = (rec->expected_ns - clock->due_ns) / period_ns;
}

/*
 * Charges the time up to a tick. What the scheduler would not count, such as the time that the host
 * has stolen, is that of generation 0.
 */
static __always_inline void charge_tick(struct bpf_raw_tracepoint_args *ctx,
					struct mw_relay_cpu *cpu, struct clock *clock, __u64 now)
{
	__u64 owner = cpu->owner;
	__s64 gap = 0, due;

	if (owner && clock->known && clock->rq) {
		due = clock->counted_ns + (__s64)(cpu_time_until(clock, now) - clock->exec_ns) -
		      clock->charged_ns;
		if (due < 0)
			due = 0;
		gap = (__s64)(now - cpu->last_ns) - due;
	}
	if (gap > GAP_NS) {
		charge(ctx, now - (__u64)gap, 0);
		due = clock->charged_ns;
		cpu->owner = 0;
		charge(ctx, now, 1);
		cpu->owner = owner;
		clock->charged_ns = due;
		return;
	}
	charge(ctx, now, 1);
}

/* hrtimer, now: before the function of a timer is called */
SEC("raw_tp/hrtimer_expire_entry")
int on_timer(struct bpf_raw_tracepoint_args *ctx)
{
	const struct hrtimer *timer = (const struct hrtimer *)ctx->args[0];
	struct mw_relay_cpu *cpu = this_cpu();
	struct clock *clock = this_clock();
	const struct thread *running;
	__u64 now, thread;
	int idle;

	if (!cpu || !clock || (clock->idle && !stopping))
		return 0;
	now = bpf_ktime_get_ns();
	/* Timers of softirqs run with interrupts on. */
	if (now < clock->due_ns || BPF_CORE_READ_BITFIELD_PROBED(timer, is_soft))
		return 0;
	thread = bpf_get_current_task();
	if (!cpu->active) {
		if (stopping || clock->leaving)
			return 0;
		clock->thread = thread;
		clock->known = 0;
		activate_cpu(cpu, now, thread_owner(ctx, thread, now, find_thread(thread)));
		send_state(ctx, cpu, MEMWATCH_CPU_ONLINE, now, 0);
	} else {
		if (clock->thread != thread)
			catch_up_at_tick(ctx, cpu, clock, thread, now);
		charge_tick(ctx, cpu, clock, now);
		now = cpu->last_ns;
	}
	if (stopping) {
		flush_samples(ctx, cpu, 0);
		send_state(ctx, cpu, MEMWATCH_CPU_STOPPED, now, 0);
		cpu->active = 0;
		return 0;
	}
	idle = is_idle(clock, thread);
	fill_tick(cpu, clock, now);
	clock->due_ns = cpu->tick.expected_ns + period_ns;
	clock->tick_ns = now;
	flush_samples(ctx, cpu, 1);
	if (idle) {
		clock->idle = 1;
		send_state(ctx, cpu, MEMWATCH_CPU_IDLE, now, now);
		return 0;
	}
	running = find_thread(thread);
	if (running)
		update_name(ctx, thread, running->process, now);
	return 0;
}
