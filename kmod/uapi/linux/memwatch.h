/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * memwatch: the contract between the kernel module, the BPF relay, the
 * library and everybody else. This file is the manual of that contract.
 *
 * The module gives every process a resource monitoring id (RMID), programs it
 * at each context switch and ticks on every CPU. It says what it does in three
 * ways:
 *
 *  - RECORDS. Tracepoints of the system "memwatch" carry the structures below;
 *    the BPF relay sends them, unchanged, through one perf event array. The
 *    wire layout therefore exists once: here.
 *  - IOCTLS on /dev/memwatch. A session is an open file. While at least one
 *    session is started the module tracks processes and ticks; when the last
 *    one is stopped or closed (also by kill -9) no probe, no timer and no RMID
 *    is left behind.
 *  - TEXT in /proc/memwatch. See "proc files" at the end.
 *
 * Two numbers describe compatibility. MEMWATCH_ABI counts changes of the
 * ioctls, MEMWATCH_SCHEMA counts changes of the records. Records grow at the
 * tail only; a reader skips unknown types by @size and ignores a longer tail.
 *
 * Units: time is in nanoseconds of CLOCK_MONOTONIC (the clock that
 * bpf_ktime_get_ns() and ktime_get_mono_fast_ns() read), except start_time_ns,
 * which is in CLOCK_BOOTTIME as in field 22 of /proc/PID/stat. Sizes are bytes.
 */
#ifndef _UAPI_LINUX_MEMWATCH_H
#define _UAPI_LINUX_MEMWATCH_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define MEMWATCH_ABI	  1
#define MEMWATCH_SCHEMA	  1

#define MEMWATCH_COMM_LEN 16

/*
 * Identity. A process is (tgid, start_time_ns): tgid alone recycles. An RMID
 * recycles too, so every record that names one carries its generation: the
 * number of times that this RMID has been handed out, counted from 1 and never
 * reset while the module is loaded. The pair (rmid, generation) names exactly
 * one process for ever; a record of an old generation can never be taken for
 * the next owner's (no ABA).
 *
 * RMID 0, generation 0, is everything unassigned: idle, kernel threads,
 * processes that are filtered out or got no RMID because there were none left.
 * It is never allocated and never freed, always measured, always reported.
 */
#define MEMWATCH_RMID_UNASSIGNED 0

/* ------------------------------------------------------------- records */

/**
 * enum memwatch_record_type - what follows the header
 * @MEMWATCH_RECORD_SAMPLE: counters of one RMID on one CPU over one interval
 * @MEMWATCH_RECORD_TICK: this CPU has reported everything up to @time_ns
 * @MEMWATCH_RECORD_RMID_ALLOC: an RMID was given to a process
 * @MEMWATCH_RECORD_RMID_EXISTING: part of a dump: this assignment holds now
 * @MEMWATCH_RECORD_RMID_EXEC: the owner executed or renamed itself
 * @MEMWATCH_RECORD_RMID_FREE: the RMID was taken back; @time_ns is the start of
 *	its limbo: the moment of the last switch-out of the last thread, or, from a
 *	process that lives on, the moment when no CPU runs with it any more
 * @MEMWATCH_RECORD_DUMP_BEGIN: a dump starts
 * @MEMWATCH_RECORD_DUMP_END: the dump of the same sequence number is complete
 * @MEMWATCH_RECORD_CPU_STATE: a CPU came, went, or stopped its tick
 * @MEMWATCH_RECORD_RDT: cache and bandwidth of one RMID in one L3 domain
 * @MEMWATCH_RECORD_NOTICE: somebody else uses RDT
 * @MEMWATCH_RECORD_LOST: made by the library, never on the wire: records of
 *	one CPU were lost
 * @MEMWATCH_RECORD_GROWTH: made by the growth monitor, which needs no module:
 *	an alert about a process was raised or cleared
 */
enum memwatch_record_type {
	MEMWATCH_RECORD_SAMPLE = 1,
	MEMWATCH_RECORD_TICK = 2,
	MEMWATCH_RECORD_RMID_ALLOC = 3,
	MEMWATCH_RECORD_RMID_EXISTING = 4,
	MEMWATCH_RECORD_RMID_EXEC = 5,
	MEMWATCH_RECORD_RMID_FREE = 6,
	MEMWATCH_RECORD_DUMP_BEGIN = 7,
	MEMWATCH_RECORD_DUMP_END = 8,
	MEMWATCH_RECORD_CPU_STATE = 9,
	MEMWATCH_RECORD_RDT = 10,
	MEMWATCH_RECORD_NOTICE = 11,
	MEMWATCH_RECORD_LOST = 64,
	MEMWATCH_RECORD_GROWTH = 65,
};

/*
 * Header flags. They are zero on the wire; the library sets them on delivery.
 *
 * LATE: the record arrived behind the watermark, so records with a later time
 *	were delivered before it. The stream is sorted except for these.
 * FORCED: the watermark had to pass a silent CPU by time-out to deliver this
 *	record; that CPU may still deliver late ones.
 */
#define MEMWATCH_RECORD_F_LATE	 (1 << 0)
#define MEMWATCH_RECORD_F_FORCED (1 << 1)

/**
 * struct memwatch_record_header - first member of every record
 * @time_ns: when it happened; the key of the global order
 * @type: &enum memwatch_record_type
 * @size: bytes of the whole record, header included, a multiple of 8
 * @cpu: the CPU it happened on
 * @flags: MEMWATCH_RECORD_F_*
 */
struct memwatch_record_header {
	__u64 time_ns;
	__u16 type;
	__u16 size;
	__u16 cpu;
	__u16 flags;
};

/**
 * enum memwatch_status - how far a measured value can be trusted
 * @MEMWATCH_STATUS_UNAVAILABLE: not measured; the value is 0 and means nothing
 * @MEMWATCH_STATUS_OK: measured
 * @MEMWATCH_STATUS_ERROR: the hardware or the kernel reported an error
 * @MEMWATCH_STATUS_STALE: an older reading, repeated
 * @MEMWATCH_STATUS_FIRST: first reading after allocation, no delta yet
 * @MEMWATCH_STATUS_ESTIMATED: derived from another quantity
 * @MEMWATCH_STATUS_MULTIPLEXED: the counter was on the hardware for only part
 *	of the interval; the value is scaled up
 *
 * A missing value is never a 0. Where values of different status are added,
 * the sum carries the worst of them (memwatch_status_worst() in the library).
 */
enum memwatch_status {
	MEMWATCH_STATUS_UNAVAILABLE = 0,
	MEMWATCH_STATUS_OK = 1,
	MEMWATCH_STATUS_ERROR = 2,
	MEMWATCH_STATUS_STALE = 3,
	MEMWATCH_STATUS_FIRST = 4,
	MEMWATCH_STATUS_ESTIMATED = 5,
	MEMWATCH_STATUS_MULTIPLEXED = 6,
};

/**
 * enum memwatch_counter - index into the arrays of &struct memwatch_record_sample
 * @MEMWATCH_COUNTER_CYCLES: core cycles
 * @MEMWATCH_COUNTER_INSTRUCTIONS: instructions retired
 * @MEMWATCH_COUNTER_LLC_REFERENCES: last-level cache references
 * @MEMWATCH_COUNTER_LLC_MISSES: last-level cache misses
 * @MEMWATCH_COUNTER_MAX: how many there are
 */
enum memwatch_counter {
	MEMWATCH_COUNTER_CYCLES = 0,
	MEMWATCH_COUNTER_INSTRUCTIONS = 1,
	MEMWATCH_COUNTER_LLC_REFERENCES = 2,
	MEMWATCH_COUNTER_LLC_MISSES = 3,
	MEMWATCH_COUNTER_MAX = 4,
};

/**
 * struct memwatch_record_sample - what one RMID did on one CPU
 * @h: @h.time_ns is the end of the interval
 * @rmid: who ran
 * @generation: generation of @rmid
 * @begin_ns: start of the interval; [begin_ns, h.time_ns) is at most one tick
 *	period long while the CPU ticks
 * @run_ns: how much of the interval this RMID ran on this CPU. The intervals
 *	of one CPU partition its time: the run_ns of all its RMIDs, RMID 0
 *	included, add up to wall time.
 * @counter: increments during @run_ns, indexed by &enum memwatch_counter
 * @status: &enum memwatch_status of each counter
 * @running_ppm: the smallest share of the interval, in parts per million, for
 *	which a counter was on the hardware; 1000000 when none was multiplexed
 */
struct memwatch_record_sample {
	struct memwatch_record_header h;
	__u32 rmid;
	__u32 generation;
	__u64 begin_ns;
	__u64 run_ns;
	__u64 counter[4];
	__u8 status[4];
	__u32 running_ppm;
};

/**
 * struct memwatch_record_tick - end of a slot on one CPU
 * @h: @h.time_ns is the moment the handler ran. The relay sends the samples of
 *	the slot first, then this record: everything this CPU will ever say
 *	about times before @h.time_ns has been sent.
 * @expected_ns: when the timer was due, a multiple of @period_ns
 * @period_ns: the period in force
 * @overruns: periods that passed without a tick before this one
 * @produced: records the relay tried to send from this CPU since it was
 *	attached, this one included
 * @dropped: those of them that did not fit into the ring
 */
struct memwatch_record_tick {
	struct memwatch_record_header h;
	__u64 expected_ns;
	__u32 period_ns;
	__u32 overruns;
	__u64 produced;
	__u64 dropped;
};

/**
 * enum memwatch_reason - why an RMID changed hands
 * @MEMWATCH_REASON_FORK: alloc: assigned at birth
 * @MEMWATCH_REASON_SCAN: alloc: the process existed before the session
 * @MEMWATCH_REASON_PROMOTED: alloc: it had been waiting for an RMID
 * @MEMWATCH_REASON_EXIT: free: the last thread is gone
 * @MEMWATCH_REASON_REVOKED: free: the policy took it from an idle process
 * @MEMWATCH_REASON_FILTERED: free: a filter now excludes the process
 * @MEMWATCH_REASON_EXEC: exec: the process executed a new program
 * @MEMWATCH_REASON_COMM: exec: the process renamed itself (PR_SET_NAME)
 * @MEMWATCH_REASON_STOP: free: the last session ended
 */
enum memwatch_reason {
	MEMWATCH_REASON_FORK = 1,
	MEMWATCH_REASON_SCAN = 2,
	MEMWATCH_REASON_PROMOTED = 3,
	MEMWATCH_REASON_EXIT = 4,
	MEMWATCH_REASON_REVOKED = 5,
	MEMWATCH_REASON_FILTERED = 6,
	MEMWATCH_REASON_EXEC = 7,
	MEMWATCH_REASON_COMM = 8,
	MEMWATCH_REASON_STOP = 9,
};

/**
 * struct memwatch_record_rmid - RMID_ALLOC, RMID_EXISTING, RMID_EXEC, RMID_FREE
 * @h: header
 * @rmid: the RMID
 * @generation: its generation
 * @tgid: process id in the initial pid namespace
 * @parent_tgid: process id of the parent at allocation
 * @start_time_ns: CLOCK_BOOTTIME start of the process; with @tgid its identity
 * @alloc_time_ns: when this RMID was given to it
 * @cgroup_id: id of its cgroup in the unified hierarchy (the inode number of
 *	the directory below /sys/fs/cgroup); 0 if unknown
 * @uid: real user id in the initial user namespace
 * @reason: &enum memwatch_reason
 * @comm: name of the thread group leader, NUL-terminated
 *
 * For one (rmid, generation) the stream holds exactly one ALLOC, any number of
 * EXISTING and EXEC, and one FREE, in this order. A consumer that attaches
 * late sees EXISTING instead of ALLOC.
 */
struct memwatch_record_rmid {
	struct memwatch_record_header h;
	__u32 rmid;
	__u32 generation;
	__u32 tgid;
	__u32 parent_tgid;
	__u64 start_time_ns;
	__u64 alloc_time_ns;
	__u64 cgroup_id;
	__u32 uid;
	__u32 reason;
	char comm[MEMWATCH_COMM_LEN];
};

/**
 * struct memwatch_record_dump - DUMP_BEGIN and DUMP_END
 * @h: header
 * @sequence: number of this dump, the same in both
 * @count: RMID_EXISTING records between the two; 0 in DUMP_BEGIN
 * @unmeasured: processes without an RMID; 0 in DUMP_BEGIN
 *
 * The dump does not stop the world: allocations and frees that happen between
 * the two markers appear in the stream as usual. Applying every record between
 * DUMP_BEGIN and any later time T gives the state at T exactly.
 */
struct memwatch_record_dump {
	struct memwatch_record_header h;
	__u64 sequence;
	__u32 count;
	__u32 unmeasured;
};

/**
 * enum memwatch_cpu_state - states of &struct memwatch_record_cpu
 * @MEMWATCH_CPU_ONLINE: the CPU ticks from now on
 * @MEMWATCH_CPU_OFFLINE: it went away; nothing more will come from it
 * @MEMWATCH_CPU_IDLE: it is idle and has stopped its tick; @since_ns is the
 *	last tick
 * @MEMWATCH_CPU_BUSY: it ticks again; @since_ns is when it went idle
 * @MEMWATCH_CPU_STOPPED: the last session ended, or the cpumask excludes it
 */
enum memwatch_cpu_state {
	MEMWATCH_CPU_ONLINE = 1,
	MEMWATCH_CPU_OFFLINE = 2,
	MEMWATCH_CPU_IDLE = 3,
	MEMWATCH_CPU_BUSY = 4,
	MEMWATCH_CPU_STOPPED = 5,
};

/**
 * struct memwatch_record_cpu - CPU_STATE
 * @h: header; @h.cpu is the CPU whose state changed. Always sent from that CPU.
 * @state: &enum memwatch_cpu_state
 * @reserved: 0
 * @since_ns: see &enum memwatch_cpu_state
 */
struct memwatch_record_cpu {
	struct memwatch_record_header h;
	__u32 state;
	__u32 reserved;
	__u64 since_ns;
};

/**
 * enum memwatch_rdt_event - index into the arrays of &struct memwatch_record_rdt
 * @MEMWATCH_RDT_OCCUPANCY: bytes of the L3 cache held by lines of this RMID
 * @MEMWATCH_RDT_MBM_TOTAL: bytes moved to and from memory since allocation;
 *	of RMID 0: since the session started
 * @MEMWATCH_RDT_MBM_LOCAL: those of them on the local NUMA node
 * @MEMWATCH_RDT_MAX: how many there are
 */
enum memwatch_rdt_event {
	MEMWATCH_RDT_OCCUPANCY = 0,
	MEMWATCH_RDT_MBM_TOTAL = 1,
	MEMWATCH_RDT_MBM_LOCAL = 2,
	MEMWATCH_RDT_MAX = 3,
};

/**
 * struct memwatch_record_rdt - RDT_SAMPLE
 * @h: header; @h.cpu is the reader, a CPU of @domain
 * @rmid: the RMID read
 * @generation: its generation
 * @domain: id of the L3 domain
 * @status: &enum memwatch_status of each value
 * @reserved: 0
 * @value: indexed by &enum memwatch_rdt_event
 * @age_ns: how old the values are; 0 when read for this record
 *
 * Each domain counts for itself; a process has moved the sum over all domains.
 * An RMID that ran in a domain is read there at the next tick of one of its
 * CPUs, and every one in use at least once a second. The last reading of a
 * generation comes therefore after its FREE, and is about the time before.
 *
 * At the allocation there may be a record of status FIRST for a domain: its
 * occupancy is what earlier owners of the RMID have left in the cache, as of
 * @age_ns ago; it decays as the new owner's grows.
 *
 * Status: OK; ERROR and UNAVAILABLE as the hardware says; STALE, with @age_ns:
 * it ran, but there was no room in the budget of the tick; ESTIMATED: a lower
 * bound, some of what was moved since the reading before cannot be told from
 * another owner's or was not counted.
 */
struct memwatch_record_rdt {
	struct memwatch_record_header h;
	__u32 rmid;
	__u32 generation;
	__u32 domain;
	__u8 status[3];
	__u8 reserved;
	__u64 value[3];
	__u64 age_ns;
};

/**
 * enum memwatch_notice - what a notice is about
 * @MEMWATCH_NOTICE_FOREIGN_WRITE: another program has written PQR_ASSOC of the
 *	CPU h.cpu, @count times since the module was loaded; @value is what was
 *	found last. Our RMID has been programmed again. What ran on that CPU since
 *	the tick before may be charged to the wrong RMID. At most once a second
 *	for each CPU.
 * @MEMWATCH_NOTICE_RESCTRL: resctrl was mounted. RDT is left to it: from here
 *	on RMIDs are numbers, and cache and bandwidth are unavailable.
 * @MEMWATCH_NOTICE_SMALL_CPU: a CPU came online that knows fewer RMIDs than
 *	have been given out; the consequence is the same
 */
enum memwatch_notice {
	MEMWATCH_NOTICE_FOREIGN_WRITE = 1,
	MEMWATCH_NOTICE_RESCTRL = 2,
	MEMWATCH_NOTICE_SMALL_CPU = 3,
};

/**
 * struct memwatch_record_notice - NOTICE
 * @h: header
 * @kind: &enum memwatch_notice
 * @reserved: 0
 * @count: how often it has happened
 * @value: see &enum memwatch_notice
 */
struct memwatch_record_notice {
	struct memwatch_record_header h;
	__u32 kind;
	__u32 reserved;
	__u64 count;
	__u64 value;
};

/**
 * struct memwatch_record_lost - LOST
 * @h: @h.cpu lost them; @h.time_ns is the first moment known to be after the loss
 * @begin_ns: the last moment known to be before the loss
 * @count: records lost, not events
 */
struct memwatch_record_lost {
	struct memwatch_record_header h;
	__u64 begin_ns;
	__u64 count;
};

/**
 * enum memwatch_growth_event - what a growth record tells
 * @MEMWATCH_GROWTH_ALERTED: an alert was raised
 * @MEMWATCH_GROWTH_CLEARED: it was cleared
 * @MEMWATCH_GROWTH_POKED: a process grew much between two rounds; for the
 *	library, which makes it a round
 * @MEMWATCH_GROWTH_STATE: what is thought of a process now; made by a recorder
 *	when that changes, and once a round while it grows. @slope is that of now
 */
enum memwatch_growth_event {
	MEMWATCH_GROWTH_ALERTED = 1,
	MEMWATCH_GROWTH_CLEARED = 2,
	MEMWATCH_GROWTH_POKED = 3,
	MEMWATCH_GROWTH_STATE = 4,
};

/**
 * enum memwatch_limit - what a process will run into
 * @MEMWATCH_LIMIT_NONE: nothing
 * @MEMWATCH_LIMIT_HOST: memory and swap of the machine
 * @MEMWATCH_LIMIT_CGROUP_MAX: memory.max of its cgroup or of one above
 * @MEMWATCH_LIMIT_CGROUP_HIGH: memory.high of its cgroup or of one above
 * @MEMWATCH_LIMIT_DATA: RLIMIT_DATA
 * @MEMWATCH_LIMIT_AS: RLIMIT_AS
 */
enum memwatch_limit {
	MEMWATCH_LIMIT_NONE = 0,
	MEMWATCH_LIMIT_HOST = 1,
	MEMWATCH_LIMIT_CGROUP_MAX = 2,
	MEMWATCH_LIMIT_CGROUP_HIGH = 3,
	MEMWATCH_LIMIT_DATA = 4,
	MEMWATCH_LIMIT_AS = 5,
};

/**
 * struct memwatch_record_growth - GROWTH
 * @h: header
 * @start_time_ns: of the process, CLOCK_BOOTTIME
 * @tgid: process
 * @what: &enum memwatch_growth_event
 * @verdict: 0 insufficient, 1 stable, 2 growing, 3 leak
 * @confidence: 0 to 100, that it leaks
 * @reason: 1 a limit is near, 2 steady growth, 3 slow growth; 0 when cleared
 * @limit: &enum memwatch_limit that is the nearest
 * @eta_s: seconds to that limit, or ~0
 * @signal_bytes: anonymous, swapped and shared memory
 * @slope: bytes a second, at the first alert
 * @comm: name of the process
 */
struct memwatch_record_growth {
	struct memwatch_record_header h;
	__u64 start_time_ns;
	__u32 tgid;
	__u32 what;
	__u8 verdict;
	__u8 confidence;
	__u8 reason;
	__u8 limit;
	__u32 eta_s;
	__u64 signal_bytes;
	__u64 slope;
	char comm[16];
};

/* -------------------------------------------------------------- ioctls */

/*
 * General format. Every argument is a structure that starts with @size, set by
 * the caller to sizeof() of the structure it knows, and @flags. A structure
 * may grow at its end: the kernel treats what an older caller does not send as
 * zero, and accepts a longer one if the tail it does not know is zero.
 *
 * Errors common to all:
 *   ENOTTY      no such command
 *   EINVAL      @size below the first version, a reserved field is not zero,
 *               a value out of range
 *   E2BIG       bytes beyond what this kernel knows are not zero
 *   EOPNOTSUPP  a flag this kernel does not know
 *   EFAULT      bad pointer
 * Each command lists the others.
 */
#define MEMWATCH_IOC_TYPE 0xEB
#define MEMWATCH_IOC_BASE 0x40

/**
 * enum memwatch_backend - where RMIDs and RDT values come from
 * @MEMWATCH_BACKEND_EMULATED: no RDT; RMIDs are numbers only
 * @MEMWATCH_BACKEND_INTEL_RDT: Intel Resource Director Technology
 * @MEMWATCH_BACKEND_AMD_QOS: AMD Platform Quality of Service
 * @MEMWATCH_BACKEND_SIMULATED: test only (module parameter assume_rdt): the
 *	RDT path runs, on a machine that has none
 */
enum memwatch_backend {
	MEMWATCH_BACKEND_EMULATED = 0,
	MEMWATCH_BACKEND_INTEL_RDT = 1,
	MEMWATCH_BACKEND_AMD_QOS = 2,
	MEMWATCH_BACKEND_SIMULATED = 3,
};

/* Feature bits of &struct memwatch_get_info. */
#define MEMWATCH_FEATURE_OCCUPANCY (1ULL << 0)
#define MEMWATCH_FEATURE_MBM_TOTAL (1ULL << 1)
#define MEMWATCH_FEATURE_MBM_LOCAL (1ULL << 2)

/**
 * struct memwatch_get_info - MEMWATCH_IOC_GET_INFO
 * @size: sizeof(struct memwatch_get_info)
 * @flags: must be 0
 * @abi: out: MEMWATCH_ABI of the module
 * @schema: out: MEMWATCH_SCHEMA of the module
 * @backend: out: &enum memwatch_backend
 * @nr_rmids: out: the highest RMID that can be allocated; the lowest is 1, or
 *	higher where the lower half is left to resctrl (module parameter "force")
 * @features: out: MEMWATCH_FEATURE_*
 * @errata: out: bit mask of fixed defects of this ABI, none so far
 */
struct memwatch_get_info {
	__u32 size;
	__u32 flags;
	__u32 abi;
	__u32 schema;
	__u32 backend;
	__u32 nr_rmids;
	__aligned_u64 features;
	__aligned_u64 errata;
};

/**
 * struct memwatch_start - MEMWATCH_IOC_START
 * @size: sizeof(struct memwatch_start)
 * @flags: must be 0
 *
 * Starts this session. The first one registers the probes, assigns RMIDs to
 * the processes that exist and starts the ticks. Errors: EALREADY, it is
 * started; ENOMEM; ENODEV, a tracepoint the module needs is missing.
 */
struct memwatch_start {
	__u32 size;
	__u32 flags;
};

/**
 * struct memwatch_stop - MEMWATCH_IOC_STOP
 * @size: sizeof(struct memwatch_stop)
 * @flags: must be 0
 *
 * Stops this session, as close() does. The last one takes everything down.
 * Errors: EALREADY, it is not started.
 */
struct memwatch_stop {
	__u32 size;
	__u32 flags;
};

/**
 * enum memwatch_policy - who gets an RMID when there are not enough
 * @MEMWATCH_POLICY_FIFO: first come, first served: an RMID is kept until its
 *	process ends, the process that waited longest is next
 * @MEMWATCH_POLICY_ACTIVE: a process that runs takes the RMID of the process
 *	that has been idle longest
 */
enum memwatch_policy {
	MEMWATCH_POLICY_FIFO = 0,
	MEMWATCH_POLICY_ACTIVE = 1,
};

/* Which members of &struct memwatch_config MEMWATCH_IOC_SET_CONFIG applies. */
#define MEMWATCH_CONFIG_PERIOD	   (1U << 0)
#define MEMWATCH_CONFIG_LIMBO	   (1U << 1)
#define MEMWATCH_CONFIG_POLICY	   (1U << 2)
#define MEMWATCH_CONFIG_IDLE_STOP  (1U << 3)
#define MEMWATCH_CONFIG_CPUMASK	   (1U << 4)
#define MEMWATCH_CONFIG_FORCE	   (1U << 31) /* although another session runs */
#define MEMWATCH_CONFIG_ALL	   0x8000001FU

#define MEMWATCH_PERIOD_MIN_NS	   100000ULL
#define MEMWATCH_PERIOD_MAX_NS	   1000000000ULL
#define MEMWATCH_PERIOD_DEFAULT_NS 1000000ULL
#define MEMWATCH_LIMBO_MAX_NS	   1000000000ULL
#define MEMWATCH_LIMBO_DEFAULT_NS  2000000ULL

/**
 * struct memwatch_config - MEMWATCH_IOC_GET_CONFIG, MEMWATCH_IOC_SET_CONFIG
 * @size: sizeof(struct memwatch_config)
 * @flags: set: MEMWATCH_CONFIG_*, which members to apply; get: must be 0
 * @period_ns: tick period, 100 us to 1 s; ticks fall on multiples of it
 * @limbo_ns: how long a freed RMID rests before its next owner, up to 1 s
 * @policy: &enum memwatch_policy
 * @idle_stop: 1: an idle CPU stops its tick; 0: it goes on
 * @cpumask: pointer to a bit mask, bit N of byte N/8 is CPU N: CPUs that tick.
 *	RMIDs are assigned and programmed on all CPUs all the same.
 * @cpumask_bytes: size of that mask; get: 0 to leave it alone, else at least
 *	the number of possible CPUs / 8, else ENOSPC
 * @reserved: must be 0
 *
 * The configuration belongs to the module and outlives sessions. It takes
 * effect at once. Errors of set: EBUSY, another session is started and FORCE
 * is not given.
 */
struct memwatch_config {
	__u32 size;
	__u32 flags;
	__aligned_u64 period_ns;
	__aligned_u64 limbo_ns;
	__u32 policy;
	__u32 idle_stop;
	__aligned_u64 cpumask;
	__u32 cpumask_bytes;
	__u32 reserved;
};

/**
 * enum memwatch_filter_kind - what a filter looks at
 * @MEMWATCH_FILTER_CGROUP: id of the cgroup (unified hierarchy), exactly
 * @MEMWATCH_FILTER_UID: real user id in the initial user namespace
 * @MEMWATCH_FILTER_COMM: name of the thread group leader, exactly
 */
enum memwatch_filter_kind {
	MEMWATCH_FILTER_CGROUP = 1,
	MEMWATCH_FILTER_UID = 2,
	MEMWATCH_FILTER_COMM = 3,
};

#define MEMWATCH_FILTERS_MAX 64

/**
 * struct memwatch_filter - MEMWATCH_IOC_ADD_FILTER, MEMWATCH_IOC_GET_FILTER
 * @size: sizeof(struct memwatch_filter)
 * @flags: must be 0
 * @kind: &enum memwatch_filter_kind
 * @index: get: which one, counted from 0; add: must be 0
 * @value: cgroup id or uid; 0 for COMM
 * @comm: for COMM, NUL-terminated; zero otherwise
 *
 * With no filter every process is measured. Filters of one kind are
 * alternatives, kinds must all match. Membership is decided at fork, exec and
 * rename, and re-examined once a second for processes that changed user or
 * cgroup. Filters belong to the module and outlive sessions.
 * Errors: EEXIST, there is such a filter; ENOSPC, MEMWATCH_FILTERS_MAX
 * reached; get: ENOENT, @index is past the last.
 */
struct memwatch_filter {
	__u32 size;
	__u32 flags;
	__u32 kind;
	__u32 index;
	__aligned_u64 value;
	char comm[MEMWATCH_COMM_LEN];
};

/**
 * struct memwatch_clear_filters - MEMWATCH_IOC_CLEAR_FILTERS
 * @size: sizeof(struct memwatch_clear_filters)
 * @flags: must be 0
 */
struct memwatch_clear_filters {
	__u32 size;
	__u32 flags;
};

/**
 * struct memwatch_dump - MEMWATCH_IOC_DUMP
 * @size: sizeof(struct memwatch_dump)
 * @flags: must be 0
 * @sequence: out: number of the dump, as in its markers
 * @count: out: RMID_EXISTING records sent
 * @unmeasured: out: processes without an RMID
 *
 * Sends the present state through the tracepoints, between markers.
 * Errors: ENOTCONN, this session is not started.
 */
struct memwatch_dump {
	__u32 size;
	__u32 flags;
	__aligned_u64 sequence;
	__u32 count;
	__u32 unmeasured;
};

/* Numbers are never reused. */
#define MEMWATCH_IOC_GET_INFO	   _IO(MEMWATCH_IOC_TYPE, MEMWATCH_IOC_BASE + 0)
#define MEMWATCH_IOC_START	   _IO(MEMWATCH_IOC_TYPE, MEMWATCH_IOC_BASE + 1)
#define MEMWATCH_IOC_STOP	   _IO(MEMWATCH_IOC_TYPE, MEMWATCH_IOC_BASE + 2)
#define MEMWATCH_IOC_GET_CONFIG	   _IO(MEMWATCH_IOC_TYPE, MEMWATCH_IOC_BASE + 3)
#define MEMWATCH_IOC_SET_CONFIG	   _IO(MEMWATCH_IOC_TYPE, MEMWATCH_IOC_BASE + 4)
#define MEMWATCH_IOC_ADD_FILTER	   _IO(MEMWATCH_IOC_TYPE, MEMWATCH_IOC_BASE + 5)
#define MEMWATCH_IOC_GET_FILTER	   _IO(MEMWATCH_IOC_TYPE, MEMWATCH_IOC_BASE + 6)
#define MEMWATCH_IOC_CLEAR_FILTERS _IO(MEMWATCH_IOC_TYPE, MEMWATCH_IOC_BASE + 7)
#define MEMWATCH_IOC_DUMP	   _IO(MEMWATCH_IOC_TYPE, MEMWATCH_IOC_BASE + 8)

/* ---------------------------------------------------------- proc files */

/*
 * All are mode 0440, owner root, group memwatch (module parameter "gid").
 * Lines are "key: value"; keys may be added, readers skip those they do not
 * know. Values are decimal unless said otherwise.
 *
 * /proc/memwatch/status
 *	version:            of the module, text
 *	abi:                MEMWATCH_ABI
 *	schema:             MEMWATCH_SCHEMA
 *	backend:            emulated, intel-rdt, amd-qos or simulated
 *	backend_reason:     why this one, text
 *	sessions:           open sessions
 *	sessions_started:   those that are started
 *	period_ns: limbo_ns: policy: idle_stop:  the configuration
 *	cpumask:            CPUs that tick, as a list (0-3,8)
 *	filters:            how many
 *	rmids_total:        that can be allocated
 *	rmids_used:         owned now
 *	rmids_limbo:        freed, resting
 *	rmids_free:         ready; total = used + limbo + free
 *	processes:          tracked now
 *	processes_measured: with an RMID
 *	processes_waiting:  without one because there are none
 *	processes_filtered: without one because a filter excludes them
 *	allocs: frees: promotions: revocations: exhausted: events since the
 *			    first session; exhausted counts processes that
 *			    found no RMID at birth
 *	untracked:          threads missed because no memory was at hand; a scan
 *			    that follows at once finds those that still live
 *	foreign_writes:     times somebody else had written PQR_ASSOC
 *	rdt_budget:         operations on RDT's counter registers that a CPU makes
 *			    per tick at most; 0 if it makes none
 *	rdt_domains:        L3 domains that are read now
 *	rdt_scale_bytes: rdt_width_bits:  unit and width of the counters, 0 if none
 *	session: TGID STATE COMM
 *			    one line for each open session, at most 64: who
 *			    opened it, "started" or "open"; COMM is escaped as
 *			    in rmids
 *	waiting: TGID COMM  one line for each process that waits, the one that
 *			    waits longest first, at most 64 of them; COMM is
 *			    escaped as in rmids
 *
 * /proc/memwatch/rmids
 *	First line "# " and the names of the columns; then one line for each
 *	RMID in use, columns separated by one tab:
 *	rmid generation tgid parent_tgid start_time_ns alloc_time_ns cgroup_id
 *	uid comm
 *	comm is last, with \ and control characters escaped as \ooo (octal).
 *	The last line is "# end COUNT": a dump without it is incomplete.
 *
 * /proc/memwatch/overhead
 *	cpu N: ticks=.. missed=.. jitter_max_ns=.. switches=.. pqr_writes=..
 *	       switch_cycles=.. switch_sampled=.. tick_cycles=.. rdt_ops=..
 *	       rdt_ops_max=.. rdt_reads=.. rdt_waits=..
 *	one line for each CPU; switch_cycles is the sum over the
 *	switch_sampled hooks that were timed (one in 64). rdt_ops counts
 *	operations on RDT's counter registers, rdt_ops_max is the most in one
 *	tick; rdt_reads are readings of an RMID, rdt_waits those that were put
 *	off to a later tick.
 *	jitter_ns LOW-HIGH: COUNT
 *	one line for each power-of-two class of tick delay, all CPUs together
 *	memory_bytes: what the module has allocated, all CPUs together
 */

#endif /* _UAPI_LINUX_MEMWATCH_H */
