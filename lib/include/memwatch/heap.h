/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Heap profiles: which call stack allocated the memory that is still in use.
 *
 * A heap is a set of profiles, in the order in which they were added: one profile, a profile
 * and its base, or several snapshots of one process. It reads profiles of the memwatch heap
 * profiler, of Go and others in the format of pprof (gzip or not), and those of jemalloc
 * (heap_v2) and gperftools. The kind of a file is found from its content. A view adds the
 * samples of a heap up by call stack, function, line or module, or as a tree of calls.
 *
 * ESTIMATES. A profiler samples an allocation of s bytes with probability p, which is
 * 1 - exp(-s / rate). A sampled allocation counts 1 / p objects and s / p bytes, so that sums
 * are unbiased. The variance of such a sum is estimated as the sum of s^2 (1 - p) / p^2 over
 * the sampled allocations, and gives the interval of 95 %. Values of other profilers are
 * unsampled the way their own tools do it.
 *
 * STRINGS come from the file and may contain any bytes but NUL. They belong to the heap.
 */
#ifndef MEMWATCH_HEAP_H
#define MEMWATCH_HEAP_H

#include <stddef.h>

#include <linux/types.h>
#include <memwatch/ctx.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------- profiles */

struct memwatch_heap;

/**
 * enum memwatch_heap_metric - what is added up
 * @MEMWATCH_HEAP_LIVE_BYTES: bytes allocated and not freed
 * @MEMWATCH_HEAP_LIVE_OBJECTS: objects allocated and not freed
 * @MEMWATCH_HEAP_ALLOCATED_BYTES: bytes allocated since the profile began
 * @MEMWATCH_HEAP_ALLOCATED_OBJECTS: objects allocated since the profile began
 * @MEMWATCH_HEAP_METRICS: number of metrics
 */
enum memwatch_heap_metric {
	MEMWATCH_HEAP_LIVE_BYTES = 0,
	MEMWATCH_HEAP_LIVE_OBJECTS = 1,
	MEMWATCH_HEAP_ALLOCATED_BYTES = 2,
	MEMWATCH_HEAP_ALLOCATED_OBJECTS = 3,
	MEMWATCH_HEAP_METRICS = 4,
};

/**
 * enum memwatch_heap_format - kind of a file
 * @MEMWATCH_HEAP_MEMWATCH: a profile of the memwatch heap profiler
 * @MEMWATCH_HEAP_PPROF: profile.proto of pprof
 * @MEMWATCH_HEAP_JEMALLOC: heap_v2 of jemalloc
 * @MEMWATCH_HEAP_GPERFTOOLS: "heap profile:" of gperftools
 */
enum memwatch_heap_format {
	MEMWATCH_HEAP_MEMWATCH = 0,
	MEMWATCH_HEAP_PPROF = 1,
	MEMWATCH_HEAP_JEMALLOC = 2,
	MEMWATCH_HEAP_GPERFTOOLS = 3,
};

#define MEMWATCH_HEAP_HEADER (1U << 0) /* only memwatch_heap_get_info(), of memwatch's profiles */
#define MEMWATCH_HEAP_NATIVE (1U << 1) /* keep the native frames of interpreters */

/**
 * struct memwatch_heap_opts - options of memwatch_heap_new()
 * @sz: sizeof(struct memwatch_heap_opts)
 * @flags: MEMWATCH_HEAP_HEADER, MEMWATCH_HEAP_NATIVE
 * @reserved: 0
 * @max_bytes: largest file that is read, and largest content of a compressed file; default
 *	256 MiB
 */
struct memwatch_heap_opts {
	size_t sz;
	__u32 flags;
	__u32 reserved;
	__u64 max_bytes;
};

/**
 * memwatch_heap_new - create a heap without profiles
 * @ctx: context
 * @opts: options or NULL
 * @ret: the heap; caller frees with memwatch_heap_unref()
 *
 * Returns: 0, -ENOMEM, -EINVAL or -E2BIG.
 * Since: 0.1
 */
int memwatch_heap_new(struct memwatch_ctx *ctx, const struct memwatch_heap_opts *opts,
		      struct memwatch_heap **ret);

/**
 * memwatch_heap_unref - free
 * @heap: heap or NULL
 *
 * Returns: NULL.
 * Since: 0.1
 */
struct memwatch_heap *memwatch_heap_unref(struct memwatch_heap *heap);

/**
 * memwatch_heap_add - read a profile
 * @heap: heap
 * @path: path of the file
 *
 * A profile that is still being written is read as it is at this moment. After a failure the
 * heap can only be freed.
 *
 * Returns: the number of the profile, counted from 0; any errno of open() and read(); -ENOMSG,
 * the file is no heap profile; -EPROTO, its format is newer; -EBADMSG, it is damaged; -EFBIG,
 * it is larger than the limit; -ENOMEM.
 * Since: 0.1
 */
int memwatch_heap_add(struct memwatch_heap *heap, const char *path);

/**
 * memwatch_heap_add_fd - read a profile from an open file
 * @heap: heap
 * @fd: readable descriptor, read from its current position to its end; stays open
 * @name: name of the file for messages
 *
 * Returns: as memwatch_heap_add().
 * Since: 0.1
 */
int memwatch_heap_add_fd(struct memwatch_heap *heap, int fd, const char *name);

/**
 * enum memwatch_heap_state - what the profiler does in the process
 * @MEMWATCH_HEAP_STATE_UNKNOWN: the profile does not say
 * @MEMWATCH_HEAP_STATE_DORMANT: sampling was never started
 * @MEMWATCH_HEAP_STATE_ACTIVE: allocations are sampled; or were, until the process was killed
 * @MEMWATCH_HEAP_STATE_STOPPED: sampling was stopped; frees are still followed
 * @MEMWATCH_HEAP_STATE_ENDED: the program has ended by itself
 */
enum memwatch_heap_state {
	MEMWATCH_HEAP_STATE_UNKNOWN = 0,
	MEMWATCH_HEAP_STATE_DORMANT = 1,
	MEMWATCH_HEAP_STATE_ACTIVE = 2,
	MEMWATCH_HEAP_STATE_STOPPED = 3,
	MEMWATCH_HEAP_STATE_ENDED = 4,
};

#define MEMWATCH_HEAP_LIMIT_NO_SPACE	 (1U << 0) /* the file system was full */
#define MEMWATCH_HEAP_LIMIT_FILE_SIZE	 (1U << 1) /* the file reached its largest size */
#define MEMWATCH_HEAP_LIMIT_SAMPLES_FULL (1U << 2) /* the rate was raised to save room */
#define MEMWATCH_HEAP_LIMIT_STACKS_FULL	 (1U << 3) /* some samples have no stack */
#define MEMWATCH_HEAP_LIMIT_MODULES_FULL (1U << 4) /* some frames have no module */
#define MEMWATCH_HEAP_LIMIT_SNAPSHOTS	 (1U << 6) /* a copy is missing */
#define MEMWATCH_HEAP_LIMIT_CODE_FULL	 (1U << 7) /* some functions of Python have no name */

#define MEMWATCH_HEAP_PYTHON_SEEN	 (1U << 0) /* CPython was in a stack */
#define MEMWATCH_HEAP_PYTHON_FRAMES	 (1U << 1) /* its functions are in the stacks */
#define MEMWATCH_HEAP_PYTHON_PYMALLOC	 (1U << 2) /* its small objects lie in arenas of its own */

/**
 * struct memwatch_heap_info - description of a profile
 * @sz: in: sizeof(struct memwatch_heap_info)
 * @format: enum memwatch_heap_format
 * @metrics: bit N is set if the profile has metric N
 * @pid: process id in its own namespace, or 0
 * @from_start: 1: the profile began when the process started; 0: later; -1: not known
 * @rate_bytes: mean number of bytes between two samples; 1: every allocation is recorded; 0:
 *	not known, intervals are then missing
 * @samples: number of samples: sampled allocations that are live for MEMWATCH, otherwise
 *	stacks
 * @frame_pointer: stacks that were walked by frame pointers alone
 * @unwound: stacks that were walked by unwind tables
 * @truncated: stacks that were cut off
 * @start_ns: when the profile began, nanoseconds of CLOCK_REALTIME, or 0
 * @end_ns: the time that the profile shows, nanoseconds of CLOCK_REALTIME, or 0
 * @comm: name of the process, or ""
 * @objects: what is counted as an object, for example "objects" or "goroutines"
 * @name: name of the file
 * @state: enum memwatch_heap_state
 * @limits: MEMWATCH_HEAP_LIMIT_*: why a profile is less exact than was asked for
 * @configured_rate_bytes: the rate that was asked for, or 0
 * @sampled: allocations that were sampled since the start; this and all below are 0 if the
 *	profile is not one of memwatch
 * @freed: how many of them were freed
 * @lost: how many of them could not be stored
 * @lost_bytes: estimate of the bytes that these stand for
 * @peak_live_bytes: highest estimate of the live bytes
 * @peak_live_ns: when that was, nanoseconds of CLOCK_REALTIME
 * @sample_ns: time that the process spent in taking samples
 * @file_bytes: size of the profile
 * @live_bytes: estimate of the live bytes, as the process keeps it
 * @python: MEMWATCH_HEAP_PYTHON_*
 * @python_version: Py_Version of CPython, 0xMMmmppLs; 0: there is none, or it is older than 3.11
 * @watch_max: most objects that are watched for accesses at a time; 0: none
 * @watched: how many are
 * @watch_ns: until when their accesses are known, nanoseconds of CLOCK_REALTIME, or 0
 * @watch_step_ns: how exactly the time of an access is known
 * @watch_least: smaller objects are never watched
 * @watch_refused: objects that were chosen and could not be watched: too few are, and estimates
 *	may be biased
 */
struct memwatch_heap_info {
	size_t sz;
	__u32 format;
	__u32 metrics;
	__u32 pid;
	__s32 from_start;
	__u64 rate_bytes;
	__u64 samples;
	__u64 frame_pointer;
	__u64 unwound;
	__u64 truncated;
	__u64 start_ns;
	__u64 end_ns;
	const char *comm;
	const char *objects;
	const char *name;
	__u32 state;
	__u32 limits;
	__u64 configured_rate_bytes;
	__u64 sampled;
	__u64 freed;
	__u64 lost;
	__u64 lost_bytes;
	__u64 peak_live_bytes;
	__u64 peak_live_ns;
	__u64 sample_ns;
	__u64 file_bytes;
	__u64 live_bytes;
	__u32 python;
	__u32 python_version;
	__u32 watch_max;
	__u32 watched;
	__u64 watch_ns;
	__u64 watch_step_ns;
	__u64 watch_least;
	__u64 watch_refused;
};

/**
 * memwatch_heap_get_info - description of a profile
 * @heap: heap
 * @profile: number of the profile
 * @ret: filled in up to ret->sz
 *
 * Returns: 0, -ENOENT if there is no such profile, or -EINVAL.
 * Since: 0.1
 */
int memwatch_heap_get_info(const struct memwatch_heap *heap, unsigned int profile,
			   struct memwatch_heap_info *ret);

/* ------------------------------------------------------------- symbols */

/**
 * struct memwatch_heap_symbol_opts - options of memwatch_heap_symbolize()
 * @sz: sizeof(struct memwatch_heap_symbol_opts)
 * @sysroot: directory that is prepended to the paths of modules, for example /proc/PID/root for
 *	a process in a container; NULL: none
 * @timeout_ns: how long it may take; default 60 s
 * @open_module: NULL, or called with @data for each program and library that is needed, and for
 *	perf-PID.map, before the child is started, to open a file that the child may not open: with
 *	the number of a profile and the path, after @sysroot. It returns a descriptor, which is
 *	closed after use, or a negative value. Then the child tries to open a program or library
 *	itself. The path comes from the profile: who opens it for somebody else must check what it
 *	is, and whether the owner of the profile may read it.
 * @data: for @open_module
 */
struct memwatch_heap_symbol_opts {
	size_t sz;
	const char *sysroot;
	__u64 timeout_ns;
	int (*open_module)(void *data, __u32 profile, const char *path);
	void *data;
};

/**
 * memwatch_heap_symbolize - find the functions and lines of addresses
 * @heap: heap, which must have no view
 * @opts: options or NULL
 *
 * Reads the ELF files that the profiles name, their debug files (by build id, debuglink, and
 * debuginfod if DEBUGINFOD_URLS is set), and perf-PID.map in /tmp. A child process does this,
 * which cannot write files or send data, unless it is to use debuginfod, and which runs as nobody
 * if the caller is root; then it does not use debuginfod. On machines other than x86-64 and AArch64
 * its system calls are not filtered. It is a fork of the caller without exec, so the caller should
 * have one thread. A file whose build id is not that of the profile is not used. Addresses whose
 * symbols are not found stay what they are; see memwatch_heap_unread_module().
 *
 * Returns: 0; -ETIMEDOUT, -EBADMSG, or -ELIBACC if elfutils is not installed: some symbols are
 * missing, and the heap can be used; any errno of fork(); -ENOMEM.
 * Since: 0.1
 */
int memwatch_heap_symbolize(struct memwatch_heap *heap,
			    const struct memwatch_heap_symbol_opts *opts);

/**
 * memwatch_heap_confine - give up what reading profiles does not need
 * @ctx: context
 *
 * For a program that reads profiles of other users and may do more than they. The process, which
 * must have one thread, becomes the user nobody if it is root, and can then only read files, write
 * to those that are open, and start the child of memwatch_heap_symbolize(), without debuginfod.
 * Other system calls fail with EPERM (on x86-64 and AArch64). This cannot be undone.
 *
 * Returns: 0; or a negative errno, and the process must not read a profile.
 * Since: 0.1
 */
MEMWATCH_MUST_CHECK int memwatch_heap_confine(struct memwatch_ctx *ctx);

/**
 * memwatch_heap_unread_module - a file that memwatch_heap_symbolize() needed and could not read
 * @heap: heap
 * @number: counted from 0
 *
 * Returns: the path of a program or library, which the caller may not read, or which does not exist
 * any more, or is another file now; NULL: there are no more.
 * Since: 0.1
 */
const char *memwatch_heap_unread_module(const struct memwatch_heap *heap, __u32 number);

/* --------------------------------------------------------------- views */

struct memwatch_heap_view;

/**
 * enum memwatch_heap_by - what makes a row of a view
 * @MEMWATCH_HEAP_BY_SITE: a call stack
 * @MEMWATCH_HEAP_BY_FUNCTION: a function
 * @MEMWATCH_HEAP_BY_LINE: a line of a source file
 * @MEMWATCH_HEAP_BY_MODULE: a program or a library
 * @MEMWATCH_HEAP_BY_TREE: a call path from the root; rows are in preorder
 */
enum memwatch_heap_by {
	MEMWATCH_HEAP_BY_SITE = 0,
	MEMWATCH_HEAP_BY_FUNCTION = 1,
	MEMWATCH_HEAP_BY_LINE = 2,
	MEMWATCH_HEAP_BY_MODULE = 3,
	MEMWATCH_HEAP_BY_TREE = 4,
};

#define MEMWATCH_HEAP_CUM    (1U << 0) /* sort by the cumulative value */
#define MEMWATCH_HEAP_BASE   (1U << 1) /* subtract the profile @base */
#define MEMWATCH_HEAP_GROWTH (1U << 2) /* all profiles are snapshots of one process */

/**
 * struct memwatch_heap_view_opts - options of memwatch_heap_view_new()
 * @sz: sizeof(struct memwatch_heap_view_opts)
 * @by: enum memwatch_heap_by
 * @metric: enum memwatch_heap_metric, by which rows are sorted
 * @flags: MEMWATCH_HEAP_*. BASE sorts by the size of the difference. GROWTH sorts by the lower
 *	end of the interval of the growth, needs two or more profiles with times, and shows the
 *	values of the last one.
 * @profile: the profile that is shown
 * @base: the profile that is subtracted
 */
struct memwatch_heap_view_opts {
	size_t sz;
	__u32 by;
	__u32 metric;
	__u32 flags;
	__u32 profile;
	__u32 base;
	__u32 reserved;
};

/* Length of the arrays of &struct memwatch_heap_row, which has room for further metrics. */
#define MEMWATCH_HEAP_ROW_ROOM 8

/**
 * enum memwatch_heap_window - the time before &memwatch_heap_info.watch_ns
 * @MEMWATCH_HEAP_MINUTE: a minute
 * @MEMWATCH_HEAP_HOUR: an hour
 * @MEMWATCH_HEAP_DAY: 24 hours
 * @MEMWATCH_HEAP_WINDOWS: number of windows
 */
enum memwatch_heap_window {
	MEMWATCH_HEAP_MINUTE = 0,
	MEMWATCH_HEAP_HOUR = 1,
	MEMWATCH_HEAP_DAY = 2,
	MEMWATCH_HEAP_WINDOWS = 3,
};

/* Length of the array of windows, which has room for further ones. */
#define MEMWATCH_HEAP_WINDOW_ROOM 8

/**
 * struct memwatch_heap_estimate - a value and its interval of 95 %; it does not grow
 * @value: estimate
 * @low: lower end; NaN if it is not known
 * @high: upper end; NaN if it is not known
 */
struct memwatch_heap_estimate {
	double value;
	double low;
	double high;
};

/**
 * struct memwatch_heap_frame - a frame of a call stack
 * @sz: in: sizeof(struct memwatch_heap_frame)
 * @function: name of the function; "" if it is not known
 * @file: source file; "" if it is not known
 * @module: program or library, or @file if the function is interpreted; "" if it is not known
 * @line: line in @file, or 0
 * @inlined: 1: the function was inlined into that of the next frame
 * @address: address in the file of the module if this is known, otherwise in memory
 */
struct memwatch_heap_frame {
	size_t sz;
	const char *function;
	const char *file;
	const char *module;
	__u32 line;
	__u32 inlined;
	__u64 address;
};

/**
 * struct memwatch_heap_row - a row of a view
 * @sz: in: sizeof(struct memwatch_heap_row)
 * @flat: allocated by this row itself, by metric (the others are 0); with BASE: the difference
 * @cum: allocated by this row and what it calls, by metric; with BASE: the difference
 * @base_flat: @flat of the base alone
 * @base_cum: @cum of the base alone
 * @frame: the row; its last frame for SITE; valid as long as the view
 * @depth: depth in a TREE, 0 for the first call; otherwise 0
 * @frames: number of frames of a SITE; otherwise 1
 * @samples: number of samples in @flat
 * @age_seconds: median and 90th percentile of the age of the live samples in @flat; NaN if
 *	they are not known
 * @lifetime_seconds: the same for the lifetime of the samples that were freed
 * @growth: bytes per hour by which MEMWATCH_HEAP_LIVE_BYTES of @flat grow; NaN without GROWTH
 * @leak: 1: the growth is steady, and too large to be chance among so many rows
 * @stacks: number of call stacks of a SITE. More than one with GROWTH: none of them grows enough
 *	to be a leak, but all together do, and the frames are those that they have in common. 0 if
 *	the row is no SITE.
 * @touched: by window, how many of the live bytes in @flat are in objects that were touched in it;
 *	what was allocated in it was touched. NaN: not known. Without mappings, and without BASE.
 * @watched: objects in @flat that were watched for it
 * @watched_parts: of how many of them only a part was watched, because they are large
 */
struct memwatch_heap_row {
	size_t sz;
	struct memwatch_heap_estimate flat[MEMWATCH_HEAP_ROW_ROOM];
	struct memwatch_heap_estimate cum[MEMWATCH_HEAP_ROW_ROOM];
	struct memwatch_heap_estimate base_flat[MEMWATCH_HEAP_ROW_ROOM];
	struct memwatch_heap_estimate base_cum[MEMWATCH_HEAP_ROW_ROOM];
	const struct memwatch_heap_frame *frame;
	__u32 depth;
	__u32 frames;
	__u64 samples;
	double age_seconds[2];
	double lifetime_seconds[2];
	struct memwatch_heap_estimate growth;
	__u32 leak;
	__u32 stacks;
	struct memwatch_heap_estimate touched[MEMWATCH_HEAP_WINDOW_ROOM];
	__u64 watched;
	__u64 watched_parts;
};

/**
 * memwatch_heap_view_new - add a heap up
 * @heap: heap, which must not be freed or added to while the view exists
 * @opts: options or NULL
 * @ret: the view; caller frees with memwatch_heap_view_unref()
 *
 * Returns: 0; -ENOENT, there is no such profile; -ENODATA, GROWTH needs more profiles or their
 * times; -EOPNOTSUPP, the profile does not have the metric; -EINVAL; -E2BIG; -ENOMEM.
 * Since: 0.1
 */
int memwatch_heap_view_new(struct memwatch_heap *heap, const struct memwatch_heap_view_opts *opts,
			   struct memwatch_heap_view **ret);

/**
 * memwatch_heap_view_unref - free
 * @view: view or NULL
 *
 * Returns: NULL.
 * Since: 0.1
 */
struct memwatch_heap_view *memwatch_heap_view_unref(struct memwatch_heap_view *view);

/**
 * memwatch_heap_view_get_total - the sum of all rows
 * @view: view
 * @ret: filled in up to ret->sz; the frame is empty
 *
 * Returns: 0 or -EINVAL.
 * Since: 0.1
 */
int memwatch_heap_view_get_total(const struct memwatch_heap_view *view,
				 struct memwatch_heap_row *ret);

/**
 * memwatch_heap_view_get_row - a row
 * @view: view
 * @index: number of the row, in sorted order
 * @ret: filled in up to ret->sz
 *
 * Returns: 1; 0 if there are not so many rows; or -EINVAL.
 * Since: 0.1
 */
int memwatch_heap_view_get_row(const struct memwatch_heap_view *view, __u64 index,
			       struct memwatch_heap_row *ret);

/**
 * memwatch_heap_view_get_frame - a frame of a row of a view by SITE
 * @view: view
 * @index: number of the row, in sorted order
 * @frame: number of the frame; 0 is the innermost function, which allocated
 * @ret: filled in up to ret->sz
 *
 * Returns: 1; 0 if there are not so many frames or rows; or -EINVAL.
 * Since: 0.1
 */
int memwatch_heap_view_get_frame(const struct memwatch_heap_view *view, __u64 index, __u32 frame,
				 struct memwatch_heap_frame *ret);

/**
 * memwatch_heap_write_pprof - write a profile as a gzip-compressed profile.proto of pprof
 * @heap: heap
 * @profile: number of the profile
 * @fd: writable descriptor
 *
 * Returns: 0, any errno of write(), -ENOENT or -ENOMEM.
 * Since: 0.1
 */
int memwatch_heap_write_pprof(struct memwatch_heap *heap, unsigned int profile, int fd);

#ifdef __cplusplus
}
#endif

#endif /* MEMWATCH_HEAP_H */
