/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Stale heap objects: memory that is allocated and that nobody uses any more.
 *
 * A trace of allocations, frees and some of the memory accesses of a program is replayed. The
 * staleness of an object is the time since its last access, or since its allocation if none was
 * seen. Which staleness is too long is decided by statistics, separately for each place that
 * allocates (site), and not by a fixed limit; docs/stale.md explains how.
 *
 * TRACES are text files with one event in each line, in which single or several blanks separate
 * the fields:
 *	m TIME THREAD ADDRESS SIZE SITE		allocation of SIZE bytes at ADDRESS
 *	f TIME THREAD ADDRESS SITE		free of the object that begins at ADDRESS
 *	a TIME THREAD ADDRESS PLACE		access to memory; not all of them need to be there
 * TIME is in nanoseconds. ADDRESS is decimal, or hexadecimal with 0x. SITE and PLACE are words: an
 * address, a symbol, or anything else that tells places apart. Empty lines and those that begin
 * with "#" are skipped. The lines need not be in the order of time.
 *
 * memwatch_stale_open() also reads the traces that the preloaded heap profiler records
 * (COMM.PID.mwtrace). Their sites are stacks of the profile beside them;
 * memwatch_stale_name_sites() gives them names. They contain no accesses; those that
 * <memwatch/access.h> records are added with memwatch_stale_add_accesses_fd().
 *
 * USE. memwatch_stale_open() once, memwatch_stale_step() until it returns 0, then
 * memwatch_stale_judge(), then the functions that return results. A recorded trace that is still
 * written can be resumed then, with memwatch_stale_resume(), memwatch_stale_step() and so on; only
 * what is new is read.
 *
 * STRINGS come from the trace and may contain any bytes but NUL. They belong to the object.
 */
#ifndef MEMWATCH_STALE_H
#define MEMWATCH_STALE_H

#include <stddef.h>

#include <linux/types.h>
#include <memwatch/ctx.h>
#include <memwatch/heap.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------- traces */

struct memwatch_stale;

/**
 * enum memwatch_stale_scheme - whose distribution tells which staleness is too long
 * @MEMWATCH_STALE_HYBRID: that of the site, or that of all objects if this one tells nothing
 * @MEMWATCH_STALE_LOCAL: that of the site
 * @MEMWATCH_STALE_GLOBAL: that of all objects
 */
enum memwatch_stale_scheme {
	MEMWATCH_STALE_HYBRID = 0,
	MEMWATCH_STALE_LOCAL = 1,
	MEMWATCH_STALE_GLOBAL = 2,
};

#define MEMWATCH_STALE_WALL_TIME  (1U << 0) /* count the time in which the program is idle */
#define MEMWATCH_STALE_ANY_GROWTH (1U << 1) /* also what is stale and does not become more */

/**
 * struct memwatch_stale_opts - options of memwatch_stale_new()
 * @sz: sizeof(struct memwatch_stale_opts)
 * @scheme: enum memwatch_stale_scheme
 * @flags: MEMWATCH_STALE_WALL_TIME, MEMWATCH_STALE_ANY_GROWTH
 * @fence: coefficient of the fence of the adjusted boxplot; default 3
 * @share: of the live memory, which the stale objects of a site must take for the global scheme
 *	in HYBRID; default 0.01; a negative number stands for 0
 * @sort_bytes: memory for sorting lines that are not in order; what does not fit is sorted in
 *	files; default 256 MiB
 * @directory: where these files are; they have no name; default "/var/tmp". The string is copied.
 * @sort_fd: such a file, for who may not create one later, as after memwatch_heap_confine(); it
 *	must stay open. A negative errno says why there is none. 0: it is created if it is needed
 */
struct memwatch_stale_opts {
	size_t sz;
	__u32 scheme;
	__u32 flags;
	double fence;
	double share;
	__u64 sort_bytes;
	const char *directory;
	int sort_fd;
};

/**
 * memwatch_stale_new - create an object without a trace
 * @ctx: context
 * @opts: options or NULL
 * @ret: the object; caller frees with memwatch_stale_unref()
 *
 * Returns: 0, -ENOMEM, -EINVAL or -E2BIG.
 * Since: 0.1
 */
int memwatch_stale_new(struct memwatch_ctx *ctx, const struct memwatch_stale_opts *opts,
		       struct memwatch_stale **ret);

/**
 * memwatch_stale_unref - free
 * @stale: object or NULL
 *
 * Returns: NULL.
 * Since: 0.1
 */
struct memwatch_stale *memwatch_stale_unref(struct memwatch_stale *stale);

/**
 * memwatch_stale_open - open a trace
 * @stale: object, which has no trace yet
 * @path: path of the file; "-": standard input
 *
 * Returns: 0; any errno of open(); or as memwatch_stale_open_fd().
 * Since: 0.1
 */
int memwatch_stale_open(struct memwatch_stale *stale, const char *path);

/**
 * memwatch_stale_open_fd - open a trace that is open as a file
 * @stale: object, which has no trace yet
 * @fd: readable descriptor, which is duplicated; a text trace is read from its position on
 *
 * Returns: 0; any errno of dup(); -EBUSY, there is a trace; -ENOMEM. A recorded trace is looked at
 * now: -EBADMSG, it is damaged; -EPROTO, its format is newer; any errno of read().
 * Since: 0.1
 */
int memwatch_stale_open_fd(struct memwatch_stale *stale, int fd);

/**
 * memwatch_stale_step - replay a part of the trace
 * @stale: object
 *
 * A step takes some milliseconds. A file is first looked through, and sorted if that is needed.
 * After a failure the object can only be freed.
 *
 * Returns: 1, there is more; 0, this was all; -EBADMSG, a line is no event; -E2BIG, there are too
 * many different words or sites; any errno of read() and write(); -ENOMEM; -EINVAL, there is no
 * trace.
 * Since: 0.1
 */
int memwatch_stale_step(struct memwatch_stale *stale);

/**
 * memwatch_stale_add_accesses_fd - add access samples to a recorded trace
 * @stale: object with a recorded trace, of which nothing was replayed yet
 * @fd: readable descriptor of a file of memwatch_access_record(), which is duplicated
 *
 * The accesses of the process are charged to the objects that contain their addresses, in the order
 * of time; those of other processes in the file are skipped. Several files can be added.
 *
 * Returns: 0; -EINVAL, the trace was not recorded; -EBUSY, it is being replayed; -ENOMSG, it is no
 * file of accesses; -EPROTO, its format is newer; any errno of dup() and read(); -ENOMEM.
 * Since: 0.1
 */
int memwatch_stale_add_accesses_fd(struct memwatch_stale *stale, int fd);

/**
 * memwatch_stale_resume - go on with a recorded trace that is still written
 * @stale: object with a recorded trace
 * @until_ns: leave later events for the next time (CLOCK_MONOTONIC); UINT64_MAX: none
 *
 * Reads what was written since, and not what was replayed before: memory follows the live objects.
 * The threads of a program write what they do shortly afterwards, so @until_ns should be a second
 * or two in the past: what is written later than that is replayed as if it happened at the end of
 * the time before. Can also be called before the first memwatch_stale_step().
 *
 * Returns: 0, go on with memwatch_stale_step(); -EINVAL, the trace was not recorded; -EBUSY, it is
 * being replayed; -EBADMSG, it is damaged; any errno of read(); -ENOMEM.
 * Since: 0.1
 */
int memwatch_stale_resume(struct memwatch_stale *stale, __u64 until_ns);

/**
 * struct memwatch_stale_progress - how far the replay is
 * @sz: in: sizeof(struct memwatch_stale_progress)
 * @done: work that is done
 * @all: all work, or 0 if it is not known
 */
struct memwatch_stale_progress {
	size_t sz;
	__u64 done;
	__u64 all;
};

/**
 * memwatch_stale_get_progress - how far the replay is
 * @stale: object
 * @ret: filled in up to ret->sz
 *
 * Returns: 0 or -EINVAL.
 * Since: 0.1
 */
int memwatch_stale_get_progress(const struct memwatch_stale *stale,
				struct memwatch_stale_progress *ret);

/* ------------------------------------------------------------- results */

/**
 * enum memwatch_stale_basis - which objects a distribution consists of
 * @MEMWATCH_STALE_BASIS_NONE: there are fewer than 20, so there is no fence
 * @MEMWATCH_STALE_BASIS_ALL: those that were freed, and the live ones
 * @MEMWATCH_STALE_BASIS_FREED: those that were freed, because too many others may be leaked
 */
enum memwatch_stale_basis {
	MEMWATCH_STALE_BASIS_NONE = 0,
	MEMWATCH_STALE_BASIS_ALL = 1,
	MEMWATCH_STALE_BASIS_FREED = 2,
};

/**
 * enum memwatch_stale_growth - whether the stale objects of a site become more
 * @MEMWATCH_STALE_NO_STALE: there are none
 * @MEMWATCH_STALE_GROWING: they were allocated at many different times
 * @MEMWATCH_STALE_BURST: they were allocated at a few times, of which the last one is not long ago
 * @MEMWATCH_STALE_STOPPED: they were allocated long ago, and no more since
 */
enum memwatch_stale_growth {
	MEMWATCH_STALE_NO_STALE = 0,
	MEMWATCH_STALE_GROWING = 1,
	MEMWATCH_STALE_BURST = 2,
	MEMWATCH_STALE_STOPPED = 3,
};

/**
 * struct memwatch_stale_distribution - a distribution of staleness, in nanoseconds
 * @sz: in: sizeof(struct memwatch_stale_distribution)
 * @basis: enum memwatch_stale_basis; NONE: all members behind @objects are NaN
 * @flat: 1: its spread is so small that a lower limit was used for it
 * @objects: number of objects
 * @q1, @median, @q3: quartiles
 * @medcouple: skewness, from -1 to 1
 * @threshold: the fence
 */
struct memwatch_stale_distribution {
	size_t sz;
	__u32 basis;
	__u32 flat;
	__u64 objects;
	double q1;
	double median;
	double q3;
	double medcouple;
	double threshold;
};

/**
 * enum memwatch_stale_began - when the recording of a trace began
 * @MEMWATCH_STALE_BEGAN_UNKNOWN: the trace does not say
 * @MEMWATCH_STALE_BEGAN_START: with the process; nothing is missing
 * @MEMWATCH_STALE_BEGAN_LATER: in a running process; what it had allocated before is not known
 * @MEMWATCH_STALE_BEGAN_FORK: in a forked child; what its parent had allocated is not known
 */
enum memwatch_stale_began {
	MEMWATCH_STALE_BEGAN_UNKNOWN = 0,
	MEMWATCH_STALE_BEGAN_START = 1,
	MEMWATCH_STALE_BEGAN_LATER = 2,
	MEMWATCH_STALE_BEGAN_FORK = 3,
};

/**
 * enum memwatch_stale_state - what the recorder of a trace did last
 * @MEMWATCH_STALE_STATE_UNKNOWN: the trace does not say
 * @MEMWATCH_STALE_STATE_ACTIVE: it is recording, or the process was killed or has called _exit()
 * @MEMWATCH_STALE_STATE_STOPPED: it was switched off
 * @MEMWATCH_STALE_STATE_ENDED: the process has ended
 * @MEMWATCH_STALE_STATE_FULL: there was no room for more
 */
enum memwatch_stale_state {
	MEMWATCH_STALE_STATE_UNKNOWN = 0,
	MEMWATCH_STALE_STATE_ACTIVE = 1,
	MEMWATCH_STALE_STATE_STOPPED = 2,
	MEMWATCH_STALE_STATE_ENDED = 3,
	MEMWATCH_STALE_STATE_FULL = 4,
};

#define MEMWATCH_STALE_ACCESS_PAGE_FAULTS (1U << 0) /* only the first access to each page */
#define MEMWATCH_STALE_ACCESS_USER_ONLY	  (1U << 1) /* no accesses of system calls */
#define MEMWATCH_STALE_ACCESS_ENDED	  (1U << 2) /* the recorder has written all it had */

#define MEMWATCH_STALE_NO_SPACE		  (1U << 0) /* the file system was full, or out of reach */
#define MEMWATCH_STALE_FILE_SIZE	  (1U << 1) /* the file had its largest size */

/**
 * struct memwatch_stale_info - what was read and found
 * @sz: in: sizeof(struct memwatch_stale_info)
 * @cut_off: 1: the last line is not complete, and was left out
 * @sorted: 1: the lines were not in order
 * @first_ns, @last_ns: time of the first and of the last event
 * @active_ns: the time between them without that in which nothing happened
 * @allocations, @frees, @accesses: number of events
 * @unmatched_frees: frees of addresses where no object began, such as double frees
 * @overlaps: objects whose memory was allocated again before they were freed; they are left out
 * @misses: accesses to memory of no live object
 * @live_objects, @live_bytes: at the end
 * @leaked_objects, @leaked_bytes: of these
 * @sites: number of sites
 * @recorded: 1: the trace was recorded by the heap profiler; otherwise what follows is 0
 * @pid, @comm: its process; the string belongs to the object
 * @began: enum memwatch_stale_began
 * @state: enum memwatch_stale_state
 * @limits: MEMWATCH_STALE_NO_SPACE, MEMWATCH_STALE_FILE_SIZE: why it is full
 * @threads: the largest number of threads at a time, about
 * @lost: events that could not be recorded
 * @damaged: parts that could not be read
 * @access_event: names of the perf events of the accesses that were added; NULL: none were. The
 *	string belongs to the object.
 * @access_period: mean number of accesses between two samples of a thread
 * @access_flags: MEMWATCH_STALE_ACCESS_*
 * @reserved: 0
 * @access_lost: samples that were lost, of all processes of the recorder
 * @access_throttled: how often the kernel stopped sampling for a tick, because it took too long
 * @access_damaged: parts of the files of accesses that could not be read
 */
struct memwatch_stale_info {
	size_t sz;
	__u32 cut_off;
	__u32 sorted;
	__u64 first_ns;
	__u64 last_ns;
	__u64 active_ns;
	__u64 allocations;
	__u64 frees;
	__u64 accesses;
	__u64 unmatched_frees;
	__u64 overlaps;
	__u64 misses;
	__u64 live_objects;
	__u64 live_bytes;
	__u64 leaked_objects;
	__u64 leaked_bytes;
	__u64 sites;
	__u32 recorded;
	__u32 pid;
	const char *comm;
	__u32 began;
	__u32 state;
	__u32 limits;
	__u32 threads;
	__u64 lost;
	__u64 damaged;
	const char *access_event;
	__u64 access_period;
	__u32 access_flags;
	__u32 reserved;
	__u64 access_lost;
	__u64 access_throttled;
	__u64 access_damaged;
};

/**
 * struct memwatch_stale_site - a site
 * @sz: in: sizeof(struct memwatch_stale_site)
 * @site: its name
 * @scheme: MEMWATCH_STALE_LOCAL or MEMWATCH_STALE_GLOBAL
 * @leak: 1: its stale objects are leaked
 * @growth: enum memwatch_stale_growth
 * @reserved: 0
 * @threshold_ns: objects with more staleness are stale; NaN if none can be
 * @allocated_objects, @allocated_bytes: since the start of the trace
 * @freed_objects: how many were freed
 * @live_objects, @live_bytes: at the end
 * @stale_objects, @stale_bytes: of these
 * @longest_ns: the largest staleness
 * @access_others, @free_others: accesses and frees at further places, which are not listed
 */
struct memwatch_stale_site {
	size_t sz;
	const char *site;
	__u32 scheme;
	__u32 leak;
	__u32 growth;
	__u32 reserved;
	double threshold_ns;
	__u64 allocated_objects;
	__u64 allocated_bytes;
	__u64 freed_objects;
	__u64 live_objects;
	__u64 live_bytes;
	__u64 stale_objects;
	__u64 stale_bytes;
	__u64 longest_ns;
	__u64 access_others;
	__u64 free_others;
};

/**
 * struct memwatch_stale_object - a live object
 * @sz: in: sizeof(struct memwatch_stale_object)
 * @address, @size: its memory
 * @site: number of its site
 * @tid: thread that allocated it
 * @allocated_ns: time of its allocation
 * @accessed_ns: time of its last access, or of its allocation
 * @staleness_ns: time since then
 * @active_ns: the same on the clock that the decision uses
 * @accesses: number of accesses that were seen
 * @last_access: place of the last one, or NULL
 * @leak: 1: it is leaked
 * @reserved: 0
 */
struct memwatch_stale_object {
	size_t sz;
	__u64 address;
	__u64 size;
	__u32 site;
	__u32 tid;
	__u64 allocated_ns;
	__u64 accessed_ns;
	__u64 staleness_ns;
	__u64 active_ns;
	__u64 accesses;
	const char *last_access;
	__u32 leak;
	__u32 reserved;
};

/**
 * memwatch_stale_judge - decide which objects are leaked
 * @stale: object whose trace was replayed to its end
 *
 * Returns: 0; -EINVAL, the trace was not replayed; -ENOMEM.
 * Since: 0.1
 */
int memwatch_stale_judge(struct memwatch_stale *stale);

/**
 * memwatch_stale_get_info - what was read and found
 * @stale: object that has judged, or that has a recorded trace: what is known of its process is
 *	valid from memwatch_stale_open() on
 * @ret: filled in up to ret->sz
 *
 * Returns: 0 or -EINVAL.
 * Since: 0.1
 */
int memwatch_stale_get_info(const struct memwatch_stale *stale, struct memwatch_stale_info *ret);

#define MEMWATCH_STALE_ALL_SITES (~0U)

/**
 * memwatch_stale_get_distribution - the distribution of a site, or that of all objects
 * @stale: object that has judged
 * @site: number of the site, or MEMWATCH_STALE_ALL_SITES
 * @ret: filled in up to ret->sz
 *
 * Returns: 1; 0 if there are not so many sites; or -EINVAL.
 * Since: 0.1
 */
int memwatch_stale_get_distribution(const struct memwatch_stale *stale, __u32 site,
				    struct memwatch_stale_distribution *ret);

/**
 * memwatch_stale_get_site - a site
 * @stale: object that has judged
 * @site: its number; those with leaks come first, and then those with most memory
 * @ret: filled in up to ret->sz
 *
 * Returns: 1; 0 if there are not so many sites; or -EINVAL.
 * Since: 0.1
 */
int memwatch_stale_get_site(const struct memwatch_stale *stale, __u32 site,
			    struct memwatch_stale_site *ret);

/**
 * memwatch_stale_get_object - a live object
 * @stale: object that has judged
 * @object: its number; those that are leaked come first, and then those with most staleness
 * @ret: filled in up to ret->sz
 *
 * Returns: 1; 0 if there are not so many objects; or -EINVAL.
 * Since: 0.1
 */
int memwatch_stale_get_object(const struct memwatch_stale *stale, __u64 object,
			      struct memwatch_stale_object *ret);

/**
 * memwatch_stale_add_places - add the places of accesses to a heap
 * @stale: object with a recorded trace that was replayed
 * @heap: its first profile is that of the process; it must have no view
 *
 * memwatch_heap_symbolize() finds their symbols then. Without this, the names of places are
 * "unknown".
 *
 * Returns: 0; -EINVAL as memwatch_stale_name_sites(); -ENOMEM.
 * Since: 0.1
 */
int memwatch_stale_add_places(struct memwatch_stale *stale, struct memwatch_heap *heap);

/**
 * memwatch_stale_name_sites - name the sites of a recorded trace
 * @stale: object with a recorded trace
 * @heap: its first profile is that of the process; it must live as long as @stale, or until the
 *	sites are named again; symbols that are found later are not used
 *
 * Without this, the name of each site is "unknown".
 *
 * Returns: 0; -EINVAL, it is another trace, or the profile is that of another process; -ENOMEM.
 * Since: 0.1
 */
int memwatch_stale_name_sites(struct memwatch_stale *stale, const struct memwatch_heap *heap);

/**
 * memwatch_stale_get_frame - a frame of a site that has a call stack
 * @stale: object that has judged
 * @site: number of the site
 * @frame: counted from 0; the innermost one comes first
 * @ret: filled in up to ret->sz
 *
 * Returns: 1; 0 if there are not so many frames or sites; or -EINVAL.
 * Since: 0.1
 */
int memwatch_stale_get_frame(const struct memwatch_stale *stale, __u32 site, __u32 frame,
			     struct memwatch_heap_frame *ret);

/**
 * enum memwatch_stale_list - a list of places
 * @MEMWATCH_STALE_SITE_ACCESS: where the objects of a site were accessed
 * @MEMWATCH_STALE_SITE_FREES: where they were freed
 * @MEMWATCH_STALE_OBJECT_ACCESS: where an object was accessed; at most 6 places, of which the
 *	rarest ones may be missing
 */
enum memwatch_stale_list {
	MEMWATCH_STALE_SITE_ACCESS = 0,
	MEMWATCH_STALE_SITE_FREES = 1,
	MEMWATCH_STALE_OBJECT_ACCESS = 2,
};

/**
 * struct memwatch_stale_place - a place of the program
 * @sz: in: sizeof(struct memwatch_stale_place)
 * @place: its name
 * @count: how often it did that
 */
struct memwatch_stale_place {
	size_t sz;
	const char *place;
	__u64 count;
};

/**
 * memwatch_stale_get_place - a place in a list
 * @stale: object that has judged
 * @list: enum memwatch_stale_list
 * @owner: number of the site or of the object
 * @place: counted from 0; the most frequent one comes first
 * @ret: filled in up to ret->sz
 *
 * Returns: 1; 0 if there are not so many places; or -EINVAL.
 * Since: 0.1
 */
int memwatch_stale_get_place(const struct memwatch_stale *stale, __u32 list, __u64 owner,
			     __u32 place, struct memwatch_stale_place *ret);

/**
 * struct memwatch_stale_point - the live memory of a site at one time
 * @sz: in: sizeof(struct memwatch_stale_point)
 * @time_ns: when
 * @live_objects, @live_bytes: then
 */
struct memwatch_stale_point {
	size_t sz;
	__u64 time_ns;
	__u64 live_objects;
	__u64 live_bytes;
};

/**
 * memwatch_stale_get_point - how the live memory of a site developed
 * @stale: object that has judged
 * @site: number of the site
 * @point: counted from 0, in the order of time
 * @ret: filled in up to ret->sz
 *
 * Returns: 1; 0 if there are not so many points or sites; or -EINVAL.
 * Since: 0.1
 */
int memwatch_stale_get_point(const struct memwatch_stale *stale, __u32 site, __u32 point,
			     struct memwatch_stale_point *ret);

#ifdef __cplusplus
}
#endif

#endif /* MEMWATCH_STALE_H */
