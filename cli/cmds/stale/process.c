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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memwatch/stale-process.h>

/* The field of /proc/PID/stat with the time of the start. */
#define START_TIME_FIELD 22

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
static bool was_replaced(const struct memwatch_stale_process *process)
{
	char path[32], text[1024];
	const char *at;
	size_t len = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/stat", process->pid);
	file = fopen(path, "re");
	if (file) {
		len = fread(text, 1, sizeof(text) - 1, file);
		fclose(file);
	}
	text[len] = '\0';
	/* Field 2, the name of the program, is in parentheses and may contain anything. */
	at = strrchr(text, ')');
	for (int field = 2; at && field < START_TIME_FIELD; field++)
		at = strchr(at + 1, ' ');
	return at && process->start_time_ticks &&
	       strtoull(at + 1, NULL, 10) != process->start_time_ticks;
}

int stale_process_open(struct memwatch_ctx *ctx, int fd)
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
	if (!was_replaced(&process))
		return pidfd;
	close(pidfd);
	return -ESRCH;
}
