// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Columns. Each field of each record type has one; what goes in is the
 * difference from a prediction, as a variable-length integer. Coder and decoder
 * share the table of fields and the predictions, so they cannot disagree.
 */
#include "record-codec.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <linux/memwatch.h>

#include "ring.h"

/* What a field is expected to be. */
enum predictor {
	P_ZERO, /* anything */
	P_SAME, /* as in the record of this type before */
	P_CPU,	/* as in the record of this type from this CPU before */
	P_RMID, /* as in the record of this type about this RMID before */
	P_TIME, /* the time of the record */
	P_TICK, /* the time of the last tick of this CPU */
	P_RUN,	/* the whole interval: time - begin_ns */
};

struct field {
	uint16_t offset;
	uint8_t width; /* 4 or 8; 0: no more fields */
	uint8_t predictor;
};

#define FIELDS_MAX 12

#define F(type, member, predictor) \
	{ offsetof(struct memwatch_record_##type, member), \
	  sizeof(((struct memwatch_record_##type *)0)->member), predictor }
/* four bytes that are not one integer */
#define F4(type, member, predictor) { offsetof(struct memwatch_record_##type, member), 4, predictor }

/* All of a structure from the header on, without gaps; comm is left to the tail. */
static const struct field sample_fields[FIELDS_MAX] = {
	F(sample, rmid, P_ZERO),
	F(sample, generation, P_RMID),
	F(sample, begin_ns, P_TICK),
	F(sample, run_ns, P_RUN),
	F(sample, counter[0], P_ZERO),
	F(sample, counter[1], P_ZERO),
	F(sample, counter[2], P_ZERO),
	F(sample, counter[3], P_ZERO),
	F4(sample, status, P_SAME),
	F(sample, running_ppm, P_SAME),
};

static const struct field tick_fields[FIELDS_MAX] = {
	F(tick, expected_ns, P_TIME), F(tick, period_ns, P_SAME), F(tick, overruns, P_ZERO),
	F(tick, produced, P_CPU),     F(tick, dropped, P_CPU),
};

static const struct field rmid_fields[FIELDS_MAX] = {
	F(rmid, rmid, P_SAME),		F(rmid, generation, P_RMID), F(rmid, tgid, P_SAME),
	F(rmid, parent_tgid, P_SAME),	F(rmid, start_time_ns, P_SAME),
	F(rmid, alloc_time_ns, P_TIME), F(rmid, cgroup_id, P_SAME),  F(rmid, uid, P_SAME),
	F(rmid, reason, P_SAME),
};

static const struct field dump_fields[FIELDS_MAX] = {
	F(dump, sequence, P_SAME), F(dump, count, P_ZERO), F(dump, unmeasured, P_ZERO),
};

static const struct field cpu_fields[FIELDS_MAX] = {
	F(cpu, state, P_ZERO), F(cpu, reserved, P_ZERO), F(cpu, since_ns, P_TIME),
};

static const struct field rdt_fields[FIELDS_MAX] = {
	F(rdt, rmid, P_SAME),	  F(rdt, generation, P_RMID), F(rdt, domain, P_SAME),
	F4(rdt, status, P_SAME),  F(rdt, value[0], P_RMID),   F(rdt, value[1], P_RMID),
	F(rdt, value[2], P_RMID), F(rdt, age_ns, P_SAME),
};

static const struct field lost_fields[FIELDS_MAX] = {
	F(lost, begin_ns, P_TIME), F(lost, count, P_ZERO),
};

static const struct field no_fields[FIELDS_MAX] = { { 0 } };

/* Types that share fields share columns. */
#define GROUPS 8

static unsigned int group_of(unsigned int type)
{
	switch (type) {
	case MEMWATCH_RECORD_SAMPLE:
		return 1;
	case MEMWATCH_RECORD_TICK:
		return 2;
	case MEMWATCH_RECORD_RMID_ALLOC:
	case MEMWATCH_RECORD_RMID_EXISTING:
	case MEMWATCH_RECORD_RMID_EXEC:
	case MEMWATCH_RECORD_RMID_FREE:
		return 3;
	case MEMWATCH_RECORD_DUMP_BEGIN:
	case MEMWATCH_RECORD_DUMP_END:
		return 4;
	case MEMWATCH_RECORD_CPU_STATE:
		return 5;
	case MEMWATCH_RECORD_RDT:
		return 6;
	case MEMWATCH_RECORD_LOST:
		return 7;
	default:
		return 0;
	}
}

static const struct field *const groups[GROUPS] = {
	no_fields,   sample_fields, tick_fields, rmid_fields,
	dump_fields, cpu_fields,    rdt_fields,	 lost_fields,
};

/* Columns that every record has a part in come first. */
enum {
	COLUMN_SHAPE, /* one byte: number of the shape, SHAPE_NEW: it follows in the next */
	COLUMN_SHAPES,
	COLUMN_CPU,
	COLUMN_TIME,
	COLUMN_TAIL,
	COLUMN_FIELDS,
	COLUMNS = COLUMN_FIELDS + GROUPS * FIELDS_MAX,
};

/* Type, size and flags of a record; few different ones in a block. */
struct shape {
	uint16_t type;
	uint16_t size;
	uint16_t flags;
};

#define SHAPE_NEW 255

#define CPUS  256 /* memory of predictions; what shares a place predicts worse, no more */
#define RMIDS 1024

struct memory {
	uint64_t time_ns;
	uint64_t tick_ns[CPUS];
	uint64_t same[GROUPS][FIELDS_MAX];
	uint64_t cpu[CPUS][FIELDS_MAX]; /* ticks only use it */
	uint64_t rmid[2][RMIDS][FIELDS_MAX]; /* RDT; all others */
	struct shape shapes[SHAPE_NEW];
	unsigned int nr_shapes;
};

struct column {
	uint8_t *bytes;
	size_t count;
	size_t max;
};

struct mw_codec {
	struct memory memory;
	struct column columns[COLUMNS];
	struct column out;
};

int mw_codec_new(struct mw_codec **ret)
{
	struct mw_codec *codec = calloc(1, sizeof(*codec));

	if (!codec)
		return -ENOMEM;
	*ret = codec;
	return 0;
}

void mw_codec_free(struct mw_codec *codec)
{
	if (!codec)
		return;
	for (int i = 0; i < COLUMNS; i++)
		free(codec->columns[i].bytes);
	free(codec->out.bytes);
	free(codec);
}

static int reserve(struct column *column, size_t more)
{
	size_t max = column->max ? column->max : 256;
	uint8_t *bytes;

	if (more <= column->max - column->count)
		return 0;
	while (max - column->count < more)
		max *= 2;
	bytes = realloc(column->bytes, max);
	if (!bytes)
		return -ENOMEM;
	column->bytes = bytes;
	column->max = max;
	return 0;
}

/* --------------------------------------------------------- predictions */

static uint64_t load(const void *record, const struct field *field)
{
	const uint8_t *at = (const uint8_t *)record + field->offset;
	uint64_t wide = 0;

	memcpy(&wide, at, field->width); /* little endian, as the format */
	return wide;
}

static uint64_t *remembered(struct memory *memory, const struct memwatch_record_header *header,
			    unsigned int group, unsigned int number)
{
	uint32_t rmid;

	switch (groups[group][number].predictor) {
	case P_CPU:
		return &memory->cpu[header->cpu % CPUS][number];
	case P_RMID:
		/* all records about an RMID start with it */
		memcpy(&rmid, header + 1, sizeof(rmid));
		return &memory->rmid[group != group_of(MEMWATCH_RECORD_RDT)][rmid % RMIDS][number];
	default:
		return &memory->same[group][number];
	}
}

static uint64_t predict(struct memory *memory, const struct memwatch_record_header *header,
			unsigned int group, unsigned int number)
{
	const struct memwatch_record_sample *sample;

	switch (groups[group][number].predictor) {
	case P_ZERO:
		return 0;
	case P_TIME:
		return header->time_ns;
	case P_TICK:
		return memory->tick_ns[header->cpu % CPUS];
	case P_RUN:
		sample = (const struct memwatch_record_sample *)header;
		return header->time_ns - sample->begin_ns;
	default:
		return *remembered(memory, header, group, number);
	}
}

/* A record is complete: it is what the next ones are compared with. */
static void remember(struct memory *memory, const struct memwatch_record_header *header,
		     unsigned int group)
{
	memory->time_ns = header->time_ns;
	if (header->type == MEMWATCH_RECORD_TICK)
		memory->tick_ns[header->cpu % CPUS] = header->time_ns;
	for (unsigned int i = 0; groups[group][i].width; i++)
		*remembered(memory, header, group, i) = load(header, &groups[group][i]);
}

/* Where the fields end and the tail begins. */
static size_t fields_end(unsigned int group)
{
	size_t end = sizeof(struct memwatch_record_header);

	for (unsigned int i = 0; groups[group][i].width; i++)
		end = groups[group][i].offset + groups[group][i].width;
	return end;
}

/* ------------------------------------------------------------- encoding */

static uint64_t zigzag(uint64_t difference)
{
	return difference << 1 ^ (uint64_t)((int64_t)difference >> 63);
}

static int put_number(struct column *column, uint64_t value)
{
	if (reserve(column, 10))
		return -ENOMEM;
	while (value >= 0x80) {
		column->bytes[column->count++] = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	column->bytes[column->count++] = (uint8_t)value;
	return 0;
}

static int put_bytes(struct column *column, const void *bytes, size_t count)
{
	if (!count)
		return 0;
	if (reserve(column, count))
		return -ENOMEM;
	memcpy(column->bytes + column->count, bytes, count);
	column->count += count;
	return 0;
}

static int put_shape(struct mw_codec *codec, const struct memwatch_record_header *header)
{
	struct memory *memory = &codec->memory;
	struct shape shape = { header->type, header->size, header->flags };
	uint8_t number;
	unsigned int i;

	for (i = 0; i < memory->nr_shapes; i++) {
		if (!memcmp(&memory->shapes[i], &shape, sizeof(shape)))
			break;
	}
	number = i < memory->nr_shapes ? (uint8_t)i : SHAPE_NEW;
	if (put_bytes(&codec->columns[COLUMN_SHAPE], &number, 1))
		return -ENOMEM;
	if (number != SHAPE_NEW)
		return 0;
	if (memory->nr_shapes < SHAPE_NEW)
		memory->shapes[memory->nr_shapes++] = shape;
	return put_bytes(&codec->columns[COLUMN_SHAPES], &shape, sizeof(shape));
}

static int encode_record(struct mw_codec *codec, const struct memwatch_record_header *header)
{
	unsigned int group = group_of(header->type);
	size_t end = fields_end(group);
	int err;

	err = put_shape(codec, header);
	err = err ? err : put_number(&codec->columns[COLUMN_CPU], header->cpu);
	err = err ? err : put_number(&codec->columns[COLUMN_TIME],
				     zigzag(header->time_ns - codec->memory.time_ns));
	for (unsigned int i = 0; groups[group][i].width && !err; i++) {
		struct column *column = &codec->columns[COLUMN_FIELDS + group * FIELDS_MAX + i];
		uint64_t value = load(header, &groups[group][i]);

		err = put_number(column,
				 zigzag(value - predict(&codec->memory, header, group, i)));
	}
	err = err ? err : put_bytes(&codec->columns[COLUMN_TAIL], (const uint8_t *)header + end,
				    header->size - end);
	remember(&codec->memory, header, group);
	return err;
}

static int join_columns(struct mw_codec *codec)
{
	struct column *out = &codec->out;

	out->count = 0;
	for (int i = 0; i < COLUMNS; i++) {
		uint32_t count = (uint32_t)codec->columns[i].count;

		if (put_bytes(out, &count, sizeof(count)))
			return -ENOMEM;
	}
	for (int i = 0; i < COLUMNS; i++) {
		if (codec->columns[i].count &&
		    put_bytes(out, codec->columns[i].bytes, codec->columns[i].count))
			return -ENOMEM;
	}
	return 0;
}

int mw_codec_encode(struct mw_codec *codec, const void *records, size_t bytes, const void **ret,
		    size_t *ret_bytes)
{
	const uint8_t *at = records;
	const uint8_t *end = at + bytes;

	memset(&codec->memory, 0, sizeof(codec->memory));
	for (int i = 0; i < COLUMNS; i++)
		codec->columns[i].count = 0;
	while (at < end) {
		const struct memwatch_record_header *header = (const void *)at;

		if (encode_record(codec, header))
			return -ENOMEM;
		at += header->size;
	}
	if (join_columns(codec))
		return -ENOMEM;
	*ret = codec->out.bytes;
	*ret_bytes = codec->out.count;
	return 0;
}

/* ------------------------------------------------------------- decoding */

/* A column being read. */
struct cursor {
	const uint8_t *at;
	const uint8_t *end;
};

static bool take_number(struct cursor *cursor, uint64_t *ret)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; shift < 64 && cursor->at < cursor->end; shift += 7) {
		uint8_t byte = *cursor->at++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret = value;
			return true;
		}
	}
	return false;
}

static bool take_bytes(struct cursor *cursor, void *to, size_t count)
{
	if (count > (size_t)(cursor->end - cursor->at))
		return false;
	if (count)
		memcpy(to, cursor->at, count);
	cursor->at += count;
	return true;
}

static uint64_t unzigzag(uint64_t value)
{
	return value >> 1 ^ -(value & 1);
}

static bool take_shape(struct memory *memory, struct cursor *cursors, struct shape *ret)
{
	uint8_t number;

	if (!take_bytes(&cursors[COLUMN_SHAPE], &number, 1))
		return false;
	if (number != SHAPE_NEW) {
		if (number >= memory->nr_shapes)
			return false;
		*ret = memory->shapes[number];
		return true;
	}
	if (!take_bytes(&cursors[COLUMN_SHAPES], ret, sizeof(*ret)))
		return false;
	if (memory->nr_shapes < SHAPE_NEW)
		memory->shapes[memory->nr_shapes++] = *ret;
	return true;
}

static bool decode_fields(struct memory *memory, struct cursor *cursors,
			  struct memwatch_record_header *header, unsigned int group)
{
	for (unsigned int i = 0; groups[group][i].width; i++) {
		const struct field *field = &groups[group][i];
		uint64_t value;

		if (!take_number(&cursors[COLUMN_FIELDS + group * FIELDS_MAX + i], &value))
			return false;
		value = unzigzag(value) + predict(memory, header, group, i);
		memcpy((uint8_t *)header + field->offset, &value, field->width);
	}
	return true;
}

static int decode_record(struct mw_codec *codec, struct cursor *cursors)
{
	struct memwatch_record_header *header;
	struct memory *memory = &codec->memory;
	uint64_t cpu, time_ns;
	unsigned int group;
	struct shape shape;
	size_t end;

	if (!take_shape(memory, cursors, &shape) || !take_number(&cursors[COLUMN_CPU], &cpu) ||
	    !take_number(&cursors[COLUMN_TIME], &time_ns) || cpu > UINT16_MAX ||
	    codec->out.count + shape.size > MW_CODEC_BYTES_MAX)
		return -EBADMSG;
	if (reserve(&codec->out, UINT16_MAX))
		return -ENOMEM;

	header = (struct memwatch_record_header *)(codec->out.bytes + codec->out.count);
	header->time_ns = unzigzag(time_ns) + memory->time_ns;
	header->type = shape.type;
	header->size = shape.size;
	header->cpu = (uint16_t)cpu;
	header->flags = shape.flags;
	if (!mw_record_valid(header, UINT16_MAX))
		return -EBADMSG;
	group = group_of(shape.type);
	end = fields_end(group);
	if (!decode_fields(memory, cursors, header, group) ||
	    !take_bytes(&cursors[COLUMN_TAIL], (uint8_t *)header + end, shape.size - end))
		return -EBADMSG;
	remember(memory, header, group);
	codec->out.count += shape.size;
	return 0;
}

static bool split_columns(const uint8_t *bytes, size_t count, struct cursor *cursors)
{
	const uint8_t *at = bytes + COLUMNS * sizeof(uint32_t);
	const uint8_t *end = bytes + count;

	if (count < COLUMNS * sizeof(uint32_t))
		return false;
	for (int i = 0; i < COLUMNS; i++) {
		uint32_t length;

		memcpy(&length, bytes + (size_t)i * sizeof(length), sizeof(length));
		if (length > (size_t)(end - at))
			return false;
		cursors[i] = (struct cursor){ at, at + length };
		at += length;
	}
	return at == end;
}

int mw_codec_decode(struct mw_codec *codec, const void *columns, size_t bytes, const void **ret,
		    size_t *ret_bytes)
{
	struct cursor cursors[COLUMNS];
	int err;

	memset(&codec->memory, 0, sizeof(codec->memory));
	codec->out.count = 0;
	if (!split_columns(columns, bytes, cursors))
		return -EBADMSG;
	while (cursors[COLUMN_SHAPE].at < cursors[COLUMN_SHAPE].end) {
		err = decode_record(codec, cursors);
		if (err)
			return err;
	}
	for (int i = 0; i < COLUMNS; i++) {
		if (cursors[i].at != cursors[i].end)
			return -EBADMSG;
	}
	*ret = codec->out.bytes;
	*ret_bytes = codec->out.count;
	return 0;
}
