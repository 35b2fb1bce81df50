/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Heaps and views for tests, which end if there is none.
 */
#ifndef MW_TESTS_HEAP_KIT_H
#define MW_TESTS_HEAP_KIT_H

#include <stdlib.h>

#include <memwatch/heap.h>

#include "../../selftests/tap.h"

static inline struct memwatch_heap *heap_kit_new(struct memwatch_ctx *ctx)
{
	struct memwatch_heap *heap = NULL;

	if (memwatch_heap_new(ctx, NULL, &heap))
		exit(EXIT_FAILURE);
	return heap;
}

static inline struct memwatch_heap_view *
heap_kit_view(struct memwatch_ctx *ctx, struct memwatch_heap *heap, uint32_t by, uint32_t flags)
{
	MEMWATCH_OPTS(memwatch_heap_view_opts, opts, .by = by, .flags = flags,
		      .base = flags & MEMWATCH_HEAP_BASE ? 1 : 0);
	struct memwatch_heap_view *view = NULL;

	if (memwatch_heap_view_new(heap, &opts, &view)) {
		tap_note("%s", memwatch_ctx_error(ctx));
		exit(EXIT_FAILURE);
	}
	return view;
}

#endif /* MW_TESTS_HEAP_KIT_H */
