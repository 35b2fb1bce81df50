// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The encoder of a block: class table, classes of the records, headers, columns. A column of
 * numbers is stored as planes, see planes.h.
 */
#include "recording/columns.h"

#include "recording/format.h"
#include "recording/planes.h"
#include "recording/predict.h"

size_t mw_columns_bound(size_t bytes)
{
	/* A column needs at most the bytes of its values and the masks. */
	return bytes + 1 +
	       (size_t)MW_CLASSES_MAX *
		       (MW_CLASS_BYTES + MW_COLUMNS_MAX * (MW_COLUMN_BYTES + MW_MASK_BYTES)) +
	       3 * MW_MASK_BYTES;
}

static void encode_column(const struct mw_class_view *view, unsigned int number, uint8_t **out)
{
	const struct mw_column *column = &view->class->column[number];
	uint32_t rows = view->class->rows;
	uint64_t all;

	if (column->predictor == MW_PREDICT_RAW) {
		for (uint32_t row = 1; row <= rows; row++, *out += column->width)
			memcpy(*out, mw_view_row(view, row) + column->offset, column->width);
		return;
	}
	all = mw_predict_encode(view, number);
	mw_planes_put(view->columns, rows, all, out);
}

/* The fields of the headers of all records are predicted to be those of the last record. */

/* One field of all headers, which the index has as an array. */
static inline __attribute__((always_inline)) void
encode_field(struct mw_columns *columns, const void *values, unsigned int width, uint8_t **out)
{
	uint64_t *residual = columns->residual, last = 0, all = 0;
	const uint8_t *from = values;
	uint32_t rows = columns->rows;

#pragma GCC unroll 4
	for (size_t i = 0; i < rows; i++) {
		uint64_t value = mw_number_load(from + i * width, width);

		all |= residual[i] = mw_fold(value - last, width);
		last = value;
	}
	mw_planes_put(columns, rows, all, out);
}

static void encode_flags(struct mw_columns *columns, const uint8_t *records, uint8_t **out)
{
	uint64_t last = 0, all = 0;

	for (uint32_t i = 0; i < columns->rows && columns->flags; i++) {
		const struct memwatch_record_header *header = (const void *)(records +
									     columns->offset[i]);

		all |= columns->residual[i] = mw_fold(header->flags - last, 2);
		last = header->flags;
	}
	mw_planes_put(columns, columns->rows, all, out);
}

static void encode_class_table(const struct mw_columns *columns, uint8_t **out)
{
	uint8_t *to = *out;

	*to++ = (uint8_t)columns->classes;
	for (unsigned int i = 0; i < columns->classes; i++) {
		const struct mw_class *class = &columns->class[i];

		mw_put16(to, class->type);
		mw_put16(to + 2, class->size);
		mw_put32(to + 4, class->rows);
		mw_put16(to + 8, (uint16_t) class->count);
		to += MW_CLASS_BYTES;
		for (unsigned int j = 0; j < class->count; j++, to += MW_COLUMN_BYTES) {
			to[0] = class->column[j].predictor;
			to[1] = class->column[j].a;
			to[2] = class->column[j].b;
			to[3] = 0;
			mw_put16(to + 4, class->column[j].width);
		}
	}
	*out = to;
}

size_t mw_columns_encode(struct mw_columns *columns, const uint8_t *records, uint8_t *to)
{
	uint8_t *out = to;

	encode_class_table(columns, &out);
	memcpy(out, columns->class_of, columns->rows);
	out += columns->rows;
	encode_field(columns, columns->time, sizeof(*columns->time), &out);
	encode_field(columns, columns->cpu, sizeof(*columns->cpu), &out);
	encode_flags(columns, records, &out);

	mw_columns_sort(columns);
	mw_predict_block(columns);
	for (unsigned int i = 0; i < columns->classes; i++) {
		struct mw_class_view view;

		mw_predict_class(columns, i, (uint8_t *)(uintptr_t)records, &view);
		for (unsigned int j = 0; j < view.class->count; j++)
			encode_column(&view, j, &out);
	}
	return (size_t)(out - to);
}
