// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The process that records a trace. Its number may have been given to another process since, and
 * is that of its own pid namespace.
 */
#include "cmds/stale/process.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memwatch/stale-process.h>

#include "common/root.h"

static bool is_in_own_namespace(const struct memwatch_stale_process *process)
{
	struct stat st;

	return !process->pid_namespace ||
	       (!stat("/proc/self/ns/pid", &st) && st.st_ino == process->pid_namespace);
}

/*
 * Whether the process that has the number now is another one. One that cannot be looked at is taken
 * for the same.
 */
static bool was_replaced(const struct mw_cli *cli, const struct memwatch_stale_process *process)
{
	uint64_t ticks = mw_root_start_ticks(cli, process->pid);

	return ticks && process->start_time_ticks && ticks != process->start_time_ticks;
}

int stale_process_open(const struct mw_cli *cli, struct memwatch_ctx *ctx, int fd)
{
	MEMWATCH_OPTS(memwatch_stale_process, process);
	int pidfd;

	if (memwatch_stale_get_process(ctx, fd, &process))
		return -ESRCH;
	if (!is_in_own_namespace(&process))
		return -EREMOTE;
	pidfd = (int)syscall(SYS_pidfd_open, process.pid, 0);
	if (pidfd < 0)
		return -errno;
	if (!was_replaced(cli, &process))
		return pidfd;
	close(pidfd);
	return -ESRCH;
}
