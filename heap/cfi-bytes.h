/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reading DWARF's variable-length numbers and encoded pointers, never beyond an end.
 */
#ifndef _MW_HEAP_CFI_BYTES_H
#define _MW_HEAP_CFI_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Encodings of pointers: the lower half says the format, the upper half what to add. */
#define MW_PE_OMIT     0xff
#define MW_PE_PCREL    0x10
#define MW_PE_DATREL   0x30
#define MW_PE_INDIRECT 0x80

/* A place in a table. After an attempt to read beyond the end, `bad` is set and reads give 0. */
struct mw_bytes {
	const uint8_t *at;
	const uint8_t *end;
	bool bad;
};

static inline bool mw_bytes_have(struct mw_bytes *bytes, uint64_t count)
{
	if (bytes->bad || (uint64_t)(bytes->end - bytes->at) < count)
		bytes->bad = true;
	return !bytes->bad;
}

static inline void mw_bytes_skip(struct mw_bytes *bytes, uint64_t count)
{
	if (mw_bytes_have(bytes, count))
		bytes->at += count;
}

/* A little-endian number of @size bytes. */
static inline uint64_t mw_bytes_fixed(struct mw_bytes *bytes, uint32_t size)
{
	uint64_t value = 0;

	if (!mw_bytes_have(bytes, size))
		return 0;
	memcpy(&value, bytes->at, size);
	bytes->at += size;
	return value;
}

static inline int64_t mw_bytes_fixed_signed(struct mw_bytes *bytes, uint32_t size)
{
	uint32_t shift = 64 - 8 * size;

	return (int64_t)(mw_bytes_fixed(bytes, size) << shift) >> shift;
}

/*
 * The bits of a LEB128 number. @sign gets the bits above them, which are set if the last byte
 * says that a signed number is negative.
 */
static inline uint64_t mw_bytes_leb(struct mw_bytes *bytes, uint64_t *sign)
{
	uint64_t value = 0;
	uint32_t shift = 0;
	uint8_t byte;

	do {
		byte = (uint8_t)mw_bytes_fixed(bytes, 1);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	*sign = shift < 64 && (byte & 0x40) ? ~UINT64_C(0) << shift : 0;
	return value;
}

static inline uint64_t mw_bytes_uleb(struct mw_bytes *bytes)
{
	uint64_t sign;

	return mw_bytes_leb(bytes, &sign);
}

static inline int64_t mw_bytes_sleb(struct mw_bytes *bytes)
{
	uint64_t sign, value = mw_bytes_leb(bytes, &sign);

	return (int64_t)(value | sign);
}

/*
 * A pointer in @encoding. @data is the base of data-relative ones. Indirect ones are not
 * followed.
 */
static inline uintptr_t mw_bytes_pointer(struct mw_bytes *bytes, uint8_t encoding, uintptr_t data)
{
	uintptr_t base = 0;

	switch (encoding & 0x70) {
	case MW_PE_PCREL:
		base = (uintptr_t)bytes->at;
		break;
	case MW_PE_DATREL:
		base = data;
		break;
	case 0:
		break;
	default:
		bytes->bad = true;
	}
	switch (encoding & 0x0f) {
	case 0x00: /* absolute */
	case 0x04: /* udata8 */
	case 0x0c: /* sdata8 */
		return base + mw_bytes_fixed(bytes, 8);
	case 0x01:
		return base + mw_bytes_uleb(bytes);
	case 0x02:
		return base + mw_bytes_fixed(bytes, 2);
	case 0x03:
		return base + mw_bytes_fixed(bytes, 4);
	case 0x09:
		return base + (uintptr_t)mw_bytes_sleb(bytes);
	case 0x0a:
		return base + (uintptr_t)mw_bytes_fixed_signed(bytes, 2);
	case 0x0b:
		return base + (uintptr_t)mw_bytes_fixed_signed(bytes, 4);
	default:
		bytes->bad = true;
		return 0;
	}
}

#endif
