/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The subcommands of "heap".
 */
#ifndef MW_CMDS_HEAP_H
#define MW_CMDS_HEAP_H

#include "common/cmd.h"

extern const struct mw_cmd mw_cmd_heap_run;
extern const struct mw_cmd mw_cmd_heap_list;
extern const struct mw_cmd mw_cmd_heap_start;
extern const struct mw_cmd mw_cmd_heap_stop;
extern const struct mw_cmd mw_cmd_heap_stats;
extern const struct mw_cmd mw_cmd_heap_snapshot;
extern const struct mw_cmd mw_cmd_heap_report;
extern const struct mw_cmd mw_cmd_heap_export;

#endif
