/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The table that "growth watch" shows after each round: what the monitor costs, and the
 * processes and cgroups that are most likely to leak.
 */
#ifndef MW_CMDS_GROWTH_WATCH_TABLE_H
#define MW_CMDS_GROWTH_WATCH_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "growth/monitor.h"

/* Prints a line about the cost. @commands: with that of the commands of --exec. */
void mw_watch_cost_print(struct mw_monitor *monitor, bool commands, FILE *out);

/* Prints the table, with @max_rows processes at most; 0: the default. Returns an exit code. */
int mw_watch_table_print(struct mw_monitor *monitor, uint64_t max_rows, bool commands);

#endif
