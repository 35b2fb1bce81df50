/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Tables. One description of the columns is used for the table for people, for JSON
 * and for CSV.
 *
 * A measured value has a status. A missing value is "-" in the table,
 * {"value": null, "status": "unavailable"} in JSON and an empty field in CSV; it is
 * never written as 0.
 */
#ifndef MW_TABLE_H
#define MW_TABLE_H

#include "common/cmd.h"
#include "output/human.h"
#include "output/json.h"

enum mw_kind {
	MW_KIND_TEXT,
	MW_KIND_UINT,
	MW_KIND_DOUBLE,
	MW_KIND_LIST, /* of unsigned numbers */
	MW_KIND_BOOL,
};

#define MW_COLUMN_MEASURED (1U << 0) /* the values have a status */
#define MW_COLUMN_HIDDEN   (1U << 1) /* only in JSON and CSV, not in the table */
#define MW_COLUMN_LAST	   (1U << 2) /* truncated at the end of the line */
#define MW_COLUMN_CHANGE   (1U << 3) /* a positive number gets a plus sign */
#define MW_COLUMN_LEFT	   (1U << 4) /* a number that is aligned to the left */

struct mw_column {
	const char *key;   /* in JSON and CSV; NULL: only in the table */
	const char *title; /* in the table */
	enum mw_kind kind;
	enum mw_unit unit;
	unsigned int flags;
};

struct mw_list {
	const uint32_t *value;
	size_t count;
};

/* One value. The text or list must stay valid until the table is printed. */
struct mw_cell {
	bool missing; /* also implied by some statuses, see mw_status_has_value() */
	bool total;   /* a missing value that is shown as "(total)": that of the name of a total */
	uint8_t status;
	union {
		const char *text;
		uint64_t number;
		double real;
		struct mw_list list;
		bool truth;
	};
};

/* The cells are stored row by row, @nr_columns for each. */
struct mw_table {
	const struct mw_column *columns;
	size_t nr_columns;
	struct mw_cell *cells;
	size_t nr_rows;
	size_t capacity; /* of @cells */
};

void mw_table_init(struct mw_table *table, const struct mw_column *columns, size_t nr_columns);
void mw_table_uninit(struct mw_table *table);
/*
 * Appends a row of missing cells, which is valid until the next row is appended.
 * Returns NULL if there is no memory.
 */
struct mw_cell *mw_table_row(struct mw_table *table);

/* Prints the table for people to standard output. Returns an exit code. */
int mw_table_print(const struct mw_table *table);
/* Writes the rows as an array of objects with the key @key. */
void mw_table_json(const struct mw_table *table, struct mw_json *json, const char *key);
/* Writes a header line and the rows as RFC 4180 defines CSV. */
void mw_table_csv(const struct mw_table *table, FILE *out);

/* Single rows, for commands that print while they read. */
void mw_row_json(const struct mw_column *columns, size_t nr, const struct mw_cell *cells,
		 struct mw_json *json);
/* Writes the members into an object that is already open. */
void mw_members_json(const struct mw_column *columns, size_t nr, const struct mw_cell *cells,
		     struct mw_json *json);
void mw_head_csv(const struct mw_column *columns, size_t nr, FILE *out);
void mw_row_csv(const struct mw_column *columns, size_t nr, const struct mw_cell *cells, FILE *out);
/*
 * Writes one text as a field without hidden characters, which memwatchctl-export(8)
 * describes. A spreadsheet takes it for text, also if it begins like a formula.
 */
void mw_text_csv(const char *text, FILE *out);
/* Writes one field, followed by its status if the column is measured. */
void mw_cell_csv(const struct mw_column *column, const struct mw_cell *cell, FILE *out);
/* Prints one row to standard output, one line for each column. */
void mw_row_print(const struct mw_column *columns, size_t nr, const struct mw_cell *cells);
/* Formats one cell as the table shows it, escaped. Returns @buf or a constant string. */
const char *mw_cell_human(const struct mw_column *column, const struct mw_cell *cell, char *buf,
			  size_t size);

/* Returns whether a measurement with this status has a value. */
bool mw_status_has_value(uint8_t status);

#endif
