// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Preloaded: a kernel that clears no memory in children, as those before Linux 4.14.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

int madvise(void *address, size_t bytes, int advice)
{
	if (advice == MADV_WIPEONFORK) {
		errno = EINVAL;
		return -1;
	}
	return (int)syscall(SYS_madvise, address, bytes, advice);
}
