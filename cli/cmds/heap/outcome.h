/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Whether a command that has ended was profiled.
 */
#ifndef MW_CMDS_HEAP_OUTCOME_H
#define MW_CMDS_HEAP_OUTCOME_H

#include "cmds/heap/preload.h"

/* Warns if the process of the command that has ended has no profile, or no trace if it should. */
void heap_outcome_check(const struct heap_preload *preload);

#endif
