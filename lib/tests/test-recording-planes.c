// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The planes of columns: dense and sparse ones, of any number of rows, and damaged ones.
 */
#include "recording-kit.h"

#include "recording/planes.h"

#define TYPE                                                                                       \
	500 /* unknown: its body is a column of 8 bytes, predicted by that of the last record */
#define SIZE	 (sizeof(struct memwatch_record_header) + 8)
#define ROWS_MAX 400

static struct mw_columns columns;
static uint8_t plain[ROWS_MAX * SIZE + 65536];

/* A number in which each byte is not zero with this probability. */
static uint64_t make_number(unsigned int percent)
{
	uint64_t number = 0;

	for (unsigned int i = 0; i < 64; i += 8) {
		if (dice(100) < percent)
			number |= (dice(255) + 1) << i;
	}
	return number;
}

/* Encodes records whose bodies differ by such numbers. Returns the length of the block. */
static size_t encode_rows(struct batch *batch, uint32_t rows, unsigned int percent)
{
	uint64_t value = 0, difference;

	batch->len = 0;
	for (uint32_t i = 0; i < rows; i++) {
		difference = make_number(percent);
		value += difference >> 1 ^ -(difference & 1);
		memcpy((struct memwatch_record_header *)batch_add(batch, TYPE, SIZE, 1000 + i, 0) +
			       1,
		       &value, sizeof(value));
	}
	if (mw_columns_reserve(&columns, ROWS_MAX))
		abort();
	mw_columns_index(&columns, batch->bytes, (uint32_t)batch->len);
	return mw_columns_encode(&columns, batch->bytes, plain);
}

static int decode_rows(const struct batch *batch, uint32_t rows, size_t len)
{
	uint8_t *again = malloc(batch->len);
	int err;

	if (!again)
		abort();
	err = mw_columns_decode(&columns, plain, len, rows, again, (uint32_t)batch->len);
	if (!err && memcmp(again, batch->bytes, batch->len))
		err = -EIO;
	free(again);
	return err;
}

static void test_shares(struct batch *batch)
{
	static const unsigned int percents[] = { 0, 1, 10, 50, 74, 75, 76, 95, 100 };
	size_t lengths[sizeof(percents) / sizeof(*percents)];
	unsigned int wrong = 0, longer = 0, i;

	for (i = 0; i < sizeof(percents) / sizeof(*percents); i++) {
		for (uint32_t rows = 1; rows <= ROWS_MAX; rows++) {
			size_t len = encode_rows(batch, rows, percents[i]);

			wrong += len > mw_columns_bound(batch->len) ||
				 decode_rows(batch, rows, len) != 0;
			lengths[i] = len;
		}
		longer += i && lengths[i] >= lengths[i - 1];
	}
	tap_eq(wrong, 0, "planes with any share of zeros are decoded to what they were");
	tap_eq(longer, sizeof(percents) / sizeof(*percents) - 1,
	       "a block is not longer if more bytes of its planes are zero");
	tap_ok(lengths[2] < lengths[i - 1] / 2,
	       "%zu bytes if a tenth of them is not zero, else %zu", lengths[2], lengths[i - 1]);
}

/* Puts one wrong byte into the block, this far from its end. */
static int decode_damaged(const struct batch *batch, uint32_t rows, size_t len, size_t from_end,
			  uint8_t wrong)
{
	uint8_t right = plain[len - from_end];
	int err;

	plain[len - from_end] = wrong;
	err = decode_rows(batch, rows, len);
	plain[len - from_end] = right;
	return err;
}

/* A block that ends with a sparse plane: both masks, a bitmap of 5 bits, and one byte. */
static void test_damaged(struct batch *batch)
{
	const uint32_t rows = 5;
	uint64_t value = 2;
	size_t len;

	encode_rows(batch, rows, 0);
	for (uint32_t i = 2; i < rows; i++)
		memcpy(batch->bytes + i * SIZE + sizeof(struct memwatch_record_header), &value,
		       sizeof(value));
	len = mw_columns_encode(&columns, batch->bytes, plain);
	tap_ok(!memcmp(plain + len - 4, "\x01\x01\x04\x04", 4),
	       "a plane with one byte is a bitmap and this byte");
	tap_eq(decode_rows(batch, rows, len), 0, "the sparse plane is valid");
	tap_eq(decode_damaged(batch, rows, len, 3, 3), -EBADMSG,
	       "a sparse plane that the first mask does not have is refused");
	tap_eq(decode_damaged(batch, rows, len, 2, 0x24), -EBADMSG,
	       "a bit behind the last row is refused");
	tap_eq(decode_damaged(batch, rows, len, 2, 6), -EBADMSG,
	       "a bitmap with more bits than bytes that follow is refused");
	tap_eq(decode_damaged(batch, rows, len, 2, 0), -EBADMSG,
	       "a byte that the bitmap does not have is refused");
}

int main(void)
{
	struct batch batch = { 0 };

	tap_start();
	test_shares(&batch);
	test_damaged(&batch);
	mw_columns_uninit(&columns);
	batch_free(&batch);
	return tap_done();
}
