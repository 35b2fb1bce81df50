/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reads the text profiles of jemalloc (heap_v2) and gperftools (heap profile).
 */
#ifndef MW_HEAP_TEXT_PROFILE_H
#define MW_HEAP_TEXT_PROFILE_H

#include <stdbool.h>

#include "heap/input.h"
#include "heap/model.h"

/* Whether the file begins like one of these, and which enum memwatch_heap_format it is. */
bool mw_text_profile_is(const struct mw_input *input, uint32_t *format);

/* Adds the samples of a file to the last profile of the heap. Returns 0 or a negative errno. */
int mw_text_profile_read(struct memwatch_heap *heap, const struct mw_input *input);

#endif /* MW_HEAP_TEXT_PROFILE_H */
