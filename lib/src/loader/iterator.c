// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 */
#include "loader/iterator.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/context.h"

int mw_bpf_iterator_start(struct memwatch_ctx *ctx, const struct bpf_link *link, const char *what)
{
	int fd = bpf_iter_create(bpf_link__fd(link));

	return fd < 0 ? mw_fail(ctx, -errno, "cannot start %s: %s", what, strerror(errno)) : fd;
}

int mw_bpf_iterator_read(struct memwatch_ctx *ctx, int fd, void *data, size_t size,
			 const char *what)
{
	ssize_t n;

	/* From 5.9 on a long list fails with EAGAIN from time to time, so that others can run. */
	do {
		n = read(fd, data, size);
	} while (n < 0 && (errno == EAGAIN || errno == EINTR));
	return n < 0 ? mw_fail(ctx, -errno, "%s failed: %s", what, strerror(errno)) : (int)n;
}

int mw_bpf_iterator_run(struct memwatch_ctx *ctx, const struct bpf_link *link, const char *what)
{
	int fd = mw_bpf_iterator_start(ctx, link, what), rc;
	char nothing[64];

	if (fd < 0)
		return fd;
	do {
		rc = mw_bpf_iterator_read(ctx, fd, nothing, sizeof(nothing), what);
	} while (rc > 0);
	close(fd);
	return rc;
}
