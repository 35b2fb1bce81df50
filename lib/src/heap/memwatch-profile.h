/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reads the profiles of the memwatch heap profiler, heap/profile-format.h.
 */
#ifndef MW_HEAP_MEMWATCH_PROFILE_H
#define MW_HEAP_MEMWATCH_PROFILE_H

#include <stdbool.h>

#include "heap/input.h"
#include "heap/model.h"

bool mw_memwatch_profile_is(const struct mw_input *input);

/* Adds the samples of a file to the last profile of the heap. Returns 0 or a negative errno. */
int mw_memwatch_profile_read(struct memwatch_heap *heap, const struct mw_input *input);

#endif /* MW_HEAP_MEMWATCH_PROFILE_H */
