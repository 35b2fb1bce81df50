/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The registry of growth monitors: while a monitor runs, it keeps a small file with
 * its settings and its cost in /run/memwatch, from which "status" lists the monitors
 * of this machine. Each line is "key: number". A file is ignored once its process has
 * ended, and the next monitor that starts removes it.
 */
#ifndef MW_REGISTRY_H
#define MW_REGISTRY_H

#include <memwatch/memwatch.h>

#include "common/cmd.h"
#include "output/table.h"

/* How often an entry is written while the state of the event program stays the same. */
#define MW_REGISTRY_UPDATE_NS 10000000000ULL

/* The entry of this process. The caller sets @cli and @command, the rest is zero. */
struct mw_registry_entry {
	const struct mw_cli *cli;
	const char *command;   /* as "status" shows it: "growth watch" */
	uint64_t written_ns;   /* time of the last file; 0: none yet */
	uint64_t cpu_ns;       /* CPU time of this process at that time */
	uint32_t events_state; /* of the event program at that time */
	bool failed;	       /* the file cannot be written: do not try again */
};

/* Writes the entry if it is due. To be called after each poll of the monitor. */
void mw_registry_entry_update(struct mw_registry_entry *entry, struct memwatch_ctx *ctx,
			      struct memwatch_watch *watch, uint64_t now_ns);
/* Removes the file, if there is one. */
void mw_registry_entry_remove(struct mw_registry_entry *entry);

/*
 * Initialises @table with one row for each monitor that runs; the caller uninitialises
 * it. Returns 0 or -ENOMEM. The texts in the cells are constants.
 */
int mw_registry_read(const struct mw_cli *cli, struct mw_table *table);

#endif
