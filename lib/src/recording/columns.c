// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The records of a block, sorted into classes. A class has the records of one type and
 * one size, and therefore the same columns.
 */
#include "recording/columns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Elements of each array for one more record. Row 0 takes one of them. */
#define ROW_BYTES (7 * sizeof(uint64_t) + 5 * sizeof(uint32_t) + sizeof(uint16_t) + sizeof(uint8_t))

void mw_columns_uninit(struct mw_columns *columns)
{
	free(columns->memory);
	memset(columns, 0, sizeof(*columns));
}

int mw_columns_reserve(struct mw_columns *columns, uint32_t rows)
{
	size_t length = (size_t)rows + 1;
	uint64_t *numbers;

	if (rows <= columns->rows_max)
		return 0;
	mw_columns_uninit(columns);
	numbers = malloc(length * ROW_BYTES);
	if (!numbers)
		return -ENOMEM;
	columns->memory = numbers;
	columns->time = numbers;
	columns->prior = columns->time + length;
	columns->residual = columns->prior + length;
	columns->rest = columns->residual + length;
	columns->value = columns->rest + length;
	columns->other = columns->value + length;
	columns->offset = (uint32_t *)(columns->other + length);
	columns->order = columns->offset + length;
	columns->at = columns->order + length;
	columns->last_cpu = columns->at + length;
	columns->last_key = columns->last_cpu + length;
	columns->cpu = (uint16_t *)(columns->last_key + length);
	columns->class_of = (uint8_t *)(columns->cpu + length);
	columns->planes = columns->class_of + length;
	columns->rows_max = rows;
	return 0;
}

size_t mw_columns_memory(const struct mw_columns *columns)
{
	return columns->memory ? ((size_t)columns->rows_max + 1) * ROW_BYTES : 0;
}

void mw_columns_reset(struct mw_columns *columns)
{
	columns->classes = 0;
	columns->rows = 0;
	columns->bytes = 0;
	columns->first_ns = UINT64_MAX;
	columns->last_ns = 0;
	columns->flags = 0;
}

static void class_column(struct mw_class *class, const struct mw_field *field, unsigned int width,
			 unsigned int *offset)
{
	class->column[class->count++] = (struct mw_column){
		.predictor = field->predictor,
		.a = field->a,
		.b = field->b,
		.width = (uint16_t)width,
		.offset = (uint16_t)*offset,
	};
	*offset += width;
}

/*
 * The columns of a class: the fields of its type, then 64-bit words for what a newer
 * schema has added, and one column of bytes for what would be too many words.
 */
static void class_init(struct mw_class *class, const struct memwatch_record_header *header)
{
	static const struct mw_field word = { .predictor = MW_PREDICT_CPU };
	static const struct mw_field bytes = { .predictor = MW_PREDICT_RAW };
	const struct mw_record_type *type = mw_record_type(header->type);
	unsigned int offset = MW_RECORD_HEADER_BYTES;

	class->type = header->type;
	class->size = header->size;
	class->rows = 0;
	class->count = 0;
	/* A record of an older schema lacks the last fields. */
	for (unsigned int i = 0; type && type->predicted && i < type->nr_fields &&
				 offset + type->fields[i].width <= class->size;
	     i++)
		class_column(class, &type->fields[i], type->fields[i].width, &offset);
	while (offset < class->size && class->count < MW_COLUMNS_MAX - 1)
		class_column(class, &word, 8, &offset);
	if (offset < class->size)
		class_column(class, &bytes, class->size - offset, &offset);
}

static unsigned int class_find(const struct mw_columns *columns,
			       const struct memwatch_record_header *header)
{
	unsigned int i;

	for (i = 0; i < columns->classes; i++) {
		if (columns->class[i].type == header->type &&
		    columns->class[i].size == header->size)
			break;
	}
	return i;
}

/* The class of a record, which is made if it is new; MW_CLASSES_MAX if there are too many. */
static unsigned int class_get(struct mw_columns *columns,
			      const struct memwatch_record_header *header)
{
	unsigned int class = class_find(columns, header);

	if (class == columns->classes && class < MW_CLASSES_MAX) {
		class_init(&columns->class[class], header);
		columns->classes++;
	}
	return class;
}

/* Everything in a header but the time. No valid record has 0. */
static inline uint64_t header_rest(const struct memwatch_record_header *header)
{
	uint64_t rest;

	memcpy(&rest, &header->type, sizeof(rest));
	return rest;
}

/* The RDT records of a tick, for instance, have equal headers: only the first is looked at. */
void mw_columns_index(struct mw_columns *columns, const uint8_t *records, uint32_t bytes)
{
	uint32_t count[MW_CLASSES_MAX] = { 0 }, *offset = columns->offset;
	uint64_t first = UINT64_MAX, last = 0, rest = 0, *time = columns->time;
	uint8_t *class_of = columns->class_of;
	uint16_t *cpu = columns->cpu;
	uint32_t row = 0, at = 0;
	unsigned int class = 0;

	mw_columns_reset(columns);
	for (; row < columns->rows_max && at < bytes; row++) {
		const struct memwatch_record_header *header = (const void *)(records + at);

		if (header->size > bytes - at)
			break;
		if (header_rest(header) != rest) {
			class = class_get(columns, header);
			if (class == MW_CLASSES_MAX)
				break;
			rest = header_rest(header);
			columns->flags |= header->flags;
		}
		count[class]++;
		class_of[row] = (uint8_t) class;
		offset[row] = at;
		time[row] = header->time_ns;
		cpu[row] = header->cpu;
		first = header->time_ns < first ? header->time_ns : first;
		last = header->time_ns > last ? header->time_ns : last;
		at += header->size;
	}
	for (unsigned int i = 0; i < columns->classes; i++)
		columns->class[i].rows = count[i];
	columns->rows = row;
	columns->bytes = at;
	columns->first_ns = first;
	columns->last_ns = last;
}

void mw_columns_sort(struct mw_columns *columns)
{
	uint32_t *order = columns->order, *at = columns->at, rows = columns->rows;
	const uint8_t *class_of = columns->class_of;
	const uint32_t *offset = columns->offset;
	uint32_t next[MW_CLASSES_MAX];
	uint32_t first = 0;

	for (unsigned int i = 0; i < columns->classes; i++) {
		columns->class[i].first = first;
		next[i] = first + 1;
		first += columns->class[i].rows;
	}
	for (uint32_t i = 0; i < rows; i++) {
		uint32_t place = next[class_of[i]]++;

		order[place] = i;
		at[place] = offset[i];
	}
}
