/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The subcommands of "stale", and what they print.
 */
#ifndef MW_CMDS_STALE_H
#define MW_CMDS_STALE_H

#include <memwatch/stale.h>

#include "common/cmd.h"

extern const struct mw_cmd mw_cmd_stale_report;
extern const struct mw_cmd mw_cmd_stale_run;

/* A trace that was judged. */
struct stale_result {
	const struct mw_cli *cli;
	struct memwatch_stale *stale;
	struct memwatch_stale_info info;
	const char *path;
	uint32_t scheme; /* enum memwatch_stale_scheme that was asked for */
	uint64_t top;	 /* show only the first sites and objects; 0: all */
	bool objects;	 /* the table is about objects */
	bool named;	 /* the sites of a recorded trace have call stacks */
};

/* Print the sites or the objects as a table or as CSV. Return an exit code. */
int stale_print_sites(const struct stale_result *result);
int stale_print_objects(const struct stale_result *result);

void stale_print_json(const struct stale_result *result);

/* One sentence for each site that leaks, and what is known at all. */
void stale_print_summary(const struct stale_result *result);

extern const char *const stale_scheme_names[];
extern const char *const stale_growth_names[];

#endif
