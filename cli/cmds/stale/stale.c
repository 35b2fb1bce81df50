// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The command "stale": the list of its subcommands.
 */
#include "cmds/stale/stale.h"

static const char *const stale_usage[] = {
	"stale run -o DIR [--accesses[=EVENT]] -- COMMAND...",
	"stale start|stop PID",
	"stale report DIR|FILE [OPTIONS]",
	"stale report --import TRACE [OPTIONS]",
	"",
	"Finds memory that is allocated and that nobody uses any more: leaks, told by",
	"statistics from what is only seldom used.",
	NULL,
};

static const struct mw_cmd *const subs[] = { &mw_cmd_stale_run, &mw_cmd_stale_start,
					     &mw_cmd_stale_stop, &mw_cmd_stale_report, NULL };

const struct mw_cmd mw_cmd_stale = {
	.name = "stale",
	.summary = "find memory that nobody uses any more",
	.usage = stale_usage,
	.sub = subs,
};
