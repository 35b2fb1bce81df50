// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reads the profiles of the memwatch heap profiler. The file belongs to the profiled user,
 * and the process may be writing it: it was copied by read(), because a mapping of a file
 * that somebody truncates raises SIGBUS, and every number in the copy is checked. Copies that
 * other programs have made of a file that was being written may lack anything.
 */
#include "heap/memwatch-profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "heap/profile-format.h"
#include "heap/interpreter.h"
#include "heap/profile-file.h"
#include "heap/python-lines.h"
#include "base/array.h"
#include "base/context.h"
#include "base/timemath.h"

/**
 * struct own_profile - a file that is being read
 * @end_ns: latest time in the file, CLOCK_MONOTONIC
 * @module_mapping: of each module, its mapping in the heap
 * @stack_of: of each stack, its number in the heap
 * @codes, @nr_codes: code objects of an interpreter
 * @line_runs: their lines
 * @by_frame: from the hash of a frame to its position in @frames
 * @frames, @locations: frames that were seen, and their locations in the heap
 */
struct own_profile {
	struct memwatch_heap *heap;
	struct mw_profile_file file;
	uint64_t end_ns;
	uint32_t *module_mapping;
	uint32_t *stack_of;
	struct own_code {
		uint32_t function, file; /* strings */
		uint32_t first_line;
		uint32_t first_run, end_run;
	} * codes;
	uint64_t nr_codes;
	struct mw_line_runs line_runs;
	struct mw_index by_frame;
	uint64_t *frames;
	uint32_t *locations;
	uint32_t nr_frames, frame_capacity, location_capacity;
};

bool mw_memwatch_profile_is(const struct mw_input *input)
{
	return input->len >= 8 && !memcmp(input->bytes, MW_HEAP_MAGIC, 8);
}

static int damaged(const struct own_profile *p, const char *what)
{
	return mw_fail(p->heap->ctx, -EBADMSG, "%s", what);
}

static int no_memory(const struct own_profile *p)
{
	return mw_fail_memory(p->heap->ctx, "heap profile");
}

/* What is not a string is "". */
static int read_string(struct own_profile *p, uint32_t kind, uint64_t at, uint32_t len,
		       uint32_t *ret)
{
	const char *text = len <= MW_HEAP_PATH_MAX ? mw_profile_bytes(&p->file, kind, at, len)
						   : NULL;

	*ret = 0;
	if (!text || !len)
		return 0;
	return mw_strings_add_text(&p->heap->strings, text, len, ret) ? no_memory(p) : 0;
}

static int read_build_id(struct own_profile *p, const struct mw_heap_module *module, uint32_t *ret)
{
	char digits[2 * MW_HEAP_BUILD_ID_MAX + 1];
	uint32_t len = module->build_id_bytes;

	*ret = 0;
	if (!len || len > MW_HEAP_BUILD_ID_MAX)
		return 0;
	for (uint32_t i = 0; i < len; i++) {
		digits[2 * i] = "0123456789abcdef"[module->build_id[i] >> 4];
		digits[2 * i + 1] = "0123456789abcdef"[module->build_id[i] & 15];
	}
	return mw_strings_add(&p->heap->strings, digits, 2UL * len, ret) ? no_memory(p) : 0;
}

static int read_modules(struct own_profile *p)
{
	uint64_t nr = p->file.arrays[MW_HEAP_CHUNK_MODULES].count;
	struct mw_heap_module module;

	if (nr > MW_HEAP_FRAME_MODULE_MAX)
		nr = MW_HEAP_FRAME_MODULE_MAX;
	p->module_mapping = reallocarray(NULL, nr + 1, sizeof(*p->module_mapping));
	if (!p->module_mapping)
		return no_memory(p);
	p->module_mapping[0] = MW_PROF_NONE;
	for (uint64_t i = 0; i < nr; i++) {
		struct mw_prof_mapping mapping = { .has_bias = true };
		int err;

		p->module_mapping[i + 1] = MW_PROF_NONE;
		mw_profile_element(&p->file, MW_HEAP_CHUNK_MODULES, i, &module, sizeof(module));
		if (!module.ready)
			continue;
		mapping.start = module.start;
		mapping.end = module.end;
		mapping.bias = module.bias;
		mapping.is_program = module.flags & MW_HEAP_MODULE_EXE;
		err = read_string(p, MW_HEAP_CHUNK_STRINGS, module.path, module.path_bytes,
				  &mapping.path)
			      ?: read_build_id(p, &module, &mapping.build_id);
		if (err)
			return err;
		if (mw_heap_add_mapping(p->heap, &mapping, &p->module_mapping[i + 1]))
			return no_memory(p);
		p->end_ns = mw_max_u64(p->end_ns, module.last_ns);
	}
	return 0;
}

static int read_code(struct own_profile *p, const struct mw_heap_code *from, struct own_code *to)
{
	const char *table = mw_profile_bytes(&p->file, MW_HEAP_CHUNK_CODE_BYTES, from->lines,
					     from->lines_bytes);
	int err = read_string(p, MW_HEAP_CHUNK_CODE_BYTES, from->name, from->name_bytes,
			      &to->function)
			  ?: read_string(p, MW_HEAP_CHUNK_CODE_BYTES, from->file, from->file_bytes,
					 &to->file);

	to->first_line = from->first_line;
	to->first_run = p->line_runs.count;
	if (!err && table &&
	    mw_line_runs_add(&p->line_runs, (const void *)table, from->lines_bytes,
			     from->first_line))
		err = no_memory(p);
	to->end_run = p->line_runs.count;
	return err;
}

static int read_codes(struct own_profile *p)
{
	uint64_t nr = p->file.arrays[MW_HEAP_CHUNK_CODE].count, tables = 0;
	struct mw_heap_code code;
	int err = 0;

	p->codes = calloc(nr + 1, sizeof(*p->codes));
	if (!p->codes)
		return no_memory(p);
	for (; p->nr_codes < nr && !err; p->nr_codes++) {
		mw_profile_element(&p->file, MW_HEAP_CHUNK_CODE, p->nr_codes, &code, sizeof(code));
		if (!code.ready)
			continue;
		/* Tables do not overlap, so the work is bounded by the size of the file. */
		tables += code.lines_bytes;
		if (tables > p->file.input->len)
			return damaged(p, "the tables of lines overlap");
		err = read_code(p, &code, &p->codes[p->nr_codes]);
	}
	return err;
}

/* The only line of a frame of an interpreter. */
static int add_code_line(struct own_profile *p, uint64_t number, uint32_t place)
{
	static const char unnamed[] = "[Python]";
	struct mw_prof_line line = { 0 };

	if (number < p->nr_codes && p->codes[number].function) {
		const struct own_code *code = &p->codes[number];

		line.function = code->function;
		line.file = code->file;
		if (!place)
			line.number = code->first_line;
		else if (code->first_run == code->end_run)
			line.number = place;
		else
			line.number = mw_line_runs_find(&p->line_runs, code->first_run,
							code->end_run, place - 1);
	} else if (mw_strings_add_text(&p->heap->strings, unnamed, strlen(unnamed),
				       &line.function)) {
		return -ENOMEM;
	}
	return mw_heap_add_line(p->heap, &line);
}

static int add_code_location(struct own_profile *p, uint64_t address, uint32_t *ret)
{
	struct mw_prof_location location = { .mapping = MW_PROF_NONE,
					     .first_line = p->heap->nr_lines,
					     .lines = 1,
					     .interpreted = true };

	if (add_code_line(p, address >> MW_HEAP_FRAME_PLACE_BITS,
			  (uint32_t)(address & MW_HEAP_FRAME_PLACE_MASK)) ||
	    mw_heap_add_location(p->heap, &location, ret))
		return no_memory(p);
	return 0;
}

static int add_location(struct own_profile *p, uint64_t frame, uint32_t *ret)
{
	uint32_t module = mw_heap_frame_module(frame);
	uint64_t address = mw_heap_frame_address(frame);
	struct mw_prof_location location = { .address = address, .mapping = MW_PROF_NONE };

	if (module == MW_HEAP_FRAME_CODE)
		return add_code_location(p, address, ret);
	if (module <= p->file.arrays[MW_HEAP_CHUNK_MODULES].count &&
	    module <= MW_HEAP_FRAME_MODULE_MAX)
		location.mapping = p->module_mapping[module];
	if (location.mapping != MW_PROF_NONE)
		location.address += p->heap->mappings[location.mapping].bias;
	return mw_heap_add_location(p->heap, &location, ret) ? no_memory(p) : 0;
}

/* Memory that was mapped is told apart from objects of the heap by its innermost frame. */
static int add_mmap_location(struct own_profile *p, uint32_t *ret)
{
	struct mw_prof_location location = { .mapping = MW_PROF_NONE,
					     .first_line = p->heap->nr_lines,
					     .lines = 1 };
	struct mw_prof_line line = { 0 };

	if (mw_strings_add_text(&p->heap->strings, "[mmap]", strlen("[mmap]"), &line.function) ||
	    mw_heap_add_line(p->heap, &line) || mw_heap_add_location(p->heap, &location, ret))
		return no_memory(p);
	return 0;
}

static int find_location(struct own_profile *p, uint64_t frame, uint32_t *ret)
{
	uint32_t hash = mw_strings_hash(p->heap->strings.seed, &frame, sizeof(frame)), at, number;
	int err;

	mw_index_for_each (&p->by_frame, hash, &at, number) {
		if (p->frames[number] == frame) {
			*ret = p->locations[number];
			return 0;
		}
	}
	err = add_location(p, frame, ret);
	if (err)
		return err;
	if (mw_array_reserve(p->frames, p->frame_capacity, p->nr_frames + 1U) ||
	    mw_array_reserve(p->locations, p->location_capacity, p->nr_frames + 1U) ||
	    mw_index_insert(&p->by_frame, hash, p->nr_frames))
		return no_memory(p);
	p->frames[p->nr_frames] = frame;
	p->locations[p->nr_frames++] = *ret;
	return 0;
}

/* What the stack has allocated since the start, which has no live samples of its own. */
static int add_allocated(struct own_profile *p, const struct mw_heap_stack *stack, uint32_t number)
{
	struct mw_prof_sample sample = { .birth_ns = MW_PROF_BIRTH_UNKNOWN, .stack = number };
	struct mw_prof_sum *bytes = &sample.sum[MEMWATCH_HEAP_ALLOCATED_BYTES];
	struct mw_prof_sum *objects = &sample.sum[MEMWATCH_HEAP_ALLOCATED_OBJECTS];

	if (!stack->alloc_samples)
		return 0;
	bytes->value = (double)stack->alloc_bytes;
	bytes->variance = stack->alloc_bytes_variance;
	objects->value = stack->alloc_objects;
	objects->variance = stack->alloc_objects_variance;
	if (!isfinite(bytes->variance) || !isfinite(objects->value) || !isfinite(objects->variance))
		return damaged(p, "the sums of a stack are no numbers");
	return mw_heap_add_sample(p->heap, &sample) ? no_memory(p) : 0;
}

static int add_lifetimes(struct own_profile *p, const struct mw_heap_stack *stack, uint32_t number)
{
	struct mw_prof_profile *profile = mw_heap_last(p->heap);

	for (uint32_t i = 0; i < MW_HEAP_LIFETIME_BINS; i++) {
		if (!stack->lifetime[i])
			continue;
		if (mw_array_reserve(profile->lifetimes, profile->lifetime_capacity,
				     profile->nr_lifetimes + 1U))
			return no_memory(p);
		/* The middle of a bin from 2^(i + 9) to 2^(i + 10) ns, on the scale of logarithms.
		 */
		profile->lifetimes[profile->nr_lifetimes++] = (struct mw_prof_lifetime){
			.stack = number,
			.samples = stack->lifetime[i],
			.seconds = exp2((double)i + 9.5) / 1e9,
		};
	}
	return 0;
}

/* Finds the frames of a stack, innermost first. A stack whose frames do not exist has none. */
static uint32_t read_frames(const struct own_profile *p, const struct mw_heap_stack *stack,
			    uint64_t *frames)
{
	for (uint32_t i = 0; i < stack->depth; i++)
		if (!mw_profile_element(&p->file, MW_HEAP_CHUNK_FRAMES, stack->frames + i,
					&frames[i], sizeof(*frames)))
			return 0;
	return p->heap->native ? stack->depth : mw_interpreter_trim(frames, stack->depth);
}

static int read_stack(struct own_profile *p, uint64_t number)
{
	uint32_t locations[MW_HEAP_DEPTH_MAX + 1], depth = 0, nr;
	uint64_t frames[MW_HEAP_DEPTH_MAX];
	struct mw_heap_stack stack;
	int err = 0;

	mw_profile_element(&p->file, MW_HEAP_CHUNK_STACKS, number, &stack, sizeof(stack));
	p->stack_of[number] = MW_PROF_NONE;
	if (!stack.ready)
		return 0;
	if (stack.depth > MW_HEAP_DEPTH_MAX)
		return damaged(p, "a stack is too deep");
	if (stack.flags & MW_HEAP_STACK_MMAP)
		err = add_mmap_location(p, &locations[depth++]);
	nr = read_frames(p, &stack, frames);
	for (uint32_t i = 0; i < nr && !err; i++)
		err = find_location(p, frames[i], &locations[depth++]);
	if (err)
		return err;
	if (mw_heap_add_stack(p->heap, locations, depth, &p->stack_of[number]))
		return no_memory(p);
	return add_allocated(p, &stack, p->stack_of[number])
		       ?: add_lifetimes(p, &stack, p->stack_of[number]);
}

static int read_stacks(struct own_profile *p)
{
	uint64_t nr = p->file.arrays[MW_HEAP_CHUNK_STACKS].count;
	int err = 0;

	p->stack_of = reallocarray(NULL, nr + 1, sizeof(*p->stack_of));
	if (!p->stack_of)
		return no_memory(p);
	for (uint64_t i = 0; i < nr && !err; i++)
		err = read_stack(p, i);
	if (!err) {
		mw_heap_last(p->heap)->stack_of = p->stack_of;
		mw_heap_last(p->heap)->nr_stacks = nr;
	}
	return err;
}

/* The watch of the sample that was added last, if it has one. */
static int add_watch(struct own_profile *p, const struct mw_heap_sample *from)
{
	struct mw_prof_profile *profile = mw_heap_last(p->heap);
	struct mw_heap_watch watch;

	if (!from->watch ||
	    !mw_profile_element(&p->file, MW_HEAP_CHUNK_WATCHES, from->watch - 1U, &watch,
				sizeof(watch)) ||
	    (watch.state & MW_HEAP_SAMPLE_MASK) != MW_HEAP_SAMPLE_LIVE ||
	    watch.address != from->address || watch.time_ns != from->time_ns || watch.shift > 63)
		return 0;
	if (mw_array_reserve(profile->watches, profile->watch_capacity, profile->nr_watches + 1U))
		return no_memory(p);
	profile->watches[profile->nr_watches++] = (struct mw_prof_watch){
		.sample = profile->nr_samples - 1,
		.is_part = watch.flags & MW_HEAP_WATCH_PART,
		.weight = (double)(1ULL << watch.shift),
		.touched_ns = (int64_t)(p->file.header.created_realtime_ns +
					(watch.touched_ns - p->file.header.created_ns)),
	};
	return 0;
}

static int add_live(struct own_profile *p, const struct mw_heap_sample *from)
{
	struct mw_prof_sample sample = { .count = 1 };
	uint64_t nr_stacks = p->file.arrays[MW_HEAP_CHUNK_STACKS].count;
	double size = (double)from->size;
	struct mw_prof_sum *bytes = &sample.sum[MEMWATCH_HEAP_LIVE_BYTES];

	if (from->stack >= nr_stacks || p->stack_of[from->stack] == MW_PROF_NONE)
		return 0;
	/* The profiler samples an allocation of 0 bytes like one of 1 byte. */
	mw_heap_unsample(1, size ?: 1, (double)from->rate, &sample.sum[MEMWATCH_HEAP_LIVE_OBJECTS],
			 bytes);
	if (!from->size)
		*bytes = (struct mw_prof_sum){ 0 };
	sample.stack = p->stack_of[from->stack];
	sample.address = from->address;
	sample.size = from->size;
	sample.is_mapped = from->source == MW_HEAP_SOURCE_MMAP;
	sample.identity = (from->address * 0x9e3779b97f4a7c15ULL ^ from->time_ns) | 1ULL << 63;
	sample.birth_ns = (int64_t)(p->file.header.created_realtime_ns +
				    (from->time_ns - p->file.header.created_ns));
	p->end_ns = mw_max_u64(p->end_ns, from->time_ns);
	return mw_heap_add_sample(p->heap, &sample) ? no_memory(p) : add_watch(p, from);
}

static int read_samples(struct own_profile *p, const struct mw_chunk_part *part)
{
	uint32_t distance = p->file.header.sample_bytes;
	int err = 0;

	for (uint64_t i = 0; i < part->count && !err; i++) {
		struct mw_heap_sample sample;

		memcpy(&sample, p->file.input->bytes + part->offset + i * distance, sizeof(sample));
		if ((sample.state & MW_HEAP_SAMPLE_MASK) == MW_HEAP_SAMPLE_LIVE)
			err = add_live(p, &sample);
	}
	return err;
}

static uint64_t to_realtime(const struct mw_heap_header *h, uint64_t monotonic_ns)
{
	return monotonic_ns ? h->created_realtime_ns + (monotonic_ns - h->created_ns) : 0;
}

/* The writer fills in the copy that is not valid, and then makes it the valid one. */
static void read_figures(const struct mw_heap_header *h, struct mw_prof_profile *profile)
{
	uint32_t valid = h->figures_valid & 1;

	profile->allocator = h->allocator;
	if (!h->figures_valid)
		return;
	profile->figures = h->figures[valid];
	profile->figures_ns = to_realtime(h, profile->figures.time_ns);
	if (h->figures_valid > 1)
		profile->earlier = h->figures[!valid];
}

static int read_info(struct own_profile *p)
{
	const struct mw_heap_header *h = &p->file.header;
	struct mw_prof_profile *profile = mw_heap_last(p->heap);
	struct memwatch_heap_info *info = &profile->info;

	info->metrics = (1U << MEMWATCH_HEAP_METRICS) - 1;
	info->pid = h->pid;
	info->from_start = h->began == MW_HEAP_BEGAN_PROCESS_START;
	info->rate_bytes = h->rate_bytes;
	info->frame_pointer = h->unwinder.stacks_fp_only;
	info->unwound = mw_sub_sat(h->unwinder.stacks, h->unwinder.stacks_fp_only);
	info->truncated = h->unwinder.stacks_truncated;
	profile->zero_ns = h->created_realtime_ns - h->created_ns;
	info->start_ns = to_realtime(h, h->began_ns);
	info->state = h->state <= MW_HEAP_STATE_ENDED ? h->state : MEMWATCH_HEAP_STATE_UNKNOWN;
	info->limits = h->limits;
	info->python = h->python;
	info->python_version = h->python_version;
	info->configured_rate_bytes = h->configured_rate;
	info->sampled = h->counters.samples;
	info->freed = h->counters.sampled_frees;
	info->lost = h->counters.lost_samples;
	info->lost_bytes = h->counters.lost_bytes;
	info->peak_live_bytes = h->counters.peak_live_bytes;
	info->peak_live_ns = to_realtime(h, h->counters.peak_live_ns);
	info->sample_ns = h->counters.sample_ns;
	info->file_bytes = p->file.input->len;
	info->live_bytes = h->live_bytes;
	info->watch_max = h->watch_max;
	info->watch_ns = to_realtime(h, h->epoch_ns);
	if (h->epochs && h->epoch_ns > h->began_ns)
		info->watch_step_ns = mw_max_u64(
			(h->epoch_ns - h->began_ns) / h->epochs,
			h->epoch_ns - mw_max_u64(h->epoch_before_ns, h->began_ns));
	info->watch_least = h->watch_least;
	info->watch_refused = h->watch_refused;
	/* Otherwise the samples are counted as they are read. */
	info->samples = p->heap->header_only ? h->live_samples : 0;
	read_figures(h, profile);
	p->end_ns = mw_max_u64(h->state_ns, h->counters.peak_live_ns);
	p->end_ns = mw_max_u64(p->end_ns, h->snapshot_ns);
	p->end_ns = mw_max_u64(p->end_ns, h->epoch_ns);
	for (int i = 0; i < 2; i++)
		p->end_ns = mw_max_u64(p->end_ns, h->figures[i].time_ns);
	if (mw_strings_add_text(&p->heap->strings, h->comm, sizeof(h->comm), &profile->comm))
		return no_memory(p);
	return 0;
}

/* What samples refer to. */
static int read_tables(struct own_profile *p)
{
	int err = mw_profile_file_directory(&p->file, p->heap->ctx);

	if (!err)
		err = read_modules(p);
	if (!err)
		err = read_codes(p);
	return err ?: read_stacks(p);
}

int mw_memwatch_profile_read(struct memwatch_heap *heap, const struct mw_input *input)
{
	struct own_profile *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return mw_fail_memory(heap->ctx, "heap profile");
	p->heap = heap;
	p->file.input = input;
	err = mw_profile_file_header(&p->file, heap->ctx) ?: read_info(p);
	if (!err && !heap->header_only)
		err = read_tables(p);
	for (uint32_t i = 0; !err && i < p->file.arrays[MW_HEAP_CHUNK_SAMPLES].nr_parts; i++)
		err = read_samples(p, &p->file.arrays[MW_HEAP_CHUNK_SAMPLES].parts[i]);
	if (!err)
		mw_heap_last(heap)->info.end_ns = to_realtime(&p->file.header, p->end_ns);
	free(p->module_mapping);
	if (mw_heap_last(heap)->stack_of != p->stack_of)
		free(p->stack_of);
	free(p->codes);
	free(p->line_runs.runs);
	mw_index_free(&p->by_frame);
	free(p->frames);
	free(p->locations);
	free(p);
	return err;
}
