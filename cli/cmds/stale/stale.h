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
extern const struct mw_cmd mw_cmd_stale_start;
extern const struct mw_cmd mw_cmd_stale_stop;

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

/* What "stale report" was asked for; 0 and NULL: the default. */
struct stale_report_config {
	const char *import;
	int scheme, clock;
	const char *fence, *share;
	const char *sysroot, *follow;
	uint64_t sort_memory, top, pid;
	bool objects, any_growth, no_symbols;
};

/* Replays what is open, and judges it. Returns 0, an errno of the library, or -EINTR. */
int stale_replay(const struct mw_cli *cli, struct memwatch_stale *stale);

/* Prints what was found, or why nothing was: @err is that of stale_replay(). Returns an exit code.
 */
int stale_print_report(struct stale_result *result, struct memwatch_ctx *ctx,
		       const struct stale_report_config *config, int err);

/* Reports a trace that the profiler has recorded, in the file or directory @name. */
int stale_report_recording(const struct mw_cli *cli, const struct stale_report_config *config,
			   const struct memwatch_stale_opts *opts, const char *name);

/* Print the sites or the objects as a table or as CSV. Return an exit code. */
int stale_print_sites(const struct stale_result *result);
int stale_print_objects(const struct stale_result *result);

void stale_print_json(const struct stale_result *result);

/* One sentence for each site that leaks, and what is known at all. */
void stale_print_summary(const struct stale_result *result);

extern const char *const stale_scheme_names[];
extern const char *const stale_growth_names[];

#endif
