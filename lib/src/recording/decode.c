// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The decoder of a block. Its input may be damaged or hostile: every length and number is
 * checked before it is used.
 */
#include "recording/columns.h"

#include <errno.h>
#include <string.h>

#include "recording/format.h"
#include "recording/planes.h"
#include "recording/predict.h"

struct input {
	const uint8_t *at;
	size_t left;
};

/* Consumes the next @len bytes, or returns NULL if there are fewer. */
static const uint8_t *take_bytes(struct input *input, size_t len)
{
	const uint8_t *at = input->at;

	if (len > input->left)
		return NULL;
	input->at += len;
	input->left -= len;
	return at;
}

/* Adds a plane that begins at bit @shift to the residuals of all rows. */
static int get_dense(uint64_t *residual, uint32_t rows, unsigned int shift, struct input *input)
{
	const uint8_t *bytes = take_bytes(input, rows);

	if (!bytes)
		return -EBADMSG;
	for (uint32_t row = 0; row < rows; row++)
		residual[row] |= (uint64_t)bytes[row] << shift;
	return 0;
}

/* The same for a sparse plane. Its bitmap has no bits behind the last row. */
static int get_sparse(uint64_t *residual, uint32_t rows, unsigned int shift, struct input *input)
{
	uint32_t size = mw_bitmap_bytes(rows);
	const uint8_t *bitmap = take_bytes(input, size), *byte;

	if (!bitmap || (rows % 8 && bitmap[size - 1] >> rows % 8))
		return -EBADMSG;
	for (uint32_t i = 0; i < size; i++) {
		for (unsigned int bits = bitmap[i]; bits; bits &= bits - 1) {
			byte = take_bytes(input, 1);
			if (!byte)
				return -EBADMSG;
			residual[i * 8 + (unsigned int)__builtin_ctz(bits)] |= (uint64_t)*byte
									       << shift;
		}
	}
	return 0;
}

/* Reads planes into columns.residual. */
static int get_planes(struct mw_columns *columns, uint32_t rows, unsigned int width,
		      struct input *input)
{
	const uint8_t *mask = take_bytes(input, columns->dense ? 1 : MW_MASK_BYTES);
	unsigned int sparse;
	int err = 0;

	if (!mask)
		return -EBADMSG;
	sparse = columns->dense ? 0 : mask[1];
	if (*mask >> width || sparse & ~*mask)
		return -EBADMSG;
	memset(columns->residual, 0, rows * sizeof(*columns->residual));
	for (unsigned int plane = 0; plane < width && !err; plane++) {
		if (!(*mask >> plane & 1))
			continue;
		err = (sparse >> plane & 1 ? get_sparse : get_dense)(columns->residual, rows,
								     plane * 8, input);
	}
	return err;
}

static int decode_column(const struct mw_class_view *view, unsigned int number, struct input *input)
{
	const struct mw_column *column = &view->class->column[number];
	uint32_t rows = view->class->rows;
	int err;

	if (column->predictor == MW_PREDICT_RAW) {
		for (uint32_t row = 1; row <= rows; row++) {
			const uint8_t *bytes = take_bytes(input, column->width);

			if (!bytes)
				return -EBADMSG;
			memcpy(mw_view_row(view, row) + column->offset, bytes, column->width);
		}
		return 0;
	}
	err = get_planes(view->columns, rows, column->width, input);
	if (err)
		return err;
	mw_predict_decode(view, number);
	return 0;
}

static int decode_header_field(struct mw_columns *columns, uint8_t *records, size_t offset,
			       unsigned int width, struct input *input)
{
	uint64_t value = 0;
	int err = get_planes(columns, columns->rows, width, input);

	if (err)
		return err;
	for (uint32_t i = 0; i < columns->rows; i++) {
		value += mw_unfold(columns->residual[i]);
		mw_number_store(records + columns->offset[i] + offset, width, value);
	}
	return 0;
}

/* Whether the predictor of a column exists and refers only to columns before it. */
static bool column_valid(const struct mw_class *class, unsigned int number)
{
	const struct mw_column *column = &class->column[number];
	unsigned int predictor = column->predictor;
	bool needs_a = predictor == MW_PREDICT_KEY || predictor == MW_PREDICT_REST ||
		       predictor == MW_PREDICT_SCALE;

	if (predictor >= MW_PREDICT_MAX || !column->width)
		return false;
	if (predictor != MW_PREDICT_RAW && column->width != 1 && column->width != 2 &&
	    column->width != 4 && column->width != 8)
		return false;
	if (needs_a &&
	    (column->a >= number || class->column[column->a].predictor == MW_PREDICT_RAW))
		return false;
	return predictor != MW_PREDICT_SCALE ||
	       (column->b < number && class->column[column->b].predictor != MW_PREDICT_RAW);
}

static int decode_class_columns(struct mw_class *class, struct input *input)
{
	unsigned int offset = MW_RECORD_HEADER_BYTES;

	for (unsigned int i = 0; i < class->count; i++) {
		struct mw_column *column = &class->column[i];
		const uint8_t *from = take_bytes(input, MW_COLUMN_BYTES);

		if (!from)
			return -EBADMSG;
		column->predictor = from[0];
		column->a = from[1];
		column->b = from[2];
		column->width = mw_get16(from + 4);
		column->offset = (uint16_t)offset;
		offset += column->width;
		if (offset > class->size || !column_valid(class, i))
			return -EBADMSG;
	}
	return offset == class->size ? 0 : -EBADMSG;
}

static int decode_class_table(struct mw_columns *columns, struct input *input)
{
	const uint8_t *from = take_bytes(input, 1);
	int err = 0;

	if (!from || *from > MW_CLASSES_MAX)
		return -EBADMSG;
	columns->classes = *from;
	for (unsigned int i = 0; i < columns->classes && !err; i++) {
		struct mw_class *class = &columns->class[i];

		from = take_bytes(input, MW_CLASS_BYTES);
		if (!from)
			return -EBADMSG;
		class->type = mw_get16(from);
		class->size = mw_get16(from + 2);
		class->rows = mw_get32(from + 4);
		class->count = mw_get16(from + 8);
		if (!mw_record_readable(class->type, class->size) || class->count > MW_COLUMNS_MAX)
			return -EBADMSG;
		err = decode_class_columns(class, input);
	}
	return err;
}

/* Reads the class of each record, which determines where it lies; writes type and size. */
static int decode_classes(struct mw_columns *columns, struct input *input, uint8_t *records,
			  uint32_t bytes)
{
	const uint8_t *class_of = take_bytes(input, columns->rows);
	uint32_t count[MW_CLASSES_MAX] = { 0 };

	if (!class_of)
		return -EBADMSG;
	for (uint32_t i = 0; i < columns->rows; i++) {
		struct memwatch_record_header header = { 0 };
		const struct mw_class *class;

		if (class_of[i] >= columns->classes)
			return -EBADMSG;
		class = &columns->class[class_of[i]];
		if (class->size > bytes - columns->bytes)
			return -EBADMSG;
		header.type = class->type;
		header.size = class->size;
		memcpy(records + columns->bytes, &header, sizeof(header));
		columns->class_of[i] = class_of[i];
		columns->offset[i] = columns->bytes;
		columns->bytes += class->size;
		count[class_of[i]]++;
	}
	for (unsigned int i = 0; i < columns->classes; i++) {
		if (count[i] != columns->class[i].rows)
			return -EBADMSG;
	}
	return columns->bytes == bytes ? 0 : -EBADMSG;
}

static int decode_headers(struct mw_columns *columns, struct input *input, uint8_t *records)
{
	int err;

	err = decode_header_field(columns, records,
				  offsetof(struct memwatch_record_header, time_ns), 8, input);
	if (!err)
		err = decode_header_field(columns, records,
					  offsetof(struct memwatch_record_header, cpu), 2, input);
	if (!err)
		err = decode_header_field(columns, records,
					  offsetof(struct memwatch_record_header, flags), 2, input);
	for (uint32_t i = 0; i < columns->rows && !err; i++) {
		const struct memwatch_record_header *header = (const void *)(records +
									     columns->offset[i]);

		columns->time[i] = header->time_ns;
		columns->cpu[i] = header->cpu;
	}
	return err;
}

int mw_columns_decode(struct mw_columns *columns, const uint8_t *from, size_t len, uint32_t rows,
		      uint8_t *records, uint32_t bytes)
{
	struct input input = { from, len };
	int err;

	mw_columns_reset(columns);
	columns->rows = rows;
	err = decode_class_table(columns, &input);
	if (!err)
		err = decode_classes(columns, &input, records, bytes);
	if (!err)
		err = decode_headers(columns, &input, records);
	if (err)
		return err;

	mw_columns_sort(columns);
	mw_predict_block(columns);
	for (unsigned int i = 0; i < columns->classes && !err; i++) {
		struct mw_class_view view;

		mw_predict_class(columns, i, records, &view);
		for (unsigned int j = 0; j < view.class->count && !err; j++)
			err = decode_column(&view, j, &input);
	}
	return err || !input.left ? err : -EBADMSG;
}
