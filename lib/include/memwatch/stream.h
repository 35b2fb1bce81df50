/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The stream: the records of all CPUs, one after another, in time order.
 *
 * ORDER. Records are sorted by time_ns. Records with equal times are sorted by CPU and then
 * by order of arrival. A record is flagged MEMWATCH_RECORD_F_LATE if and only if a record
 * with a later time has been delivered before it. The stream is complete up to the time of
 * the last record without that flag (memwatch_stream_stats.watermark_ns): every record that
 * is delivered afterwards with an earlier time has the flag. No record is dropped because it
 * is late.
 *
 * WATERMARK. Each CPU writes to a ring of its own. The frontier of a ring is the time up to
 * which it is complete. The stream delivers what is older than the smallest frontier:
 *
 *   CPU that ticks	  The frontier is the time of its newest record minus @grace_ns. The
 *			  times in one ring can be out of order, because an interrupt may
 *			  write a record while the interrupted code is about to write one
 *			  with an earlier time. @grace_ns is how long that may take.
 *   OFFLINE, IDLE,	  The CPU announced this state with a MEMWATCH_RECORD_CPU_STATE
 *   STOPPED		  record. The frontier is the time when its ring was last found
 *			  empty, minus @grace_ns.
 *   silent CPU		  The ring is empty, but the CPU did not announce such a state. The
 *			  frontier is the time when its ring was last found empty, minus
 *			  @silent_ns. Records that are delivered only because of this rule
 *			  are flagged MEMWATCH_RECORD_F_FORCED.
 *
 * So no CPU delays the stream for more than @silent_ns. A record that is written to the ring
 * more than @grace_ns after its time may be delivered late; it has the flag then.
 *
 * MEMORY. Records stay in the kernel's rings until they are delivered. For each batch of
 * records, which is what a CPU sent at once (for example at a tick), the library keeps 16
 * bytes, for at most 8192 batches per ring. It needs at most 64 KiB to copy a batch.
 * If a ring is three quarters full or has 8192 batches pending, the stream no longer waits
 * for other CPUs: it delivers up to the frontier of this ring, flagged FORCED. Thus the
 * memory of the stream is bounded under overload as well.
 *
 * LOSS. Records that did not fit into a ring appear as a MEMWATCH_RECORD_LOST record, one
 * for each gap. It contains the number of lost records and the interval in which the
 * measurements of the CPU are incomplete, and its place in the order is the beginning of this
 * interval. Over a whole stream, the following holds for each CPU:
 *	produced = delivered + lost + malformed.
 */
#ifndef MEMWATCH_STREAM_H
#define MEMWATCH_STREAM_H

#include <stddef.h>

#include <linux/memwatch.h>
#include <memwatch/ctx.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * struct memwatch_stream - an ordered source of records
 *
 * Closed with memwatch_stream_unref().
 */
struct memwatch_stream;

/**
 * enum memwatch_stream_mode - which interval a sample covers
 * @MEMWATCH_STREAM_SLOT: the time between two ticks. Deltas are added up per CPU and RMID
 *	and sent at the tick, so that the record rate does not depend on the switch rate.
 *	Default.
 * @MEMWATCH_STREAM_SWITCH: the time between two context switches
 */
enum memwatch_stream_mode {
	MEMWATCH_STREAM_SLOT = 0,
	MEMWATCH_STREAM_SWITCH = 1,
};

/**
 * enum memwatch_live_backend - who makes the records of a live stream
 * @MEMWATCH_LIVE_AUTO: the module if there is /dev/memwatch, otherwise BPF. Default.
 * @MEMWATCH_LIVE_MODULE: the module
 * @MEMWATCH_LIVE_BPF: BPF programs alone, on any kernel from 5.10 with BTF. A process has RMID 0
 *	and a generation of its own. Cache occupancy and memory bandwidth are unavailable.
 */
enum memwatch_live_backend {
	MEMWATCH_LIVE_AUTO = 0,
	MEMWATCH_LIVE_MODULE = 1,
	MEMWATCH_LIVE_BPF = 2,
};

/* Flags of &struct memwatch_live_opts. NO_START needs the module. */
#define MEMWATCH_LIVE_NO_DUMP		  (1U << 0) /* do not request the existing assignments */
#define MEMWATCH_LIVE_NO_START		  (1U << 1) /* start no session; another process does */

#define MEMWATCH_STREAM_GRACE_DEFAULT_NS  2000000ULL
#define MEMWATCH_STREAM_SILENT_DEFAULT_NS 50000000ULL

/**
 * struct memwatch_live_opts - options of memwatch_stream_open_live()
 * @sz: sizeof(struct memwatch_live_opts)
 * @flags: MEMWATCH_LIVE_*
 * @mode: &enum memwatch_stream_mode
 * @period_ns: tick period to set; default: keep the period of the module; without it 1 ms
 * @ring_pages: pages of each CPU's ring, a power of two; default 64
 * @backend: &enum memwatch_live_backend
 * @grace_ns: see WATERMARK; default 2 ms
 * @silent_ns: see WATERMARK; default 50 ms, or three periods if that is longer. The default
 *	follows a period that becomes longer in mid-session.
 * @wakeup_ns: how long a record may be in its ring before memwatch_stream_poll() returns;
 *	default 10 ms, and never longer than 64 periods
 */
struct memwatch_live_opts {
	size_t sz;
	__u32 flags;
	__u32 mode;
	__u64 period_ns;
	__u32 ring_pages;
	__u32 backend;
	__u64 grace_ns;
	__u64 silent_ns;
	__u64 wakeup_ns;
};

/**
 * memwatch_stream_open_live - measure this machine
 * @ctx: context
 * @opts: options or NULL
 * @ret: the stream; caller frees with memwatch_stream_unref()
 *
 * With the module: opens /dev/memwatch, loads and attaches the BPF relay, starts a session and
 * requests a dump, in this order. So the stream starts with all current assignments of RMIDs.
 * Without: loads and attaches BPF programs that measure alone; the record of a process that
 * exists comes when it first runs. The stream runs until it is stopped. If the process is
 * killed, the kernel ends the session and removes the BPF programs.
 *
 * Returns: 0; -ENOENT: the module is not loaded; -EACCES or -EPERM: not permitted; -EPROTO:
 * the module has another schema; -EOPNOTSUPP: this kernel lacks something that the programs
 * need; -EBUSY: another session is running and has another period; -ELIBACC:
 * libbpf is not installed; -EREMOTE: it is asked for in a container; -EINVAL; -ENOMEM; or another
 * negative errno. memwatch_ctx_error() names the remedy if one is
 * known.
 * Since: 0.1
 */
MEMWATCH_MUST_CHECK int memwatch_stream_open_live(struct memwatch_ctx *ctx,
						  const struct memwatch_live_opts *opts,
						  struct memwatch_stream **ret);

/**
 * memwatch_stream_open_file - replay a recording
 * @ctx: context
 * @path: a file written by memwatch_recording_create()
 * @ret: the stream; caller frees with memwatch_stream_unref()
 *
 * Delivers the records with their flags, as fast as they are read. A truncated file ends
 * without an error after its last complete block; see memwatch_stream_stats.truncated.
 *
 * Returns: 0, or as memwatch_reader_open().
 * Since: 0.1
 */
MEMWATCH_MUST_CHECK int memwatch_stream_open_file(struct memwatch_ctx *ctx, const char *path,
						  struct memwatch_stream **ret);

/**
 * struct memwatch_null_opts - options of memwatch_stream_open_null()
 * @sz: sizeof(struct memwatch_null_opts)
 * @seed: seed of the generator; the same options give the same records
 * @cpus: number of CPUs; default 4, at most 4096
 * @processes: number of processes at a time, which fork, exec and exit; default 32
 * @period_ns: tick period; default 1 ms
 * @duration_ns: time that the stream covers; default 1 s
 * @samples_per_tick: maximum of samples per CPU and tick; default 4
 * @pmu: 1: hardware counters have values; 0: they are unavailable, as in most VMs
 * @rdt: 1: every tenth period has RDT records
 */
struct memwatch_null_opts {
	size_t sz;
	__u64 seed;
	__u32 cpus;
	__u32 processes;
	__u64 period_ns;
	__u64 duration_ns;
	__u32 samples_per_tick;
	__u8 pmu;
	__u8 rdt;
	__u8 reserved[2];
};

/**
 * memwatch_stream_open_null - generate records, for tests and benchmarks
 * @ctx: context
 * @opts: options or NULL
 * @ret: the stream; caller frees with memwatch_stream_unref()
 *
 * The records are plausible: the run_ns of each CPU add up to the interval of the tick, RMIDs
 * are reused with a new generation, and the stream starts with a dump. Neither the module
 * nor any privilege is needed.
 *
 * Returns: 0, -EINVAL, -ENOMEM.
 * Since: 0.1
 */
int memwatch_stream_open_null(struct memwatch_ctx *ctx, const struct memwatch_null_opts *opts,
			      struct memwatch_stream **ret);

/**
 * memwatch_stream_unref - stop and free a stream
 * @stream: stream or NULL
 *
 * Records that were not read are discarded. To read them all, call memwatch_stream_stop()
 * and read until the end first.
 *
 * Returns: NULL.
 * Since: 0.1
 */
struct memwatch_stream *memwatch_stream_unref(struct memwatch_stream *stream);

/**
 * memwatch_stream_next - get the next record
 * @stream: stream
 * @ret: the record, aligned to 8 bytes. It has header.size bytes, at least the size of the
 *	structure of its type. It is owned by the stream and valid until the next call with
 *	this stream. Records of types that this library does not know are delivered as
 *	well; skip them.
 *
 * Does not block.
 *
 * Returns: 1; 0: the end of the file, or the end of the records after
 * memwatch_stream_stop(); -EAGAIN: nothing to deliver yet, see memwatch_stream_poll();
 * another negative errno on failure: then free the stream with memwatch_stream_unref().
 * Since: 0.1
 */
MEMWATCH_MUST_CHECK int memwatch_stream_next(struct memwatch_stream *stream,
					     const struct memwatch_record_header **ret);

/**
 * memwatch_stream_poll - wait for records
 * @stream: stream
 * @timeout_ms: maximum time to wait; 0: do not wait; -1: no limit
 *
 * Returns: 1: memwatch_stream_next() will not return -EAGAIN; 0: the time is over; -EINTR: a
 * signal was received; another negative errno.
 * Since: 0.1
 */
int memwatch_stream_poll(struct memwatch_stream *stream, int timeout_ms);

/**
 * memwatch_stream_fd - a file descriptor for an event loop
 * @stream: stream
 *
 * It is readable when memwatch_stream_next() may have a record, and from time to time while there
 * is none, because records become ready also by the passing of time. When it is readable, call
 * memwatch_stream_next() until it returns -EAGAIN; this makes it unreadable again. Do not read
 * from it and do not close it: it belongs to the stream. That of a recording is always readable.
 *
 * Returns: a descriptor for poll() or epoll_wait(), the same at each call; a negative errno.
 * Since: 0.1
 */
int memwatch_stream_fd(struct memwatch_stream *stream);

/**
 * memwatch_stream_stop - stop the measurement
 * @stream: stream
 *
 * No new records are made. Those in the rings are still delivered, all of them and in order;
 * after that memwatch_stream_next() returns 0. A second call does nothing. The record that
 * memwatch_stream_next() has returned stays valid.
 *
 * Returns: 0; a negative errno if the session of the module could not be stopped. The stream ends
 * in this case too, and memwatch_stream_unref() ends the session.
 * Since: 0.1
 */
int memwatch_stream_stop(struct memwatch_stream *stream);

/* Length of the arrays of &struct memwatch_stream_info, which has room for further counters. */
#define MEMWATCH_STREAM_INFO_ROOM 16

/**
 * struct memwatch_availability - whether something is measured; it does not grow
 * @status: OK, UNAVAILABLE, or ESTIMATED
 * @reason: why the status is not OK, for people; "" if it is OK
 */
struct memwatch_availability {
	__u8 status;
	__u8 reserved[7];
	const char *reason;
};

/**
 * struct memwatch_stream_info - origin of a stream
 * @sz: sizeof(struct memwatch_stream_info) of the library that filled it in
 * @schema: MEMWATCH_SCHEMA of the records
 * @nr_cpus: number of CPUs with a ring
 * @nr_rmids: the highest RMID that can be allocated; 0 without the module
 * @backend: name of the module's backend, see memwatch_backend_name(), or "bpf"
 * @backend_reason: why the module chose this backend, or what "bpf" is
 * @hostname: host name of the machine
 * @kernel: release of its kernel, as printed by uname -r
 * @version: version of the library that received the records from the module
 * @period_ns: tick period at the start. It may become longer in mid-session;
 *	each tick record has the one in force.
 * @mode: &enum memwatch_stream_mode
 * @start_realtime_ns: CLOCK_REALTIME when the measurement had started; the first records may be
 *	a little older
 * @start_monotonic_ns: CLOCK_MONOTONIC at the same moment
 * @start_boottime_ns: CLOCK_BOOTTIME at the same moment. The three together convert the
 *	times of the records to the other clocks.
 * @counter: availability of each &enum memwatch_counter; the others are 0
 * @rdt: availability of each &enum memwatch_rdt_event; the others are 0
 *
 * A copy has the length that the caller knows: @sz of it must be set again.
 *
 * No string is NULL, except the reasons in members that are 0.
 */
struct memwatch_stream_info {
	size_t sz;
	__u32 schema;
	__u32 nr_cpus;
	__u32 nr_rmids;
	__u32 mode;
	const char *backend;
	const char *backend_reason;
	const char *hostname;
	const char *kernel;
	const char *version;
	__u64 period_ns;
	__u64 start_realtime_ns;
	__u64 start_monotonic_ns;
	__u64 start_boottime_ns;
	struct memwatch_availability counter[MEMWATCH_STREAM_INFO_ROOM];
	struct memwatch_availability rdt[MEMWATCH_STREAM_INFO_ROOM];
};

/**
 * memwatch_stream_get_info - describe the origin of a stream
 * @stream: stream
 *
 * Returns: the description, which is owned by the stream and constant while it exists.
 * Since: 0.1
 */
const struct memwatch_stream_info *memwatch_stream_get_info(const struct memwatch_stream *stream);

/**
 * struct memwatch_stream_stats - counts since the stream was opened
 * @sz: in: sizeof(struct memwatch_stream_stats)
 * @produced: records that the relay tried to send, as the last tick of each CPU says; for
 *	files and generators: the same as @delivered
 * @delivered: records that were delivered, without MEMWATCH_RECORD_LOST
 * @late: delivered records with the flag LATE
 * @forced: delivered records with the flag FORCED
 * @lost: records that did not fit into a ring
 * @malformed: records, or parts of a ring, that are not valid
 * @watermark_ns: the stream is complete up to this time, see ORDER
 * @memory_bytes: present memory of the stream, rings included
 * @rings: number of CPUs with a ring
 * @rings_silent: number of rings that are silent at present, see WATERMARK
 * @truncated: the file is truncated, or a block in it is damaged
 * @reserved: 0
 */
struct memwatch_stream_stats {
	size_t sz;
	__u64 produced;
	__u64 delivered;
	__u64 late;
	__u64 forced;
	__u64 lost;
	__u64 malformed;
	__u64 watermark_ns;
	__u64 memory_bytes;
	__u32 rings;
	__u32 rings_silent;
	__u32 truncated;
	__u32 reserved;
};

/**
 * memwatch_stream_get_stats - get the counts of a stream
 * @stream: stream
 * @ret: filled in up to ret->sz
 *
 * Returns: 0; -EINVAL: ret->sz is not valid; another negative errno.
 * Since: 0.1
 */
int memwatch_stream_get_stats(struct memwatch_stream *stream, struct memwatch_stream_stats *ret);

/**
 * struct memwatch_stream_cpu_stats - counts of one CPU, see &struct memwatch_stream_stats
 * @sz: in: sizeof(struct memwatch_stream_cpu_stats)
 * @produced: records that the relay tried to send, as the last tick says
 * @delivered: records that were delivered, without MEMWATCH_RECORD_LOST
 * @late: delivered records with the flag LATE
 * @lost: records that did not fit into the ring
 * @malformed: records, or parts of the ring, that are not valid
 * @newest_ns: time of the newest record that was found in the ring
 * @cpu: number of the CPU
 * @state: last &enum memwatch_cpu_state that the CPU announced, 0 if none
 */
struct memwatch_stream_cpu_stats {
	size_t sz;
	__u64 produced;
	__u64 delivered;
	__u64 late;
	__u64 lost;
	__u64 malformed;
	__u64 newest_ns;
	__u32 cpu;
	__u32 state;
};

/**
 * memwatch_stream_get_cpu_stats - get the counts of one CPU
 * @stream: stream
 * @index: 0 to memwatch_stream_stats.rings - 1
 * @ret: filled in up to ret->sz
 *
 * Returns: 1; 0: @index is past the last CPU; a negative errno.
 * Since: 0.1
 */
int memwatch_stream_get_cpu_stats(struct memwatch_stream *stream, unsigned int index,
				  struct memwatch_stream_cpu_stats *ret);

/**
 * memwatch_stream_get_failure - get a failure counter of the relay
 * @stream: stream
 * @index: 0, 1, ... until the function returns 0
 * @name: name of the counter; constant
 * @count: failures since the relay was attached
 *
 * Returns: 1; 0: @index is past the last counter; a negative errno.
 * Since: 0.1
 */
int memwatch_stream_get_failure(struct memwatch_stream *stream, unsigned int index,
				const char **name, __u64 *count);

#ifdef __cplusplus
}
#endif

#endif /* MEMWATCH_STREAM_H */
