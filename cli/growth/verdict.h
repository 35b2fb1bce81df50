/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The verdict on the growth of a process as a row of a table, as JSON, and as a
 * sentence.
 */
#ifndef MW_VERDICT_H
#define MW_VERDICT_H

#include <memwatch/memwatch.h>

#include "common/cmd.h"
#include "output/table.h"

#define MW_VERDICT_COLUMNS 10
#define MW_VERDICT_PID	   0 /* empty for what is not a process */
#define MW_VERDICT_COMM	   1
extern const struct mw_column mw_verdict_columns[MW_VERDICT_COLUMNS];

/*
 * Whether the slope of a verdict is known. 0 is the slope of what does not grow; of anything else
 * it means that no slope could be computed.
 */
static inline bool mw_verdict_has_slope(unsigned int verdict, uint64_t slope)
{
	return slope || verdict == MEMWATCH_GROWTH_STABLE;
}

/*
 * Fills one cell for each column. Times are relative to @origin_ns. The texts belong to
 * @row.
 */
void mw_verdict_fill_cells(const struct memwatch_growth_row *row, uint64_t origin_ns,
			   struct mw_cell *cells);
/* Writes a notice or an alert of a process as an object with its start and its end. */
void mw_verdict_span_json(const struct memwatch_growth_span *span, uint64_t origin_ns,
			  struct mw_json *json);
/* Writes all values of @row as members of the object that is open. */
void mw_verdict_json_members(const struct memwatch_growth_row *row, uint64_t origin_ns,
			     struct mw_json *json);
/* The same without the process id and the name. */
void mw_verdict_json_values(const struct memwatch_growth_row *row, uint64_t origin_ns,
			    struct mw_json *json);
/* "4 min" or "2.5 h": an estimate, so it has few digits. Returns @buf. */
const char *mw_verdict_estimate(uint64_t ns, char *buf, size_t size);
/* ", at 5.0 kB/s", a part of a sentence; empty if the slope is 0. Returns @buf. */
const char *mw_verdict_pace(uint64_t slope, char *buf, size_t size);
/*
 * Writes a sentence: how much and how fast the memory grew, and when it reaches @limit,
 * which may be NULL if the name of the limit is unknown. The sentence contains the name of
 * the process as it is, but never begins with it. Returns @buf.
 */
const char *mw_verdict_sentence(const struct memwatch_growth_row *row, const char *limit, char *buf,
				size_t size);

#endif
