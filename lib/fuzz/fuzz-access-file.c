// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Fuzzes the reader of files of access samples: they are replayed with a trace of a few objects,
 * and all results are read.
 */
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../tests/recorded-kit.h"
#include "fuzz.h"
#include "stale.h"

/* Of process 77, from time 1000 on, with a boot id that is 0. */
static int make_trace(void)
{
	int fd = memfd_create("trace", MFD_CLOEXEC);
	struct recorded r;

	recorded_begin(&r, 512);
	recorded_header(&r)->created_ns = 1000;
	recorded_add_chunk(&r, 0, 0, 1, 1000);
	for (uint64_t i = 0; i < 10; i++)
		recorded_malloc(&r, 1, 1000 + 1000 * i, 1, 64, 4096 + 64 * i);
	if (fd >= 0 && write(fd, r.bytes, r.len) != (ssize_t)r.len) {
		close(fd);
		fd = -1;
	}
	free(r.bytes);
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int trace = make_trace(), fd = memfd_create("accesses", MFD_CLOEXEC), rc;
	struct memwatch_stale *stale = NULL;
	struct memwatch_ctx *ctx = NULL;

	if (trace >= 0 && fd >= 0 && write(fd, data, size) == (ssize_t)size &&
	    !memwatch_ctx_new(NULL, &ctx) && !memwatch_stale_new(ctx, NULL, &stale)) {
		rc = memwatch_stale_open_fd(stale, trace);
		if (!rc)
			rc = memwatch_stale_add_accesses_fd(stale, fd);
		/* In two parts, as while it is written. */
		for (uint64_t until = 5000; !rc; until = UINT64_MAX) {
			rc = memwatch_stale_resume(stale, until);
			while (!rc && (rc = memwatch_stale_step(stale)) == 1)
				rc = 0;
			if (!rc && !memwatch_stale_judge(stale))
				read_results(stale);
			if (until == UINT64_MAX)
				break;
		}
	}
	if (trace >= 0)
		close(trace);
	if (fd >= 0)
		close(fd);
	memwatch_stale_unref(stale);
	memwatch_ctx_unref(ctx);
	return 0;
}
