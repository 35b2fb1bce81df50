/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Files whose names appear when they are complete, so that nobody reads half of one. Until then a
 * file has ".new" behind its name; it keeps this name if the process is killed before.
 */
#ifndef _MW_HEAP_NEW_FILE_H
#define _MW_HEAP_NEW_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "profile-format.h"

/* Writes the name to try after @n others were in use. */
typedef void mw_new_file_name(char *path, size_t size, const char *stem, uint32_t n);

/* Room for a name in the folder of the profiles. */
#define MW_NEW_FILE_PATH_MAX (MW_HEAP_PATH_MAX + 88)

struct mw_new_file {
	char path[MW_NEW_FILE_PATH_MAX];
	dev_t device;
	ino_t inode;
};

/* Returns a descriptor or a negative errno. */
int mw_new_file_create(mw_new_file_name *name, const char *stem, struct mw_new_file *file);

/* Gives a file that is complete its name. Returns 0 or a negative errno. */
int mw_new_file_publish(mw_new_file_name *name, const char *stem, struct mw_new_file *file);

/*
 * A file is opened whenever it grows, and closed again: programs notice descriptors that are not
 * theirs, close them, or use their numbers. Returns a descriptor, or a negative errno if the file
 * cannot be reached any more.
 */
int mw_new_file_reopen(const struct mw_new_file *file);

#endif
