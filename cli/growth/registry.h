/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Growth monitors that run on this machine, as other processes see them: each
 * keeps a small file below /run/memwatch that says what it does and costs, and
 * "status" reads them. The files are text, a "key: number" a line; they are
 * replaced by renaming, so each is whole, and are of no use once their process
 * is gone.
 */
#ifndef MW_REGISTRY_H
#define MW_REGISTRY_H

#include <memwatch/memwatch.h>

#include "common/cmd.h"
#include "output/table.h"

/* Once in so long, and when the event program comes or goes. */
#define MW_REGISTRY_UPDATE_NS 10000000000ULL

/* The writer's side. All zero: nothing was written yet. */
struct mw_registry_entry {
	const struct mw_cli *cli;
	const char *command;
	uint64_t written_ns, cpu_ns; /* the last time */
	uint32_t events_state;
	bool failed; /* there is no place for it: not tried again */
};

/* Called after each poll; writes if it is time to. */
void mw_registry_entry_update(struct mw_registry_entry *entry, struct memwatch_watch *watch,
			      uint64_t now_ns);
void mw_registry_entry_remove(struct mw_registry_entry *entry);

/*
 * The reader's side: a row for each monitor that runs. 0 or -ENOMEM. The cells
 * point to strings that live as long as the program.
 */
int mw_registry_read(const struct mw_cli *cli, struct mw_table *table);

#endif
