/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Rows. A column is described once; the description gives the table for
 * people, the JSON array and the CSV file.
 *
 * A measured value carries its status. Where there is none the table shows
 * "-", JSON says {"value": null, "status": "unavailable"} and CSV leaves the
 * field empty: a missing value is never a 0.
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

#define MW_COLUMN_MEASURED (1U << 0) /* {value, status} */
#define MW_COLUMN_HIDDEN   (1U << 1) /* not in the table for people */
#define MW_COLUMN_LAST	   (1U << 2) /* may take the rest of the line */
#define MW_COLUMN_CHANGE   (1U << 3) /* written with its sign */
#define MW_COLUMN_LEFT	   (1U << 4) /* a number that is a name */

struct mw_column {
	const char *key;   /* JSON and CSV */
	const char *title; /* table */
	enum mw_kind kind;
	enum mw_unit unit;
	unsigned int flags;
};

struct mw_list {
	const uint32_t *value;
	size_t count;
};

/* One value. The text and the list belong to the caller until the table is printed. */
struct mw_cell {
	bool missing; /* null; implied by a status without a value */
	uint8_t status;
	union {
		const char *text;
		uint64_t number;
		double real;
		struct mw_list list;
		bool truth;
	};
};

/* Values: one row is nr_columns cells, rows follow one another. */
struct mw_table {
	const struct mw_column *columns;
	size_t nr_columns;
	struct mw_cell *cells;
	size_t nr_rows;
	size_t capacity; /* of @cells */
};

int mw_table_init(struct mw_table *table, const struct mw_column *columns, size_t nr_columns);
void mw_table_uninit(struct mw_table *table);
/* A new row of missing cells, valid until the next one; NULL: out of memory. */
struct mw_cell *mw_table_row(struct mw_table *table);

/* As a table for people, on stdout. */
int mw_table_print(const struct mw_table *table);
/* As an array of objects below @key. */
void mw_table_json(const struct mw_table *table, struct mw_json *json, const char *key);
/* As CSV after RFC 4180, with a head line. */
void mw_table_csv(const struct mw_table *table, FILE *out);

/* The parts, for output that streams. */
void mw_row_json(const struct mw_column *columns, size_t nr, const struct mw_cell *cells,
		 struct mw_json *json);
/* The same inside an object that is open. */
void mw_members_json(const struct mw_column *columns, size_t nr, const struct mw_cell *cells,
		     struct mw_json *json);
void mw_head_csv(const struct mw_column *columns, size_t nr, FILE *out);
void mw_row_csv(const struct mw_column *columns, size_t nr, const struct mw_cell *cells, FILE *out);
/* A field, and behind it the status of one that is measured. */
void mw_cell_csv(const struct mw_column *column, const struct mw_cell *cell, FILE *out);
/* One row for people, a line for each column. */
void mw_row_print(const struct mw_column *columns, size_t nr, const struct mw_cell *cells);
/* One cell as the table shows it. */
const char *mw_cell_human(const struct mw_column *column, const struct mw_cell *cell, char *buf,
			  size_t size);

/* Does this status come with a value? */
bool mw_status_has_value(uint8_t status);

#endif
