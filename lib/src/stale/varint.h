/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Numbers of recorded files: seven bits in a byte, the lowest ones first; all bytes but the last
 * one have their highest bit set.
 */
#ifndef MW_STALE_VARINT_H
#define MW_STALE_VARINT_H

#include <stdbool.h>
#include <stdint.h>

/* Reads a number at *@at and moves that behind it. False if it does not end before @end. */
static inline bool mw_varint_take(const uint8_t **at, const uint8_t *end, uint64_t *ret)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; *at < end && shift < 64; shift += 7) {
		uint8_t byte = *(*at)++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			*ret = value;
			return true;
		}
	}
	return false;
}

#endif /* MW_STALE_VARINT_H */
