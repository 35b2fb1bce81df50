/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * memwatch: the interface between the kernel module, the BPF relay, the library
 * and other programs. This file is its reference manual.
 *
 * The module gives every process a resource monitoring id (RMID), programs it
 * at each context switch, and has a timer that ticks on every CPU. It reports
 * in four ways:
 *
 *  - RECORDS, the structures below. Tracepoints of the system "memwatch" carry
 *    them, but for samples and ticks, which the BPF relay makes of the tracepoints
 *    memwatch_tick and memwatch_switch (kmod/trace.h). The relay sends all of them
 *    through one perf event array: each item is a __u32, the number of records
 *    in it, and then these records without gaps (docs/relay.md).
 *  - IOCTLS on /dev/memwatch. An open file is a session. While at least one
 *    session is started, the module tracks processes and ticks. When the last
 *    one is stopped or closed, even by kill -9, no probe, no timer and no RMID
 *    remains in use, and nothing that it has set remains in force.
 *  - TEXT in /proc/memwatch. See "proc files" at the end.
 *  - NOTICES through generic netlink: what an operator wants to be told, for
 *    programs that do not read the stream. See "netlink".
 *
 * Who may. Opening the device needs CAP_PERFMON or CAP_SYS_ADMIN in the initial
 * user namespace, beside the permissions of the file; without it the error is
 * EPERM. Changing the defaults, or sessions of others, needs CAP_SYS_ADMIN.
 * Reading the text files and the notices is described with them.
 *
 * Two numbers describe compatibility. MEMWATCH_ABI counts changes of the
 * ioctls, and MEMWATCH_SCHEMA counts changes of the records. Records grow at
 * their end only. A reader skips records of unknown type by @size, and ignores
 * the end of a record that is longer than it knows.
 *
 * Units: times are in nanoseconds of CLOCK_MONOTONIC, the clock that
 * bpf_ktime_get_ns() and ktime_get_mono_fast_ns() read; except start_time_ns,
 * which is in CLOCK_BOOTTIME as field 22 of /proc/PID/stat is. Sizes are in
 * bytes.
 */
#ifndef _UAPI_LINUX_MEMWATCH_H
#define _UAPI_LINUX_MEMWATCH_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define MEMWATCH_ABI	  1
#define MEMWATCH_SCHEMA	  1

#define MEMWATCH_COMM_LEN 16

/*
 * Identity. A process is identified by (tgid, start_time_ns), because a tgid
 * alone is reused. An RMID is reused too, so every record with an RMID also has
 * its generation: the number of times that this RMID was allocated, counted
 * from 1 and never reset while the module is loaded. The pair (rmid,
 * generation) identifies one process for ever: a record of an old generation is
 * never mistaken for one of the next owner.
 *
 * Without the module, BPF programs make the records. Then a process has RMID 0 and a generation
 * above 0, which no other process of the recording has.
 *
 * RMID 0, generation 0, stands for everything without an RMID of its own: idle,
 * kernel threads, and processes that are filtered out or found no free RMID. It
 * is never allocated and never freed, but always measured and always reported.
 */
#define MEMWATCH_RMID_UNASSIGNED 0

/* ------------------------------------------------------------- records */

/**
 * enum memwatch_record_type - type of a record
 * @MEMWATCH_RECORD_SAMPLE: counters of one RMID on one CPU over one interval
 * @MEMWATCH_RECORD_TICK: this CPU has reported everything up to @time_ns
 * @MEMWATCH_RECORD_RMID_ALLOC: an RMID was given to a process
 * @MEMWATCH_RECORD_RMID_EXISTING: part of a dump: a process owns this RMID now
 * @MEMWATCH_RECORD_RMID_EXEC: the owner executed a program or renamed itself
 * @MEMWATCH_RECORD_RMID_FREE: the RMID was taken back. @time_ns is the start of its
 * 	limbo: the time of the last context switch of the last thread or, if the
 * 	process lives on, the time since which no CPU runs with the RMID.
 * @MEMWATCH_RECORD_DUMP_BEGIN: a dump starts
 * @MEMWATCH_RECORD_DUMP_END: the dump with the same sequence number is complete
 * @MEMWATCH_RECORD_CPU_STATE: a CPU came online, went offline, or stopped or resumed
 * 	its tick
 * @MEMWATCH_RECORD_RDT: cache occupancy and bandwidth of one RMID in one L3 domain
 * @MEMWATCH_RECORD_NOTICE: something that an operator wants to be told, see &enum
 * 	memwatch_notice
 * @MEMWATCH_RECORD_LOST: records of one CPU were lost. The library makes this record;
 * 	it is never on the wire.
 * @MEMWATCH_RECORD_GROWTH: a notice or an alert about a process was raised or has ended. The
 * 	growth monitor, which does not need the module, makes this record.
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
 * were delivered before it. The stream is sorted except for these records.
 *
 * FORCED: to deliver this record, the watermark had to pass a CPU that did not
 * report in time. That CPU may still deliver late records.
 */
#define MEMWATCH_RECORD_F_LATE	 (1 << 0)
#define MEMWATCH_RECORD_F_FORCED (1 << 1)

/**
 * struct memwatch_record_header - first member of every record
 * @time_ns: when it happened; records are sorted by this time
 * @type: &enum memwatch_record_type
 * @size: size of the whole record with header, a multiple of 8
 * @cpu: the CPU on which it happened
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
 * enum memwatch_status - how reliable a measured value is
 * @MEMWATCH_STATUS_UNAVAILABLE: not measured; the value is 0 and means nothing
 * @MEMWATCH_STATUS_OK: measured
 * @MEMWATCH_STATUS_ERROR: the hardware or the kernel reported an error
 * @MEMWATCH_STATUS_STALE: an older reading, repeated
 * @MEMWATCH_STATUS_FIRST: first reading after allocation; there is no delta yet
 * @MEMWATCH_STATUS_ESTIMATED: derived from another quantity, or a lower bound
 * @MEMWATCH_STATUS_MULTIPLEXED: measured for only part of the time. In a record: the counter
 * 	was on the hardware for only part of the interval, and the value is scaled up
 *
 * A missing value is never reported as a valid 0. Where values of different status are
 * added, the sum has the worst of them (memwatch_status_worst() in the library).
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
 * @MEMWATCH_COUNTER_MAX: number of counters
 */
enum memwatch_counter {
	MEMWATCH_COUNTER_CYCLES = 0,
	MEMWATCH_COUNTER_INSTRUCTIONS = 1,
	MEMWATCH_COUNTER_LLC_REFERENCES = 2,
	MEMWATCH_COUNTER_LLC_MISSES = 3,
	MEMWATCH_COUNTER_MAX = 4,
};

/**
 * struct memwatch_record_sample - counters of one RMID on one CPU
 * @h: @h.time_ns is the end of the interval
 * @rmid: the RMID that ran
 * @generation: generation of @rmid
 * @begin_ns: start of the interval. While the CPU ticks, [begin_ns, h.time_ns) is at most
 * 	about one period: longer by @overruns of the tick that ends it, if that came late, and
 * 	by the delay of its handler. The first sample after a loss contains what could not be
 * 	sent.
 * @run_ns: time in the interval for which this RMID ran on this CPU. The intervals of a
 * 	CPU cover its time without gaps: the run_ns of all its RMIDs, with RMID 0,
 * 	add up to wall time.
 * @counter: increments during @run_ns, indexed by &enum memwatch_counter
 * @status: &enum memwatch_status of each counter
 * @running_ppm: the smallest share of the interval, in parts per million, for which a
 * 	counter was on the hardware; 1000000 if none was multiplexed
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

/*
 * The value and the status of counter @i of a sample. A counter that is added later lies at
 * the end of the record, outside the arrays, so all code accesses counters through these two.
 */
#define MEMWATCH_SAMPLE_COUNTER(sample, i) ((sample)->counter[i])
#define MEMWATCH_SAMPLE_STATUS(sample, i)  ((sample)->status[i])

/**
 * struct memwatch_record_tick - end of a slot on one CPU
 * @h: @h.time_ns is the time of the last reading of the handler, which is later than its
 * 	beginning by the time that it has read RDT counters for. The relay sends the
 * 	samples of the slot before this record, so this CPU has now sent everything about
 * 	times before @h.time_ns.
 * @expected_ns: when the timer was due, a multiple of @period_ns
 * @period_ns: the period in force; it may change during a session
 * @overruns: periods without a tick before this one
 * @produced: records that the relay tried to send from this CPU since it was attached,
 * 	including this one
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
 * enum memwatch_reason - why an RMID was allocated or freed, or why EXEC was sent
 * @MEMWATCH_REASON_FORK: ALLOC: the process was forked
 * @MEMWATCH_REASON_SCAN: ALLOC: the process existed before the session; EXISTING: always, it says
 * nothing there
 * @MEMWATCH_REASON_PROMOTED: ALLOC: the process had waited for an RMID, or been excluded by a
 * filter
 * @MEMWATCH_REASON_EXIT: FREE: the last thread has ended
 * @MEMWATCH_REASON_REVOKED: FREE: the policy took the RMID for another process
 * @MEMWATCH_REASON_FILTERED: FREE: a filter now excludes the process
 * @MEMWATCH_REASON_EXEC: EXEC: the process executed a new program
 * @MEMWATCH_REASON_COMM: EXEC: the process renamed itself (PR_SET_NAME)
 * @MEMWATCH_REASON_STOP: FREE: the last session ended
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
 * @parent_tgid: process id of the parent at the time of allocation
 * @start_time_ns: CLOCK_BOOTTIME start of the process; with @tgid it identifies the
 * 	process
 * @alloc_time_ns: when this RMID was given to the process
 * @cgroup_id: id of its cgroup in the unified hierarchy (the inode number of the
 * 	directory below /sys/fs/cgroup); 0 if unknown
 * @uid: real user id in the initial user namespace
 * @reason: &enum memwatch_reason
 * @comm: name of the thread group leader, NUL-terminated
 * @unmeasured_ns: for how long the process ran without an RMID between the one it had before,
 * 	or its first appearance, and this one. Counted by ticks: each stands for its period.
 * 	An RMID that is taken from a living process is not used any more for a while before
 * 	its FREE record, up to tens of milliseconds on a busy machine; that time is included.
 *
 * For one (rmid, generation) the stream has exactly one ALLOC, any number of EXISTING
 * and EXEC, and one FREE, in this order. A consumer that attaches late sees EXISTING
 * instead of ALLOC.
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
	__u64 unmeasured_ns;
};

/**
 * struct memwatch_record_dump - DUMP_BEGIN and DUMP_END
 * @h: header
 * @sequence: number of this dump, the same in both records
 * @count: RMID_EXISTING records between the two; 0 in DUMP_BEGIN
 * @unmeasured: processes without an RMID; 0 in DUMP_BEGIN
 *
 * A dump does not stop the system: allocations and frees that happen between the two
 * records appear in the stream as usual. Applying every record between DUMP_BEGIN and
 * any later time T gives the exact state at T.
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
 * @MEMWATCH_CPU_OFFLINE: the CPU went offline, or the system to sleep; it sends nothing more
 * @MEMWATCH_CPU_IDLE: the CPU is idle and has stopped its tick; @since_ns is the time of
 * 	the last tick
 * @MEMWATCH_CPU_BUSY: the CPU ticks again; @since_ns is the time of the last tick before
 * @MEMWATCH_CPU_STOPPED: the last session ended, or its start failed, or the cpumask
 * 	excludes the CPU
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
 * @h: header; @h.cpu is the CPU whose state changed, and it sends the record itself
 * @state: &enum memwatch_cpu_state
 * @reserved: 0
 * @since_ns: of IDLE and BUSY, see &enum memwatch_cpu_state; it says nothing otherwise
 */
struct memwatch_record_cpu {
	struct memwatch_record_header h;
	__u32 state;
	__u32 reserved;
	__u64 since_ns;
};

/**
 * enum memwatch_rdt_event - index into the arrays of &struct memwatch_record_rdt
 * @MEMWATCH_RDT_OCCUPANCY: bytes of L3 cache whose lines have this RMID
 * @MEMWATCH_RDT_MBM_TOTAL: bytes moved to and from memory since allocation; for RMID 0
 * 	since the start of the session
 * @MEMWATCH_RDT_MBM_LOCAL: the part of them on the local NUMA node
 * @MEMWATCH_RDT_MAX: number of events
 */
enum memwatch_rdt_event {
	MEMWATCH_RDT_OCCUPANCY = 0,
	MEMWATCH_RDT_MBM_TOTAL = 1,
	MEMWATCH_RDT_MBM_LOCAL = 2,
	MEMWATCH_RDT_MAX = 3,
};

/**
 * struct memwatch_record_rdt - RDT_SAMPLE
 * @h: header; @h.cpu is the reader, a CPU of @domain. Where nothing was read, which is so with
 * 	the status FIRST, and once when RDT cannot be used any more, it may be any CPU.
 * @rmid: the RMID read
 * @generation: its generation
 * @domain: id of the L3 domain, or of the NUMA node with sub-NUMA clustering
 * @status: &enum memwatch_status of each value
 * @reserved: 0
 * @value: indexed by &enum memwatch_rdt_event
 * @age_ns: age of the values; 0 if they were read for this record
 *
 * Each domain counts on its own; a process has moved the sum over all domains. An RMID
 * that ran in a domain is read there at the next tick of one of its CPUs, and while one of them
 * ticks, every RMID in use is read at least once a second. The last reading of a generation
 * therefore comes after its FREE record, and is about the time before it.
 *
 * At the allocation there may be a record with the status FIRST for a domain. Its
 * occupancy is what earlier owners of the RMID have left in the cache, as it was
 * @age_ns ago. It decreases while the cache lines of the new owner are added.
 *
 * Status: OK; ERROR and UNAVAILABLE as reported by the hardware, the latter also when RDT cannot be
 * used any more; STALE, with @age_ns:
 * the RMID ran, but did not fit into the budget of the tick; ESTIMATED: a lower bound,
 * because some of what was moved since the reading before may belong to another
 * owner or was not counted.
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
 * @MEMWATCH_NOTICE_FOREIGN_WRITE: another program has written PQR_ASSOC of the CPU
 * 	h.cpu, @count times since the module was loaded; @value is what was found
 * 	last. The RMID has been programmed again. What ran on that CPU since the
 * 	tick before may be counted for the wrong RMID. Sent at most once a second
 * 	for each CPU.
 * @MEMWATCH_NOTICE_RESCTRL: resctrl was mounted, and RDT is left to it. From now on
 * 	RMIDs are numbers only, and occupancy and bandwidth are unavailable.
 * @MEMWATCH_NOTICE_SMALL_CPU: a CPU came online with fewer RMIDs than have been given
 * 	out. The consequence is the same.
 * @MEMWATCH_NOTICE_PERIOD: ticks took more than "tick_max_percent" of the time of a CPU, so
 * 	the period was doubled, for all CPUs. @value is the period from now on, and @count
 * 	how often this has happened in this session. Each CPU's next tick is due at a
 * 	multiple of the new period.
 * @MEMWATCH_NOTICE_EXHAUSTED: a process was forked and found no free RMID, so it waits for
 * 	one. @count is how often that has happened since the module was loaded, and
 * 	@value how many processes wait. Sent at most once a second.
 * @MEMWATCH_NOTICE_BACKEND: the backend has changed: RDT was given up, a session has begun
 * 	without it, or a later one uses it again. @value is &enum memwatch_backend, and
 * 	@count how often it has changed since the module was loaded.
 * @MEMWATCH_NOTICE_CPU_OFFLINE: the CPU h.cpu went offline and is not measured any more.
 * 	@count is how often CPUs went offline during a session since the module was
 * 	loaded. Not in the stream, which has CPU_STATE records.
 * @MEMWATCH_NOTICE_CPU_ONLINE: the CPU h.cpu came online and is measured. @count is how
 * 	often CPUs came online during a session. Not in the stream either.
 */
enum memwatch_notice {
	MEMWATCH_NOTICE_FOREIGN_WRITE = 1,
	MEMWATCH_NOTICE_RESCTRL = 2,
	MEMWATCH_NOTICE_SMALL_CPU = 3,
	MEMWATCH_NOTICE_PERIOD = 4,
	MEMWATCH_NOTICE_EXHAUSTED = 5,
	MEMWATCH_NOTICE_BACKEND = 6,
	MEMWATCH_NOTICE_CPU_OFFLINE = 7,
	MEMWATCH_NOTICE_CPU_ONLINE = 8,
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
 * @h: @h.cpu lost the records; what this CPU measured before @h.time_ns is complete
 * @end_ns: the first time known to be after the loss
 * @count: number of lost records (not events)
 *
 * The record is at the beginning of its interval, so that a consumer knows of the loss
 * before it reads what other CPUs did in the meantime. What the CPU measured in the
 * interval is a lower bound. If the loss was noticed too late, the record is LATE.
 */
struct memwatch_record_lost {
	struct memwatch_record_header h;
	__u64 end_ns;
	__u64 count;
};

/**
 * enum memwatch_growth_event - what a growth record reports
 * @MEMWATCH_GROWTH_ALERTED: an alert was raised
 * @MEMWATCH_GROWTH_CLEARED: an alert was cleared
 * @MEMWATCH_GROWTH_POKED: a process grew much between two rounds. The event program
 * 	sends it to the library, which starts a round.
 * @MEMWATCH_GROWTH_STATE: the verdict about a process, made by a recorder when the
 * 	verdict changes, and once a round while the process grows. @slope is the
 * 	present one.
 * @MEMWATCH_GROWTH_NOTICED: a notice was raised: the process grows significantly
 * @MEMWATCH_GROWTH_SETTLED: the notice has ended: the process has stopped growing
 * @MEMWATCH_GROWTH_TOUCHED: during a notice it became known how much of what the process has
 *	gained is not touched any more
 */
enum memwatch_growth_event {
	MEMWATCH_GROWTH_ALERTED = 1,
	MEMWATCH_GROWTH_CLEARED = 2,
	MEMWATCH_GROWTH_POKED = 3,
	MEMWATCH_GROWTH_STATE = 4,
	MEMWATCH_GROWTH_NOTICED = 5,
	MEMWATCH_GROWTH_SETTLED = 6,
	MEMWATCH_GROWTH_TOUCHED = 7,
};

/**
 * enum memwatch_limit - the limit that a process will reach
 * @MEMWATCH_LIMIT_NONE: none
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
 * @start_time_ns: CLOCK_BOOTTIME start of the process
 * @tgid: process id
 * @what: &enum memwatch_growth_event
 * @verdict: 0 insufficient, 1 stable, 2 growing, 3 leak
 * @confidence: confidence that the process leaks, 0 to 100
 * @reason: of an alert: 1 a limit is near, 2 more memory than in the week before, 3 what was
 *	gained is not touched; else 0
 * @limit: &enum memwatch_limit that is nearest
 * @eta_s: seconds until that limit is reached, as estimated at this time, or ~0. Of the events
 *	of a process, only an alert has it
 * @signal_bytes: anonymous, swapped and shared memory
 * @slope: bytes per second, likewise, or 0
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
 * General format. Every argument is a structure that starts with @size, which
 * the caller sets to sizeof() of the structure as it knows it, and @flags. A
 * structure may grow at its end: the kernel treats what an older caller does
 * not send as zero, and accepts a longer structure if the part that it does not
 * know is zero.
 *
 * Errors common to all:
 *   ENOTTY      no such command
 *   EINVAL      @size is below that of the first version, a reserved member is not
 *               zero, or a value is out of range
 *   E2BIG       bytes beyond what this kernel knows are not zero
 *   EOPNOTSUPP  a flag that this kernel does not know
 *   EFAULT      bad pointer
 *   EINTR       a signal arrived while the command waited for its rate limit; with
 *               SA_RESTART the command begins again
 * The description of each command lists its other errors.
 *
 * Rate limits. All sessions together may start while none is started 4 times a
 * second, and 32 times in a row; change what is in force 100 times a second, 100 times
 * in a row; and dump 4000 records a second, 1000 in a row, where a dump counts as 16
 * records at least. A command that comes too early waits.
 */
#define MEMWATCH_IOC_TYPE 0xEB
#define MEMWATCH_IOC_BASE 0x40

/**
 * enum memwatch_backend - where RMIDs and RDT values come from
 * @MEMWATCH_BACKEND_EMULATED: no RDT; RMIDs are numbers only
 * @MEMWATCH_BACKEND_INTEL_RDT: Intel Resource Director Technology
 * @MEMWATCH_BACKEND_AMD_QOS: AMD Platform Quality of Service
 * @MEMWATCH_BACKEND_SIMULATED: for tests (module parameter assume_rdt): the code for
 * 	RDT runs on a machine that has none
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
 * @nr_rmids: out: the highest RMID that can be allocated. The lowest is 1, or higher
 * 	if the lower half is left to other programs (module parameter "force").
 * @features: out: MEMWATCH_FEATURE_*
 * @errata: out: bit mask of corrected defects of this ABI, none so far
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
 * Starts this session. The first session that starts registers the probes, assigns
 * RMIDs to the existing processes and starts the ticks. Its settings are in force from
 * then on. Errors: EALREADY, the session is started; EBUSY, this session has settings
 * of its own, and another session is started; ENOMEM; ENODEV, the kernel lacks
 * a tracepoint that the module needs.
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
 * Stops this session, as close() does. The last session that stops undoes what the
 * first start did, and the defaults are in force again. Errors: EALREADY, the session
 * is not started.
 */
struct memwatch_stop {
	__u32 size;
	__u32 flags;
};

/**
 * enum memwatch_policy - which process gets an RMID when there are too few
 * @MEMWATCH_POLICY_FIFO: first come, first served: a process keeps its RMID until it
 * 	ends, and the process that has waited longest is next
 * @MEMWATCH_POLICY_ACTIVE: a process that runs takes the RMID of the process that has
 * 	been idle longest
 * @MEMWATCH_POLICY_FAIR: each user has an equal share of the RMIDs, and processes of one
 * 	user that run take turns; those that do not run lose theirs first
 */
enum memwatch_policy {
	MEMWATCH_POLICY_FIFO = 0,
	MEMWATCH_POLICY_ACTIVE = 1,
	MEMWATCH_POLICY_FAIR = 2,
};

/*
 * Settings are the configuration and the filters. A session starts with the
 * defaults. What it sets is its own: it comes into force when the session starts,
 * or at once if it is started, and is gone when the session ends. While sessions run
 * together, the settings of the first one are in force for all, until the last one
 * stops; whoever wants others gets EBUSY. Two flags are for the administrator. They
 * need CAP_SYS_ADMIN, otherwise the error is EPERM; both at once are EINVAL:
 *
 * FORCE: change what is in force, although it is of other sessions.
 *
 * DEFAULT: change, or get, the defaults. They are first set by the parameters of the
 * module and last until it is unloaded. Sessions that run are not affected. Getting
 * them needs no further capability.
 */
#define MEMWATCH_CONFIG_DEFAULT (1U << 30)
#define MEMWATCH_CONFIG_FORCE	(1U << 31)

/* The members of &struct memwatch_config that MEMWATCH_IOC_SET_CONFIG applies. */
#define MEMWATCH_CONFIG_PERIOD	   (1U << 0)
#define MEMWATCH_CONFIG_LIMBO	   (1U << 1)
#define MEMWATCH_CONFIG_POLICY	   (1U << 2)
#define MEMWATCH_CONFIG_IDLE_STOP  (1U << 3)
#define MEMWATCH_CONFIG_CPUMASK	   (1U << 4)
#define MEMWATCH_CONFIG_ALL	   0xC000001FU

#define MEMWATCH_PERIOD_MIN_NS	   100000ULL
#define MEMWATCH_PERIOD_MAX_NS	   1000000000ULL
#define MEMWATCH_PERIOD_DEFAULT_NS 1000000ULL
/* A period is not lengthened beyond this. Readers that wait for three periods rely on it. */
#define MEMWATCH_PERIOD_LENGTHENED_MAX_NS 16000000ULL
#define MEMWATCH_LIMBO_MAX_NS		  1000000000ULL
#define MEMWATCH_LIMBO_DEFAULT_NS	  2000000ULL
#define MEMWATCH_CPUMASK_BYTES_MAX	  1024 /* 8192 CPUs */

/**
 * struct memwatch_config - MEMWATCH_IOC_GET_CONFIG, MEMWATCH_IOC_SET_CONFIG
 * @size: sizeof(struct memwatch_config)
 * @flags: set: MEMWATCH_CONFIG_*, the members to apply, DEFAULT or FORCE; get: DEFAULT
 * 	or 0
 * @period_ns: tick period, 100 us to 1 s; ticks are due at multiples of it
 * @limbo_ns: how long a freed RMID rests before its next owner, at most 1 s
 * @policy: &enum memwatch_policy
 * @idle_stop: 1: an idle CPU stops its tick; 0: it continues
 * @cpumask: pointer to a bit mask of the CPUs that tick; bit N%8 of byte N/8 is CPU N.
 * 	RMIDs are assigned and programmed on all CPUs nevertheless.
 * @cpumask_bytes: size of that mask, at most MEMWATCH_CPUMASK_BYTES_MAX; get: 0 to leave
 * 	the mask alone, else at least the number of possible CPUs / 8, rounded up, or
 * 	the error is ENOSPC
 * @reserved: must be 0
 *
 * Get returns what is in force while a session is started, and otherwise what this
 * session will start with. The period is the one that was set: the one in use is longer
 * if ticks cost too much, see period_ns in /proc/memwatch/status. It stays so until the
 * last session stops, or another period is set. Errors of set: EINVAL, the mask has a CPU that
 * cannot exist; EBUSY, another session is started; EPERM, see DEFAULT and FORCE; ENOMEM.
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
 * enum memwatch_filter_kind - what a filter compares
 * @MEMWATCH_FILTER_CGROUP: id of the cgroup (unified hierarchy), exact match
 * @MEMWATCH_FILTER_UID: real user id in the initial user namespace
 * @MEMWATCH_FILTER_COMM: name of the thread group leader, exact match
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
 * @flags: add: MEMWATCH_CONFIG_DEFAULT, MEMWATCH_CONFIG_FORCE or 0; get:
 * 	MEMWATCH_CONFIG_DEFAULT or 0
 * @kind: &enum memwatch_filter_kind
 * @index: get: number of the filter, counted from 0; add: must be 0
 * @value: cgroup id or user id; 0 for COMM
 * @comm: for COMM, NUL-terminated; zero otherwise
 *
 * Without a filter every process is measured. Filters of one kind are alternatives;
 * each kind that has a filter must match. Processes are matched at fork, exec and
 * rename, and once a second in case their user or cgroup has changed. Filters are
 * settings, as the configuration is. Errors of add: EEXIST, there is such a filter
 * already; ENOSPC, there are MEMWATCH_FILTERS_MAX filters; EBUSY, EPERM and ENOMEM as in
 * SET_CONFIG. Errors of get: ENOENT, @index is too high.
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
 * @flags: MEMWATCH_CONFIG_DEFAULT, MEMWATCH_CONFIG_FORCE or 0
 *
 * Errors: EBUSY, EPERM and ENOMEM as in SET_CONFIG.
 */
struct memwatch_clear_filters {
	__u32 size;
	__u32 flags;
};

/**
 * struct memwatch_dump - MEMWATCH_IOC_DUMP
 * @size: sizeof(struct memwatch_dump)
 * @flags: must be 0
 * @sequence: out: number of the dump, as in its records
 * @count: out: number of RMID_EXISTING records sent
 * @unmeasured: out: number of processes without an RMID
 *
 * Sends the present state through the tracepoints, between DUMP_BEGIN and DUMP_END.
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

/* ------------------------------------------------------------- netlink */

/*
 * The generic netlink family MEMWATCH_GENL_NAME tells notices to programs that
 * do not read the stream. It exists while the module is loaded, in the initial
 * network namespace only. The notices are about sessions: nothing happens
 * without one. There are two ways to get them:
 *
 * SUBSCRIBE. The socket sends MEMWATCH_CMD_SUBSCRIBE, without attributes, and
 * gets notices until it is closed. This is for CAP_PERFMON, CAP_SYS_ADMIN and
 * the group of the module parameter "gid", in the initial user and pid
 * namespaces, as for the text files; both who has opened the socket and who
 * sends the command must be permitted. Errors: EPERM; EALREADY, the socket has
 * subscribed already; ENOSPC, there are MEMWATCH_SUBSCRIBERS_MAX subscribers,
 * or MEMWATCH_SUBSCRIBERS_USER_MAX of this user.
 *
 * The multicast group MEMWATCH_GENL_GROUP. This is for programs that know
 * nothing of memwatch, such as general tools of netlink. Joining it needs
 * CAP_SYS_ADMIN in the initial user namespace, and is EPERM otherwise: the
 * kernel cannot ask for membership of a group of users there. A kernel that
 * cannot ask for CAP_SYS_ADMIN either, before 5.10.204, has no multicast group.
 *
 * Messages of the module are MEMWATCH_CMD_NOTICE, with all attributes of &enum
 * memwatch_genl_attr; a reader skips attributes and commands that it does not
 * know. Compatible additions do not change MEMWATCH_GENL_VERSION.
 *
 * RATE. However often something happens, at most MEMWATCH_NOTICES_PER_SECOND
 * notices of one kind are sent within a second. Up to as many wait; after that
 * the last one is replaced, and MEMWATCH_ATTR_SUPPRESSED of the new one says by
 * how many. So messages and suppressed ones add up to what has happened. Two
 * kinds are limited before that, without counting as suppressed: FOREIGN_WRITE
 * is sent at most once a second for each CPU, and EXHAUSTED at most once a
 * second. Their MEMWATCH_ATTR_COUNT has all that has happened. When the module
 * is unloaded, what waits is sent as one last notice of each kind.
 *
 * A socket whose receive buffer is full loses notices: recv() fails with
 * ENOBUFS once, and MEMWATCH_ATTR_SEQUENCE has a gap.
 */
#define MEMWATCH_GENL_NAME	      "memwatch"
#define MEMWATCH_GENL_VERSION	      1
#define MEMWATCH_GENL_GROUP	      "notices"

#define MEMWATCH_NOTICES_PER_SECOND   8
#define MEMWATCH_NOTICE_TEXT_LEN      160
#define MEMWATCH_SUBSCRIBERS_MAX      64
#define MEMWATCH_SUBSCRIBERS_USER_MAX 16

/**
 * enum memwatch_genl_cmd - commands of the family
 * @MEMWATCH_CMD_SUBSCRIBE: to the module: send notices to this socket
 * @MEMWATCH_CMD_NOTICE: from the module: a notice
 */
enum memwatch_genl_cmd {
	MEMWATCH_CMD_SUBSCRIBE = 1,
	MEMWATCH_CMD_NOTICE = 2,
};

/**
 * enum memwatch_genl_attr - attributes of MEMWATCH_CMD_NOTICE
 * @MEMWATCH_ATTR_PAD: no value, for alignment
 * @MEMWATCH_ATTR_SEQUENCE: u64, counts the notices since the module was loaded, from 1
 * @MEMWATCH_ATTR_TIME_NS: u64, when it happened
 * @MEMWATCH_ATTR_KIND: u32, &enum memwatch_notice
 * @MEMWATCH_ATTR_CPU: u32, the CPU on which it happened
 * @MEMWATCH_ATTR_COUNT: u64, see &enum memwatch_notice
 * @MEMWATCH_ATTR_VALUE: u64, see &enum memwatch_notice
 * @MEMWATCH_ATTR_SUPPRESSED: u64, notices of this kind that were not sent between the one
 * 	before and this one, because of the limit of the rate
 * @MEMWATCH_ATTR_TEXT: string of at most MEMWATCH_NOTICE_TEXT_LEN bytes with its NUL: what
 * 	happened, as in the kernel log; empty if the other attributes say it all
 */
enum memwatch_genl_attr {
	MEMWATCH_ATTR_PAD = 1,
	MEMWATCH_ATTR_SEQUENCE = 2,
	MEMWATCH_ATTR_TIME_NS = 3,
	MEMWATCH_ATTR_KIND = 4,
	MEMWATCH_ATTR_CPU = 5,
	MEMWATCH_ATTR_COUNT = 6,
	MEMWATCH_ATTR_VALUE = 7,
	MEMWATCH_ATTR_SUPPRESSED = 8,
	MEMWATCH_ATTR_TEXT = 9,
	MEMWATCH_ATTR_MAX = 9,
};

/* ---------------------------------------------------------- proc files */

/*
 * All files belong to root and have mode 0400; with the module parameter "gid" they
 * have this group and mode 0440. They can be opened in the initial user and pid
 * namespaces only, and need CAP_PERFMON, CAP_SYS_ADMIN or membership of the group;
 * otherwise the error is EPERM. So no container can read them, even as root.
 * Lines are "key: value". Keys may be added; a reader skips keys that it does not
 * know. Values are decimal unless the description differs.
 *
 * /proc/memwatch/status
 *	version:            version of the module, text
 *	abi:                MEMWATCH_ABI
 *	schema:             MEMWATCH_SCHEMA
 *	backend:            emulated, intel-rdt, amd-qos or simulated
 *	backend_reason:     why this backend was chosen, text. While no session is
 *			    started, both are about a session that starts now.
 *	sessions:           number of open sessions
 *	sessions_started:   number of started sessions
 *	period_ns:          the period in use
 *	period_asked_ns:    the period that was set
 *	period_reason:      "as set", or why the period in use is longer, text
 *	limbo_ns: policy: idle_stop:  the configuration in force
 *	cpumask:            CPUs that tick, as a list (0-3,8)
 *	filters:            number of filters in force
 *	settings_by: TGID COMM
 *			    the process that made the settings in force, escaped as
 *			    in rmids; "0 -" if they are the parameters of the module
 *	defaults_by: TGID COMM
 *			    the same for the defaults
 *	rmids_total:        RMIDs that can be allocated
 *	rmids_used:         RMIDs that are owned now
 *	rmids_limbo:        freed RMIDs that are in limbo
 *	rmids_free:         RMIDs ready for allocation; total = used + limbo + free
 *	processes:          processes that are tracked now
 *	processes_measured: processes with an RMID
 *	processes_waiting:  processes without an RMID because none is free
 *	processes_filtered: processes without an RMID because a filter excludes them
 *	allocs: frees: promotions: revocations: exhausted:
 *			    events since the module was loaded; exhausted counts
 *			    processes that found no free RMID when they were forked
 *	untracked:          threads that were missed because the object cache was
 *			    empty; a scan that follows at once finds those that
 *			    still exist
 *	foreign_writes:     times that somebody else had written PQR_ASSOC
 *	rdt_budget:         limit of operations on RDT counter registers per tick and
 *			    CPU; 0 if no counters are read
 *	rdt_domains:        L3 domains that are read now
 *	rdt_scale_bytes: rdt_width_bits:  unit and width of the counters, 0 if none
 *	rdt_counters:       AMD: assignable bandwidth counters of each L3 domain (ABMC); 0 if
 *			    there are none, or if they are not enabled: then each RMID has
 *			    counters of its own
 *	rdt_counted_rmids:  how many RMIDs of a domain can have such counters at a time, RMID
 *			    0 included; 0 if counters are not assigned
 *	rdt_counter_turns:  times since the session began that such counters were taken from
 *			    an RMID that runs, because others waited for them
 *	session: TGID STATE COMM
 *			    one line for each open session, at most 64: the process
 *			    that opened it; "started" or "open"; its name, escaped
 *			    as in rmids
 *	waiting: TGID COMM  one line for each waiting process, the one that waits
 *			    longest first, at most 64; its name is escaped as in
 *			    rmids
 *
 * /proc/memwatch/rmids
 *	The first line is "# " and the names of the columns. Then comes one line for
 *	each RMID in use, with columns separated by one tab:
 *	rmid generation tgid parent_tgid start_time_ns alloc_time_ns cgroup_id
 *	uid comm
 *	comm is last, with \ and control characters escaped as \ooo (octal).
 *	The last line is "# end COUNT": a list without it is incomplete.
 *
 * /proc/memwatch/overhead
 *	cpu N: ticks=.. missed=.. jitter_max_ns=.. switches=.. pqr_writes=..
 *	       switch_cycles=.. switch_sampled=.. tick_cycles=.. rdt_ops=..
 *	       rdt_ops_max=.. rdt_reads=.. rdt_waits=.. rdt_ns=.. rdt_sync_ns=..
 *	       rdt_busy=.. rdt_age_max_ns=.. irqs_off_max_ns=.. tick_ns=.. tick_ppm=..
 *	One line for each CPU. switch_cycles is the sum over the switch_sampled calls
 *	of the hook that were timed (one in 64). rdt_ops counts operations on RDT
 *	counter registers, and rdt_ops_max is the largest number in one go.
 *	rdt_reads counts readings of an RMID, and rdt_waits those that were put off
 *	to a later tick. rdt_ns is the time spent on RDT counters with interrupts off;
 *	rdt_sync_ns is the part of it in which the CPUs of an L3 domain divide the RMIDs
 *	among themselves, and would wait for each other. rdt_busy counts the times that
 *	a CPU read nothing because another one was reading, on AMD. rdt_age_max_ns is
 *	the longest time from when an RMID may have begun to run until it was read;
 *	a period of it passes before the tick. irqs_off_max_ns is the longest time for
 *	which a tick, or reading between two ticks, had interrupts off. tick_ns is the
 *	time that all of them took together, with the programs that are attached to the
 *	tracepoints. tick_ppm is its share of the last 128 slots, in millionths; the
 *	module parameter "tick_max_percent" limits it.
 *	jitter_ns LOW-HIGH: COUNT
 *	One line for each power-of-two class of tick delay, all CPUs together.
 *	memory_bytes: memory that the module has allocated, all CPUs together
 */

#endif /* _UAPI_LINUX_MEMWATCH_H */
