/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The process that has recorded a trace of its allocations, see <memwatch/stale.h>.
 */
#ifndef MEMWATCH_STALE_PROCESS_H
#define MEMWATCH_STALE_PROCESS_H

#include <stddef.h>

#include <linux/types.h>
#include <memwatch/ctx.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * struct memwatch_stale_process - the process that has recorded a trace
 * @sz: in: sizeof(struct memwatch_stale_process)
 * @pid: its id in its own pid namespace
 * @reserved: 0
 * @pid_namespace: inode number of this namespace; 0: not known
 * @start_time_ticks: when it was started, as in /proc/PID/stat; 0: not known
 */
struct memwatch_stale_process {
	size_t sz;
	__u32 pid;
	__u32 reserved;
	__u64 pid_namespace;
	__u64 start_time_ticks;
};

/**
 * memwatch_stale_get_process - who has recorded a trace
 * @ctx: context
 * @fd: readable descriptor of the trace
 * @ret: filled in up to ret->sz
 *
 * Reads the header of the trace only.
 *
 * Returns: 0; -ENOMSG, it is no recorded trace; -EBADMSG, it is damaged; -EPROTO, its format is
 * newer; any errno of read(); -EINVAL.
 * Since: 0.1
 */
int memwatch_stale_get_process(struct memwatch_ctx *ctx, int fd,
			       struct memwatch_stale_process *ret);

#ifdef __cplusplus
}
#endif

#endif /* MEMWATCH_STALE_PROCESS_H */
