/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The records of the golden recordings, one file for each schema. They are made from a seed
 * and from the sizes that the types had in that schema.
 */
#ifndef GOLDEN_KIT_H
#define GOLDEN_KIT_H

#include "recording-kit.h"

#define GOLDEN_SCHEMA_1 "lib/tests/recordings/schema-1.mwr"
#define GOLDEN_FORMAT_2 "lib/tests/recordings/format-2.mwr" /* the same records */

/* The sizes of schema 1, which docs/recording-format.md states. They never change. */
static const struct {
	uint16_t type, size;
} golden_schema_1[] = {
	{ 1, 80 }, { 2, 48 }, { 3, 80 },  { 4, 80 },  { 5, 80 },  { 6, 80 },  { 7, 32 },
	{ 8, 32 }, { 9, 32 }, { 10, 64 }, { 11, 40 }, { 64, 32 }, { 65, 72 },
};

#define GOLDEN_TYPES (sizeof(golden_schema_1) / sizeof(*golden_schema_1))

static inline void golden_records(struct batch *batch)
{
	prng = (struct prng){ 1 };
	for (unsigned int i = 0; i < 4 * GOLDEN_TYPES; i++) {
		unsigned int type = i % GOLDEN_TYPES;
		struct memwatch_record_header *record = batch_add(batch, golden_schema_1[type].type,
								  golden_schema_1[type].size,
								  1000000000 + i * 1000003, i % 3);

		record->flags = i % 5 ? 0 : MEMWATCH_RECORD_F_LATE;
		random_body(record, 1);
	}
}

/* The records of a file that are as in @batch, with zeros where a type has become longer. */
static inline unsigned int golden_compare(const struct batch *batch, const char *file)
{
	const struct memwatch_record_header *record;
	struct memwatch_reader *reader;
	unsigned int same = 0;
	size_t at = 0;

	if (memwatch_reader_open(ctx, file, &reader)) {
		tap_note("%s", memwatch_ctx_error(ctx));
		return 0;
	}
	while (at < batch->len && memwatch_reader_next(reader, &record) == 1) {
		const struct memwatch_record_header *is = record_at(batch, at);
		uint16_t size = (uint16_t)mw_record_size_min(is->type);
		const uint8_t *bytes = (const uint8_t *)record;
		bool zeros = true;

		for (size_t i = is->size; i < size && i < record->size; i++)
			zeros &= !bytes[i];
		same += record->size == size && zeros && record->type == is->type &&
			record->time_ns == is->time_ns && record->cpu == is->cpu &&
			record->flags == is->flags &&
			!memcmp(record + 1, is + 1, is->size - sizeof(*is));
		at += is->size;
	}
	memwatch_reader_close(reader);
	return same;
}

#endif /* GOLDEN_KIT_H */
