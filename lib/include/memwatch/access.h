/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Sampling the memory accesses of a process, and of all that it starts, with the perf events of the
 * processor that have the address: Intel PEBS (mem-loads, mem-stores) and AMD IBS (ibs_op). Where
 * there are none, which is so in most virtual machines, page faults can be asked for: they show the
 * first access to each page and no other.
 *
 * No machine of this project has precise events, so these have never run.
 *
 * USE. Fork a child that waits before it executes its program, then
 *
 *	memwatch_access_new(ctx, &opts, &access);      finds events, or says why there are none
 *	memwatch_access_record(access, pid, "dir");
 *	let the child execute its program: sampling begins
 *	while (memwatch_access_poll(access, 100) == 1 && the child has not ended)
 *		;
 *	memwatch_access_end(access);
 *	memwatch_access_unref(access);
 *
 * The samples are in dir/accesses.mwaccess; memwatch_stale_add_accesses_fd() reads them.
 */
#ifndef MEMWATCH_ACCESS_H
#define MEMWATCH_ACCESS_H

#include <stddef.h>

#include <linux/types.h>
#include <memwatch/ctx.h>

#ifdef __cplusplus
extern "C" {
#endif

struct memwatch_access;

/**
 * struct memwatch_access_opts - options of memwatch_access_new()
 * @sz: sizeof(struct memwatch_access_opts)
 * @event: "auto", which does not take page faults; "page-faults"; or an event of a PMU as perf
 *	writes it, "cpu/mem-loads,ldlat=30/"; default "auto"
 * @period: mean number of accesses (with IBS: operations) between two samples of a thread, at most
 *	2^32; default 100000. Page faults are all recorded.
 */
struct memwatch_access_opts {
	size_t sz;
	const char *event;
	__u64 period;
};

/**
 * memwatch_access_new - find the events of this machine that sample accesses
 * @ctx: context
 * @opts: options or NULL
 * @ret: the object; caller frees with memwatch_access_unref()
 *
 * Returns: 0; -EOPNOTSUPP, there is no such event, and the error text says why; -EINVAL, opts are
 * wrong; -E2BIG; -ENOMEM; any errno of reading sysfs.
 * Since: 0.1
 */
int memwatch_access_new(struct memwatch_ctx *ctx, const struct memwatch_access_opts *opts,
			struct memwatch_access **ret);

/**
 * memwatch_access_unref - free
 * @access: object or NULL
 *
 * Returns: NULL.
 * Since: 0.1
 */
struct memwatch_access *memwatch_access_unref(struct memwatch_access *access);

/**
 * memwatch_access_record - sample a process from its next exec on
 * @access: object that does not record yet
 * @pid: the process
 * @directory: where the file is created: accesses.mwaccess, or accesses-2.mwaccess and so on
 *
 * Returns: 0; -EBUSY, it records already; -EACCES, sampling is not permitted, and the error text
 * says what is needed; -EOPNOTSUPP, the kernel or the PMU refuses the events; any errno of open(),
 * perf_event_open() and mmap(); -ENOMEM.
 * Since: 0.1
 */
int memwatch_access_record(struct memwatch_access *access, __u32 pid, const char *directory);

/**
 * memwatch_access_poll - wait for samples and write them
 * @access: object that records
 * @timeout_ms: how long to wait
 *
 * What was sampled is in the file a second later at most, if this is called all the time. Signals
 * end the wait.
 *
 * Returns: 1; 0, all processes have ended and everything is written; -EINVAL, nothing is recorded;
 * any errno of write(), after which further samples are read and not written.
 * Since: 0.1
 */
int memwatch_access_poll(struct memwatch_access *access, int timeout_ms);

/**
 * memwatch_access_end - write what is left and stop
 * @access: object that records
 *
 * Returns: 0; -EINVAL, nothing is recorded; any errno of write().
 * Since: 0.1
 */
int memwatch_access_end(struct memwatch_access *access);

/**
 * struct memwatch_access_info - what is sampled, and what is missing
 * @sz: in: sizeof(struct memwatch_access_info)
 * @event: names of the events, as perf writes them
 * @period: mean number of accesses between two samples of a thread
 * @page_faults: 1: only the first access to each page is seen
 * @user_only: 1: accesses of system calls for the process are not seen; known when it records
 * @samples: accesses that were written
 * @lost: records that did not fit into a ring, or that the PMU lost
 * @throttled: how often the kernel stopped sampling for a tick
 */
struct memwatch_access_info {
	size_t sz;
	const char *event;
	__u64 period;
	__u32 page_faults;
	__u32 user_only;
	__u64 samples;
	__u64 lost;
	__u64 throttled;
};

/**
 * memwatch_access_get_info - what is sampled, and what is missing
 * @access: object
 * @ret: filled in up to ret->sz; the string belongs to the object
 *
 * Returns: 0 or -EINVAL.
 * Since: 0.1
 */
int memwatch_access_get_info(const struct memwatch_access *access,
			     struct memwatch_access_info *ret);

#ifdef __cplusplus
}
#endif

#endif /* MEMWATCH_ACCESS_H */
