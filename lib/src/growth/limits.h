/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * How much memory the machine can still give. The limits of cgroups are read in the kernel,
 * see bpf/growth-memcg.h.
 */
#ifndef MW_LIMITS_H
#define MW_LIMITS_H

#include <stddef.h>
#include <stdint.h>

#include <memwatch/ctx.h>

/**
 * struct mw_limits_host - the memory of the machine
 * @headroom_bytes: available memory and free swap
 * @swap_bytes: free swap
 */
struct mw_limits_host {
	uint64_t headroom_bytes;
	uint64_t swap_bytes;
};

/* The number after @key at the start of a line of @text, or 0 if there is no such line. */
uint64_t mw_limits_number(const char *text, const char *key);

/* Reads a file of the kernel and terminates it. What does not fit is left out. */
int mw_limits_read_text(struct memwatch_ctx *ctx, const char *path, char *text, size_t size);

/* From the text of /proc/meminfo. */
void mw_limits_parse_host(const char *text, struct mw_limits_host *ret);

int mw_limits_read_host(struct memwatch_ctx *ctx, struct mw_limits_host *ret);

#endif /* MW_LIMITS_H */
