/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The planes of a column, for the encoder. The first plane holds the lowest byte of each residual,
 * the second plane the second byte of each, and so on. Data in this order compresses better. A
 * plane in which many bytes are zero is stored as a bitmap of its other bytes, and these bytes: it
 * is smaller then, and the compressor has less to do.
 */
#ifndef MW_PLANES_H
#define MW_PLANES_H

#include "recording/columns.h"

#define MW_MASK_BYTES 2 /* which planes follow, and which of them are sparse */

/* The bitmap of a sparse plane has a bit for each row. */
static inline uint32_t mw_bitmap_bytes(uint32_t rows)
{
	return rows / 8 + (rows % 8 != 0);
}

/*
 * Writes the masks and columns.residual as planes, without the planes that are all zero. @all has
 * the bits of all residuals. Advances *@out.
 */
void mw_planes_put(struct mw_columns *columns, uint32_t rows, uint64_t all, uint8_t **out);

#endif /* MW_PLANES_H */
