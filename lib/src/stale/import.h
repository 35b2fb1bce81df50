/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Replays a text trace in steps. A file is looked through first: if its lines are in the order of
 * time, they are replayed as they are read. If they are not, or if the input is a pipe, they go
 * through the sorter.
 *
 * THE LAST LINE. A trace that was cut off ends without a newline, and so may one that was not. A
 * last line without a newline is replayed if it is complete and its last word is a known one;
 * otherwise it is left out.
 */
#ifndef MW_STALE_IMPORT_H
#define MW_STALE_IMPORT_H

#include "heap/strings.h"
#include "stale/lines.h"
#include "stale/sorter.h"

#define MW_IMPORT_WORDS_MAX (1U << 20)

enum mw_import_phase {
	MW_IMPORT_CHECK,  /* looking through a file */
	MW_IMPORT_DIRECT, /* reading and replaying */
	MW_IMPORT_LOAD,	  /* reading into the sorter */
	MW_IMPORT_MERGE,  /* replaying what the sorter returns */
	MW_IMPORT_DONE,
};

/**
 * struct mw_import - the import
 * @ctx: context, not owned
 * @sim: where the events go
 * @words: names of sites and places
 * @lines: the input
 * @sorter: used from MW_IMPORT_LOAD on
 * @phase: enum mw_import_phase
 * @file_bytes: size of the input, or 0 if it is not known
 * @last_ns: time of the last line that was looked at
 * @cut_off: the last line was left out
 * @sorted: the lines were not in order
 */
struct mw_import {
	struct memwatch_ctx *ctx;
	struct mw_sim *sim;
	struct mw_strings words;
	struct mw_lines lines;
	struct mw_sorter sorter;
	enum mw_import_phase phase;
	uint64_t file_bytes, last_ns;
	bool cut_off, sorted;
};

/*
 * @fd must stay open; @place is for the sorter. Returns 0 or -ENOMEM; the
 * caller calls mw_import_uninit() in any case.
 */
int mw_import_init(struct mw_import *import, struct memwatch_ctx *ctx, struct mw_sim *sim, int fd,
		   const struct mw_sorter_place *place);
void mw_import_uninit(struct mw_import *import);

/* Replays a part. Returns 1, 0 if this was all, or what memwatch_stale_step() says. */
int mw_import_step(struct mw_import *import);

/* How much of how much work is done; *@all is 0 if that is not known. */
void mw_import_progress(const struct mw_import *import, uint64_t *done, uint64_t *all);

#endif /* MW_STALE_IMPORT_H */
