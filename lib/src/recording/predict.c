// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The predictors. docs/recording-format.md defines each of them.
 */
#include "recording/predict.h"

#define NONE UINT32_MAX /* there is no such row */

static const struct memwatch_record_header *header_at(const struct mw_class_view *view,
						      uint32_t row)
{
	return (const struct memwatch_record_header *)(const void *)mw_view_row(view, row);
}

static uint64_t value_at(const struct mw_class_view *view, const struct mw_column *column,
			 uint32_t row)
{
	return mw_number_load(mw_view_row(view, row) + column->offset, column->width);
}

void mw_predict_class(const struct mw_class_view *view)
{
	struct mw_columns *columns = view->columns;

	for (uint32_t row = 0; row < view->class->rows; row++) {
		uint32_t *slot = &columns->slot[header_at(view, row)->cpu % MW_CONTEXTS];

		columns->last_cpu[row] = *slot;
		*slot = row;
	}
	/* A block may have many classes with few rows: only what was used is emptied. */
	for (uint32_t row = 0; row < view->class->rows; row++)
		columns->slot[header_at(view, row)->cpu % MW_CONTEXTS] = NONE;
	columns->key = -1;
}

static void find_last_key(const struct mw_class_view *view, unsigned int key)
{
	struct mw_columns *columns = view->columns;
	const struct mw_column *column = &view->class->column[key];

	if (columns->key == (int)key)
		return;
	for (uint32_t row = 0; row < view->class->rows; row++) {
		uint32_t *slot = &columns->slot[value_at(view, column, row) % MW_CONTEXTS];

		columns->last_key[row] = *slot;
		*slot = row;
	}
	for (uint32_t row = 0; row < view->class->rows; row++)
		columns->slot[value_at(view, column, row) % MW_CONTEXTS] = NONE;
	columns->key = (int)key;
}

/* The last time on the CPU of each record that is not its own: where it began. */
void mw_predict_block(struct mw_columns *columns, const uint8_t *base)
{
	memset(columns->slot, 0xff, sizeof(columns->slot));
	memset(columns->now, 0, sizeof(columns->now));
	memset(columns->then, 0, sizeof(columns->then));
	for (uint32_t i = 0; i < columns->rows; i++) {
		const struct memwatch_record_header *header = (const void *)(base +
									     columns->offset[i]);
		unsigned int slot = header->cpu % MW_CONTEXTS;

		if (header->time_ns != columns->now[slot]) {
			columns->then[slot] = columns->now[slot];
			columns->now[slot] = header->time_ns;
		}
		columns->prior[i] = columns->then[slot] ? columns->then[slot] : header->time_ns;
	}
}

static uint64_t predict_rest(const struct mw_class_view *view, const struct mw_column *column,
			     uint32_t row)
{
	struct mw_columns *columns = view->columns;
	uint32_t last = columns->last_cpu[row];
	uint64_t time = header_at(view, row)->time_ns;

	if (last != NONE && header_at(view, last)->time_ns == time)
		columns->rest[row] = columns->rest[last] - value_at(view, column, last);
	else
		columns->rest[row] = time - value_at(view, &view->class->column[column->a], row);
	return columns->rest[row];
}

static uint64_t predict_scale(const struct mw_class_view *view, const struct mw_column *column,
			      uint32_t row)
{
	const struct mw_column *base = &view->class->column[column->a];
	uint32_t last = view->columns->last_key[row];
	uint64_t before, value;

	if (last == NONE)
		return 0;
	value = value_at(view, column, last);
	before = value_at(view, base, last);
	if (!before)
		return value;
	return (uint64_t)((unsigned __int128)value * value_at(view, base, row) / before);
}

static uint64_t predict_value(const struct mw_class_view *view, const struct mw_column *column,
			      uint32_t row)
{
	const struct mw_columns *columns = view->columns;
	uint32_t last;

	switch (column->predictor) {
	case MW_PREDICT_LAST:
		return row ? value_at(view, column, row - 1) : 0;
	case MW_PREDICT_CPU:
		last = columns->last_cpu[row];
		return last == NONE ? 0 : value_at(view, column, last);
	case MW_PREDICT_CPU_LINEAR:
		last = columns->last_cpu[row];
		if (last == NONE)
			return 0;
		row = columns->last_cpu[last];
		return 2 * value_at(view, column, last) -
		       value_at(view, column, row == NONE ? last : row);
	case MW_PREDICT_KEY:
		last = columns->last_key[row];
		return last == NONE ? 0 : value_at(view, column, last);
	case MW_PREDICT_TIME:
		return header_at(view, row)->time_ns;
	case MW_PREDICT_BEGIN:
		return columns->prior[columns->order[view->class->first + row]];
	case MW_PREDICT_REST:
		return predict_rest(view, column, row);
	case MW_PREDICT_SCALE:
		return predict_scale(view, column, row);
	default:
		return 0;
	}
}

/* Finds the rows that the predictor of a column refers to. */
static void prepare_column(const struct mw_class_view *view, const struct mw_column *column)
{
	if (column->predictor == MW_PREDICT_KEY)
		find_last_key(view, column->a);
	if (column->predictor == MW_PREDICT_SCALE)
		find_last_key(view, column->b);
}

void mw_predict_encode(const struct mw_class_view *view, const struct mw_column *column)
{
	uint64_t *residual = view->columns->residual;

	prepare_column(view, column);
	for (uint32_t row = 0; row < view->class->rows; row++) {
		uint64_t value = value_at(view, column, row);

		if (column->predictor != MW_PREDICT_VALUE)
			value = mw_fold(value - predict_value(view, column, row), column->width);
		residual[row] = value;
	}
}

void mw_predict_decode(const struct mw_class_view *view, const struct mw_column *column)
{
	const uint64_t *residual = view->columns->residual;

	prepare_column(view, column);
	for (uint32_t row = 0; row < view->class->rows; row++) {
		uint64_t value = residual[row];

		if (column->predictor != MW_PREDICT_VALUE)
			value = predict_value(view, column, row) + mw_unfold(value);
		mw_number_store(mw_view_row(view, row) + column->offset, column->width, value);
	}
}
