/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What the fuzzers of heap profiles do with a file: it is read twice, views of all kinds are made
 * of it, and it is written as a profile of pprof. Each fuzzer has files of one format.
 */
#ifndef MW_FUZZ_HEAP_H
#define MW_FUZZ_HEAP_H

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memwatch/heap-process.h>

#include "fuzz.h"

static inline void check_text(const char *text)
{
	volatile char sum = 0;

	if (!text)
		abort();
	for (; *text; text++)
		sum = (char)(sum + *text);
}

static inline void read_view(struct memwatch_heap *heap, uint32_t by, uint32_t flags)
{
	MEMWATCH_OPTS(memwatch_heap_view_opts, opts, .by = by, .flags = flags);
	MEMWATCH_OPTS(memwatch_heap_frame, frame);
	MEMWATCH_OPTS(memwatch_heap_row, row);
	struct memwatch_heap_view *view;

	if (memwatch_heap_view_new(heap, &opts, &view))
		return;
	memwatch_heap_view_get_total(view, &row);
	for (uint64_t i = 0; i < 1000 && memwatch_heap_view_get_row(view, i, &row) == 1; i++) {
		check_text(row.frame->function);
		for (uint32_t k = 0;
		     k < 64 && memwatch_heap_view_get_frame(view, i, k, &frame) == 1; k++)
			check_text(frame.file);
	}
	memwatch_heap_view_unref(view);
}

/* The file is @magic and then @data. */
static inline int fuzz_profile(const void *magic, size_t magic_size, const uint8_t *data,
			       size_t size)
{
	MEMWATCH_OPTS(memwatch_heap_opts, opts, .max_bytes = 1 << 22);
	MEMWATCH_OPTS(memwatch_heap_rss, rss);
	int fd = memfd_create("profile", MFD_CLOEXEC), null;
	struct memwatch_heap *heap;
	struct memwatch_ctx *ctx;

	if (fd < 0 || write(fd, magic, magic_size) != (ssize_t)magic_size ||
	    write(fd, data, size) != (ssize_t)size || memwatch_ctx_new(NULL, &ctx))
		abort();
	if (memwatch_heap_new(ctx, &opts, &heap))
		abort();
	for (int i = 0; i < 2; i++) {
		lseek(fd, 0, SEEK_SET);
		if (memwatch_heap_add_fd(heap, fd, "fuzz") < 0)
			goto out;
	}
	for (uint32_t by = 0; by <= MEMWATCH_HEAP_BY_TREE; by++)
		read_view(heap, by, by % 2 ? MEMWATCH_HEAP_BASE : 0);
	read_view(heap, MEMWATCH_HEAP_BY_SITE, MEMWATCH_HEAP_GROWTH);
	null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	memwatch_heap_write_pprof(heap, 0, null);
	memwatch_heap_get_rss(heap, 0, NULL, &rss);
	close(null);
out:
	memwatch_heap_unref(heap);
	memwatch_ctx_unref(ctx);
	close(fd);
	return 0;
}

#endif
