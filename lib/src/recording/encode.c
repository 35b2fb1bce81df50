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

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "recording/format.h"
#include "recording/predict.h"

size_t mw_columns_bound(size_t bytes)
{
	/* A column needs at most the bytes of its values and one byte for the mask. */
	return bytes + 1 +
	       (size_t)MW_CLASSES_MAX * (MW_CLASS_BYTES + MW_COLUMNS_MAX * (MW_COLUMN_BYTES + 1)) +
	       3;
}

#ifdef __SSE2__
/* Numbers that are handled together. */
#define TOGETHER 16

/* Byte @shift / 8 of two numbers, each in a lane of 64 bits. */
static inline __m128i load_low(const uint64_t *residual, __m128i shift)
{
	__m128i two = _mm_loadu_si128((const __m128i *)(const void *)residual);

	return _mm_and_si128(_mm_srl_epi64(two, shift), _mm_set1_epi64x(0xff));
}

/* The same of eight numbers, each in a lane of 16 bits. */
static inline __m128i load_eight(const uint64_t *residual, __m128i shift)
{
	__m128i low = _mm_packs_epi32(load_low(residual, shift), load_low(residual + 2, shift));
	__m128i high = _mm_packs_epi32(load_low(residual + 4, shift),
				       load_low(residual + 6, shift));

	return _mm_packs_epi32(low, high);
}

/* Writes as many bytes as can be handled together; returns how many. */
static uint32_t put_together(const uint64_t *residual, uint32_t rows, unsigned int bits,
			     uint8_t *to)
{
	__m128i shift = _mm_cvtsi32_si128((int)bits);
	uint32_t row = 0;

	for (; row + TOGETHER <= rows; row += TOGETHER)
		_mm_storeu_si128((__m128i *)(void *)(to + row),
				 _mm_packus_epi16(load_eight(residual + row, shift),
						  load_eight(residual + row + 8, shift)));
	return row;
}
#else
static uint32_t put_together(const uint64_t *residual, uint32_t rows, unsigned int bits,
			     uint8_t *to)
{
	(void)residual;
	(void)rows;
	(void)bits;
	(void)to;
	return 0;
}
#endif

/* Writes byte @plane of each residual. */
static void put_plane(const uint64_t *residual, uint32_t rows, unsigned int plane, uint8_t *to)
{
	for (uint32_t row = put_together(residual, rows, plane * 8, to); row < rows; row++)
		to[row] = (uint8_t)(residual[row] >> plane * 8);
}

/*
 * Writes a mask and columns.residual as planes, without the planes that are all zero. @all has
 * the bits of all residuals. This and the functions below advance *@out.
 */
static void put_planes(const struct mw_columns *columns, uint32_t rows, uint64_t all, uint8_t **out)
{
	uint8_t *mask = (*out)++;

	*mask = 0;
	for (unsigned int plane = 0; plane < 8; plane++) {
		if (!(all >> plane * 8 & 0xff))
			continue;
		*mask |= (uint8_t)(1U << plane);
		put_plane(columns->residual, rows, plane, *out);
		*out += rows;
	}
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
	put_planes(view->columns, rows, all, out);
}

/* The fields of the headers of all records are predicted to be those of the last record. */

static void encode_times(struct mw_columns *columns, uint8_t **out)
{
	uint64_t last = 0, all = 0;

	for (uint32_t i = 0; i < columns->rows; i++) {
		all |= columns->residual[i] = mw_fold(columns->time[i] - last, 8);
		last = columns->time[i];
	}
	put_planes(columns, columns->rows, all, out);
}

static void encode_cpus(struct mw_columns *columns, uint8_t **out)
{
	uint64_t last = 0, all = 0;

	for (uint32_t i = 0; i < columns->rows; i++) {
		all |= columns->residual[i] = mw_fold(columns->cpu[i] - last, 2);
		last = columns->cpu[i];
	}
	put_planes(columns, columns->rows, all, out);
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
	put_planes(columns, columns->rows, all, out);
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
	encode_times(columns, &out);
	encode_cpus(columns, &out);
	encode_flags(columns, records, &out);

	mw_columns_sort(columns);
	mw_predict_block(columns);
	for (unsigned int i = 0; i < columns->classes; i++) {
		struct mw_class_view view = { columns, &columns->class[i],
					      (uint8_t *)(uintptr_t)records };

		mw_predict_class(&view);
		for (unsigned int j = 0; j < view.class->count; j++)
			encode_column(&view, j, &out);
	}
	return (size_t)(out - to);
}
