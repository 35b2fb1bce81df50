// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Fuzzes the reader of recorded traces, and reads all results.
 */
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "stale.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct memwatch_stale *stale = NULL;
	struct memwatch_ctx *ctx = NULL;
	int fd, rc;

	if (memwatch_ctx_new(NULL, &ctx))
		return 0;
	fd = memfd_create("trace", MFD_CLOEXEC);
	if (fd >= 0 && write(fd, data, size) == (ssize_t)size &&
	    !memwatch_stale_new(ctx, NULL, &stale)) {
		rc = memwatch_stale_open_fd(stale, fd);
		while (!rc && (rc = memwatch_stale_step(stale)) == 1)
			rc = 0;
		if (!rc && !memwatch_stale_judge(stale))
			read_results(stale);
	}
	if (fd >= 0)
		close(fd);
	memwatch_stale_unref(stale);
	memwatch_ctx_unref(ctx);
	return 0;
}
