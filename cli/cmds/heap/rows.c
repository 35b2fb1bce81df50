// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The rows of a view as a table for people and as CSV.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmds/heap/rows.h"
#include "common/message.h"
#include "output/table.h"
#include "common/pool.h"

/* Calls of a tree below this share of the total are left out of the table. */
#define TREE_SHARE 0.005

enum column {
	COLUMN_FLAT,
	COLUMN_FLAT_SHARE,
	COLUMN_SUM_SHARE,
	COLUMN_CUM,
	COLUMN_CUM_SHARE,
	COLUMN_ERROR,
	COLUMN_OTHER,
	COLUMN_AGE,
	COLUMN_AGE_P90,
	COLUMN_LIFETIME,
	COLUMN_NAME,
	COLUMN_FILE,
	COLUMN_LINE,
	COLUMN_MODULE,
	COLUMNS,
};

static const struct mw_column row_columns[COLUMNS] = {
	[COLUMN_FLAT] = { "flat", "FLAT", MW_KIND_DOUBLE, MW_UNIT_BYTES, 0 },
	[COLUMN_FLAT_SHARE] = { "flat_percent", "FLAT%", MW_KIND_DOUBLE, MW_UNIT_PERCENT, 0 },
	[COLUMN_SUM_SHARE] = { NULL, "SUM%", MW_KIND_DOUBLE, MW_UNIT_PERCENT, 0 },
	[COLUMN_CUM] = { "cum", "CUM", MW_KIND_DOUBLE, MW_UNIT_BYTES, 0 },
	[COLUMN_CUM_SHARE] = { "cum_percent", "CUM%", MW_KIND_DOUBLE, MW_UNIT_PERCENT, 0 },
	[COLUMN_ERROR] = { "error_percent", "ERROR", MW_KIND_DOUBLE, MW_UNIT_PERCENT, 0 },
	[COLUMN_OTHER] = { "flat_other", "OBJECTS", MW_KIND_DOUBLE, MW_UNIT_COUNT, 0 },
	[COLUMN_AGE] = { "age_median_ns", "AGE", MW_KIND_DOUBLE, MW_UNIT_NS, 0 },
	[COLUMN_AGE_P90] = { "age_p90_ns", "AGE-P90", MW_KIND_DOUBLE, MW_UNIT_NS, 0 },
	[COLUMN_LIFETIME] = { "lifetime_median_ns", "LIFETIME", MW_KIND_DOUBLE, MW_UNIT_NS, 0 },
	[COLUMN_NAME] = { "name", "FUNCTION", MW_KIND_TEXT, MW_UNIT_NONE, 0 },
	[COLUMN_FILE] = { "file", "FILE", MW_KIND_TEXT, MW_UNIT_NONE, MW_COLUMN_HIDDEN },
	[COLUMN_LINE] = { "line", "LINE", MW_KIND_UINT, MW_UNIT_NONE, MW_COLUMN_HIDDEN },
	[COLUMN_MODULE] = { "module", "MODULE", MW_KIND_TEXT, MW_UNIT_NONE, MW_COLUMN_HIDDEN },
};

/* The metric that is shown beside the main one: objects of bytes, bytes of objects. */
static uint32_t other_metric(uint32_t metric)
{
	return metric ^ 1;
}

static void choose_columns(const struct heap_rows *rows, struct mw_column *columns, bool ages,
			   bool lifetimes)
{
	bool bytes = heap_metric_is_bytes(rows->metric);
	enum mw_unit unit = bytes ? MW_UNIT_BYTES : MW_UNIT_COUNT;
	unsigned int sign = rows->is_diff ? MW_COLUMN_CHANGE : 0;

	memcpy(columns, row_columns, sizeof(row_columns));
	columns[COLUMN_FLAT].unit = columns[COLUMN_CUM].unit = unit;
	columns[COLUMN_FLAT].flags |= sign;
	columns[COLUMN_CUM].flags |= sign;
	columns[COLUMN_OTHER].flags |= sign;
	columns[COLUMN_OTHER].unit = bytes ? MW_UNIT_COUNT : MW_UNIT_BYTES;
	columns[COLUMN_OTHER].title = bytes ? "OBJECTS" : "BYTES";
	if (!(rows->metrics & 1U << other_metric(rows->metric)))
		columns[COLUMN_OTHER].flags |= MW_COLUMN_HIDDEN;
	if (!ages) {
		columns[COLUMN_AGE].flags |= MW_COLUMN_HIDDEN;
		columns[COLUMN_AGE_P90].flags |= MW_COLUMN_HIDDEN;
	}
	if (!lifetimes)
		columns[COLUMN_LIFETIME].flags |= MW_COLUMN_HIDDEN;
	if (rows->by == MEMWATCH_HEAP_BY_TREE) {
		columns[COLUMN_SUM_SHARE].flags |= MW_COLUMN_HIDDEN;
		columns[COLUMN_ERROR].flags |= MW_COLUMN_HIDDEN;
	}
	if (rows->by == MEMWATCH_HEAP_BY_MODULE)
		columns[COLUMN_NAME].title = "MODULE";
	if (rows->by == MEMWATCH_HEAP_BY_LINE)
		columns[COLUMN_NAME].title = "LINE";
}

static struct mw_cell real_cell(double value)
{
	return isfinite(value) ? (struct mw_cell){ .real = value }
			       : (struct mw_cell){ .missing = true };
}

/* "    function file.c:12"; the depth of a call in a tree is shown by blanks. */
static char *row_label(const struct heap_rows *rows, const struct memwatch_heap_row *row,
		       struct mw_pool *pool)
{
	unsigned int blanks = row->depth < 100 ? row->depth : 100;
	char buf[MW_FRAME_NAME_SIZE], line[16] = "", *name = NULL, *label = NULL;
	bool by_line = rows->by == MEMWATCH_HEAP_BY_LINE && row->frame->line;
	size_t size;

	if (by_line) {
		snprintf(line, sizeof(line), ":%u", row->frame->line);
		name = strdup(mw_frame_name(row->frame, buf, sizeof(buf)));
	} else if (rows->by == MEMWATCH_HEAP_BY_MODULE && *row->frame->module) {
		/* The whole path, because libraries of one name may lie in several folders. */
		name = strdup(row->frame->module);
	} else {
		name = mw_frame_label(row->frame);
	}
	if (!name)
		return NULL;
	size = blanks + strlen(name) + strlen(row->frame->file) + sizeof(line) + 2;
	label = mw_pool_alloc(pool, size);
	if (label)
		snprintf(label, size, "%*s%s%s%s%s", (int)blanks, "", name, by_line ? " " : "",
			 by_line ? row->frame->file : "", line);
	free(name);
	return label;
}

static int fill_cells(const struct heap_rows *rows, const struct memwatch_heap_row *row,
		      double total, double sum, struct mw_pool *pool, struct mw_cell *cells)
{
	const struct memwatch_heap_estimate *flat = &row->flat[rows->metric];
	const struct memwatch_heap_estimate *cum = &row->cum[rows->metric];
	char *label = row_label(rows, row, pool), *file = mw_pool_copy(pool, row->frame->file);
	char *module = mw_pool_copy(pool, row->frame->module);

	if (!label || !file || !module)
		return -ENOMEM;
	cells[COLUMN_FLAT] = real_cell(flat->value);
	cells[COLUMN_FLAT_SHARE] = real_cell(100 * flat->value / total);
	cells[COLUMN_SUM_SHARE] = real_cell(100 * sum / total);
	cells[COLUMN_CUM] = real_cell(cum->value);
	cells[COLUMN_CUM_SHARE] = real_cell(100 * cum->value / total);
	cells[COLUMN_ERROR] = real_cell(50 * (flat->high - flat->low) / fabs(flat->value));
	cells[COLUMN_OTHER] = real_cell(row->flat[other_metric(rows->metric)].value);
	cells[COLUMN_AGE] = real_cell(row->age_seconds[0] * 1e9);
	cells[COLUMN_AGE_P90] = real_cell(row->age_seconds[1] * 1e9);
	cells[COLUMN_LIFETIME] = real_cell(row->lifetime_seconds[0] * 1e9);
	cells[COLUMN_NAME] = (struct mw_cell){ .text = label };
	cells[COLUMN_FILE] = (struct mw_cell){ .text = file, .missing = !*file };
	cells[COLUMN_LINE] = (struct mw_cell){ .number = row->frame->line,
					       .missing = !row->frame->line };
	cells[COLUMN_MODULE] = (struct mw_cell){ .text = module, .missing = !*module };
	return 0;
}

/* A row that only another metric has is not shown. */
static bool is_shown(const struct heap_rows *rows, const struct memwatch_heap_row *row,
		     double total)
{
	double cum = fabs(row->cum[rows->metric].value);

	if (rows->by == MEMWATCH_HEAP_BY_TREE && rows->cli->format == MW_FORMAT_TABLE)
		return cum > TREE_SHARE * fabs(total);
	return cum > 0 || (rows->is_diff && row->base_cum[rows->metric].value > 0);
}

static int fill_table(const struct heap_rows *rows, struct mw_table *table, struct mw_pool *pool,
		      uint64_t *hidden)
{
	MEMWATCH_OPTS(memwatch_heap_row, total);
	MEMWATCH_OPTS(memwatch_heap_row, row);
	double sum = 0, whole;
	int err = memwatch_heap_view_get_total(rows->view, &total);

	/* The shares of a difference are shares of the base. */
	whole = rows->is_diff ? total.base_flat[rows->metric].value
			      : total.flat[rows->metric].value;
	for (uint64_t i = 0; !err && memwatch_heap_view_get_row(rows->view, i, &row) == 1; i++) {
		struct mw_cell *cells;

		sum += row.flat[rows->metric].value;
		if (!is_shown(rows, &row, whole))
			continue;
		if (rows->top && table->nr_rows >= rows->top) {
			(*hidden)++;
			continue;
		}
		cells = mw_table_row(table);
		err = cells ? fill_cells(rows, &row, whole, sum, pool, cells) : -ENOMEM;
	}
	return err;
}

int heap_rows_print(const struct heap_rows *rows)
{
	MEMWATCH_OPTS(memwatch_heap_row, total);
	struct mw_column columns[COLUMNS];
	struct mw_pool pool = { 0 };
	struct mw_table table;
	uint64_t hidden = 0;
	int rc;

	memwatch_heap_view_get_total(rows->view, &total);
	choose_columns(rows, columns, !isnan(total.age_seconds[0]),
		       !isnan(total.lifetime_seconds[0]));
	mw_table_init(&table, columns, COLUMNS);
	rc = fill_table(rows, &table, &pool, &hidden);
	if (rc)
		rc = mw_error_errno(rc, "heap report");
	else if (rows->cli->format == MW_FORMAT_CSV)
		mw_table_csv(&table, stdout);
	else
		rc = mw_table_print(&table);
	if (!rc && hidden && rows->cli->format == MW_FORMAT_TABLE)
		printf("%" PRIu64 " more rows are not shown (--top %" PRIu64 ").\n", hidden,
		       rows->top);
	mw_table_uninit(&table);
	mw_pool_free(&pool);
	return rc;
}
