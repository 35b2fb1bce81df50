/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Which records are valid: everything that a ring, a recording or a caller
 * hands over is checked here before its members are read.
 */
#ifndef MW_RECORD_H
#define MW_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include <linux/memwatch.h>

/* The smallest valid size of a record of @type; the size of a header if @type is not known. */
unsigned int mw_record_size_min(unsigned int type);

/* Whether the record is as long as its type demands and fits into @available bytes. */
bool mw_record_valid(const struct memwatch_record_header *header, size_t available);

/*
 * Whether records of this type may share a frame with others: samples, ticks and
 * types that this library does not know. The merge handles all other types one by one.
 */
static inline bool mw_record_common(const struct memwatch_record_header *header)
{
	switch (header->type) {
	case MEMWATCH_RECORD_SAMPLE:
		return header->size >= sizeof(struct memwatch_record_sample);
	case MEMWATCH_RECORD_TICK:
		return header->size >= sizeof(struct memwatch_record_tick);
	default:
		return header->type > MEMWATCH_RECORD_GROWTH && header->size >= sizeof(*header);
	}
}

#endif /* MW_RECORD_H */
