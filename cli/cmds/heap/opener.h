/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Opens programs and libraries for a process that has become nobody.
 */
#ifndef MW_CMDS_HEAP_OPENER_H
#define MW_CMDS_HEAP_OPENER_H

#include <stdint.h>
#include <sys/types.h>

#include <memwatch/heap-process.h>

/* Whose profile it is: of process @pid, or 0; and the owner of the profile. */
struct heap_owner {
	uint32_t pid;
	uid_t uid;
	gid_t gid;
};

/* A child that still is root; @socket is -1 if there is none. */
struct heap_opener {
	int socket;
};

/*
 * Starts the child. It opens only regular files that the owner of the profile may read, because the
 * paths come from the profile. They are ELF files: of a process those that it has mapped, and for a
 * profile in a file any; or perf-PID.map in the directory for temporary files, which must belong to
 * that owner or root, and of a process only its own. Paths are below @sysroot, or if it is NULL
 * below the root directory of the process, and symbolic links do not lead out of it. The child ends
 * after heap_opener_stop(), or with the caller. @owners are those of the profiles, in the order of
 * their numbers. Returns 0 or a negative errno.
 */
int heap_opener_start(struct heap_opener *opener, struct memwatch_ctx *ctx, const char *sysroot,
		      const struct heap_owner *owners, uint32_t nr);
void heap_opener_stop(struct heap_opener *opener);

/* An open_module of struct memwatch_heap_symbol_opts; @data is a struct heap_opener. */
int heap_opener_open(void *data, uint32_t profile, const char *path);

#endif
