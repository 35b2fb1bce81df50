// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 */
#include "loader/iterator.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/context.h"

int mw_bpf_iterator_run(struct memwatch_ctx *ctx, const struct bpf_link *link, const char *what)
{
	int fd = bpf_iter_create(bpf_link__fd(link));
	char nothing[64];
	ssize_t n;

	if (fd < 0)
		return mw_fail(ctx, -errno, "cannot start %s: %s", what, strerror(errno));
	/* From 5.9 on a long list fails with EAGAIN from time to time, so that others can run. */
	do {
		n = read(fd, nothing, sizeof(nothing));
	} while (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)));
	close(fd);
	return n < 0 ? mw_fail(ctx, -errno, "%s failed: %s", what, strerror(errno)) : 0;
}
