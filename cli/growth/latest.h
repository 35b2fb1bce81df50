/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What is known of the growth of processes: the last record of each, be it from
 * a recording or from a monitor that runs beside a stream.
 */
#ifndef MW_GROWTH_KNOWN_H
#define MW_GROWTH_KNOWN_H

#include <memwatch/memwatch.h>

#include "common/cmd.h"
#include "growth/registry.h"
#include "output/table.h"

/* Zero: nothing is known. */
struct mw_known {
	struct memwatch_record_growth *records;
	size_t nr, room;
	uint32_t *slots; /* index + 1, by process */
	size_t nr_slots; /* a power of two */
};

/* Takes a copy in the place of what was known of that process: 0 or -ENOMEM. */
int mw_known_take(struct mw_known *known, const struct memwatch_record_growth *record);
/* NULL: nothing. */
const struct memwatch_record_growth *mw_known_find(const struct mw_known *known, uint32_t tgid,
						   uint64_t start_ns);
void mw_known_free(struct mw_known *known);

/* The columns that tables of processes get: what is thought, how fast, how long it can go on. */
enum { MW_KNOWN_VERDICT, MW_KNOWN_SLOPE, MW_KNOWN_ETA, MW_KNOWN_COLUMNS };
extern const struct mw_column mw_known_columns[MW_KNOWN_COLUMNS];
/* @record may be NULL: then there are no values. */
void mw_known_fill(const struct memwatch_record_growth *record, struct mw_cell *cells);

/*
 * A monitor beside a stream. It has no thread of its own: its owner calls
 * mw_beside_poll() some times a second.
 */
struct mw_beside {
	struct memwatch_ctx *ctx;
	struct memwatch_watch *watch;
	struct mw_growth_run run;
	struct mw_known known; /* of the last round */
};

/* 0 or an exit code, with a message. @command is what "status" calls it. */
int mw_beside_open(struct mw_beside *beside, const struct mw_cli *cli, struct memwatch_ctx *ctx,
		   const char *command);
/*
 * Runs a round if one is due, and hands out what is new (@take may be NULL): alerts,
 * ends of alerts, and states of processes that grow or are thought of in another
 * way than before. Waits for nothing. 0 or a negative errno, also that of @take.
 */
int mw_beside_poll(struct mw_beside *beside,
		   int (*take)(void *data, const struct memwatch_record_growth *record),
		   void *data);
/* Accepts one that was not opened. */
void mw_beside_close(struct mw_beside *beside);

#endif
