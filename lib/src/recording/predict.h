/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Prediction of columns: values to residuals, for the encoder, and residuals to values,
 * for the decoder. Both use the same predictions, so a prediction may look only at what
 * the decoder has at that point: the headers of all records, records before this one, and
 * the columns of this record with a lower number.
 */
#ifndef MW_PREDICT_H
#define MW_PREDICT_H

#include <string.h>

#include "recording/columns.h"

/**
 * struct mw_class_view - one class of a block
 * @columns: the block
 * @class: the class
 * @order: by row, from 1 on: the number of the record in the block
 * @at: by row, from 1 on: where the record begins
 * @base: the records of the block
 */
struct mw_class_view {
	struct mw_columns *columns;
	const struct mw_class *class;
	const uint32_t *order;
	const uint32_t *at;
	uint8_t *base;
};

/* The bytes of a row of the class, from 1 on. */
static inline uint8_t *mw_view_row(const struct mw_class_view *view, uint32_t row)
{
	return view->base + view->at[row];
}

/* Prepares the predictions of a block, after its times and CPUs are known. */
void mw_predict_block(struct mw_columns *columns);

/* Prepares the predictions of class @number, after those of its block with the records @base. */
void mw_predict_class(struct mw_columns *columns, unsigned int number, uint8_t *base,
		      struct mw_class_view *ret);

/*
 * Fills columns.residual from the values of a column. Returns all residuals, combined by OR. The
 * columns of a class are encoded in the order of their numbers.
 */
uint64_t mw_predict_encode(const struct mw_class_view *view, unsigned int number);

/* The reverse: stores the values of a column, computed from columns.residual. */
void mw_predict_decode(const struct mw_class_view *view, unsigned int number);

static inline uint64_t mw_number_load(const uint8_t *from, unsigned int width)
{
	uint64_t value = 0;
	uint32_t value32;
	uint16_t value16;

	switch (width) {
	case 8:
		memcpy(&value, from, 8);
		return value;
	case 4:
		memcpy(&value32, from, 4);
		return value32;
	case 2:
		memcpy(&value16, from, 2);
		return value16;
	default:
		return *from;
	}
}

static inline void mw_number_store(uint8_t *to, unsigned int width, uint64_t value)
{
	uint32_t value32 = (uint32_t)value;
	uint16_t value16 = (uint16_t)value;

	switch (width) {
	case 8:
		memcpy(to, &value, 8);
		break;
	case 4:
		memcpy(to, &value32, 4);
		break;
	case 2:
		memcpy(to, &value16, 2);
		break;
	default:
		*to = (uint8_t)value;
	}
}

/* A signed difference of @width bytes as an unsigned number: 0, -1, 1, -2 become 0, 1, 2, 3. */
static inline uint64_t mw_fold(uint64_t difference, unsigned int width)
{
	uint64_t doubled = difference << 1;

	/* Shifts of signed numbers keep the sign, as everywhere where Linux runs. */
	switch (width) {
	case 8:
		return doubled ^ (uint64_t)((int64_t)difference >> 63);
	case 4:
		return (uint32_t)doubled ^ (uint32_t)((int32_t)difference >> 31);
	case 2:
		return (uint16_t)(doubled ^ (uint64_t)((int16_t)difference >> 15));
	default:
		return (uint8_t)(doubled ^ (uint64_t)((int8_t)difference >> 7));
	}
}

static inline uint64_t mw_unfold(uint64_t folded)
{
	return folded >> 1 ^ -(folded & 1);
}

#endif /* MW_PREDICT_H */
