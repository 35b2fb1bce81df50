/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The tree of calls that flame graphs and similar formats show, with rounded values, and
 * folded stacks, which are its paths.
 */
#ifndef MW_CMDS_HEAP_CALLS_H
#define MW_CMDS_HEAP_CALLS_H

#include <stdio.h>

#include "cmds/heap/profiles.h"

/* A call. Values of the base are 0 if there is none. */
struct heap_call {
	char *name;  /* owned, as in the file */
	char *place; /* owned: "file:line" or the module */
	uint32_t depth;
	uint64_t flat, cum;
	uint64_t base_flat, base_cum;
};

/* The calls in preorder: the children of a call follow it, the largest first. */
struct heap_calls {
	struct heap_call *list;
	size_t count, capacity;
	uint64_t total, base_total;
	uint32_t metric;
	uint32_t max_depth;
	bool has_base;
	const char *objects;
};

/* Returns 0, or an exit code after an error message. Needs heap_calls_close() if it is 0. */
int heap_calls_open(struct heap_calls *calls, const struct heap_profiles *profiles, uint32_t metric,
		    const char *path);
void heap_calls_close(struct heap_calls *calls);

/*
 * "main;f;g 4096", and with a base "main;f;g 1024 4096": the base first. Returns 0 or
 * -ENOMEM.
 */
int heap_calls_write_folded(const struct heap_calls *calls, FILE *out);

#endif
