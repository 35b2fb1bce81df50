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

#include "profile-format.h"

/* Writes the name to try after @n others were in use. */
typedef void mw_new_file_name(char *path, size_t size, const char *stem, uint32_t n);

/* Room for a name in the folder of the profiles. */
#define MW_NEW_FILE_PATH_MAX (MW_HEAP_PATH_MAX + 88)

/* Returns a descriptor or a negative errno; @path, MW_NEW_FILE_PATH_MAX long, is its name. */
int mw_new_file_create(mw_new_file_name *name, const char *stem, char *path);

/*
 * Gives a file that is complete its name, which replaces that in @path. Returns 0 or a
 * negative errno.
 */
int mw_new_file_publish(mw_new_file_name *name, const char *stem, char *path);

#endif
