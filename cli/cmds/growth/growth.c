// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The command "growth": the list of its subcommands.
 */
#include "cmds/growth/growth.h"

static const char *const growth_usage[] = {
	"growth watch [OPTIONS]",
	"growth record -o FILE [OPTIONS]",
	"growth replay TRACE",
	"",
	"Finds processes that leak memory, before they reach a limit and are killed.",
	"Needs no kernel module, but BPF, BTF and a kernel from 5.10 on.",
	NULL,
};

static const struct mw_cmd *const subs[] = { &mw_cmd_growth_watch, &mw_cmd_growth_record,
					     &mw_cmd_growth_replay, NULL };

const struct mw_cmd mw_cmd_growth = {
	.name = "growth",
	.summary = "find processes that leak memory before they reach a limit",
	.usage = growth_usage,
	.sub = subs,
};
