/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Which process a thread belongs to, without the module: a generation for each process, and the
 * records of its life. Included by scheduler.bpf.c.
 *
 * A thread is registered when it is switched in for the first time, and its process with its
 * first thread. A process ends when its last registered thread has been switched out for the last
 * time and the kernel counts no live thread (signal->live): a thread that never ran is live, and
 * one that has passed that count, but is not dead yet, has run and is registered. A thread that
 * was already exiting when the session began is not registered.
 *
 * Keys are addresses. That of a task is unique until its last switch, because the scheduler
 * holds it until then; and each task holds its signal_struct, which all threads of a process
 * share, from its creation until it is freed. Neither changes with execve(), even of a thread
 * that is not the leader.
 *
 * The maps are preallocated, because programs under the run queue lock must not allocate memory.
 */
#ifndef _MW_SCHEDULER_IDENTITY_H
#define _MW_SCHEDULER_IDENTITY_H

#include <bpf/bpf_core_read.h>

#include "kernel.h"
#include "relay-send.h"

#define BPF_NOEXIST_FLAG 1

/* Set by the library before loading. */
const volatile __u32 cpus = 1;	   /* possible CPUs */
const volatile __u64 since_ns = 0; /* CLOCK_BOOTTIME: when the session began */

/**
 * struct thread - a registered thread
 * @owner: what its time is charged to
 * @process: the key of its process
 * @owed_ns: time that the scheduler has counted for it and that is not charged yet; negative if
 *	more was charged
 */
struct thread {
	__u64 owner;
	__u64 process;
	__s64 owed_ns;
};

/**
 * struct process - a process with a registered thread
 * @threads: number of its registered threads
 * @renaming_ns: when its name was about to change
 * @unsent: the record of its name was dropped
 * @record: the fields that all records about it have in common
 */
struct process {
	__u64 threads;
	__u64 renaming_ns;
	__u64 unsent;
	struct memwatch_record_rmid record;
};

/* By the address of the task. The library sets max_entries of both. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, struct thread);
} threads SEC(".maps");

/* By the address of the signal_struct. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__type(key, __u64);
	__type(value, struct process);
} processes SEC(".maps");

/*
 * Processes of which no record was sent because a ring was full, by the address of the
 * signal_struct; the value is the time of the last try.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u64);
	__type(value, __u64);
} unknown SEC(".maps");

/* Their number. */
__u64 unknown_processes;

/* From one try to send a record of an unknown process to the next one. */
#define RETRY_NS 1000000

/* The kernel changes a name after on_rename, which may be preempted there. */
#define RENAMING_NS 10000000

/**
 * struct identities - what a CPU needs to identify processes
 * @given: how many generations it has given
 * @process: scratch: a new process
 * @one: scratch: a record; the stack has no room for it. Only for programs that run with
 *	interrupts off.
 */
struct identities {
	__u64 given;
	struct process process;
	struct single_batch one;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct identities);
} identities SEC(".maps");

static __always_inline struct identities *this_identities(void)
{
	__u32 key = 0;

	return bpf_map_lookup_elem(&identities, &key);
}

/*
 * Each CPU gives generations of its own, because BPF of 5.10 cannot add and read a shared
 * counter at once. 0 if none is left.
 */
static __always_inline __u32 new_generation(struct identities *ids)
{
	__u64 generation = 1 + ids->given * cpus + bpf_get_smp_processor_id();

	if (generation >> 32)
		return 0;
	ids->given++;
	return generation;
}

/* What may change during the life of a process. */
static __always_inline void read_credentials(struct memwatch_record_rmid *rec,
					     const struct task_struct *task)
{
	rec->cgroup_id = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
	rec->uid = BPF_CORE_READ(task, real_cred, uid.val);
}

static __always_inline void describe_process(struct memwatch_record_rmid *rec,
					     const struct task_struct *task, __u64 now)
{
	const struct task_struct *leader = BPF_CORE_READ(task, group_leader);

	rec->tgid = BPF_CORE_READ(task, tgid);
	rec->parent_tgid = BPF_CORE_READ(leader, real_parent, tgid);
	rec->start_time_ns = BPF_CORE_READ(leader, start_boottime);
	rec->alloc_time_ns = now;
	read_credentials(rec, leader);
	BPF_CORE_READ_STR_INTO(&rec->comm, leader, comm);
	rec->reason = rec->start_time_ns < since_ns ? MEMWATCH_REASON_SCAN : MEMWATCH_REASON_FORK;
}

/* Begins a record about @process; the time is the caller's. */
static __always_inline void begin_record(struct single_batch *one, const struct process *process,
					 __u16 type, __u32 reason, __u64 now)
{
	one->rmid = process->record;
	one->h.time_ns = now;
	one->h.type = type;
	one->h.size = sizeof(one->rmid);
	one->h.cpu = bpf_get_smp_processor_id();
	one->h.flags = 0;
	one->rmid.reason = reason;
}

/* Two threads may be switched in at the same time: the process of the first one counts. */
static __always_inline struct process *add_process(struct bpf_raw_tracepoint_args *ctx,
						   struct mw_relay_cpu *cpu, struct identities *ids,
						   const struct task_struct *task, __u64 key,
						   __u64 now)
{
	struct process *new = &ids->process;

	new->threads = new->renaming_ns = new->unsent = 0;
	describe_process(&new->record, task, now);
	new->record.generation = new_generation(ids);
	if (!new->record.generation)
		return NULL;
	if (!bpf_map_update_elem(&processes, &key, new, BPF_NOEXIST_FLAG)) {
		begin_record(&ids->one, new, MEMWATCH_RECORD_RMID_ALLOC, new->record.reason, now);
		if (send_single(ctx, cpu, &ids->one, sizeof(ids->one.rmid)) &&
		    !bpf_map_update_elem(&unknown, &key, &now, BPF_NOEXIST_FLAG))
			__sync_fetch_and_add(&unknown_processes, 1);
	}
	return bpf_map_lookup_elem(&processes, &key);
}

/* Whether @task may have begun to exit before it could be seen. */
static __always_inline int is_leaving(const struct task_struct *task, __u32 flags)
{
	return flags & PF_EXITING && BPF_CORE_READ(task, group_leader, start_boottime) < since_ns;
}

/* Registers a thread that is switched in for the first time. Returns what it is charged to. */
__noinline __u64 register_thread(struct bpf_raw_tracepoint_args *ctx, __u64 address, __u64 now)
{
	const struct task_struct *task = (const struct task_struct *)address;
	struct identities *ids = this_identities();
	struct mw_relay_cpu *cpu = this_cpu();
	struct process *process;
	struct thread thread;
	int leaving;
	__u32 flags;

	flags = BPF_CORE_READ(task, flags);
	if (!cpu || !ids || flags & PF_KTHREAD)
		return 0;
	leaving = is_leaving(task, flags);
	thread.process = (__u64)BPF_CORE_READ(task, signal);
	process = bpf_map_lookup_elem(&processes, &thread.process);
	if (!process && !leaving) {
		process = add_process(ctx, cpu, ids, task, thread.process, now);
		if (!process)
			count_failure(MW_RELAY_FAIL_IDENTITY);
	}
	if (!process)
		return 0;
	thread.owner = (__u64)process->record.generation << 32;
	thread.owed_ns = 0;
	if (leaving)
		return thread.owner;
	__sync_fetch_and_add(&process->threads, 1);
	if (bpf_map_update_elem(&threads, &address, &thread, BPF_NOEXIST_FLAG)) {
		__sync_fetch_and_add(&process->threads, -1);
		count_failure(MW_RELAY_FAIL_IDENTITY);
	}
	return thread.owner;
}

/* Of two CPUs that try it at the same time, one counts. */
static __always_inline void forget_unknown(__u64 key)
{
	if (unknown_processes && !bpf_map_delete_elem(&unknown, &key))
		__sync_fetch_and_add(&unknown_processes, -1);
}

/* Sends a record of the process with @key, if none was sent yet. */
__noinline int introduce_process(struct bpf_raw_tracepoint_args *ctx, __u64 key, __u64 now)
{
	__u64 *tried = bpf_map_lookup_elem(&unknown, &key);
	struct identities *ids = this_identities();
	struct mw_relay_cpu *cpu = this_cpu();
	struct process *process;

	/* Another CPU may have tried since @now. */
	if (!tried || !cpu || !ids || (__s64)(now - *tried) < RETRY_NS)
		return 0;
	process = bpf_map_lookup_elem(&processes, &key);
	if (!process)
		return 0;
	*tried = now;
	begin_record(&ids->one, process, MEMWATCH_RECORD_RMID_EXISTING, MEMWATCH_REASON_SCAN, now);
	if (!send_single(ctx, cpu, &ids->one, sizeof(ids->one.rmid)))
		forget_unknown(key);
	return 0;
}

static __always_inline struct thread *find_thread(__u64 address)
{
	return bpf_map_lookup_elem(&threads, &address);
}

/* What the task at @address is charged to while it runs. @thread is find_thread() of it. */
static __always_inline __u64 thread_owner(struct bpf_raw_tracepoint_args *ctx, __u64 address,
					  __u64 now, const struct thread *thread)
{
	if (!thread)
		return register_thread(ctx, address, now);
	if (unknown_processes)
		introduce_process(ctx, thread->process, now);
	return thread->owner;
}

/* Is @task executing a new program? Then it gets the name first, and on_exec follows. */
static __always_inline int is_executing(const struct task_struct *task)
{
	return bpf_core_field_exists(task->in_execve) &&
	       BPF_CORE_READ_BITFIELD_PROBED(task, in_execve);
}

static __always_inline int is_same_name(const char *a, const char *b)
{
	int i;

	for (i = 0; i < 16; i++) {
		if (a[i] != b[i])
			return 0;
		if (!a[i])
			break;
	}
	return 1;
}

/*
 * Sends the name of the process with @key, of which the task at @address is a thread, if it is
 * another one than was sent last, or if that was dropped. From 7.0 on (a46023d5616e, "tracing:
 * Guard __DECLARE_TRACE() use of __DO_TRACE_CALL() with SRCU-fast") on_exec and on_rename can be
 * preempted, and the kernel skips them for all other tasks of the CPU until they go on. Ticks and
 * switches are not preempted.
 */
__noinline int update_name(struct bpf_raw_tracepoint_args *ctx, __u64 address, __u64 key, __u64 now)
{
	const struct task_struct *task = (const struct task_struct *)address;
	const struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	struct process *process = bpf_map_lookup_elem(&processes, &key);
	struct identities *ids = this_identities();
	struct mw_relay_cpu *cpu = this_cpu();
	char comm[16] = {};

	if (!process || !ids || !cpu || is_executing(task))
		return 0;
	/* The leader of a thread that is exiting may have been freed. */
	if (leader != task && BPF_CORE_READ(task, flags) & PF_EXITING)
		return 0;
	/* A process without a thread does not change its name. */
	if (process->threads && (__s64)(now - process->renaming_ns) < RENAMING_NS)
		return 0;
	BPF_CORE_READ_STR_INTO(&comm, leader, comm);
	if (!process->unsent && is_same_name(comm, process->record.comm))
		return 0;
	read_credentials(&process->record, leader);
	__builtin_memcpy(process->record.comm, comm, sizeof(comm));
	begin_record(&ids->one, process, MEMWATCH_RECORD_RMID_EXEC, MEMWATCH_REASON_COMM, now);
	process->unsent = !!send_single(ctx, cpu, &ids->one, sizeof(ids->one.rmid));
	return 0;
}

/*
 * A thread was switched out for the last time. Two last threads may end at the same time on two
 * CPUs: the one that deletes the process sends the record.
 */
__noinline int end_thread(struct bpf_raw_tracepoint_args *ctx, __u64 address)
{
	struct thread *thread = bpf_map_lookup_elem(&threads, &address);
	struct identities *ids = this_identities();
	const struct signal_struct *signal;
	struct mw_relay_cpu *cpu = this_cpu();
	struct process *process;
	__u64 key;

	if (!thread || !cpu || !ids)
		return 0;
	key = thread->process;
	bpf_map_delete_elem(&threads, &address);
	process = bpf_map_lookup_elem(&processes, &key);
	if (!process)
		return 0;
	__sync_fetch_and_add(&process->threads, -1);
	signal = (const struct signal_struct *)key;
	if (process->threads || BPF_CORE_READ(signal, live.counter))
		return 0;
	update_name(ctx, address, key, bpf_ktime_get_ns());
	/* Not the time of the switch: the other thread may have ended later than this one. */
	begin_record(&ids->one, process, MEMWATCH_RECORD_RMID_FREE, MEMWATCH_REASON_EXIT,
		     bpf_ktime_get_ns());
	forget_unknown(key);
	if (!bpf_map_delete_elem(&processes, &key))
		send_single(ctx, cpu, &ids->one, sizeof(ids->one.rmid));
	return 0;
}

/* The process of @task has another name, or a new program. Its name is @comm. */
static __always_inline void rename_process(struct bpf_raw_tracepoint_args *ctx,
					   const struct task_struct *task, const char *comm,
					   __u32 reason)
{
	__u64 key = (__u64)BPF_CORE_READ(task, signal), now = bpf_ktime_get_ns();
	struct process *process = bpf_map_lookup_elem(&processes, &key);
	struct mw_relay_cpu *cpu = this_cpu();
	struct single_batch one = { .rmid = {} };

	/* a process that has not been seen yet is described when it is switched in */
	if (!process || !cpu)
		return;
	if (reason == MEMWATCH_REASON_COMM)
		process->renaming_ns = now;
	read_credentials(&process->record, task);
	bpf_probe_read_kernel_str(process->record.comm, sizeof(process->record.comm), comm);
	begin_record(&one, process, MEMWATCH_RECORD_RMID_EXEC, reason, now);
	process->unsent = !!send_interruptible(ctx, cpu, &one, sizeof(one.rmid));
}

#endif /* _MW_SCHEDULER_IDENTITY_H */
