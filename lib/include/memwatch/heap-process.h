/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The heap profiles of processes: finding them, asking the profiler to start or stop, copying
 * them, what the resident set of a process consists of, and which call stack grows.
 */
#ifndef MEMWATCH_HEAP_PROCESS_H
#define MEMWATCH_HEAP_PROCESS_H

#include <memwatch/heap.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------- processes */

/**
 * memwatch_heap_is_profiled - whether a process has a profile
 * @ctx: context
 * @pid: process id
 *
 * Opens nothing but /proc/PID/maps, and so cannot be delayed by the file system of a user.
 *
 * Returns: 1 or 0; -ENOENT, there is no such process; -EACCES or -EPERM; -ENOMEM.
 * Since: 0.1
 */
int memwatch_heap_is_profiled(struct memwatch_ctx *ctx, __u32 pid);

/**
 * memwatch_heap_find - open the profile of a process
 * @ctx: context
 * @pid: process id
 * @writable: not 0: for memwatch_heap_request()
 * @ret: a descriptor; caller closes it
 *
 * The profile is the file that the process has mapped, which also works if the process is in a
 * container or the file was deleted; only root can open it so. For other users it is the file
 * at the path of the mapping.
 *
 * Returns: 0; -ENOENT, there is no such process; -ENODATA, it has no profile; -EACCES or -EPERM;
 * any errno of open(); -ENOMEM.
 * Since: 0.1
 */
int memwatch_heap_find(struct memwatch_ctx *ctx, __u32 pid, int writable, int *ret);

/**
 * memwatch_heap_open_module - open a program or library of a process
 * @ctx: context
 * @pid: process id
 * @path: the path by which the process knows it
 *
 * Opens the file that the process has mapped and can execute, as memwatch_heap_find() does.
 *
 * Returns: a descriptor, which the caller closes; -ENOENT, there is no such process, or it has not
 * mapped this file; -EACCES or -EPERM; any errno of open(); -ENOMEM.
 * Since: 0.1
 */
int memwatch_heap_open_module(struct memwatch_ctx *ctx, __u32 pid, const char *path);

/**
 * struct memwatch_heap_owner - the owner of a profile, for whom root opens files
 * @sz: sizeof(struct memwatch_heap_owner)
 * @pid: the process; 0: there is only a profile in a file
 * @uid: its user
 * @gid: its group
 * @root: directory in which paths are looked up; NULL: the root directory of the process, or that
 *	of the caller if there is none
 */
struct memwatch_heap_owner {
	size_t sz;
	__u32 pid;
	__u32 uid;
	__u32 gid;
	const char *root;
};

/**
 * memwatch_heap_open_file - open a regular file that the owner of a profile may read
 * @ctx: context
 * @owner: owner
 * @path: path in the root directory; symbolic links in it do not lead out of this directory
 *
 * If the caller is root, the file is opened with the rights of the owner, whose identity the
 * calling thread has meanwhile for access to files. It may take as long as the file system of a
 * user.
 *
 * Returns: a descriptor, which the caller closes; -EACCES, there is no such file, or the owner may
 * not read it; -EINVAL; -ENOMEM.
 * Since: 0.1
 */
int memwatch_heap_open_file(struct memwatch_ctx *ctx, const struct memwatch_heap_owner *owner,
			    const char *path);

/**
 * memwatch_heap_open_perf_map - open the map for perf of code that was compiled at run time
 * @ctx: context
 * @owner: owner, to whom the map must belong unless it belongs to root
 * @path: perf-NUMBER.map in the directory for temporary files; of a process, NUMBER must be the
 *	number that it has in its own pid namespace
 *
 * Works like memwatch_heap_open_file(), but the file is no symbolic link.
 *
 * Returns: a descriptor, which the caller closes; -EACCES as there; -EINVAL, @path is not that of a
 * map, or of the process; -ENOMEM.
 * Since: 0.1
 */
int memwatch_heap_open_perf_map(struct memwatch_ctx *ctx, const struct memwatch_heap_owner *owner,
				const char *path);

/**
 * enum memwatch_heap_control - what a profiler is asked for
 * @MEMWATCH_HEAP_START: take samples
 * @MEMWATCH_HEAP_STOP: take no further samples, but follow the frees of those there are
 * @MEMWATCH_HEAP_TRACE_START: record all allocations and frees in a trace beside the profile
 * @MEMWATCH_HEAP_TRACE_STOP: end the trace
 */
enum memwatch_heap_control {
	MEMWATCH_HEAP_START = 1,
	MEMWATCH_HEAP_STOP = 2,
	MEMWATCH_HEAP_TRACE_START = 3,
	MEMWATCH_HEAP_TRACE_STOP = 4,
};

/**
 * memwatch_heap_request - ask the profiler in a process for something
 * @ctx: context
 * @fd: descriptor of memwatch_heap_find(), writable
 * @control: enum memwatch_heap_control
 * @rate_bytes: of START: mean number of bytes between two samples from now on; 0: as it was
 *	configured when the process was started
 * @timeout_ns: how long to wait until the process has followed; 0: do not wait
 *
 * The process looks for requests when it allocates.
 *
 * Returns: 0; -ETIMEDOUT, the process has not followed yet, and will when it allocates; -EIO, it
 * could not create the trace; -ENOMSG or -EBADMSG, the file is no profile; -EINVAL; any errno of
 * read() and write().
 * Since: 0.1
 */
int memwatch_heap_request(struct memwatch_ctx *ctx, int fd, enum memwatch_heap_control control,
			  __u64 rate_bytes, __u64 timeout_ns);

/**
 * memwatch_heap_snapshot - copy a profile that is being written
 * @ctx: context
 * @fd: descriptor of the profile
 * @to: writable descriptor of the copy
 *
 * The process is not stopped. Samples that changed while they were copied are left out.
 *
 * Returns: 0; -ENOMSG, -EPROTO or -EBADMSG, the file is no profile of memwatch; -EFBIG; any
 * errno of read() and write(); -ENOMEM.
 * Since: 0.1
 */
int memwatch_heap_snapshot(struct memwatch_ctx *ctx, int fd, int to);

/* ----------------------------------------------------- resident memory */

struct memwatch_heap_memory;

/**
 * memwatch_heap_memory_new - look at the memory of a process
 * @ctx: context
 * @pid: process id
 * @ret: the mappings of the process and what is resident of them, at this moment; caller frees
 *	with memwatch_heap_memory_unref()
 *
 * Reads /proc/PID only, and nothing of the process.
 *
 * Returns: 0; -ENOENT or -ESRCH, there is no such process; -EACCES or -EPERM; -EBADMSG; -ENOMEM.
 * Since: 0.1
 */
int memwatch_heap_memory_new(struct memwatch_ctx *ctx, __u32 pid,
			     struct memwatch_heap_memory **ret);

/**
 * memwatch_heap_memory_unref - free
 * @memory: memory of a process or NULL
 *
 * Returns: NULL.
 * Since: 0.1
 */
struct memwatch_heap_memory *memwatch_heap_memory_unref(struct memwatch_heap_memory *memory);

/**
 * enum memwatch_heap_part - what resident memory is used for
 * @MEMWATCH_HEAP_PART_LIVE: bytes that the program requested and did not free
 * @MEMWATCH_HEAP_PART_OVERHEAD: what the allocator adds to these: headers and rounding
 * @MEMWATCH_HEAP_PART_FREE: free inside the allocator
 * @MEMWATCH_HEAP_PART_CACHES: free in the allocator's caches of the threads
 * @MEMWATCH_HEAP_PART_STACKS: stacks
 * @MEMWATCH_HEAP_PART_ANONYMOUS: other private memory without a file
 * @MEMWATCH_HEAP_PART_FILES: files, programs and libraries, also pages of them that were changed
 * @MEMWATCH_HEAP_PART_SHARED: shared memory: tmpfs, memfd, System V
 * @MEMWATCH_HEAP_PART_UNEXPLAINED: the resident set less all of the above; below 0 if these are
 *	estimated too high
 * @MEMWATCH_HEAP_PARTS: number of parts
 */
enum memwatch_heap_part {
	MEMWATCH_HEAP_PART_LIVE = 0,
	MEMWATCH_HEAP_PART_OVERHEAD = 1,
	MEMWATCH_HEAP_PART_FREE = 2,
	MEMWATCH_HEAP_PART_CACHES = 3,
	MEMWATCH_HEAP_PART_STACKS = 4,
	MEMWATCH_HEAP_PART_ANONYMOUS = 5,
	MEMWATCH_HEAP_PART_FILES = 6,
	MEMWATCH_HEAP_PART_SHARED = 7,
	MEMWATCH_HEAP_PART_UNEXPLAINED = 8,
	MEMWATCH_HEAP_PARTS = 9,
};

/**
 * enum memwatch_heap_verdict - why the resident set is as large as it is
 * @MEMWATCH_HEAP_IN_USE: live memory, which does not grow
 * @MEMWATCH_HEAP_LEAK: live memory, which has grown until now
 * @MEMWATCH_HEAP_HOARDED: the allocator keeps memory that it could return
 * @MEMWATCH_HEAP_FRAGMENTED: free memory between objects that are live, so that it cannot be
 *	returned
 * @MEMWATCH_HEAP_OTHER: not the heap
 */
enum memwatch_heap_verdict {
	MEMWATCH_HEAP_IN_USE = 0,
	MEMWATCH_HEAP_LEAK = 1,
	MEMWATCH_HEAP_HOARDED = 2,
	MEMWATCH_HEAP_FRAGMENTED = 3,
	MEMWATCH_HEAP_OTHER = 4,
};

#define MEMWATCH_HEAP_RSS_NO_FIGURES (1U << 0) /* the allocator gives no figures, or none yet */
#define MEMWATCH_HEAP_RSS_UNSEEN     (1U << 1) /* the allocator has more in use than the profile */
#define MEMWATCH_HEAP_RSS_ENDED	     (1U << 2) /* the process is not looked at, only its profile */

/* Length of @part of &struct memwatch_heap_rss, which has room for further parts. */
#define MEMWATCH_HEAP_RSS_ROOM 16

/**
 * struct memwatch_heap_rss - the resident set of a process and its parts
 * @sz: in: sizeof(struct memwatch_heap_rss)
 * @verdict: enum memwatch_heap_verdict
 * @largest: for OTHER: the part that is largest
 * @flags: MEMWATCH_HEAP_RSS_*
 * @arenas: number of arenas of the allocator, or 0 if it is not known
 * @rss_bytes: resident set; with ENDED, when the figures were taken
 * @part: bytes by part (the others are 0); NaN: not known. What is measured has no interval: its
 * ends are equal.
 * @trim: bytes that malloc_trim() would return; NaN: not known
 * @cap_bytes: of the free bytes, those in arenas other than the first
 * @swapped_bytes: swapped out, beside the resident set
 * @page_table_bytes: memory of the kernel for the page tables
 * @figures_age_ns: how old the figures of the allocator are, or ~0: there are none
 */
struct memwatch_heap_rss {
	size_t sz;
	__u32 verdict;
	__u32 largest;
	__u32 flags;
	__u32 arenas;
	__u64 rss_bytes;
	struct memwatch_heap_estimate part[MEMWATCH_HEAP_RSS_ROOM];
	struct memwatch_heap_estimate trim;
	__u64 cap_bytes;
	__u64 swapped_bytes;
	__u64 page_table_bytes;
	__u64 figures_age_ns;
};

/**
 * memwatch_heap_get_rss - divide the resident set of a process into its parts
 * @heap: heap
 * @profile: number of the profile, which is one of memwatch
 * @memory: memory of the process that the profile is of, looked at just before the profile was
 *	read; NULL: the process has ended, and what the profile says about its memory is used
 * @ret: filled in up to ret->sz
 *
 * Returns: 0; -ENOENT, there is no such profile; -ENODATA, the profile does not say anything
 * about the resident set; -EINVAL; -ENOMEM.
 * Since: 0.1
 */
int memwatch_heap_get_rss(const struct memwatch_heap *heap, unsigned int profile,
			  const struct memwatch_heap_memory *memory, struct memwatch_heap_rss *ret);

/* --------------------------------------------------- the stack that grows */

struct memwatch_heap_suspect;

/**
 * memwatch_heap_suspect_new - begin to look for the call stack that holds the growth of a process
 * @ctx: context
 * @pid: process id
 * @since_ns: when the growth began, CLOCK_MONOTONIC
 * @copy: descriptor of an empty file, readable and writable, which gets a copy of the profile; or
 * -1
 * @ret: the search; caller frees with memwatch_heap_suspect_unref()
 *
 * A child process reads the profile and finds symbols, with the files that the process has mapped,
 * also if it is in a container. The child opens the files, and then gives up its privileges. Its
 * end raises SIGCHLD.
 *
 * Returns: 0; -ENOENT, there is no such process; -ENODATA, it has no profile; -EACCES or -EPERM;
 * any errno of fork(); -ENOMEM.
 * Since: 0.1
 */
int memwatch_heap_suspect_new(struct memwatch_ctx *ctx, __u32 pid, __u64 since_ns, int copy,
			      struct memwatch_heap_suspect **ret);

/**
 * memwatch_heap_suspect_unref - end the search and free
 * @suspect: search or NULL
 *
 * Returns: NULL.
 * Since: 0.1
 */
struct memwatch_heap_suspect *memwatch_heap_suspect_unref(struct memwatch_heap_suspect *suspect);

/**
 * struct memwatch_heap_suspect_info - the call stack that holds the growth
 * @sz: in: sizeof(struct memwatch_heap_suspect_info)
 * @frames: number of its frames
 * @reserved: 0
 * @growth: bytes that it has allocated since the growth began, and that stay
 * @window_ns: time since the growth began, or since the profile began if that was later
 */
struct memwatch_heap_suspect_info {
	size_t sz;
	__u32 frames;
	__u32 reserved;
	struct memwatch_heap_estimate growth;
	__u64 window_ns;
};

/**
 * memwatch_heap_suspect_poll - ask for the answer, without waiting
 * @suspect: search
 * @ret: filled in up to ret->sz
 *
 * Returns: 1, the answer is there; 0, not yet; -ENODATA, nothing grows in the profile; -ENOMSG,
 * -EPROTO, -EBADMSG or -EFBIG, the profile cannot be read; -ENOMEM; -EINVAL.
 * Since: 0.1
 */
int memwatch_heap_suspect_poll(struct memwatch_heap_suspect *suspect,
			       struct memwatch_heap_suspect_info *ret);

/**
 * memwatch_heap_suspect_fd - a descriptor to wait for
 * @suspect: search
 *
 * Returns: a descriptor that becomes readable when there is more of the answer.
 * Since: 0.1
 */
int memwatch_heap_suspect_fd(const struct memwatch_heap_suspect *suspect);

/**
 * memwatch_heap_suspect_get_frame - a frame of the call stack
 * @suspect: search whose answer is there
 * @frame: number of the frame; 0 is the innermost function, which allocated
 * @ret: filled in up to ret->sz; strings belong to @suspect
 *
 * Returns: 1; 0 if there are not so many frames; or -EINVAL.
 * Since: 0.1
 */
int memwatch_heap_suspect_get_frame(const struct memwatch_heap_suspect *suspect, __u32 frame,
				    struct memwatch_heap_frame *ret);

#ifdef __cplusplus
}
#endif

#endif /* MEMWATCH_HEAP_PROCESS_H */
