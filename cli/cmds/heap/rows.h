/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The rows of a view as a table for people, as CSV and as JSON.
 */
#ifndef MW_CMDS_HEAP_ROWS_H
#define MW_CMDS_HEAP_ROWS_H

#include "cmds/heap/profiles.h"
#include "output/json.h"

/* What is shown of a view. */
struct heap_rows {
	const struct mw_cli *cli;
	struct memwatch_heap_view *view;
	uint32_t by;
	uint32_t metric;
	uint64_t top;	/* 0: all rows */
	bool is_diff;	/* values are differences */
	bool is_growth; /* rows have a growth */
	uint32_t metrics;
	const char *objects; /* what is counted as an object */
};

/* Prints the table, or CSV if that was asked for. Returns an exit code. */
int heap_rows_print(const struct heap_rows *rows);

/* Prints each row with its whole call stack. */
void heap_sites_print(const struct heap_rows *rows);

/*
 * Prints in one line how much of a row was touched in the last minute, hour and day. False if it is
 * not known.
 */
bool heap_touched_print(const struct memwatch_heap_row *row, const char *title);

/* Write the rows as an array with the key @key: with call stacks, or with flat and cum. */
void heap_sites_json(const struct heap_rows *rows, struct mw_json *json, const char *key);
void heap_rows_json(const struct heap_rows *rows, struct mw_json *json, const char *key);

/*
 * Describes row @index of a view by call stack: the function that allocated, where, and what
 * called it; "" if nothing is known. The text is escaped for a terminal. Returns @buf.
 */
const char *heap_site_text(const struct memwatch_heap_view *view, uint64_t index, char *buf,
			   size_t size);

#endif
