/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Verdicts on growth, as a table, as JSON, and in a sentence.
 */
#ifndef MW_VERDICT_H
#define MW_VERDICT_H

#include <memwatch/memwatch.h>

#include "common/cmd.h"
#include "output/table.h"

#define MW_VERDICT_COLUMNS 9
extern const struct mw_column mw_verdict_columns[MW_VERDICT_COLUMNS];

/* The cells of a row; times count from @origin_ns. The text belongs to @row. */
void mw_verdict_fill_cells(const struct memwatch_growth_row *row, uint64_t origin_ns,
			   struct mw_cell *cells);
/* The same as an object of JSON, with all there is. */
void mw_verdict_json(const struct memwatch_growth_row *row, uint64_t origin_ns,
		     struct mw_json *json);
/* The same, inside an object that is open. */
void mw_verdict_json_members(const struct memwatch_growth_row *row, uint64_t origin_ns,
			     struct mw_json *json);
/* What a person should know: what grew, since when, how fast, when it hits which limit. */
const char *mw_verdict_sentence(const struct memwatch_growth_row *row, const char *limit, char *buf,
				size_t size);

/* "4 min", "2.5 h": as exact as such a thing is. */
const char *mw_verdict_duration(uint64_t ns, char *buf, size_t size);

#endif
