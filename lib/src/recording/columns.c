// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Columns: see columns.h. Encoder and decoder share everything that predicts;
 * a prediction may only look at records before this one, and at columns of
 * this one with a lower number, because that is what the decoder has.
 */
#include "recording/columns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "recording/format.h"
#include "base/record.h"

#define HEADER_BYTES sizeof(struct memwatch_record_header)
#define CLASS_BYTES  10 /* type, size, rows, columns */
#define COLUMN_BYTES 6	/* predictor, a, b, 0, width */
#define NONE	     UINT32_MAX

/* ------------------------------------------------------------- storage */

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

/* -------------------------------------------------------------- classes */

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
	unsigned int offset = HEADER_BYTES;

	class->type = header->type;
	class->size = header->size;
	class->rows = 0;
	class->count = 0;
	for (unsigned int i = 0; type && type->predicted && i < type->nr_fields; i++)
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

/* Sorts the records by class; they keep their order within it. */
static void sort_by_class(struct mw_columns *columns)
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

/* ---------------------------------------------------------- predictions */

/* One class of a block, whose records lie at @base. */
struct view {
	struct mw_columns *columns;
	const struct mw_class *class;
	uint8_t *base;
};

static uint8_t *row_at(const struct view *view, uint32_t row)
{
	const struct mw_columns *columns = view->columns;

	return view->base + columns->offset[columns->order[view->class->first + row]];
}

static const struct memwatch_record_header *header_at(const struct view *view, uint32_t row)
{
	return (const struct memwatch_record_header *)(const void *)row_at(view, row);
}

static uint64_t load(const uint8_t *from, unsigned int width)
{
	uint64_t value = 0;
	uint32_t value32;
	uint16_t value16;

	switch (width) {
	case 8:
		memcpy(&value, from, 8);
		return value;
	case 4:
		memcpy(&value32, from, 4);
		return value32;
	case 2:
		memcpy(&value16, from, 2);
		return value16;
	default:
		return *from;
	}
}

static void store(uint8_t *to, unsigned int width, uint64_t value)
{
	uint32_t value32 = (uint32_t)value;
	uint16_t value16 = (uint16_t)value;

	switch (width) {
	case 8:
		memcpy(to, &value, 8);
		break;
	case 4:
		memcpy(to, &value32, 4);
		break;
	case 2:
		memcpy(to, &value16, 2);
		break;
	default:
		*to = (uint8_t)value;
	}
}

static uint64_t value_at(const struct view *view, const struct mw_column *column, uint32_t row)
{
	return load(row_at(view, row) + column->offset, column->width);
}

static void find_last_cpu(const struct view *view)
{
	struct mw_columns *columns = view->columns;

	memset(columns->slot, 0xff, sizeof(columns->slot));
	for (uint32_t row = 0; row < view->class->rows; row++) {
		uint32_t *slot = &columns->slot[header_at(view, row)->cpu % MW_CONTEXTS];

		columns->last_cpu[row] = *slot;
		*slot = row;
	}
	columns->key = -1;
}

static void find_last_key(const struct view *view, unsigned int key)
{
	struct mw_columns *columns = view->columns;
	const struct mw_column *column = &view->class->column[key];

	if (columns->key == (int)key)
		return;
	memset(columns->slot, 0xff, sizeof(columns->slot));
	for (uint32_t row = 0; row < view->class->rows; row++) {
		uint32_t *slot = &columns->slot[value_at(view, column, row) % MW_CONTEXTS];

		columns->last_key[row] = *slot;
		*slot = row;
	}
	columns->key = (int)key;
}

/* The last time on the CPU of each record that is not its own: where it began. */
static void find_prior(struct mw_columns *columns, const uint8_t *base)
{
	memset(columns->now, 0, sizeof(columns->now));
	memset(columns->then, 0, sizeof(columns->then));
	for (uint32_t i = 0; i < columns->rows; i++) {
		const struct memwatch_record_header *header = (const void *)(base +
									     columns->offset[i]);
		unsigned int slot = header->cpu % MW_CONTEXTS;

		if (header->time_ns != columns->now[slot]) {
			columns->then[slot] = columns->now[slot];
			columns->now[slot] = header->time_ns;
		}
		columns->prior[i] = columns->then[slot] ? columns->then[slot] : header->time_ns;
	}
}

static uint64_t predict_rest(const struct view *view, const struct mw_column *column, uint32_t row)
{
	struct mw_columns *columns = view->columns;
	uint32_t last = columns->last_cpu[row];
	uint64_t time = header_at(view, row)->time_ns;

	if (last != NONE && header_at(view, last)->time_ns == time)
		columns->rest[row] = columns->rest[last] - value_at(view, column, last);
	else
		columns->rest[row] = time - value_at(view, &view->class->column[column->a], row);
	return columns->rest[row];
}

static uint64_t predict_scale(const struct view *view, const struct mw_column *column, uint32_t row)
{
	const struct mw_column *base = &view->class->column[column->a];
	uint32_t last = view->columns->last_key[row];
	uint64_t before, value;

	if (last == NONE)
		return 0;
	value = value_at(view, column, last);
	before = value_at(view, base, last);
	if (!before)
		return value;
	return (uint64_t)((unsigned __int128)value * value_at(view, base, row) / before);
}

static uint64_t predict(const struct view *view, const struct mw_column *column, uint32_t row)
{
	const struct mw_columns *columns = view->columns;
	uint32_t last;

	switch (column->predictor) {
	case MW_PREDICT_LAST:
		return row ? value_at(view, column, row - 1) : 0;
	case MW_PREDICT_CPU:
		last = columns->last_cpu[row];
		return last == NONE ? 0 : value_at(view, column, last);
	case MW_PREDICT_CPU_LINEAR:
		last = columns->last_cpu[row];
		if (last == NONE)
			return 0;
		row = columns->last_cpu[last];
		return 2 * value_at(view, column, last) -
		       value_at(view, column, row == NONE ? last : row);
	case MW_PREDICT_KEY:
		last = columns->last_key[row];
		return last == NONE ? 0 : value_at(view, column, last);
	case MW_PREDICT_TIME:
		return header_at(view, row)->time_ns;
	case MW_PREDICT_BEGIN:
		return columns->prior[columns->order[view->class->first + row]];
	case MW_PREDICT_REST:
		return predict_rest(view, column, row);
	case MW_PREDICT_SCALE:
		return predict_scale(view, column, row);
	default:
		return 0;
	}
}

/* Finds what the predictor of this column needs to know. */
static void predict_prepare(const struct view *view, const struct mw_column *column)
{
	if (column->predictor == MW_PREDICT_KEY)
		find_last_key(view, column->a);
	if (column->predictor == MW_PREDICT_SCALE)
		find_last_key(view, column->b);
}

/* A difference of @width bytes, as a small number if it is small either way. */
static uint64_t fold(uint64_t difference, unsigned int width)
{
	unsigned int bits = width * 8;
	uint64_t negative = difference >> (bits - 1) & 1;
	uint64_t mask = UINT64_MAX >> (64 - bits);

	return (difference << 1 ^ -negative) & mask;
}

static uint64_t unfold(uint64_t folded)
{
	return folded >> 1 ^ -(folded & 1);
}

/* ------------------------------------------------------------- encoding */

size_t mw_columns_bound(size_t bytes)
{
	/* a column is never longer than its field, plus a byte that says so */
	return bytes + 1 +
	       (size_t)MW_CLASSES_MAX * (CLASS_BYTES + MW_COLUMNS_MAX * (COLUMN_BYTES + 1)) + 3;
}

/* Writes columns.residual, lowest bytes first, without planes that are zero. */
static uint8_t *put_planes(const struct mw_columns *columns, uint32_t rows, unsigned int width,
			   uint8_t *to)
{
	uint8_t *mask = to++;
	uint64_t all = 0;

	*mask = 0;
	for (uint32_t row = 0; row < rows; row++)
		all |= columns->residual[row];
	for (unsigned int plane = 0; plane < width; plane++) {
		if (!(all >> plane * 8 & 0xff))
			continue;
		*mask |= (uint8_t)(1U << plane);
		for (uint32_t row = 0; row < rows; row++)
			*to++ = (uint8_t)(columns->residual[row] >> plane * 8);
	}
	return to;
}

static uint8_t *encode_column(const struct view *view, const struct mw_column *column, uint8_t *to)
{
	uint32_t rows = view->class->rows;

	if (column->predictor == MW_PREDICT_RAW) {
		for (uint32_t row = 0; row < rows; row++, to += column->width)
			memcpy(to, row_at(view, row) + column->offset, column->width);
		return to;
	}
	predict_prepare(view, column);
	for (uint32_t row = 0; row < rows; row++) {
		uint64_t value = value_at(view, column, row);

		if (column->predictor != MW_PREDICT_VALUE)
			value = fold(value - predict(view, column, row), column->width);
		view->columns->residual[row] = value;
	}
	return put_planes(view->columns, rows, column->width, to);
}

/* A field of the header, of all records: difference to the record before. */
static uint8_t *encode_header_field(struct mw_columns *columns, const uint8_t *records,
				    size_t offset, unsigned int width, uint8_t *to)
{
	uint64_t last = 0;

	for (uint32_t i = 0; i < columns->rows; i++) {
		uint64_t value = load(records + columns->offset[i] + offset, width);

		columns->residual[i] = fold(value - last, width);
		last = value;
	}
	return put_planes(columns, columns->rows, width, to);
}

static uint8_t *encode_class_table(const struct mw_columns *columns, uint8_t *to)
{
	*to++ = (uint8_t)columns->classes;
	for (unsigned int i = 0; i < columns->classes; i++) {
		const struct mw_class *class = &columns->class[i];

		mw_put16(to, class->type);
		mw_put16(to + 2, class->size);
		mw_put32(to + 4, class->rows);
		mw_put16(to + 8, (uint16_t) class->count);
		to += CLASS_BYTES;
		for (unsigned int j = 0; j < class->count; j++, to += COLUMN_BYTES) {
			to[0] = class->column[j].predictor;
			to[1] = class->column[j].a;
			to[2] = class->column[j].b;
			to[3] = 0;
			mw_put16(to + 4, class->column[j].width);
		}
	}
	return to;
}

size_t mw_columns_encode(struct mw_columns *columns, const uint8_t *records, uint8_t *to)
{
	uint8_t *start = to;

	to = encode_class_table(columns, to);
	memcpy(to, columns->class_of, columns->rows);
	to += columns->rows;
	to = encode_header_field(columns, records, offsetof(struct memwatch_record_header, time_ns),
				 8, to);
	to = encode_header_field(columns, records, offsetof(struct memwatch_record_header, cpu), 2,
				 to);
	to = encode_header_field(columns, records, offsetof(struct memwatch_record_header, flags),
				 2, to);

	sort_by_class(columns);
	find_prior(columns, records);
	for (unsigned int i = 0; i < columns->classes; i++) {
		struct view view = { columns, &columns->class[i], (uint8_t *)(uintptr_t)records };

		find_last_cpu(&view);
		for (unsigned int j = 0; j < view.class->count; j++)
			to = encode_column(&view, &view.class->column[j], to);
	}
	return (size_t)(to - start);
}

/* ------------------------------------------------------------- decoding */

struct input {
	const uint8_t *at;
	size_t left;
};

/* The next @len bytes, or NULL if there are not so many. */
static const uint8_t *take(struct input *input, size_t len)
{
	const uint8_t *at = input->at;

	if (len > input->left)
		return NULL;
	input->at += len;
	input->left -= len;
	return at;
}

/* Into columns.residual. */
static int get_planes(struct mw_columns *columns, uint32_t rows, unsigned int width,
		      struct input *input)
{
	const uint8_t *mask = take(input, 1);
	const uint8_t *bytes;

	if (!mask || *mask >> width)
		return -EBADMSG;
	memset(columns->residual, 0, rows * sizeof(*columns->residual));
	for (unsigned int plane = 0; plane < width; plane++) {
		if (!(*mask >> plane & 1))
			continue;
		bytes = take(input, rows);
		if (!bytes)
			return -EBADMSG;
		for (uint32_t row = 0; row < rows; row++)
			columns->residual[row] |= (uint64_t)bytes[row] << plane * 8;
	}
	return 0;
}

static int decode_column(const struct view *view, const struct mw_column *column,
			 struct input *input)
{
	uint32_t rows = view->class->rows;
	int err;

	if (column->predictor == MW_PREDICT_RAW) {
		for (uint32_t row = 0; row < rows; row++) {
			const uint8_t *bytes = take(input, column->width);

			if (!bytes)
				return -EBADMSG;
			memcpy(row_at(view, row) + column->offset, bytes, column->width);
		}
		return 0;
	}
	err = get_planes(view->columns, rows, column->width, input);
	if (err)
		return err;
	predict_prepare(view, column);
	for (uint32_t row = 0; row < rows; row++) {
		uint64_t value = view->columns->residual[row];

		if (column->predictor != MW_PREDICT_VALUE)
			value = predict(view, column, row) + unfold(value);
		store(row_at(view, row) + column->offset, column->width, value);
	}
	return 0;
}

static int decode_header_field(struct mw_columns *columns, uint8_t *records, size_t offset,
			       unsigned int width, struct input *input)
{
	uint64_t value = 0;
	int err = get_planes(columns, columns->rows, width, input);

	if (err)
		return err;
	for (uint32_t i = 0; i < columns->rows; i++) {
		value += unfold(columns->residual[i]);
		store(records + columns->offset[i] + offset, width, value);
	}
	return 0;
}

/* May column @number of @class be predicted in the way it says? */
static bool column_valid(const struct mw_class *class, unsigned int number)
{
	const struct mw_column *column = &class->column[number];
	unsigned int predictor = column->predictor;
	bool needs_a = predictor == MW_PREDICT_KEY || predictor == MW_PREDICT_REST ||
		       predictor == MW_PREDICT_SCALE;

	if (predictor >= MW_PREDICT_MAX || !column->width)
		return false;
	if (predictor != MW_PREDICT_RAW && column->width != 1 && column->width != 2 &&
	    column->width != 4 && column->width != 8)
		return false;
	/* The first field is its own key: nothing is known of it yet. */
	if (needs_a &&
	    (column->a >= number || class->column[column->a].predictor == MW_PREDICT_RAW))
		return false;
	return predictor != MW_PREDICT_SCALE ||
	       (column->b < number && class->column[column->b].predictor != MW_PREDICT_RAW);
}

static int decode_class_columns(struct mw_class *class, struct input *input)
{
	unsigned int offset = HEADER_BYTES;

	for (unsigned int i = 0; i < class->count; i++) {
		struct mw_column *column = &class->column[i];
		const uint8_t *from = take(input, COLUMN_BYTES);

		if (!from)
			return -EBADMSG;
		column->predictor = from[0];
		column->a = from[1];
		column->b = from[2];
		column->width = mw_get16(from + 4);
		column->offset = (uint16_t)offset;
		offset += column->width;
		if (offset > class->size || !column_valid(class, i))
			return -EBADMSG;
	}
	return offset == class->size ? 0 : -EBADMSG;
}

static int decode_class_table(struct mw_columns *columns, struct input *input)
{
	const uint8_t *from = take(input, 1);
	int err = 0;

	if (!from || *from > MW_CLASSES_MAX)
		return -EBADMSG;
	columns->classes = *from;
	for (unsigned int i = 0; i < columns->classes && !err; i++) {
		struct mw_class *class = &columns->class[i];
		struct memwatch_record_header header = { 0 };

		from = take(input, CLASS_BYTES);
		if (!from)
			return -EBADMSG;
		header.type = class->type = mw_get16(from);
		header.size = class->size = mw_get16(from + 2);
		class->rows = mw_get32(from + 4);
		class->count = mw_get16(from + 8);
		if (!mw_record_valid(&header, header.size) || class->count > MW_COLUMNS_MAX)
			return -EBADMSG;
		err = decode_class_columns(class, input);
	}
	return err;
}

/* Which class each record is of, hence where it lies; writes type and size. */
static int decode_classes(struct mw_columns *columns, struct input *input, uint8_t *records,
			  uint32_t bytes)
{
	const uint8_t *class_of = take(input, columns->rows);
	uint32_t count[MW_CLASSES_MAX] = { 0 };

	if (!class_of)
		return -EBADMSG;
	for (uint32_t i = 0; i < columns->rows; i++) {
		struct memwatch_record_header header = { 0 };
		const struct mw_class *class;

		if (class_of[i] >= columns->classes)
			return -EBADMSG;
		class = &columns->class[class_of[i]];
		if (class->size > bytes - columns->bytes)
			return -EBADMSG;
		header.type = class->type;
		header.size = class->size;
		memcpy(records + columns->bytes, &header, sizeof(header));
		columns->class_of[i] = class_of[i];
		columns->offset[i] = columns->bytes;
		columns->bytes += class->size;
		count[class_of[i]]++;
	}
	for (unsigned int i = 0; i < columns->classes; i++) {
		if (count[i] != columns->class[i].rows)
			return -EBADMSG;
	}
	return columns->bytes == bytes ? 0 : -EBADMSG;
}

static int decode_headers(struct mw_columns *columns, struct input *input, uint8_t *records)
{
	int err;

	err = decode_header_field(columns, records,
				  offsetof(struct memwatch_record_header, time_ns), 8, input);
	if (!err)
		err = decode_header_field(columns, records,
					  offsetof(struct memwatch_record_header, cpu), 2, input);
	if (!err)
		err = decode_header_field(columns, records,
					  offsetof(struct memwatch_record_header, flags), 2, input);
	return err;
}

int mw_columns_decode(struct mw_columns *columns, const uint8_t *from, size_t len, uint32_t rows,
		      uint8_t *records, uint32_t bytes)
{
	struct input input = { from, len };
	int err;

	mw_columns_reset(columns);
	columns->rows = rows;
	err = decode_class_table(columns, &input);
	if (!err)
		err = decode_classes(columns, &input, records, bytes);
	if (!err)
		err = decode_headers(columns, &input, records);
	if (err)
		return err;

	sort_by_class(columns);
	find_prior(columns, records);
	for (unsigned int i = 0; i < columns->classes && !err; i++) {
		struct view view = { columns, &columns->class[i], records };

		find_last_cpu(&view);
		for (unsigned int j = 0; j < view.class->count && !err; j++)
			err = decode_column(&view, &view.class->column[j], &input);
	}
	return err || !input.left ? err : -EBADMSG;
}
