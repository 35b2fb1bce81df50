/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The names of sites that are stacks of a heap profile.
 */
#ifndef MW_STALE_NAMES_H
#define MW_STALE_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include <memwatch/heap.h>

struct mw_site_names;

/*
 * Names all stacks of the first profile of @heap, which must live as long as the names. Returns 0
 * or -ENOMEM.
 */
int mw_site_names_new(const struct memwatch_heap *heap, struct mw_site_names **ret);

/* @names or NULL. */
void mw_site_names_free(struct mw_site_names *names);

/* The name of stack @stack; "" if the profile does not have it. */
const char *mw_site_names_text(const struct mw_site_names *names, uint64_t stack);

/* Frame @frame of a stack, innermost first. Returns false if there are not so many. */
bool mw_site_names_frame(const struct mw_site_names *names, uint64_t stack, uint32_t frame,
			 struct memwatch_heap_frame *ret);

#endif /* MW_STALE_NAMES_H */
