/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Disk blocks for files that are mapped.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "blocks.h"

#define WRITE_BLOCKS 4096

/* Where the file system cannot allocate blocks, writing zeros does it, too. */
static int zeros_write(int fd, uint64_t offset, uint64_t bytes)
{
	static const char zeros[WRITE_BLOCKS];

	for (uint64_t done = 0; done < bytes; done += WRITE_BLOCKS) {
		ssize_t written = pwrite(fd, zeros, WRITE_BLOCKS, (off_t)(offset + done));

		if (written != WRITE_BLOCKS)
			return written < 0 ? -errno : -ENOSPC;
	}
	return 0;
}

int mw_blocks_allocate(int fd, uint64_t offset, uint64_t bytes)
{
	struct rlimit limit;
	int rc;

	/* Beyond this limit the kernel would send SIGXFSZ to the program. */
	if (!getrlimit(RLIMIT_FSIZE, &limit) && offset + bytes > limit.rlim_cur)
		return -EFBIG;
	do {
		rc = fallocate(fd, 0, (off_t)offset, (off_t)bytes);
	} while (rc && errno == EINTR);
	if (!rc)
		return 0;
	if (errno != EOPNOTSUPP && errno != ENOSYS)
		return -errno;
	return zeros_write(fd, offset, bytes);
}
