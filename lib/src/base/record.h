/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The record types of this schema: name, size and fields, from one table. Everything
 * that a ring, a recording or a caller hands over is checked here before its members
 * are read.
 */
#ifndef MW_RECORD_H
#define MW_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/memwatch.h>
#include <memwatch/record.h>

#include "base/names.h"

/**
 * enum mw_predictor - how a recording predicts a field; part of the file format
 * @MW_PREDICT_RAW: not at all: bytes of any width, row by row
 * @MW_PREDICT_VALUE: not at all: the value is stored
 * @MW_PREDICT_LAST: as in the last record of the same class
 * @MW_PREDICT_CPU: as in the last one of the same CPU
 * @MW_PREDICT_CPU_LINEAR: the last two of the same CPU, extrapolated
 * @MW_PREDICT_KEY: as in the last one with the same value in column @a
 * @MW_PREDICT_TIME: the time of the record itself
 * @MW_PREDICT_BEGIN: the last other time on the same CPU, of any class
 * @MW_PREDICT_REST: what is left of the interval that begins at column @a, after the
 *	records of the same time on the same CPU
 * @MW_PREDICT_SCALE: as KEY with column @b, scaled as column @a has changed
 */
enum mw_predictor {
	MW_PREDICT_RAW = 0,
	MW_PREDICT_VALUE = 1,
	MW_PREDICT_LAST = 2,
	MW_PREDICT_CPU = 3,
	MW_PREDICT_CPU_LINEAR = 4,
	MW_PREDICT_KEY = 5,
	MW_PREDICT_TIME = 6,
	MW_PREDICT_BEGIN = 7,
	MW_PREDICT_REST = 8,
	MW_PREDICT_SCALE = 9,
	MW_PREDICT_MAX = 10,
};

/**
 * struct mw_field - a field of a record type
 * @kind: &enum memwatch_field_kind
 * @predictor: &enum mw_predictor
 * @a: number of a field before this one, see &enum mw_predictor
 * @b: likewise
 * @offset: where it is in the record
 * @width: its bytes
 * @status_offset: of a measured field: where its status is
 * @source: of a measured field: &enum memwatch_metric_source; its key is that of the metric
 * @index: of a measured field: number of the counter or of the RDT event
 * @key: of any other field: name in JSON and CSV, NULL if it is not to be shown
 * @names: of a NAME field: the names of its numbers
 */
struct mw_field {
	uint8_t kind;
	uint8_t predictor;
	uint8_t a;
	uint8_t b;
	uint16_t offset;
	uint16_t width;
	uint16_t status_offset;
	uint8_t source;
	uint8_t index;
	const char *key;
	const struct mw_names *names;
};

/**
 * struct mw_record_type - a record type
 * @name: name in JSON and CSV
 * @size: that of the structure in this schema
 * @size_first: that of the structure when the type appeared, which never changes: recordings
 *	have records of this size and more
 * @text_end: the last byte of the text in the record; 0 if there is none
 * @predicted: recordings predict field by field; if not, they store 64-bit words, as
 *	they do with types that are not known
 * @nr_fields: length of @fields
 * @fields: all bytes behind the header, in order and without gaps
 */
struct mw_record_type {
	const char *name;
	uint16_t size;
	uint16_t size_first;
	uint16_t text_end;
	bool predicted;
	uint8_t nr_fields;
	const struct mw_field *fields;
};

#define MW_RECORD_TYPES (MEMWATCH_RECORD_GROWTH + 1)

/* By type; without a name, there is no such type. */
extern const struct mw_record_type mw_record_types[MW_RECORD_TYPES];

/* The description of a type, or NULL if this library does not know it. */
static inline const struct mw_record_type *mw_record_type(unsigned int type)
{
	if (type >= MW_RECORD_TYPES || !mw_record_types[type].name)
		return NULL;
	return &mw_record_types[type];
}

/*
 * The size of the structure of this schema, of which all members may be read; the size of a
 * header if @type is not known.
 */
static inline unsigned int mw_record_size_min(unsigned int type)
{
	const struct mw_record_type *known = mw_record_type(type);

	return known ? known->size : sizeof(struct memwatch_record_header);
}

/* Whether a record of this size is valid in a recording, which may have an older schema. */
bool mw_record_readable(unsigned int type, unsigned int size);

/* Whether the record is as long as its type demands and fits into @available bytes. */
static inline bool mw_record_valid(const struct memwatch_record_header *header, size_t available)
{
	return header->size <= available && header->size % 8 == 0 &&
	       header->size >= mw_record_size_min(header->type);
}

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

/*
 * Whether a CPU has sent all that it measured before the time of this record. It has not if the
 * record is about an event between two ticks.
 */
static inline bool mw_record_completes(const struct memwatch_record_header *header)
{
	switch (header->type) {
	case MEMWATCH_RECORD_RMID_ALLOC:
	case MEMWATCH_RECORD_RMID_EXISTING:
	case MEMWATCH_RECORD_RMID_EXEC:
	case MEMWATCH_RECORD_RMID_FREE:
	case MEMWATCH_RECORD_DUMP_BEGIN:
	case MEMWATCH_RECORD_DUMP_END:
	case MEMWATCH_RECORD_RDT:
	case MEMWATCH_RECORD_NOTICE:
		return false;
	default:
		return true;
	}
}

#endif /* MW_RECORD_H */
