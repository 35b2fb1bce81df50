/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * "heap report --rss": what the resident set of a process consists of.
 */
#ifndef MW_CMDS_HEAP_RSS_H
#define MW_CMDS_HEAP_RSS_H

#include "cmds/heap/rows.h"

/*
 * Prints the parts and the verdict. @sites is a view by call stack of live bytes. Returns an exit
 * code, after an error message if it is not 0.
 */
int heap_rss_print(const struct heap_profiles *profiles, const struct heap_rows *sites,
		   const char *path);

/* Writes the same as an object with the key "rss". */
int heap_rss_json(const struct heap_profiles *profiles, const struct heap_rows *sites,
		  const char *path, struct mw_json *json);

#endif
