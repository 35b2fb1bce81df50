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

/* One class of a block, whose records begin at @base. */
struct mw_class_view {
	struct mw_columns *columns;
	const struct mw_class *class;
	uint8_t *base;
};

/* The bytes of a row of the class, from 1 on. */
static inline uint8_t *mw_view_row(const struct mw_class_view *view, uint32_t row)
{
	return view->base + view->columns->at[row];
}

/* Prepares the predictions of a block, after its times and CPUs are known. */
void mw_predict_block(struct mw_columns *columns);

/* Prepares the predictions of a class, after those of its block. */
void mw_predict_class(const struct mw_class_view *view);

/*
 * Fills columns.residual from the values of a column. Returns all residuals, combined by OR. The
 * columns of a class are encoded one after the other.
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
	unsigned int bits = width * 8;
	uint64_t negative = difference >> (bits - 1) & 1;
	uint64_t mask = UINT64_MAX >> (64 - bits);

	return (difference << 1 ^ -negative) & mask;
}

static inline uint64_t mw_unfold(uint64_t folded)
{
	return folded >> 1 ^ -(folded & 1);
}

#endif /* MW_PREDICT_H */
