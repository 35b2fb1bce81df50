/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The tracepoints of the system "memwatch", through which the module reports
 * all events.
 *
 * All names start with memwatch_ because BPF finds raw tracepoints by name
 * alone. The names share one flat name space, in which those of vmlinux come
 * first: nothing could attach to a "sched_switch" of ours, and the kernel may
 * add any generic name.
 *
 * The arguments are the contract with bpf/relay.bpf.c. Structures are those of
 * the UAPI and include the record header, so that the relay only copies them.
 *
 * memwatch_switch, memwatch_tick and memwatch_cpu_state are about the CPU on
 * which they fire. They fire with interrupts disabled, even in a hotplug
 * callback, so the relay keeps the state of the CPU without a lock. The others
 * may fire in any context.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM memwatch

/* clang-format off */
#if !defined(_MW_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _MW_TRACE_H

#include <linux/tracepoint.h>
#include <linux/memwatch.h>

/*
 * An owner is what a CPU is charged to: generation << 32 | RMID. Owner 0 stands
 * for everything without an RMID.
 */
TRACE_EVENT(memwatch_tick,
	TP_PROTO(u64 now_ns, u64 expected_ns, u32 period_ns, u32 overruns, u64 owner),
	TP_ARGS(now_ns, expected_ns, period_ns, overruns, owner),
	TP_STRUCT__entry(
		__field(u64, now_ns)
		__field(u64, expected_ns)
		__field(u32, period_ns)
		__field(u32, overruns)
		__field(u64, owner)
	),
	TP_fast_assign(
		__entry->now_ns = now_ns;
		__entry->expected_ns = expected_ns;
		__entry->period_ns = period_ns;
		__entry->overruns = overruns;
		__entry->owner = owner;
	),
	TP_printk("now=%llu expected=%llu period=%u overruns=%u rmid=%u generation=%u",
		  __entry->now_ns, __entry->expected_ns, __entry->period_ns, __entry->overruns,
		  (u32)__entry->owner, (u32)(__entry->owner >> 32))
);

/*
 * Fires at each context switch, after PQR_ASSOC was written, and when the owner
 * changes otherwise, because a running process got or lost its RMID. next_pid
 * is the thread id of the task that runs from now on.
 */
TRACE_EVENT(memwatch_switch,
	TP_PROTO(u64 now_ns, u64 prev_owner, u64 next_owner, u32 next_pid),
	TP_ARGS(now_ns, prev_owner, next_owner, next_pid),
	TP_STRUCT__entry(
		__field(u64, now_ns)
		__field(u64, prev_owner)
		__field(u64, next_owner)
		__field(u32, next_pid)
	),
	TP_fast_assign(
		__entry->now_ns = now_ns;
		__entry->prev_owner = prev_owner;
		__entry->next_owner = next_owner;
		__entry->next_pid = next_pid;
	),
	TP_printk("now=%llu prev_rmid=%u prev_generation=%u next_rmid=%u next_generation=%u next_pid=%u",
		  __entry->now_ns, (u32)__entry->prev_owner, (u32)(__entry->prev_owner >> 32),
		  (u32)__entry->next_owner, (u32)(__entry->next_owner >> 32), __entry->next_pid)
);

DECLARE_EVENT_CLASS(memwatch_rmid,
	TP_PROTO(const struct memwatch_record_rmid *rec),
	TP_ARGS(rec),
	TP_STRUCT__entry(
		__field(u64, time_ns)
		__field(u32, rmid)
		__field(u32, generation)
		__field(u32, tgid)
		__field(u32, parent_tgid)
		__field(u64, start_time_ns)
		__field(u64, alloc_time_ns)
		__field(u64, cgroup_id)
		__field(u32, uid)
		__field(u32, reason)
		__array(char, comm, MEMWATCH_COMM_LEN)
		__field(u64, unmeasured_ns)
	),
	TP_fast_assign(
		__entry->time_ns = rec->h.time_ns;
		__entry->rmid = rec->rmid;
		__entry->generation = rec->generation;
		__entry->tgid = rec->tgid;
		__entry->parent_tgid = rec->parent_tgid;
		__entry->start_time_ns = rec->start_time_ns;
		__entry->alloc_time_ns = rec->alloc_time_ns;
		__entry->cgroup_id = rec->cgroup_id;
		__entry->uid = rec->uid;
		__entry->reason = rec->reason;
		memcpy(__entry->comm, rec->comm, MEMWATCH_COMM_LEN);
		__entry->unmeasured_ns = rec->unmeasured_ns;
	),
	TP_printk("time=%llu rmid=%u generation=%u tgid=%u parent=%u start=%llu alloc=%llu cgroup=%llu uid=%u reason=%u unmeasured=%llu comm=%s",
		  __entry->time_ns, __entry->rmid, __entry->generation, __entry->tgid,
		  __entry->parent_tgid, __entry->start_time_ns, __entry->alloc_time_ns,
		  __entry->cgroup_id, __entry->uid, __entry->reason, __entry->unmeasured_ns,
		  __entry->comm)
);

DEFINE_EVENT(memwatch_rmid, memwatch_rmid_alloc,
	TP_PROTO(const struct memwatch_record_rmid *rec), TP_ARGS(rec));
DEFINE_EVENT(memwatch_rmid, memwatch_rmid_existing,
	TP_PROTO(const struct memwatch_record_rmid *rec), TP_ARGS(rec));
DEFINE_EVENT(memwatch_rmid, memwatch_rmid_exec,
	TP_PROTO(const struct memwatch_record_rmid *rec), TP_ARGS(rec));
DEFINE_EVENT(memwatch_rmid, memwatch_rmid_free,
	TP_PROTO(const struct memwatch_record_rmid *rec), TP_ARGS(rec));

DECLARE_EVENT_CLASS(memwatch_dump,
	TP_PROTO(const struct memwatch_record_dump *rec),
	TP_ARGS(rec),
	TP_STRUCT__entry(
		__field(u64, time_ns)
		__field(u64, sequence)
		__field(u32, count)
		__field(u32, unmeasured)
	),
	TP_fast_assign(
		__entry->time_ns = rec->h.time_ns;
		__entry->sequence = rec->sequence;
		__entry->count = rec->count;
		__entry->unmeasured = rec->unmeasured;
	),
	TP_printk("time=%llu sequence=%llu count=%u unmeasured=%u", __entry->time_ns,
		  __entry->sequence, __entry->count, __entry->unmeasured)
);

DEFINE_EVENT(memwatch_dump, memwatch_dump_begin,
	TP_PROTO(const struct memwatch_record_dump *rec), TP_ARGS(rec));
DEFINE_EVENT(memwatch_dump, memwatch_dump_end,
	TP_PROTO(const struct memwatch_record_dump *rec), TP_ARGS(rec));

TRACE_EVENT(memwatch_cpu_state,
	TP_PROTO(const struct memwatch_record_cpu *rec),
	TP_ARGS(rec),
	TP_STRUCT__entry(
		__field(u64, time_ns)
		__field(u32, state)
		__field(u64, since_ns)
	),
	TP_fast_assign(
		__entry->time_ns = rec->h.time_ns;
		__entry->state = rec->state;
		__entry->since_ns = rec->since_ns;
	),
	TP_printk("time=%llu state=%u since=%llu", __entry->time_ns, __entry->state,
		  __entry->since_ns)
);

/* tick_follows: the next event of this CPU is memwatch_tick, often with the same time. */
TRACE_EVENT(memwatch_rdt_sample,
	TP_PROTO(const struct memwatch_record_rdt *rec, bool tick_follows),
	TP_ARGS(rec, tick_follows),
	TP_STRUCT__entry(
		__field(u64, time_ns)
		__field(u32, rmid)
		__field(u32, generation)
		__field(u32, domain)
		__array(u8, status, MEMWATCH_RDT_MAX)
		__array(u64, value, MEMWATCH_RDT_MAX)
		__field(u64, age_ns)
	),
	TP_fast_assign(
		__entry->time_ns = rec->h.time_ns;
		__entry->rmid = rec->rmid;
		__entry->generation = rec->generation;
		__entry->domain = rec->domain;
		memcpy(__entry->status, rec->status, sizeof(rec->status));
		memcpy(__entry->value, rec->value, sizeof(rec->value));
		__entry->age_ns = rec->age_ns;
	),
	TP_printk("time=%llu rmid=%u generation=%u domain=%u occupancy=%llu/%u total=%llu/%u local=%llu/%u age=%llu",
		  __entry->time_ns, __entry->rmid, __entry->generation, __entry->domain,
		  __entry->value[0], __entry->status[0], __entry->value[1], __entry->status[1],
		  __entry->value[2], __entry->status[2], __entry->age_ns)
);

TRACE_EVENT(memwatch_notice,
	TP_PROTO(const struct memwatch_record_notice *rec),
	TP_ARGS(rec),
	TP_STRUCT__entry(
		__field(u64, time_ns)
		__field(u32, kind)
		__field(u64, count)
		__field(u64, value)
	),
	TP_fast_assign(
		__entry->time_ns = rec->h.time_ns;
		__entry->kind = rec->kind;
		__entry->count = rec->count;
		__entry->value = rec->value;
	),
	TP_printk("time=%llu kind=%u count=%llu value=%#llx", __entry->time_ns, __entry->kind,
		  __entry->count, __entry->value)
);

#endif /* _MW_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
