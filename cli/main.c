// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The entry point and the list of commands.
 */
#include <locale.h>
#include <signal.h>

#include "common/cmd.h"

static const char *const main_usage[] = {
	"[--format table|json|csv] [--quiet | --verbose] COMMAND [OPTIONS]",
	"",
	"Shows which process uses the last-level cache, the memory bandwidth and the",
	"CPU, with a resolution of one millisecond, and finds processes that leak memory.",
	NULL,
};

static const struct mw_cmd *const commands[] = {
	&mw_cmd_doctor, &mw_cmd_status, &mw_cmd_dump,	    &mw_cmd_top,    &mw_cmd_record,
	&mw_cmd_report, &mw_cmd_export, &mw_cmd_events,	    &mw_cmd_growth, &mw_cmd_heap,
	&mw_cmd_stale,	&mw_cmd_config, &mw_cmd_completion, NULL,
};

const struct mw_cmd mw_cmd_main = {
	.name = "memwatchctl",
	.usage = main_usage,
	.sub = commands,
};

int main(int argc, char **argv)
{
	/* LC_CTYPE only: numbers keep the decimal point of the C locale. */
	setlocale(LC_CTYPE, "");
	/* If the parent ignored it, the kernel would not keep the exit statuses of children. */
	signal(SIGCHLD, SIG_DFL);
	return mw_cmd_run(argc, argv);
}
