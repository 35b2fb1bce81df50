/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The programs and libraries of a process, opened by who may do so, for a child that may not.
 */
#ifndef MW_HEAP_MODULES_H
#define MW_HEAP_MODULES_H

#include <stdbool.h>
#include <stdint.h>

#include <memwatch/ctx.h>

#define MW_MODULES_MAX 128

/* Open files and the paths that the process knows them by; both are owned. */
struct mw_modules {
	char *paths[MW_MODULES_MAX];
	int fds[MW_MODULES_MAX];
	uint32_t nr;
};

/*
 * Opens what process @pid has mapped and can execute. A file that cannot be opened is left out.
 * The caller closes them with mw_modules_close().
 */
void mw_modules_open(struct memwatch_ctx *ctx, uint32_t pid, struct mw_modules *ret);
void mw_modules_close(struct mw_modules *modules);

/* Adds a file. Takes over @fd, unless it returns false. */
bool mw_modules_add(struct mw_modules *modules, const char *path, int fd);

/* The descriptor of the file at @path, or -1. */
int mw_modules_find(const struct mw_modules *modules, const char *path);

#endif /* MW_HEAP_MODULES_H */
