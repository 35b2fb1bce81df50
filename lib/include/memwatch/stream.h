/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The stream: the records of all CPUs, one after another, in time order.
 *
 * ORDER. Records come sorted by time_ns; equal times by CPU, then by order of
 * arrival. The exceptions are exact: a record is flagged MEMWATCH_RECORD_F_LATE
 * if, and only if, a record with a later time has been delivered before it.
 * So "complete up to T", T being the time of the last record without that flag
 * (memwatch_stream_stats.watermark_ns), means: whatever comes from now on with
 * an earlier time will be flagged. Nothing is re-ordered silently or dropped.
 *
 * WATERMARK. Every CPU writes its own ring. A ring says how far it is complete,
 * its frontier, and the stream delivers what is older than the oldest frontier:
 *
 *   a CPU that ticks	  time of its newest record, minus @grace_ns. One ring
 *			  is not monotonic: an interrupt may write a later stamp
 *			  before the interrupted code has written its earlier
 *			  one. @grace_ns is how long that may take.
 *   OFFLINE, IDLE,	  it said so with a MEMWATCH_RECORD_CPU_STATE record:
 *   STOPPED		  the moment its ring was last found empty, minus
 *			  @grace_ns. Not "for ever": it may come back in the
 *			  moment after.
 *   a silent CPU	  ring empty and no such record: the moment its ring was
 *			  last found empty, minus @silent_ns. Records that only
 *			  this rule released are flagged MEMWATCH_RECORD_F_FORCED.
 *
 * So no CPU delays the stream for more than @silent_ns, and a record that takes
 * longer than @grace_ns from stamp to ring comes late, flagged, not lost.
 *
 * MEMORY. Records stay in the kernel's rings until they are delivered; the
 * library holds 16 bytes for each parcel that it has looked at, which is what a
 * CPU sent at once, as all of a tick, at most 8192 of them a ring, and a copy of
 * the one it is delivering if it needs one, at most 64 KiB.
 * If a ring is three quarters full, or has that many waiting, the stream no
 * longer waits for the other CPUs: it delivers up to this ring's own frontier,
 * flagged FORCED. Under overload it emits; it does not grow.
 *
 * LOSS. What did not fit into a ring appears as MEMWATCH_RECORD_LOST, one record
 * per gap, with the number of records lost and the neighbouring times, in its
 * place in the order. Over a whole stream, for each CPU,
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
 * enum memwatch_stream_mode - how samples are cut
 * @MEMWATCH_STREAM_SLOT: deltas are added up per CPU and RMID and sent at the
 *	tick: the record rate does not follow the switch rate. Default.
 * @MEMWATCH_STREAM_SWITCH: one sample for each context switch
 */
enum memwatch_stream_mode {
	MEMWATCH_STREAM_SLOT = 0,
	MEMWATCH_STREAM_SWITCH = 1,
};

/* Flags of &struct memwatch_live_opts. */
#define MEMWATCH_LIVE_NO_DUMP		  (1U << 0) /* do not ask for the existing assignments */
#define MEMWATCH_LIVE_NO_START		  (1U << 1) /* attach only; another session drives the module */

#define MEMWATCH_STREAM_GRACE_DEFAULT_NS  2000000ULL
#define MEMWATCH_STREAM_SILENT_DEFAULT_NS 50000000ULL

/**
 * struct memwatch_live_opts - options of memwatch_stream_open_live()
 * @sz: sizeof(struct memwatch_live_opts)
 * @flags: MEMWATCH_LIVE_*
 * @mode: &enum memwatch_stream_mode
 * @period_ns: tick period to set; default: keep what the module has
 * @ring_pages: pages of each CPU's ring, a power of two; default 64
 * @grace_ns: see WATERMARK; default 2 ms
 * @silent_ns: see WATERMARK; default 50 ms, or three periods if that is longer
 * @wakeup_ns: how long a record may wait in its ring before
 *	memwatch_stream_poll() returns; default 10 ms
 */
struct memwatch_live_opts {
	size_t sz;
	__u32 flags;
	__u32 mode;
	__u64 period_ns;
	__u32 ring_pages;
	__u32 reserved;
	__u64 grace_ns;
	__u64 silent_ns;
	__u64 wakeup_ns;
};

/**
 * memwatch_stream_open_live - measure this machine now
 * @ctx: context
 * @opts: options or NULL
 * @ret: the stream; caller frees with memwatch_stream_unref()
 *
 * Opens /dev/memwatch, loads and attaches the BPF relay, starts a session and
 * asks for a dump, in this order, so that the stream begins with every
 * assignment that holds. The stream lives until it is stopped; if the process
 * is killed, the kernel takes everything down.
 *
 * Returns: 0; -ENOENT, the module is not loaded; -EACCES or -EPERM, not
 * permitted; -EPROTO, the module speaks another schema; -EOPNOTSUPP, this
 * kernel lacks something the relay needs; -EBUSY, another session runs and the
 * period would change; -ENOSYS, the library was built without the relay;
 * -EINVAL; -ENOMEM. memwatch_ctx_error() names the remedy where it is known.
 * Since: 0.1
 */
int memwatch_stream_open_live(struct memwatch_ctx *ctx, const struct memwatch_live_opts *opts,
			      struct memwatch_stream **ret);

/**
 * memwatch_stream_open_file - replay a recording
 * @ctx: context
 * @path: a file written by memwatch_recording_create()
 * @ret: the stream; caller frees with memwatch_stream_unref()
 *
 * Delivers what was recorded, as fast as it is read, flags included. A file
 * that was cut off ends at its last whole block, without an error; see
 * memwatch_stream_stats.truncated.
 *
 * Returns: 0, or as memwatch_reader_open().
 * Since: 0.1
 */
int memwatch_stream_open_file(struct memwatch_ctx *ctx, const char *path,
			      struct memwatch_stream **ret);

/**
 * struct memwatch_null_opts - options of memwatch_stream_open_null()
 * @sz: sizeof(struct memwatch_null_opts)
 * @seed: of the generator; the same options give the same records
 * @cpus: default 4, at most 4096
 * @processes: how many live at a time; default 32. They fork, exec and exit.
 * @period_ns: tick period; default 1 ms
 * @duration_ns: how much time the stream covers; default 1 s
 * @samples_per_tick: per CPU, at most; default 4
 * @pmu: 1: counters have values; 0: they are unavailable, as in most VMs
 * @rdt: 1: RDT records once in ten periods
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
 * memwatch_stream_open_null - a generator, for tests and benchmarks
 * @ctx: context
 * @opts: options or NULL
 * @ret: the stream; caller frees with memwatch_stream_unref()
 *
 * A plausible machine: on every CPU the run_ns of a tick add up to its
 * interval, RMIDs are recycled with a new generation, the stream starts with
 * a dump. Needs nothing from the system.
 *
 * Returns: 0, -EINVAL, -ENOMEM.
 * Since: 0.1
 */
int memwatch_stream_open_null(struct memwatch_ctx *ctx, const struct memwatch_null_opts *opts,
			      struct memwatch_stream **ret);

/**
 * memwatch_stream_unref - stop and free
 * @stream: stream or NULL
 *
 * What was not read is gone; memwatch_stream_stop() first to drain.
 *
 * Returns: NULL.
 * Since: 0.1
 */
struct memwatch_stream *memwatch_stream_unref(struct memwatch_stream *stream);

/**
 * memwatch_stream_next - the next record
 * @stream: stream
 * @ret: the record, 8-byte aligned, header.size bytes long, at least as long as
 *	the structure of its type; owned by the stream, valid until the next
 *	call with this stream. A type that this library does not know is
 *	delivered too: skip it.
 *
 * Does not block.
 *
 * Returns: 1; 0 at the end (of the file, or after memwatch_stream_stop());
 * -EAGAIN, nothing to deliver yet: memwatch_stream_poll(); another negative
 * errno on failure, after which only memwatch_stream_unref() makes sense.
 * Since: 0.1
 */
int memwatch_stream_next(struct memwatch_stream *stream, const struct memwatch_record_header **ret);

/**
 * memwatch_stream_poll - wait for records
 * @stream: stream
 * @timeout_ms: at most so long; 0: look only; -1: no limit
 *
 * Returns: 1, memwatch_stream_next() has something to say (a record, the end
 * or an error); 0, time is up; -EINTR, a signal came; another negative errno.
 * Since: 0.1
 */
int memwatch_stream_poll(struct memwatch_stream *stream, int timeout_ms);

/**
 * memwatch_stream_stop - end gracefully
 * @stream: stream
 *
 * No new records are made; what is in the rings is still delivered, complete
 * and in order, then memwatch_stream_next() returns 0. A second call does
 * nothing. Safe while a record of memwatch_stream_next() is in use.
 *
 * Returns: 0 or a negative errno.
 * Since: 0.1
 */
int memwatch_stream_stop(struct memwatch_stream *stream);

/**
 * struct memwatch_availability - whether something is measured
 * @status: OK, UNAVAILABLE, or ESTIMATED
 * @reason: why not, "" if it is; one sentence for people
 */
struct memwatch_availability {
	__u8 status;
	__u8 reserved[7];
	const char *reason;
};

/**
 * struct memwatch_stream_info - what the stream was made from
 * @sz: sizeof(struct memwatch_stream_info) of the library that filled it in
 * @schema: MEMWATCH_SCHEMA of the records
 * @nr_cpus: CPUs with a ring
 * @nr_rmids: RMIDs that can be allocated
 * @backend: name of the module's backend, see memwatch_backend_name()
 * @backend_reason: why this one
 * @hostname: of the machine
 * @kernel: its release, as uname -r
 * @version: of the library that recorded
 * @period_ns: tick period at the start
 * @mode: &enum memwatch_stream_mode
 * @start_realtime_ns: CLOCK_REALTIME at the start
 * @start_monotonic_ns: CLOCK_MONOTONIC at the same moment
 * @start_boottime_ns: CLOCK_BOOTTIME at the same moment. With these three,
 *	every time in the records converts to every other clock.
 * @counter: availability of each &enum memwatch_counter
 * @rdt: availability of each &enum memwatch_rdt_event
 *
 * No string is NULL.
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
	struct memwatch_availability counter[MEMWATCH_COUNTER_MAX];
	struct memwatch_availability rdt[MEMWATCH_RDT_MAX];
};

/**
 * memwatch_stream_info - what the stream was made from
 * @stream: stream
 *
 * Returns: owned by the stream, valid as long as it. Constant.
 * Since: 0.1
 */
const struct memwatch_stream_info *memwatch_stream_info(const struct memwatch_stream *stream);

/**
 * struct memwatch_stream_stats - counts since the stream was opened
 * @sz: in: sizeof(struct memwatch_stream_stats)
 * @produced: records that the relay tried to send, by its own count: the sum
 *	over CPUs of the last tick's; for files and generators = @delivered
 * @delivered: records handed out, without MEMWATCH_RECORD_LOST
 * @late: of these, flagged LATE
 * @forced: of these, flagged FORCED
 * @lost: records that did not fit into a ring, as the kernel counted them
 * @malformed: records, or stretches of a ring, that made no sense
 * @watermark_ns: the stream is complete up to here, see ORDER
 * @memory_bytes: held by the stream now, rings included
 * @rings: CPUs with a ring
 * @rings_silent: of these, silent at the moment
 * @truncated: the file was cut off, or a block in it is damaged
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
 * memwatch_stream_stats - counts
 * @stream: stream
 * @ret: filled in up to ret->sz
 *
 * Returns: 0; -EINVAL, ret->sz makes no sense; another negative errno.
 * Since: 0.1
 */
int memwatch_stream_stats(struct memwatch_stream *stream, struct memwatch_stream_stats *ret);

/**
 * struct memwatch_stream_cpu_stats - counts of one CPU
 * @sz: in: sizeof(struct memwatch_stream_cpu_stats)
 * @produced: as of its last tick
 * @delivered: without MEMWATCH_RECORD_LOST
 * @late: flagged LATE
 * @lost: did not fit into its ring
 * @malformed: made no sense
 * @newest_ns: time of its newest record seen
 * @cpu: number of the CPU
 * @state: last &enum memwatch_cpu_state it announced, 0 if none
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
 * memwatch_stream_cpu_stats - counts of one CPU
 * @stream: stream
 * @index: 0 to memwatch_stream_stats.rings - 1
 * @ret: filled in up to ret->sz
 *
 * Returns: 1; 0, @index is past the last; a negative errno.
 * Since: 0.1
 */
int memwatch_stream_cpu_stats(struct memwatch_stream *stream, unsigned int index,
			      struct memwatch_stream_cpu_stats *ret);

/**
 * memwatch_stream_failure - failures of the relay's helper functions
 * @stream: stream
 * @index: 0, 1, ... until it returns 0
 * @name: name of the counter; constant
 * @count: failures since the relay was attached; most are 0
 *
 * Returns: 1; 0, @index is past the last; a negative errno.
 * Since: 0.1
 */
int memwatch_stream_failure(struct memwatch_stream *stream, unsigned int index, const char **name,
			    __u64 *count);

#ifdef __cplusplus
}
#endif

#endif /* MEMWATCH_STREAM_H */
