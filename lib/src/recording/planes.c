// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The planes of a column, see planes.h.
 */
#include "recording/planes.h"

#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Rows whose bits make a word. */
#define WORD_ROWS 64

/* ------------------------------------------------------ residuals to planes */

#define HALF 4 /* planes of the lower or the upper halves of the residuals */

#ifdef __SSE2__
/* Residuals that are handled together. */
#define TOGETHER 16

/* The lower or the upper halves of four residuals. */
static inline __m128i load_halves(const uint64_t *residual, bool upper)
{
	__m128i a = _mm_loadu_si128((const __m128i *)(const void *)residual);
	__m128i b = _mm_loadu_si128((const __m128i *)(const void *)(residual + 2));

	if (upper) {
		a = _mm_srli_epi64(a, 32);
		b = _mm_srli_epi64(b, 32);
	}
	return _mm_castps_si128(_mm_shuffle_ps(_mm_castsi128_ps(a), _mm_castsi128_ps(b), 0x88));
}

/* The bytes 0, 2, 4, ... of two vectors. */
static inline __m128i even_bytes(__m128i a, __m128i b)
{
	__m128i mask = _mm_set1_epi16(0xff);

	return _mm_packus_epi16(_mm_and_si128(a, mask), _mm_and_si128(b, mask));
}

/* The bytes 1, 3, 5, ... of them. */
static inline __m128i odd_bytes(__m128i a, __m128i b)
{
	return _mm_packus_epi16(_mm_srli_epi16(a, 8), _mm_srli_epi16(b, 8));
}

static inline void store_bytes(uint8_t *to, __m128i bytes)
{
	_mm_storeu_si128((__m128i *)(void *)to, bytes);
}

/* Splits as many rows as can be handled together; returns how many. */
static inline uint32_t split_together(const uint64_t *residual, uint32_t rows, bool upper,
				      uint8_t *planes)
{
	uint32_t row = 0;

	for (; row + TOGETHER <= rows; row += TOGETHER) {
		__m128i a = load_halves(residual + row, upper);
		__m128i b = load_halves(residual + row + 4, upper);
		__m128i c = load_halves(residual + row + 8, upper);
		__m128i d = load_halves(residual + row + 12, upper);
		__m128i even_low = even_bytes(a, b), even_high = even_bytes(c, d);
		__m128i odd_low = odd_bytes(a, b), odd_high = odd_bytes(c, d);
		uint8_t *to = planes + row;

		store_bytes(to, even_bytes(even_low, even_high));
		store_bytes(to + rows, even_bytes(odd_low, odd_high));
		store_bytes(to + (size_t)2 * rows, odd_bytes(even_low, even_high));
		store_bytes(to + (size_t)3 * rows, odd_bytes(odd_low, odd_high));
	}
	return row;
}

/* The rows of a word whose byte is not zero. */
static inline uint64_t find_nonzero(const uint8_t *plane)
{
	uint64_t zero = 0;

#pragma GCC unroll 4
	for (unsigned int i = 0; i < WORD_ROWS; i += 16) {
		__m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(plane + i));
		__m128i is_zero = _mm_cmpeq_epi8(bytes, _mm_setzero_si128());

		zero |= (uint64_t)(uint32_t)_mm_movemask_epi8(is_zero) << i;
	}
	return ~zero;
}
#else
static uint32_t split_together(const uint64_t *residual, uint32_t rows, bool upper, uint8_t *planes)
{
	(void)residual;
	(void)rows;
	(void)upper;
	(void)planes;
	return 0;
}

static uint64_t find_nonzero(const uint8_t *plane)
{
	uint64_t bits = 0;

	for (unsigned int i = 0; i < WORD_ROWS; i++)
		bits |= (uint64_t) !!plane[i] << i;
	return bits;
}
#endif

/* Writes the planes of one half, one behind the other. */
static inline void split_half(const uint64_t *residual, uint32_t rows, bool upper, uint8_t *planes)
{
	unsigned int first = upper ? 32 : 0;

	for (uint32_t row = split_together(residual, rows, upper, planes); row < rows; row++) {
		for (unsigned int i = 0; i < HALF; i++)
			planes[(size_t)i * rows + row] = (uint8_t)(residual[row] >>
								   (first + i * 8));
	}
}

/* ---------------------------------------------------------- planes to bytes */

/* __builtin_popcountll() calls a function where the compiler may not use POPCNT. */
static inline uint32_t count_bits(uint64_t bits)
{
	bits -= bits >> 1 & 0x5555555555555555;
	bits = (bits & 0x3333333333333333) + (bits >> 2 & 0x3333333333333333);
	bits = (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0f;
	return (uint32_t)(bits * 0x0101010101010101 >> 56);
}

/* Writes the bitmap of a plane. Returns the number of bytes that are not zero. */
static uint32_t put_bitmap(const uint8_t *plane, uint32_t rows, uint8_t *bitmap)
{
	uint8_t last[WORD_ROWS] = { 0 };
	uint32_t row = 0, count = 0;
	uint64_t bits;

	for (; row + WORD_ROWS <= rows; row += WORD_ROWS) {
		bits = find_nonzero(plane + row);
		memcpy(bitmap + row / 8, &bits, sizeof(bits));
		count += count_bits(bits);
	}
	memcpy(last, plane + row, rows - row);
	bits = find_nonzero(last);
	memcpy(bitmap + row / 8, &bits, mw_bitmap_bytes(rows - row));
	return count + count_bits(bits);
}

/* Writes the bytes of the rows in a word of the bitmap. Returns the end. */
static inline uint8_t *put_chosen(const uint8_t *plane, uint64_t bits, uint8_t *to)
{
	for (; bits; bits &= bits - 1)
		*to++ = plane[(unsigned int)__builtin_ctzll(bits)];
	return to;
}

/* Writes a plane, unless fewer than a quarter of its bytes are zero. */
static bool put_sparse(const uint8_t *plane, uint32_t rows, uint8_t **out)
{
	uint8_t *bitmap = *out, *to = bitmap + mw_bitmap_bytes(rows);
	uint64_t bits = 0;
	uint32_t row = 0;

	if (put_bitmap(plane, rows, bitmap) >= rows - rows / 4)
		return false;
	for (; row + WORD_ROWS <= rows; row += WORD_ROWS) {
		memcpy(&bits, bitmap + row / 8, sizeof(bits));
		to = put_chosen(plane + row, bits, to);
	}
	bits = 0;
	memcpy(&bits, bitmap + row / 8, mw_bitmap_bytes(rows - row));
	*out = put_chosen(plane + row, bits, to);
	return true;
}

void mw_planes_put(struct mw_columns *columns, uint32_t rows, uint64_t all, uint8_t **out)
{
	uint8_t *mask = *out, *sparse = mask + 1;

	*mask = *sparse = 0;
	*out += MW_MASK_BYTES;
	if ((uint32_t)all)
		split_half(columns->residual, rows, false, columns->planes);
	if (all >> 32)
		split_half(columns->residual, rows, true, columns->planes + (size_t)HALF * rows);
	for (unsigned int i = 0; i < 2 * HALF; i++) {
		const uint8_t *plane = columns->planes + (size_t)i * rows;

		if (!(all >> i * 8 & 0xff))
			continue;
		*mask |= (uint8_t)(1U << i);
		if (put_sparse(plane, rows, out)) {
			*sparse |= (uint8_t)(1U << i);
		} else {
			memcpy(*out, plane, rows);
			*out += rows;
		}
	}
}
