// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reads profile.proto of pprof. A profile refers to strings by their position and to
 * mappings, functions and locations by ids, which may come before or after what they name.
 * So the file is passed over several times: strings, then mappings and functions, then
 * locations, then samples.
 *
 * The values in a profile are unsampled already. The variance of a stack follows from its
 * mean size and the rate, which is the period.
 */
#include <stdlib.h>
#include <string.h>

#include "heap/pprof.h"
#include "heap/wire.h"
#include "base/array.h"
#include "base/context.h"

/* More functions than this are not inlined into one; stacks would grow without bound. */
#define LINES_MAX  128
#define VALUES_MAX 64

/* From ids in the file to numbers of the heap. */
struct id_map {
	struct id_entry {
		uint64_t id;
		uint32_t number;
	} * entries;
	uint32_t count, capacity;
	struct mw_index index;
};

struct value_type {
	uint64_t name, unit; /* positions of strings */
};

/**
 * struct pprof - a file that is being read
 * @strings: from positions to strings of the heap
 * @types: what the values of a sample are
 * @metric: from the position of a value to its metric, or -1
 * @unit: the factor of a value
 * @functions: numbers are positions in @lines, of which the line number is 0
 */
struct pprof {
	struct memwatch_heap *heap;
	struct mw_wire file;
	uint32_t *strings;
	uint32_t nr_strings, string_capacity;
	struct value_type types[VALUES_MAX];
	int metric[VALUES_MAX];
	double unit[VALUES_MAX];
	uint32_t nr_types;
	struct value_type period_type;
	uint64_t period;
	struct id_map mappings, functions, locations;
	struct mw_prof_line *lines;
	uint32_t nr_lines, line_capacity;
	uint32_t *stack;
	size_t stack_room;
};

bool mw_pprof_is(const struct mw_input *input)
{
	struct mw_wire file = { .at = (const uint8_t *)input->bytes, .len = input->len };
	struct mw_wire_field field;
	bool has_type = false;

	/* Nearly any text decodes for a while; a profile does so to its end. */
	while (mw_wire_next(&file, &field))
		has_type |= field.number == MW_PPROF_SAMPLE_TYPE && field.is_bytes;
	return has_type && !file.damaged;
}

static int damaged(const struct pprof *p, const char *what)
{
	return mw_fail(p->heap->ctx, -EBADMSG, "pprof profile: %s", what);
}

static int no_memory(const struct pprof *p)
{
	return mw_fail_memory(p->heap->ctx, "pprof profile");
}

static uint32_t id_map_find(const struct pprof *p, const struct id_map *map, uint64_t id)
{
	uint32_t hash = mw_strings_hash(p->heap->strings.seed, &id, sizeof(id)), at, number;

	mw_index_for_each (&map->index, hash, &at, number)
		if (map->entries[number].id == id)
			return map->entries[number].number;
	return MW_PROF_NONE;
}

/* Ids are unique, so that a search for one is short. */
static int id_map_add(const struct pprof *p, struct id_map *map, uint64_t id, uint32_t number)
{
	uint32_t hash = mw_strings_hash(p->heap->strings.seed, &id, sizeof(id));

	if (id_map_find(p, map, id) != MW_PROF_NONE)
		return damaged(p, "an id is repeated");
	if (mw_array_reserve(map->entries, map->capacity, map->count + 1U) ||
	    mw_index_insert(&map->index, hash, map->count))
		return no_memory(p);
	map->entries[map->count++] = (struct id_entry){ id, number };
	return 0;
}

static void id_map_uninit(struct id_map *map)
{
	free(map->entries);
	mw_index_free(&map->index);
}

/* The string at a position; "" if there is none. */
static uint32_t string_at(const struct pprof *p, uint64_t position)
{
	return position < p->nr_strings ? p->strings[position] : 0;
}

static bool string_is(const struct pprof *p, uint64_t position, const char *text)
{
	return !strcmp(mw_strings_text(&p->heap->strings, string_at(p, position)), text);
}

static struct value_type read_type(struct mw_wire message)
{
	struct value_type type = { 0 };
	struct mw_wire_field field;

	while (mw_wire_next(&message, &field)) {
		if (field.number == MW_PPROF_TYPE_NAME)
			type.name = field.value;
		else if (field.number == MW_PPROF_TYPE_UNIT)
			type.unit = field.value;
	}
	return type;
}

/* Strings, and what describes the profile. */
static int read_head_field(struct pprof *p, const struct mw_wire_field *field)
{
	struct memwatch_heap_info *info = &mw_heap_last(p->heap)->info;

	switch (field->number) {
	case MW_PPROF_STRING:
		if (!field->is_bytes)
			return damaged(p, "a string is not one");
		if (mw_array_reserve(p->strings, p->string_capacity, p->nr_strings + 1U) ||
		    mw_strings_add_text(&p->heap->strings, field->bytes.at, field->bytes.len,
					&p->strings[p->nr_strings++]))
			return no_memory(p);
		break;
	case MW_PPROF_SAMPLE_TYPE:
		if (p->nr_types == VALUES_MAX)
			return damaged(p, "it has too many types of values");
		p->types[p->nr_types++] = read_type(field->bytes);
		break;
	case MW_PPROF_PERIOD_TYPE:
		p->period_type = read_type(field->bytes);
		break;
	case MW_PPROF_PERIOD:
		p->period = field->value;
		break;
	case MW_PPROF_TIME:
		info->end_ns = field->value;
		break;
	}
	return 0;
}

static int read_mapping(struct pprof *p, struct mw_wire message)
{
	/* The first mapping is that of the program. */
	struct mw_prof_mapping mapping = { .is_program = !mw_heap_last(p->heap)->mappings };
	struct mw_wire_field field;
	uint32_t number;
	uint64_t id = 0;

	while (mw_wire_next(&message, &field)) {
		if (field.number == MW_PPROF_ID)
			id = field.value;
		else if (field.number == MW_PPROF_MAPPING_START)
			mapping.start = field.value;
		else if (field.number == MW_PPROF_MAPPING_LIMIT)
			mapping.end = field.value;
		else if (field.number == MW_PPROF_MAPPING_OFFSET)
			mapping.offset = field.value;
		else if (field.number == MW_PPROF_MAPPING_FILE)
			mapping.path = string_at(p, field.value);
		else if (field.number == MW_PPROF_MAPPING_BUILD_ID)
			mapping.build_id = string_at(p, field.value);
	}
	if (message.damaged)
		return damaged(p, "a mapping is damaged");
	if (mw_heap_add_mapping(p->heap, &mapping, &number))
		return no_memory(p);
	return id_map_add(p, &p->mappings, id, number);
}

static int read_function(struct pprof *p, struct mw_wire message)
{
	struct mw_prof_line line = { 0 };
	struct mw_wire_field field;
	uint64_t id = 0;

	while (mw_wire_next(&message, &field)) {
		if (field.number == MW_PPROF_ID)
			id = field.value;
		else if (field.number == MW_PPROF_FUNCTION_NAME)
			line.function = string_at(p, field.value);
		else if (field.number == MW_PPROF_FUNCTION_FILE)
			line.file = string_at(p, field.value);
	}
	if (message.damaged)
		return damaged(p, "a function is damaged");
	if (mw_array_reserve(p->lines, p->line_capacity, p->nr_lines + 1U))
		return no_memory(p);
	p->lines[p->nr_lines] = line;
	return id_map_add(p, &p->functions, id, p->nr_lines++);
}

static int read_line(struct pprof *p, struct mw_wire message)
{
	struct mw_prof_line line = { 0 };
	uint32_t function = MW_PROF_NONE;
	struct mw_wire_field field;
	uint64_t number = 0;

	while (mw_wire_next(&message, &field)) {
		if (field.number == MW_PPROF_LINE_FUNCTION)
			function = id_map_find(p, &p->functions, field.value);
		else if (field.number == MW_PPROF_LINE_NUMBER)
			number = field.value;
	}
	if (message.damaged)
		return damaged(p, "a line is damaged");
	if (function != MW_PROF_NONE)
		line = p->lines[function];
	line.number = number <= INT32_MAX ? (uint32_t)number : 0;
	return mw_heap_add_line(p->heap, &line) ? no_memory(p) : 0;
}

static int read_location(struct pprof *p, struct mw_wire message)
{
	struct mw_prof_location location = { .mapping = MW_PROF_NONE,
					     .first_line = p->heap->nr_lines };
	struct mw_wire_field field;
	uint32_t number;
	uint64_t id = 0;

	while (mw_wire_next(&message, &field)) {
		int err = 0;

		if (field.number == MW_PPROF_ID)
			id = field.value;
		else if (field.number == MW_PPROF_LOCATION_MAPPING)
			location.mapping = id_map_find(p, &p->mappings, field.value);
		else if (field.number == MW_PPROF_LOCATION_ADDRESS)
			location.address = field.value;
		else if (field.number == MW_PPROF_LOCATION_LINE && location.lines++ < LINES_MAX)
			err = read_line(p, field.bytes);
		if (err)
			return err;
	}
	if (message.damaged || location.lines > LINES_MAX)
		return damaged(p, "a location is damaged or has too many lines");
	if (mw_heap_add_location(p->heap, &location, &number))
		return no_memory(p);
	return id_map_add(p, &p->locations, id, number);
}

static int push_location(struct pprof *p, size_t *len, uint64_t id)
{
	uint32_t number = id_map_find(p, &p->locations, id);

	if (number == MW_PROF_NONE)
		return damaged(p, "a sample has a location that does not exist");
	if (mw_array_reserve(p->stack, p->stack_room, *len + 1))
		return no_memory(p);
	p->stack[(*len)++] = number;
	return 0;
}

static void take_value(const struct pprof *p, struct mw_prof_sample *sample, uint32_t position,
		       uint64_t value)
{
	if (position < p->nr_types && p->metric[position] >= 0)
		sample->sum[p->metric[position]].value += (double)(int64_t)value *
							  p->unit[position];
}

/* Repeated integers are packed into one field, or each has a field. */
static int read_sample_field(struct pprof *p, struct mw_wire_field *field,
			     struct mw_prof_sample *sample, size_t *len, uint32_t *values)
{
	bool locations = field->number == MW_PPROF_SAMPLE_LOCATIONS;
	uint64_t value = field->value;
	int err = 0;

	if (!locations && field->number != MW_PPROF_SAMPLE_VALUES)
		return 0;
	while (!err && (!field->is_bytes || mw_wire_integer(&field->bytes, &value))) {
		if (locations)
			err = push_location(p, len, value);
		else
			take_value(p, sample, (*values)++, value);
		if (!field->is_bytes)
			break;
	}
	return !err && field->bytes.damaged ? damaged(p, "a sample is damaged") : err;
}

static int read_sample(struct pprof *p, struct mw_wire message)
{
	double rate = (double)mw_heap_last(p->heap)->info.rate_bytes;
	struct mw_prof_sample sample = { .birth_ns = MW_PROF_BIRTH_UNKNOWN, .count = 1 };
	struct mw_wire_field field;
	uint32_t values = 0;
	size_t len = 0;
	int err;

	while (mw_wire_next(&message, &field)) {
		err = read_sample_field(p, &field, &sample, &len, &values);
		if (err)
			return err;
	}
	if (message.damaged)
		return damaged(p, "a sample is damaged");
	mw_heap_estimate_variance(rate, &sample.sum[MEMWATCH_HEAP_LIVE_OBJECTS],
				  &sample.sum[MEMWATCH_HEAP_LIVE_BYTES]);
	mw_heap_estimate_variance(rate, &sample.sum[MEMWATCH_HEAP_ALLOCATED_OBJECTS],
				  &sample.sum[MEMWATCH_HEAP_ALLOCATED_BYTES]);
	if (mw_heap_add_stack(p->heap, p->stack, len, &sample.stack) ||
	    mw_heap_add_sample(p->heap, &sample))
		return no_memory(p);
	return 0;
}

static double unit_factor(const struct pprof *p, uint64_t unit)
{
	static const struct {
		const char *name;
		double factor;
	} units[] = {
		{ "bytes", 1 },	    { "kilobytes", 1024 }, { "megabytes", 1048576 },
		{ "byte", 1 },	    { "kb", 1024 },	   { "mb", 1048576 },
		{ "kbytes", 1024 }, { "mbytes", 1048576 },
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (string_is(p, unit, units[i].name))
			return units[i].factor;
	return 0;
}

/* A profile without the names of heap profiles counts something, such as goroutines. */
static int find_other_metric(struct pprof *p, struct mw_prof_profile *profile)
{
	double factor = unit_factor(p, p->types[0].unit);

	if (!p->nr_types)
		return damaged(p, "it does not say what its values are");
	if (!factor && !string_is(p, p->types[0].unit, "count"))
		return damaged(p, "its values are neither bytes nor objects");
	for (uint32_t i = 0; i < p->nr_types; i++)
		if (string_is(p, p->types[i].unit, "nanoseconds"))
			return damaged(p, "it is a profile of time, not of memory");
	p->metric[0] = factor ? MEMWATCH_HEAP_LIVE_BYTES : MEMWATCH_HEAP_LIVE_OBJECTS;
	p->unit[0] = factor ?: 1;
	profile->info.metrics = 1U << p->metric[0];
	profile->objects = factor ? 0 : string_at(p, p->types[0].name);
	return 0;
}

static int find_metrics(struct pprof *p)
{
	static const struct {
		const char *name;
		int metric;
	} known[] = {
		{ "inuse_space", MEMWATCH_HEAP_LIVE_BYTES },
		{ "inuse_objects", MEMWATCH_HEAP_LIVE_OBJECTS },
		{ "space", MEMWATCH_HEAP_LIVE_BYTES },
		{ "objects", MEMWATCH_HEAP_LIVE_OBJECTS },
		{ "alloc_space", MEMWATCH_HEAP_ALLOCATED_BYTES },
		{ "alloc_objects", MEMWATCH_HEAP_ALLOCATED_OBJECTS },
	};
	struct mw_prof_profile *profile = mw_heap_last(p->heap);
	bool is_space;

	for (uint32_t i = 0; i < p->nr_types; i++) {
		p->metric[i] = -1;
		for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++) {
			if (!string_is(p, p->types[i].name, known[k].name) ||
			    profile->info.metrics & 1U << known[k].metric)
				continue;
			p->metric[i] = known[k].metric;
			p->unit[i] = unit_factor(p, p->types[i].unit) ?: 1;
			profile->info.metrics |= 1U << known[k].metric;
			break;
		}
	}
	is_space = string_is(p, p->period_type.name, "space") &&
		   unit_factor(p, p->period_type.unit) == 1;
	profile->info.rate_bytes = is_space && p->period <= INT64_MAX ? p->period : 0;
	return profile->info.metrics ? 0 : find_other_metric(p, profile);
}

static int read_pass(struct pprof *p, int pass)
{
	struct mw_wire file = p->file;
	struct mw_wire_field field;
	int err = 0;

	while (!err && mw_wire_next(&file, &field)) {
		if (pass == 0)
			err = read_head_field(p, &field);
		else if (pass == 1 && field.number == MW_PPROF_MAPPING)
			err = read_mapping(p, field.bytes);
		else if (pass == 1 && field.number == MW_PPROF_FUNCTION)
			err = read_function(p, field.bytes);
		else if (pass == 2 && field.number == MW_PPROF_LOCATION)
			err = read_location(p, field.bytes);
		else if (pass == 3 && field.number == MW_PPROF_SAMPLE)
			err = read_sample(p, field.bytes);
	}
	if (!err && file.damaged)
		err = damaged(p, "it is damaged or cut off");
	return err;
}

int mw_pprof_read(struct memwatch_heap *heap, const struct mw_input *input)
{
	struct pprof p = { .heap = heap,
			   .file = { .at = (const uint8_t *)input->bytes, .len = input->len } };
	int err = read_pass(&p, 0) ?: find_metrics(&p);

	for (int pass = 1; pass < 4 && !err; pass++)
		err = read_pass(&p, pass);
	id_map_uninit(&p.mappings);
	id_map_uninit(&p.functions);
	id_map_uninit(&p.locations);
	free(p.strings);
	free(p.lines);
	free(p.stack);
	return err;
}
