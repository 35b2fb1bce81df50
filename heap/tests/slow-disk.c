// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Preloaded: a file system that takes SLOW_DISK_MS (10) to allocate blocks. If it has taken 30 ms
 * more because the machine is busy, there is a file SLOW_DISK_LATE. With SLOW_DISK_REFUSES it
 * cannot allocate them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* The name that fallocate() has with 64-bit offsets, which the profiler is built with. */
int fallocate64(int fd, int mode, off64_t offset, off64_t bytes)
{
	const char *ms = getenv("SLOW_DISK_MS");
	const struct timespec pause = { .tv_nsec = 1000000L * (ms ? atoi(ms) : 10) };
	const char *late = getenv("SLOW_DISK_LATE");
	struct timespec begin, end;
	int result;

	if (getenv("SLOW_DISK_REFUSES")) {
		errno = EOPNOTSUPP;
		return -1;
	}
	clock_gettime(CLOCK_MONOTONIC, &begin);
	nanosleep(&pause, NULL);
	result = (int)syscall(SYS_fallocate, fd, mode, offset, bytes);
	clock_gettime(CLOCK_MONOTONIC, &end);
	if (late && (end.tv_sec - begin.tv_sec) * 1000000000L + end.tv_nsec - begin.tv_nsec >
			    pause.tv_nsec + 30000000L)
		close(open(late, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	return result;
}
