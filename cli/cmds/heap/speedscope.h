/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The JSON format of speedscope.
 */
#ifndef MW_CMDS_HEAP_SPEEDSCOPE_H
#define MW_CMDS_HEAP_SPEEDSCOPE_H

#include "cmds/heap/calls.h"

/*
 * Writes a profile of type "sampled", one sample for each call that allocated. Returns 0 or
 * -ENOMEM.
 */
int heap_speedscope_write(const struct heap_calls *calls, const char *name, FILE *out);

#endif
