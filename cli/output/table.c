// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Writes rows as a table, with libsmartcols, as JSON and as CSV.
 */
#include <errno.h>
#include <inttypes.h>
#include <libsmartcols/libsmartcols.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <memwatch/memwatch.h>

#include "common/array.h"
#include "common/message.h"
#include "output/table.h"
#include "text/escape.h"

bool mw_status_has_value(uint8_t status)
{
	return status != MEMWATCH_STATUS_UNAVAILABLE && status != MEMWATCH_STATUS_FIRST;
}

static bool cell_is_missing(const struct mw_column *column, const struct mw_cell *cell)
{
	if (!(column->flags & MW_COLUMN_MEASURED))
		return cell->missing;
	/* If every reading failed, the sum is unknown, not 0. */
	if (cell->status == MEMWATCH_STATUS_ERROR && !cell->number)
		return true;
	return cell->missing || !mw_status_has_value(cell->status);
}

void mw_table_init(struct mw_table *table, const struct mw_column *columns, size_t nr_columns)
{
	*table = (struct mw_table){ .columns = columns, .nr_columns = nr_columns };
}

void mw_table_uninit(struct mw_table *table)
{
	free(table->cells);
	*table = (struct mw_table){ 0 };
}

struct mw_cell *mw_table_row(struct mw_table *table)
{
	struct mw_cell *row;

	if (mw_array_reserve(table->cells, table->capacity,
			     (table->nr_rows + 1) * table->nr_columns))
		return NULL;
	row = table->cells + table->nr_rows++ * table->nr_columns;
	for (size_t i = 0; i < table->nr_columns; i++)
		row[i] = (struct mw_cell){ .missing = true };
	return row;
}

static const char *format_list(const struct mw_list *list, char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < list->count; i++) {
		/* A long list is cut and ends with an ellipsis. */
		if (used + 16 > size || used > 18) {
			snprintf(buf + used, size - used, ",\342\200\246");
			break;
		}
		used += (size_t)snprintf(buf + used, size - used, "%s%" PRIu32, i ? "," : "",
					 list->value[i]);
	}
	return buf;
}

static const char *format_value(const struct mw_column *column, const struct mw_cell *cell,
				char *buf, size_t size)
{
	switch (column->kind) {
	case MW_KIND_TEXT:
		return mw_escape(cell->text, buf, size);
	case MW_KIND_UINT:
		return mw_human_uint(cell->number, column->unit, buf, size);
	case MW_KIND_DOUBLE:
		if (column->flags & MW_COLUMN_CHANGE)
			return mw_human_change(cell->real, column->unit, buf, size);
		return mw_human_double(cell->real, column->unit, buf, size);
	case MW_KIND_LIST:
		return format_list(&cell->list, buf, size);
	case MW_KIND_BOOL:
		return cell->truth ? "yes" : "no";
	}
	return "";
}

const char *mw_cell_human(const struct mw_column *column, const struct mw_cell *cell, char *buf,
			  size_t size)
{
	if (cell->total)
		return "(total)";
	if (cell_is_missing(column, cell))
		return column->flags & MW_COLUMN_MEASURED && cell->status == MEMWATCH_STATUS_ERROR
			       ? "!"
			       : "-";
	if (!(column->flags & MW_COLUMN_MEASURED) || cell->status == MEMWATCH_STATUS_OK)
		return format_value(column, cell, buf, size);
	/* "~": estimated, multiplexed or stale; "!": some readings failed. */
	buf[0] = cell->status == MEMWATCH_STATUS_ERROR ? '!' : '~';
	format_value(column, cell, buf + 1, size - 1);
	return buf;
}

static struct libscols_table *create_scols_table(const struct mw_table *table)
{
	struct libscols_table *scols = scols_new_table();
	struct winsize ws;

	if (!scols)
		return NULL;
	if (isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) && ws.ws_col)
		scols_table_set_termwidth(scols, ws.ws_col);
	else
		scols_table_enable_nolinesep(scols, 0);
	scols_table_enable_noencoding(scols, 1);
	for (size_t i = 0; i < table->nr_columns; i++) {
		const struct mw_column *c = &table->columns[i];
		bool left = c->kind == MW_KIND_TEXT || c->flags & MW_COLUMN_LEFT;
		int flags = left ? 0 : SCOLS_FL_RIGHT;

		if (c->flags & MW_COLUMN_HIDDEN)
			continue;
		if (c->flags & MW_COLUMN_LAST)
			flags |= SCOLS_FL_TRUNC;
		if (!scols_table_new_column(scols, c->title, 0, flags)) {
			scols_unref_table(scols);
			return NULL;
		}
	}
	return scols;
}

static int fill_scols_line(const struct mw_table *table, const struct mw_cell *row,
			   struct libscols_line *line)
{
	size_t shown = 0;
	char buf[4096];
	int err = 0;

	for (size_t i = 0; i < table->nr_columns && !err; i++) {
		const struct mw_column *c = &table->columns[i];

		if (!(c->flags & MW_COLUMN_HIDDEN))
			err = scols_line_set_data(line, shown++,
						  mw_cell_human(c, &row[i], buf, sizeof(buf)));
	}
	return err;
}

int mw_table_print(const struct mw_table *table)
{
	struct libscols_table *scols = create_scols_table(table);
	int err = scols ? 0 : -ENOMEM;

	for (size_t i = 0; i < table->nr_rows && !err; i++) {
		struct libscols_line *line = scols_table_new_line(scols, NULL);

		err = line ? fill_scols_line(table, table->cells + i * table->nr_columns, line)
			   : -ENOMEM;
	}
	if (!err)
		err = scols_print_table(scols);
	scols_unref_table(scols);
	if (err)
		return mw_error(MW_EXIT_FAILED, "table", "%s", strerror(-err));
	return MW_EXIT_DONE;
}

void mw_row_print(const struct mw_column *columns, size_t nr, const struct mw_cell *cells)
{
	char buf[4096];

	for (size_t i = 0; i < nr; i++)
		if (!(columns[i].flags & MW_COLUMN_HIDDEN))
			printf("%-26s %s\n", columns[i].title,
			       mw_cell_human(&columns[i], &cells[i], buf, sizeof(buf)));
}

static void write_value_json(const struct mw_column *c, const struct mw_cell *cell, const char *key,
			     struct mw_json *json)
{
	if (cell_is_missing(c, cell)) {
		mw_json_null(json, key);
		return;
	}
	switch (c->kind) {
	case MW_KIND_TEXT:
		mw_json_string(json, key, cell->text);
		break;
	case MW_KIND_UINT:
		mw_json_uint(json, key, cell->number);
		break;
	case MW_KIND_DOUBLE:
		mw_json_double(json, key, cell->real);
		break;
	case MW_KIND_BOOL:
		mw_json_bool(json, key, cell->truth);
		break;
	case MW_KIND_LIST:
		mw_json_array(json, key);
		for (size_t i = 0; i < cell->list.count; i++)
			mw_json_uint(json, NULL, cell->list.value[i]);
		mw_json_array_end(json);
		break;
	}
}

void mw_members_json(const struct mw_column *columns, size_t nr, const struct mw_cell *cells,
		     struct mw_json *json)
{
	for (size_t i = 0; i < nr; i++) {
		const struct mw_column *c = &columns[i];

		if (!c->key)
			continue;
		if (!(c->flags & MW_COLUMN_MEASURED)) {
			write_value_json(c, &cells[i], c->key, json);
			continue;
		}
		mw_json_row(json, c->key);
		write_value_json(c, &cells[i], "value", json);
		mw_json_string(json, "status", memwatch_status_name(cells[i].status));
		mw_json_object_end(json);
	}
}

void mw_row_json(const struct mw_column *columns, size_t nr, const struct mw_cell *cells,
		 struct mw_json *json)
{
	mw_json_row(json, NULL);
	mw_members_json(columns, nr, cells, json);
	mw_json_object_end(json);
}

void mw_table_json(const struct mw_table *table, struct mw_json *json, const char *key)
{
	mw_json_array(json, key);
	for (size_t i = 0; i < table->nr_rows; i++)
		mw_row_json(table->columns, table->nr_columns, table->cells + i * table->nr_columns,
			    json);
	mw_json_array_end(json);
}

/*
 * Whether a spreadsheet would take the text for a formula: after spaces, it begins with one
 * of these characters, or with their full-width forms (U+FF0B, FF0D, FF1D, FF20). A text
 * that begins with an apostrophe gets another one, so that the first can always be removed.
 */
static bool looks_like_formula(const char *text)
{
	static const char *const wide[] = { "\357\274\213", "\357\274\215", "\357\274\235",
					    "\357\274\240" };

	text += strspn(text, " ");
	for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++)
		if (!strncmp(text, wide[i], strlen(wide[i])))
			return true;
	return *text && strchr("=+-@'", *text);
}

void mw_text_csv(const char *text, FILE *out)
{
	bool quote = strpbrk(text, ",\"");

	if (quote)
		fputc('"', out);
	if (looks_like_formula(text))
		fputc('\'', out);
	mw_escape_write(out, text, MW_ESCAPE_CSV);
	if (quote)
		fputc('"', out);
}

void mw_head_csv(const struct mw_column *columns, size_t nr, FILE *out)
{
	const char *separator = "";

	for (size_t i = 0; i < nr; i++) {
		if (!columns[i].key)
			continue;
		fprintf(out, "%s%s", separator, columns[i].key);
		separator = ",";
		if (columns[i].flags & MW_COLUMN_MEASURED)
			fprintf(out, ",%s_status", columns[i].key);
	}
	fputc('\n', out);
}

static void write_list_csv(const struct mw_list *list, FILE *out)
{
	for (size_t i = 0; i < list->count; i++)
		fprintf(out, "%s%" PRIu32, i ? " " : "", list->value[i]);
}

static void write_value_csv(const struct mw_column *c, const struct mw_cell *cell, FILE *out)
{
	if (cell_is_missing(c, cell))
		return;
	switch (c->kind) {
	case MW_KIND_TEXT:
		mw_text_csv(cell->text, out);
		break;
	case MW_KIND_UINT:
		fprintf(out, "%" PRIu64, cell->number);
		break;
	case MW_KIND_DOUBLE:
		fprintf(out, "%.10g", cell->real);
		break;
	case MW_KIND_BOOL:
		fputs(cell->truth ? "true" : "false", out);
		break;
	case MW_KIND_LIST:
		write_list_csv(&cell->list, out);
		break;
	}
}

void mw_cell_csv(const struct mw_column *column, const struct mw_cell *cell, FILE *out)
{
	write_value_csv(column, cell, out);
	if (column->flags & MW_COLUMN_MEASURED)
		fprintf(out, ",%s", memwatch_status_name(cell->status));
}

void mw_row_csv(const struct mw_column *columns, size_t nr, const struct mw_cell *cells, FILE *out)
{
	const char *separator = "";

	for (size_t i = 0; i < nr; i++) {
		if (!columns[i].key)
			continue;
		fputs(separator, out);
		separator = ",";
		mw_cell_csv(&columns[i], &cells[i], out);
	}
	fputc('\n', out);
}

void mw_table_csv(const struct mw_table *table, FILE *out)
{
	mw_head_csv(table->columns, table->nr_columns, out);
	for (size_t i = 0; i < table->nr_rows; i++)
		mw_row_csv(table->columns, table->nr_columns, table->cells + i * table->nr_columns,
			   out);
}
