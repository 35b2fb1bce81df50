// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reads and writes that go on until all bytes are there, see file-io.h.
 */
#include "base/file-io.h"

#include <errno.h>
#include <unistd.h>

ssize_t mw_file_read_at(int fd, void *to, size_t len, uint64_t offset)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = pread(fd, (char *)to + done, len - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

int mw_file_write(int fd, const void *from, size_t len)
{
	while (len) {
		ssize_t n = write(fd, from, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		from = (const char *)from + n;
		len -= (size_t)n;
	}
	return 0;
}

int mw_file_write_at(int fd, const void *from, size_t len, uint64_t offset)
{
	while (len) {
		ssize_t n = pwrite(fd, from, len, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		from = (const char *)from + n;
		len -= (size_t)n;
		offset += (uint64_t)n;
	}
	return 0;
}
