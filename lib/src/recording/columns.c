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

void mw_columns_uninit(struct mw_columns *columns)
{
	free(columns->offset);
	free(columns->class_of);
	free(columns->prior);
	free(columns->order);
	free(columns->last_cpu);
	free(columns->last_key);
	free(columns->rest);
	free(columns->residual);
	memset(columns, 0, sizeof(*columns));
}

int mw_columns_reserve(struct mw_columns *columns, uint32_t rows)
{
	if (rows <= columns->rows_max)
		return 0;
	mw_columns_uninit(columns);
	columns->offset = malloc(rows * sizeof(*columns->offset));
	columns->class_of = malloc(rows * sizeof(*columns->class_of));
	columns->prior = malloc(rows * sizeof(*columns->prior));
	columns->order = malloc(rows * sizeof(*columns->order));
	columns->last_cpu = malloc(rows * sizeof(*columns->last_cpu));
	columns->last_key = malloc(rows * sizeof(*columns->last_key));
	columns->rest = malloc(rows * sizeof(*columns->rest));
	columns->residual = malloc(rows * sizeof(*columns->residual));
	if (!columns->offset || !columns->class_of || !columns->prior || !columns->order ||
	    !columns->last_cpu || !columns->last_key || !columns->rest || !columns->residual) {
		mw_columns_uninit(columns);
		return -ENOMEM;
	}
	columns->rows_max = rows;
	return 0;
}

void mw_columns_reset(struct mw_columns *columns)
{
	columns->classes = 0;
	columns->rows = 0;
	columns->bytes = 0;
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

bool mw_columns_fit(struct mw_columns *columns, const struct memwatch_record_header *header)
{
	return columns->rows < columns->rows_max &&
	       (columns->classes < MW_CLASSES_MAX ||
		class_find(columns, header) < columns->classes);
}

void mw_columns_add(struct mw_columns *columns, const struct memwatch_record_header *header)
{
	unsigned int class = class_find(columns, header);

	if (class == columns->classes) {
		class_init(&columns->class[class], header);
		columns->classes++;
	}
	columns->class[class].rows++;
	columns->class_of[columns->rows] = (uint8_t) class;
	columns->offset[columns->rows] = columns->bytes;
	columns->rows++;
	columns->bytes += header->size;
}

void mw_columns_sort(struct mw_columns *columns)
{
	uint32_t next[MW_CLASSES_MAX];
	uint32_t first = 0;

	for (unsigned int i = 0; i < columns->classes; i++) {
		columns->class[i].first = next[i] = first;
		first += columns->class[i].rows;
	}
	for (uint32_t i = 0; i < columns->rows; i++)
		columns->order[next[columns->class_of[i]]++] = i;
}
