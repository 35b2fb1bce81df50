// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Preloaded: a file system that takes SLOW_DISK_MS (10) to allocate blocks.
 */
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

	nanosleep(&pause, NULL);
	return (int)syscall(SYS_fallocate, fd, mode, offset, bytes);
}
