/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Flame graphs: an SVG file that needs nothing else, with a script to search and zoom.
 */
#ifndef MW_CMDS_HEAP_FLAME_H
#define MW_CMDS_HEAP_FLAME_H

#include "cmds/heap/calls.h"

/* The script of the file; it contains no "]]>". */
extern const char heap_flame_script[];

/*
 * The width of a call is its value. With a base it is the larger one of both, added up from
 * the innermost calls, and the colour shows the difference. Returns 0 or -ENOMEM.
 */
int heap_flame_write(const struct heap_calls *calls, const char *name, FILE *out);

#endif
