// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Writes profile.proto of pprof, compressed with gzip. Mappings and locations have their
 * numbers in the heap, plus 1, as ids; only those in use are written, and the program.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "heap/pprof.h"
#include "heap/wire.h"
#include "base/array.h"
#include "base/context.h"
#include "base/file-io.h"

/* Whether a mapping is in use, and what is known about the code in it. */
struct pprof_mapping {
	bool used, has_functions, has_files, has_lines, has_inlines;
};

/**
 * struct pprof_writer - a profile that is being written
 * @out: the message
 * @inner, @innermost: messages in it
 * @position: of each string of the heap, its position in the file plus 1; 0: none yet
 * @order: strings of the heap in the order of their positions
 * @used_location: whether a sample has the location
 * @mappings: what is known about each mapping of the heap
 * @functions: interned struct pprof_function; their numbers are ids
 */
struct pprof_writer {
	struct memwatch_heap *heap;
	const struct mw_prof_profile *profile;
	struct mw_wire_out out, inner, innermost;
	uint32_t *position, *order;
	uint32_t nr_order;
	bool *used_location;
	struct pprof_mapping *mappings;
	struct mw_strings functions;
};

/* Strings of the heap; an element of @functions. */
struct pprof_function {
	uint32_t name, file;
};

/* Order of the values in a sample, which is that of Go. The last one is shown first. */
static const struct {
	const char *name, *unit;
	int metric;
} value_types[] = {
	{ "alloc_objects", "count", MEMWATCH_HEAP_ALLOCATED_OBJECTS },
	{ "alloc_space", "bytes", MEMWATCH_HEAP_ALLOCATED_BYTES },
	{ "inuse_objects", "count", MEMWATCH_HEAP_LIVE_OBJECTS },
	{ "inuse_space", "bytes", MEMWATCH_HEAP_LIVE_BYTES },
};

#define NR_TYPES (sizeof(value_types) / sizeof(value_types[0]))

static const char *const fixed_strings[] = {
	"",	 "alloc_objects", "alloc_space", "inuse_objects", "inuse_space",
	"count", "bytes",	  "space",
};

#define NR_FIXED (sizeof(fixed_strings) / sizeof(fixed_strings[0]))

static uint32_t fixed_string(const char *text)
{
	uint32_t i = 0;

	while (i < NR_FIXED - 1 && strcmp(fixed_strings[i], text))
		i++;
	return i;
}

/* The position of a string of the heap, which is given one if it has none yet. */
static uint64_t string_position(struct pprof_writer *w, uint32_t string)
{
	if (!string)
		return 0;
	if (!w->position[string]) {
		w->order[w->nr_order++] = string;
		w->position[string] = w->nr_order;
	}
	return w->position[string] - 1 + NR_FIXED;
}

static void put_type(struct pprof_writer *w, uint32_t field, uint64_t name, const char *unit)
{
	mw_wire_put(&w->inner, MW_PPROF_TYPE_NAME, name);
	mw_wire_put(&w->inner, MW_PPROF_TYPE_UNIT, fixed_string(unit));
	mw_wire_put_message(&w->out, field, &w->inner);
}

static bool has_metric(const struct pprof_writer *w, int metric)
{
	return w->profile->info.metrics & 1U << metric;
}

static void put_head(struct pprof_writer *w)
{
	const struct memwatch_heap_info *info = &w->profile->info;

	for (size_t i = 0; i < NR_TYPES; i++) {
		uint64_t name = fixed_string(value_types[i].name);

		if (!has_metric(w, value_types[i].metric))
			continue;
		/* What is not an object keeps its name: goroutines, for example. */
		if (value_types[i].metric == MEMWATCH_HEAP_LIVE_OBJECTS && w->profile->objects)
			name = string_position(w, w->profile->objects);
		put_type(w, MW_PPROF_SAMPLE_TYPE, name, value_types[i].unit);
	}
	mw_wire_put(&w->out, MW_PPROF_TIME, info->end_ns);
	if (info->start_ns && info->end_ns > info->start_ns)
		mw_wire_put(&w->out, MW_PPROF_DURATION, info->end_ns - info->start_ns);
	if (info->rate_bytes) {
		put_type(w, MW_PPROF_PERIOD_TYPE, fixed_string("space"), "bytes");
		mw_wire_put(&w->out, MW_PPROF_PERIOD, info->rate_bytes);
	}
	if (has_metric(w, MEMWATCH_HEAP_LIVE_BYTES))
		mw_wire_put(&w->out, MW_PPROF_DEFAULT_TYPE, fixed_string("inuse_space"));
}

/* Marks the mapping of a location that is in use. */
static void mark_mapping(struct pprof_writer *w, const struct mw_prof_location *location)
{
	struct pprof_mapping *known;

	if (location->mapping == MW_PROF_NONE)
		return;
	known = &w->mappings[location->mapping];
	known->used = true;
	known->has_inlines |= location->lines > 1;
	for (uint32_t i = 0; i < location->lines; i++) {
		const struct mw_prof_line *line = &w->heap->lines[location->first_line + i];

		known->has_functions |= line->function != 0;
		known->has_files |= line->file != 0;
		known->has_lines |= line->number != 0;
	}
}

/* Where a mapping has no flag set, pprof looks for symbols itself and replaces those there are. */
static void put_mapping(struct pprof_writer *w, uint32_t number)
{
	const struct mw_prof_mapping *mapping = &w->heap->mappings[number];
	const struct pprof_mapping *known = &w->mappings[number];

	mw_wire_put(&w->inner, MW_PPROF_ID, number + 1ULL);
	mw_wire_put(&w->inner, MW_PPROF_MAPPING_START, mapping->start);
	mw_wire_put(&w->inner, MW_PPROF_MAPPING_LIMIT, mapping->end);
	mw_wire_put(&w->inner, MW_PPROF_MAPPING_OFFSET, mapping->offset);
	mw_wire_put(&w->inner, MW_PPROF_MAPPING_FILE, string_position(w, mapping->path));
	mw_wire_put(&w->inner, MW_PPROF_MAPPING_BUILD_ID, string_position(w, mapping->build_id));
	mw_wire_put(&w->inner, MW_PPROF_MAPPING_HAS_FUNCTIONS, known->has_functions);
	mw_wire_put(&w->inner, MW_PPROF_MAPPING_HAS_FILES, known->has_files);
	mw_wire_put(&w->inner, MW_PPROF_MAPPING_HAS_LINES, known->has_lines);
	mw_wire_put(&w->inner, MW_PPROF_MAPPING_HAS_INLINES, known->has_inlines);
	mw_wire_put_message(&w->out, MW_PPROF_MAPPING, &w->inner);
}

/* The first mapping is that of the program, if it is known, even if no sample has code of it. */
static void put_mappings(struct pprof_writer *w)
{
	uint32_t first = w->profile->first_mapping, end = first + w->profile->mappings;
	uint32_t program = first;

	while (program < end && !w->heap->mappings[program].is_program)
		program++;
	if (program < end)
		put_mapping(w, program);
	for (uint32_t i = first; i < end; i++)
		if (i != program && w->mappings[i].used)
			put_mapping(w, i);
}

/* The id of the function of a line; 0 if there is no memory. */
static uint32_t function_id(struct pprof_writer *w, const struct mw_prof_line *line)
{
	struct pprof_function function = { line->function, line->file };
	uint32_t id = 0;

	if (mw_strings_add(&w->functions, &function, sizeof(function), &id))
		w->out.failed = true;
	return id;
}

static void put_functions(struct pprof_writer *w)
{
	/* Number 0 is the empty string, which is no function. */
	for (uint32_t id = 1; id < w->functions.count; id++) {
		const struct pprof_function *function = (const void *)mw_strings_text(&w->functions,
										      id);

		mw_wire_put(&w->inner, MW_PPROF_ID, id);
		mw_wire_put(&w->inner, MW_PPROF_FUNCTION_NAME, string_position(w, function->name));
		mw_wire_put(&w->inner, MW_PPROF_FUNCTION_FILE, string_position(w, function->file));
		mw_wire_put_message(&w->out, MW_PPROF_FUNCTION, &w->inner);
	}
}

static void put_location(struct pprof_writer *w, uint32_t number)
{
	const struct mw_prof_location *location = &w->heap->locations[number];

	mw_wire_put(&w->inner, MW_PPROF_ID, number + 1ULL);
	if (location->mapping != MW_PROF_NONE)
		mw_wire_put(&w->inner, MW_PPROF_LOCATION_MAPPING, location->mapping + 1ULL);
	mw_wire_put(&w->inner, MW_PPROF_LOCATION_ADDRESS, location->address);
	for (uint32_t i = 0; i < location->lines; i++) {
		const struct mw_prof_line *line = &w->heap->lines[location->first_line + i];

		mw_wire_put(&w->innermost, MW_PPROF_LINE_FUNCTION, function_id(w, line));
		mw_wire_put(&w->innermost, MW_PPROF_LINE_NUMBER, line->number);
		mw_wire_put_message(&w->inner, MW_PPROF_LOCATION_LINE, &w->innermost);
	}
	mw_wire_put_message(&w->out, MW_PPROF_LOCATION, &w->inner);
}

static void put_sample(struct pprof_writer *w, uint32_t stack, const struct mw_prof_sum *sums)
{
	const uint32_t *locations;
	uint32_t nr;

	locations = mw_heap_stack(w->heap, stack, &nr);
	for (uint32_t i = 0; i < nr; i++) {
		mw_wire_put_integer(&w->innermost, locations[i] + 1ULL);
		w->used_location[locations[i]] = true;
	}
	mw_wire_put_message(&w->inner, MW_PPROF_SAMPLE_LOCATIONS, &w->innermost);
	for (size_t i = 0; i < NR_TYPES; i++)
		if (has_metric(w, value_types[i].metric))
			mw_wire_put_integer(&w->innermost,
					    (uint64_t)llround(sums[value_types[i].metric].value));
	mw_wire_put_message(&w->inner, MW_PPROF_SAMPLE_VALUES, &w->innermost);
	mw_wire_put_message(&w->out, MW_PPROF_SAMPLE, &w->inner);
}

/* One sample for each stack. */
static int put_samples(struct pprof_writer *w)
{
	uint32_t nr = w->heap->stacks.count;
	struct mw_prof_sum(*sums)[MEMWATCH_HEAP_METRICS] = calloc(nr, sizeof(*sums));
	bool *used = calloc(nr, sizeof(*used));

	if (!sums || !used) {
		free(sums);
		free(used);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < w->profile->nr_samples; i++) {
		const struct mw_prof_sample *sample = &w->profile->samples[i];

		used[sample->stack] = true;
		for (int m = 0; m < MEMWATCH_HEAP_METRICS; m++)
			sums[sample->stack][m].value += sample->sum[m].value;
	}
	for (uint32_t i = 0; i < nr; i++)
		if (used[i])
			put_sample(w, i, sums[i]);
	free(sums);
	free(used);
	return 0;
}

static void put_strings(struct pprof_writer *w)
{
	const struct mw_strings *strings = &w->heap->strings;

	for (size_t i = 0; i < NR_FIXED; i++)
		mw_wire_put_bytes(&w->out, MW_PPROF_STRING, fixed_strings[i],
				  strlen(fixed_strings[i]));
	for (uint32_t i = 0; i < w->nr_order; i++)
		mw_wire_put_bytes(&w->out, MW_PPROF_STRING, mw_strings_text(strings, w->order[i]),
				  mw_strings_length(strings, w->order[i]));
}

static int put_profile(struct pprof_writer *w)
{
	int err;

	put_head(w);
	err = put_samples(w);
	if (err)
		return err;
	for (uint32_t i = 0; i < w->heap->nr_locations; i++) {
		if (!w->used_location[i])
			continue;
		mark_mapping(w, &w->heap->locations[i]);
		put_location(w, i);
	}
	put_mappings(w);
	put_functions(w);
	put_strings(w);
	return w->out.failed ? -ENOMEM : 0;
}

static int write_compressed(const struct mw_wire_out *out, int fd)
{
	uint8_t buffer[1 << 14];
	z_stream z = { .next_in = out->bytes };
	size_t rest = out->len;
	int err = 0, rc = Z_OK;

	if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY))
		return -ENOMEM;
	while (!err && rc != Z_STREAM_END) {
		if (!z.avail_in) {
			z.avail_in = rest > 1U << 30 ? 1U << 30 : (uInt)rest;
			rest -= z.avail_in;
		}
		z.next_out = buffer;
		z.avail_out = sizeof(buffer);
		rc = deflate(&z, rest ? Z_NO_FLUSH : Z_FINISH);
		err = mw_file_write(fd, buffer, sizeof(buffer) - z.avail_out);
	}
	deflateEnd(&z);
	return err;
}

int memwatch_heap_write_pprof(struct memwatch_heap *heap, unsigned int profile, int fd)
{
	struct pprof_writer w = { .heap = heap };
	int err = 0;

	if (profile >= heap->nr_profiles)
		return mw_fail(heap->ctx, -ENOENT, "heap profile %u: does not exist", profile);
	w.profile = &heap->profiles[profile];
	w.position = calloc(heap->strings.count, sizeof(*w.position));
	w.order = calloc(heap->strings.count, sizeof(*w.order));
	w.used_location = calloc(heap->nr_locations + 1UL, sizeof(*w.used_location));
	w.mappings = calloc(heap->nr_mappings + 1UL, sizeof(*w.mappings));
	if (!w.position || !w.order || !w.used_location || !w.mappings ||
	    mw_strings_init(&w.functions))
		err = -ENOMEM;
	if (!err)
		err = put_profile(&w);
	if (!err)
		err = write_compressed(&w.out, fd);
	mw_wire_out_uninit(&w.out);
	mw_wire_out_uninit(&w.inner);
	mw_wire_out_uninit(&w.innermost);
	mw_strings_uninit(&w.functions);
	free(w.position);
	free(w.order);
	free(w.used_location);
	free(w.mappings);
	if (err == -ENOMEM)
		return mw_fail_memory(heap->ctx, "pprof profile");
	return err ? mw_fail(heap->ctx, err, "pprof profile: %s", strerror(-err)) : 0;
}
