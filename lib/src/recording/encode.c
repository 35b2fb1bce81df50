// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The encoder of a block: class table, classes of the records, headers, columns. A column
 * of numbers is stored as planes. The first plane holds the lowest byte of each residual,
 * the second plane the second byte of each, and so on. A mask says which planes follow; those
 * that are all zero are left out. Data in this order compresses better.
 */
#include "recording/columns.h"

#include "recording/format.h"
#include "recording/predict.h"

size_t mw_columns_bound(size_t bytes)
{
	/* A column needs at most the bytes of its values and one byte for the mask. */
	return bytes + 1 +
	       (size_t)MW_CLASSES_MAX * (MW_CLASS_BYTES + MW_COLUMNS_MAX * (MW_COLUMN_BYTES + 1)) +
	       3;
}

/* Writes a mask and columns.residual as planes, without the planes that are all zero. */
static uint8_t *put_planes(const struct mw_columns *columns, uint32_t rows, unsigned int width,
			   uint8_t *to)
{
	uint8_t *mask = to++;
	uint64_t all = 0;

	*mask = 0;
	for (uint32_t row = 0; row < rows; row++)
		all |= columns->residual[row];
	for (unsigned int plane = 0; plane < width; plane++) {
		if (!(all >> plane * 8 & 0xff))
			continue;
		*mask |= (uint8_t)(1U << plane);
		for (uint32_t row = 0; row < rows; row++)
			*to++ = (uint8_t)(columns->residual[row] >> plane * 8);
	}
	return to;
}

static uint8_t *encode_column(const struct mw_class_view *view, const struct mw_column *column,
			      uint8_t *to)
{
	uint32_t rows = view->class->rows;

	if (column->predictor == MW_PREDICT_RAW) {
		for (uint32_t row = 0; row < rows; row++, to += column->width)
			memcpy(to, mw_view_row(view, row) + column->offset, column->width);
		return to;
	}
	mw_predict_encode(view, column);
	return put_planes(view->columns, rows, column->width, to);
}

/* Encodes a field of the headers of all records, predicted to be that of the last record. */
static uint8_t *encode_header_field(struct mw_columns *columns, const uint8_t *records,
				    size_t offset, unsigned int width, uint8_t *to)
{
	uint64_t last = 0;

	for (uint32_t i = 0; i < columns->rows; i++) {
		uint64_t value = mw_number_load(records + columns->offset[i] + offset, width);

		columns->residual[i] = mw_fold(value - last, width);
		last = value;
	}
	return put_planes(columns, columns->rows, width, to);
}

static uint8_t *encode_class_table(const struct mw_columns *columns, uint8_t *to)
{
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
	return to;
}

size_t mw_columns_encode(struct mw_columns *columns, const uint8_t *records, uint8_t *to)
{
	uint8_t *start = to;

	to = encode_class_table(columns, to);
	memcpy(to, columns->class_of, columns->rows);
	to += columns->rows;
	to = encode_header_field(columns, records, offsetof(struct memwatch_record_header, time_ns),
				 8, to);
	to = encode_header_field(columns, records, offsetof(struct memwatch_record_header, cpu), 2,
				 to);
	to = encode_header_field(columns, records, offsetof(struct memwatch_record_header, flags),
				 2, to);

	mw_columns_sort(columns);
	mw_predict_block(columns, records);
	for (unsigned int i = 0; i < columns->classes; i++) {
		struct mw_class_view view = { columns, &columns->class[i],
					      (uint8_t *)(uintptr_t)records };

		mw_predict_class(&view);
		for (unsigned int j = 0; j < view.class->count; j++)
			to = encode_column(&view, &view.class->column[j], to);
	}
	return (size_t)(to - start);
}
