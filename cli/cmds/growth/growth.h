/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The subcommands of "growth".
 */
#ifndef MW_CMDS_GROWTH_H
#define MW_CMDS_GROWTH_H

#include "common/cmd.h"

extern const struct mw_cmd mw_cmd_growth_watch;
extern const struct mw_cmd mw_cmd_growth_record;
extern const struct mw_cmd mw_cmd_growth_replay;

#endif
