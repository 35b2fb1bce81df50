/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The background monitor: the growth monitor that "record --growth",
 * "top --growth" and "events --growth" run beside what they read. It has no thread of its own.
 */
#ifndef MW_GROWTH_BACKGROUND_H
#define MW_GROWTH_BACKGROUND_H

#include <memwatch/memwatch.h>

#include "common/cmd.h"
#include "growth/latest.h"
#include "growth/registry.h"

/* A zeroed structure is a monitor that is not open. */
struct mw_background_monitor {
	struct memwatch_ctx *ctx;
	struct memwatch_watch *watch; /* NULL: not open */
	struct mw_registry_entry entry;
	struct mw_growth_latest latest; /* of the last round */
};

/*
 * Starts the monitor. @command is its name in the output of "status". Returns 0, or
 * an exit code after an error message.
 */
int mw_background_monitor_open(struct mw_background_monitor *monitor, const struct mw_cli *cli,
			       struct memwatch_ctx *ctx, const char *command);
/*
 * Runs a round if one is due; never blocks. Call it several times a second. @take,
 * which may be NULL, receives the new growth records: each alert, each end of an
 * alert, and after a round the state of every process that is growing or whose
 * verdict has changed. Returns 0 or a negative errno, also one that @take returned.
 */
int mw_background_monitor_poll(struct mw_background_monitor *monitor,
			       int (*take)(void *data, const struct memwatch_record_growth *record),
			       void *data);
/* Stops the monitor. Does nothing if it is not open. */
void mw_background_monitor_close(struct mw_background_monitor *monitor);

#endif
