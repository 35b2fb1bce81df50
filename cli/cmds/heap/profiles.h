/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The profiles that a command reads, and the names of what is in them.
 */
#ifndef MW_CMDS_HEAP_PROFILES_H
#define MW_CMDS_HEAP_PROFILES_H

#include "common/library.h"
#include "output/frame.h"

struct heap_profiles;

/*
 * Options that choose the value, shared by the commands. @before_symbols is called with @data when
 * the files were read and their symbols were not looked for yet; it returns 0 or an exit code. With
 * @keep, heap_profiles_again() can be called. With @snapshots, the files must be of one process,
 * and the profiles are in the order of their times.
 */
struct heap_choice {
	bool objects;
	bool allocated;
	const char *diff;    /* the base */
	const char *sysroot; /* directory with the files of the modules, or NULL */
	bool no_symbols;
	bool native; /* also the native frames of interpreters */
	bool rss;    /* also look at the memory of the process, if the name is that of one */
	bool keep;
	bool snapshots;
	int (*before_symbols)(void *data, struct heap_profiles *profiles);
	void *data;
};

struct heap_open_files;

struct heap_profiles {
	const struct mw_cli *cli;
	struct memwatch_ctx *ctx;
	struct memwatch_heap *heap;
	unsigned int count;
	int base;			     /* number of the base, or -1 */
	struct memwatch_heap_memory *memory; /* NULL: it was not looked at */
	struct heap_open_files *kept;	     /* NULL: they were closed */
};

/*
 * Runs @work, which reads profiles, and returns the exit code that it returns. If the program runs
 * as root, @work runs in a child.
 */
int heap_profiles_run(int (*work)(void *data), void *data);

/*
 * Becomes the user nobody and gives up most system calls if the program runs as root, in @work of
 * heap_profiles_run() and before it reads a file of another user. Returns 0 or a negative errno.
 */
int heap_give_up_root(struct memwatch_ctx *ctx);

/*
 * Reads @count profiles and the base of @choice, and finds symbols. A number is the profile of a
 * process, see heap_process_open(). The files may belong to anybody: if the program runs as root,
 * it opens them and becomes the user nobody before it reads them. Returns 0, or an exit code after
 * an error message. The caller calls heap_profiles_close() in both cases.
 */
int heap_profiles_open(struct heap_profiles *profiles, const struct mw_cli *cli,
		       const struct heap_choice *choice, int count, char **files);
void heap_profiles_close(struct heap_profiles *profiles);

/*
 * Reads the profiles, but not the base, again from the files that were opened and kept, as they are
 * now. Returns as heap_profiles_open().
 */
int heap_profiles_again(struct heap_profiles *profiles, const struct heap_choice *choice);

/*
 * Finds the value to show: the chosen one, or, if the profile lacks it, the nearest one that
 * it has. Returns 0, or an exit code after an error message.
 */
int heap_metric(const struct heap_profiles *profiles, const struct heap_choice *choice,
		const char *path, uint32_t *ret);
static inline bool heap_metric_is_bytes(uint32_t metric)
{
	return metric == MEMWATCH_HEAP_LIVE_BYTES || metric == MEMWATCH_HEAP_ALLOCATED_BYTES;
}

/* Prints the error message for a view that failed. Returns the exit code. */
int heap_view_failed(const struct heap_profiles *profiles, int err, const char *path);

#endif
