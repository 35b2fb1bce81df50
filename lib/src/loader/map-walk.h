/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Walks over a BPF hash map while programs insert and delete elements.
 */
#ifndef MW_LOADER_MAP_WALK_H
#define MW_LOADER_MAP_WALK_H

#include <stddef.h>

#include <memwatch/ctx.h>

/* Receives one element. Another value than 0 ends the walk, which returns it. */
typedef int (*mw_bpf_walk_fn)(void *userdata, const void *key, const void *value);

/*
 * Passes each element to @fn once, and copies many elements with one system call. An
 * element that is inserted or deleted meanwhile may be missing, but no other one, and none
 * comes twice. @fn may delete elements. Returns 0, what @fn returned, or a negative errno.
 */
int mw_bpf_map_walk(struct memwatch_ctx *ctx, int fd, size_t key_size, size_t value_size,
		    mw_bpf_walk_fn fn, void *userdata);

#endif /* MW_LOADER_MAP_WALK_H */
