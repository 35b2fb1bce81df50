// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Fuzzes the replay of traces of allocations and accesses, and reads all results. The first byte
 * chooses the options.
 */
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "stale.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	MEMWATCH_OPTS(memwatch_stale_opts, opts);
	struct memwatch_stale *stale = NULL;
	struct memwatch_ctx *ctx = NULL;
	int fd, rc;

	if (!size || memwatch_ctx_new(NULL, &ctx))
		return 0;
	opts.scheme = data[0] % 3;
	opts.flags = data[0] / 3 % 4;
	opts.share = data[0] & 64 ? -1 : 0;
	opts.sort_bytes = 1;
	opts.directory = "/dev/shm";
	fd = memfd_create("trace", MFD_CLOEXEC);
	if (fd >= 0 && write(fd, data + 1, size - 1) == (ssize_t)(size - 1) &&
	    !memwatch_stale_new(ctx, &opts, &stale)) {
		lseek(fd, 0, SEEK_SET);
		rc = mw_stale_open_fd(stale, fd);
		while (!rc && (rc = memwatch_stale_step(stale)) == 1)
			rc = 0;
		if (!rc && !memwatch_stale_judge(stale))
			read_results(stale);
	} else if (fd >= 0) {
		close(fd);
	}
	memwatch_stale_unref(stale);
	memwatch_ctx_unref(ctx);
	return 0;
}
