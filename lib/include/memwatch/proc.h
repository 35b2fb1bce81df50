/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Parsers of the module's text files, whose format is documented at the end of
 * linux/memwatch.h. A line that is not valid is an error; an unknown key is skipped.
 *
 * Each parser has two functions: one reads the file below the root directory of the context,
 * the other parses text in memory, which need not be trusted.
 */
#ifndef MEMWATCH_PROC_H
#define MEMWATCH_PROC_H

#include <stddef.h>

#include <linux/memwatch.h>
#include <memwatch/ctx.h>
#include <memwatch/tracker.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -------------------------------------------------------------- status */

/* A process without an RMID, from memwatch_proc_waiting_at(). */
struct memwatch_proc_waiting {
	__u32 tgid;
	char comm[MEMWATCH_COMM_LEN];
};

/*
 * A process that has /dev/memwatch open, from memwatch_proc_session_at(). It keeps the module from
 * being unloaded.
 */
struct memwatch_proc_session {
	__u32 tgid;
	__u32 started;
	char comm[MEMWATCH_COMM_LEN];
};

/* The process that made settings. @tgid is 0 if they are the parameters of the module. */
struct memwatch_proc_setter {
	__u32 tgid;
	char comm[MEMWATCH_COMM_LEN];
};

/**
 * struct memwatch_proc_status - /proc/memwatch/status
 *
 * @keys: how many of the keys known here the file contained
 * @nr_waiting: number of processes for memwatch_proc_waiting_at(), at most 64
 * @nr_session: number of sessions for memwatch_proc_session_at(), at most 64
 * @settings_by: who made the settings in force; comm is "" if the file does not say it
 * @defaults_by: the same for the defaults; neither is NULL
 *
 * Only the library makes this structure. The other members have the names of the keys. If the file
 * does not contain a key, its string is "" or its number 0.
 */
struct memwatch_proc_status {
	char version[32];
	__u32 abi;
	__u32 schema;
	char backend[32];
	char backend_reason[256];
	__u64 sessions;
	__u64 sessions_started;
	__u64 period_ns;
	__u64 limbo_ns;
	char policy[32];
	__u64 idle_stop;
	char cpumask[1024];
	__u64 filters;
	__u64 rmids_total;
	__u64 rmids_used;
	__u64 rmids_limbo;
	__u64 rmids_free;
	__u64 processes;
	__u64 processes_measured;
	__u64 processes_waiting;
	__u64 processes_filtered;
	__u64 allocs;
	__u64 frees;
	__u64 promotions;
	__u64 revocations;
	__u64 exhausted;
	__u64 untracked;
	__u64 foreign_writes;
	__u64 rdt_budget;
	__u64 rdt_domains;
	__u64 rdt_scale_bytes;
	__u64 rdt_width_bits;
	__u32 keys;
	__u32 nr_waiting;
	__u32 nr_session;
	__u32 reserved;
	const struct memwatch_proc_setter *settings_by;
	const struct memwatch_proc_setter *defaults_by;
	__u64 rdt_counters;
	__u64 rdt_counted_rmids;
	__u64 rdt_counter_turns;
	__u64 period_asked_ns;
	char period_reason[256];
};

/**
 * memwatch_proc_waiting_at - a process without an RMID
 * @status: status
 * @index: counted from 0, oldest first
 *
 * Returns: valid as long as @status; NULL past the last one.
 * Since: 0.1
 */
const struct memwatch_proc_waiting *
memwatch_proc_waiting_at(const struct memwatch_proc_status *status, unsigned int index);

/**
 * memwatch_proc_session_at - an open session
 * @status: status
 * @index: counted from 0
 *
 * Returns: valid as long as @status; NULL past the last one.
 * Since: 0.1
 */
const struct memwatch_proc_session *
memwatch_proc_session_at(const struct memwatch_proc_status *status, unsigned int index);

/**
 * memwatch_proc_status_read - read and parse the file
 * @ctx: context
 * @ret: the result; caller frees with memwatch_proc_status_free()
 *
 * Returns: 0; -ENOENT: the module is not loaded; -EACCES or -EPERM: not permitted;
 * -EREMOTE: not permitted, because this process is in a container; -EBADMSG: a line is not
 * valid, memwatch_ctx_error() contains its number; -E2BIG: the file is larger than 16 MiB;
 * -ENOMEM.
 * Since: 0.1
 */
int memwatch_proc_status_read(struct memwatch_ctx *ctx, struct memwatch_proc_status **ret);

/**
 * memwatch_proc_status_parse - parse text
 * @ctx: context
 * @text: need not end with NUL
 * @len: bytes of it
 * @ret: the result; caller frees with memwatch_proc_status_free()
 *
 * Returns: 0, -EBADMSG, -ENOMEM.
 * Since: 0.1
 */
int memwatch_proc_status_parse(struct memwatch_ctx *ctx, const char *text, size_t len,
			       struct memwatch_proc_status **ret);

/**
 * memwatch_proc_status_free - free
 * @status: status or NULL
 *
 * Returns: NULL.
 * Since: 0.1
 */
struct memwatch_proc_status *memwatch_proc_status_free(struct memwatch_proc_status *status);

/* --------------------------------------------------------------- rmids */

/**
 * struct memwatch_proc_rmids - /proc/memwatch/rmids; only the library makes it
 * @count: number of RMIDs in use, for memwatch_proc_rmid_at()
 */
struct memwatch_proc_rmids {
	size_t count;
};

/**
 * memwatch_proc_rmid_at - an RMID in use
 * @rmids: result
 * @index: counted from 0, in the order of the file
 *
 * Returns: its process, with the escapes in comm resolved, valid as long as @rmids; NULL past the
 * last one.
 * Since: 0.1
 */
const struct memwatch_process *memwatch_proc_rmid_at(const struct memwatch_proc_rmids *rmids,
						     size_t index);

/**
 * memwatch_proc_rmids_read - read and parse the file
 * @ctx: context
 * @ret: the result; caller frees with memwatch_proc_rmids_free()
 *
 * Returns: as memwatch_proc_status_read(); also -EBADMSG if the last line, which contains
 * the number of lines, is missing or wrong: then the file is incomplete.
 * Since: 0.1
 */
int memwatch_proc_rmids_read(struct memwatch_ctx *ctx, struct memwatch_proc_rmids **ret);

/**
 * memwatch_proc_rmids_parse - parse text
 * @ctx: context
 * @text: need not end with NUL
 * @len: bytes of it
 * @ret: the result; caller frees with memwatch_proc_rmids_free()
 *
 * Returns: 0, -EBADMSG, -ENOMEM.
 * Since: 0.1
 */
int memwatch_proc_rmids_parse(struct memwatch_ctx *ctx, const char *text, size_t len,
			      struct memwatch_proc_rmids **ret);

/**
 * memwatch_proc_rmids_free - free
 * @rmids: result or NULL
 *
 * Returns: NULL.
 * Since: 0.1
 */
struct memwatch_proc_rmids *memwatch_proc_rmids_free(struct memwatch_proc_rmids *rmids);

/* ------------------------------------------------------------ overhead */

/* A line "cpu N:", from memwatch_proc_cpu_at(). */
struct memwatch_proc_overhead_cpu {
	__u32 cpu;
	__u32 reserved;
	__u64 ticks;
	__u64 missed;
	__u64 jitter_max_ns;
	__u64 switches;
	__u64 pqr_writes;
	__u64 switch_cycles;
	__u64 switch_sampled;
	__u64 tick_cycles;
	__u64 rdt_ops;
	__u64 rdt_ops_max;
	__u64 rdt_reads;
	__u64 rdt_waits;
	__u64 rdt_ns;
	__u64 rdt_sync_ns;
	__u64 rdt_busy;
	__u64 rdt_age_max_ns;
	__u64 irqs_off_max_ns;
	__u64 tick_ns;
	__u64 tick_ppm;
};

/* A line "jitter_ns LOW-HIGH:": how many ticks were late by so much, memwatch_proc_jitter_at(). */
struct memwatch_proc_jitter {
	__u64 low_ns;
	__u64 high_ns;
	__u64 count;
};

/**
 * struct memwatch_proc_overhead - /proc/memwatch/overhead; only the library makes it
 * @memory_bytes: memory that the module has allocated
 * @nr_cpus: number of CPUs, for memwatch_proc_cpu_at()
 * @nr_jitter: number of lines of the histogram of the delay of ticks, of all CPUs together, for
 *	memwatch_proc_jitter_at()
 */
struct memwatch_proc_overhead {
	__u64 memory_bytes;
	size_t nr_cpus;
	size_t nr_jitter;
};

/**
 * memwatch_proc_cpu_at - what the module costs on a CPU
 * @overhead: result
 * @index: counted from 0, in the order of the file
 *
 * Returns: valid as long as @overhead; NULL past the last one.
 * Since: 0.1
 */
const struct memwatch_proc_overhead_cpu *
memwatch_proc_cpu_at(const struct memwatch_proc_overhead *overhead, size_t index);

/**
 * memwatch_proc_jitter_at - a line of the histogram of the delay of ticks
 * @overhead: result
 * @index: counted from 0, shortest delay first
 *
 * Returns: valid as long as @overhead; NULL past the last one.
 * Since: 0.1
 */
const struct memwatch_proc_jitter *
memwatch_proc_jitter_at(const struct memwatch_proc_overhead *overhead, size_t index);

/**
 * memwatch_proc_overhead_read - read and parse the file
 * @ctx: context
 * @ret: the result; caller frees with memwatch_proc_overhead_free()
 *
 * Returns: as memwatch_proc_status_read().
 * Since: 0.1
 */
int memwatch_proc_overhead_read(struct memwatch_ctx *ctx, struct memwatch_proc_overhead **ret);

/**
 * memwatch_proc_overhead_parse - parse text
 * @ctx: context
 * @text: need not end with NUL
 * @len: bytes of it
 * @ret: the result; caller frees with memwatch_proc_overhead_free()
 *
 * Returns: 0, -EBADMSG, -ENOMEM.
 * Since: 0.1
 */
int memwatch_proc_overhead_parse(struct memwatch_ctx *ctx, const char *text, size_t len,
				 struct memwatch_proc_overhead **ret);

/**
 * memwatch_proc_overhead_free - free
 * @overhead: result or NULL
 *
 * Returns: NULL.
 * Since: 0.1
 */
struct memwatch_proc_overhead *memwatch_proc_overhead_free(struct memwatch_proc_overhead *overhead);

#ifdef __cplusplus
}
#endif

#endif /* MEMWATCH_PROC_H */
