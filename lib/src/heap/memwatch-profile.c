// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reads the profiles of the memwatch heap profiler. The file belongs to the profiled user,
 * and the process may be writing it: it was copied by read(), because a mapping of a file
 * that somebody truncates raises SIGBUS, and every number in the copy is checked.
 *
 * A sample may have been reused while it was copied. Its state is therefore read again after
 * the copy, and the sample is dropped if its state has changed. Every other element that is
 * complete does not change, except for sums.
 */
#include "heap/memwatch-profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "heap/profile-format.h"
#include "base/array.h"
#include "base/context.h"
#include "base/timemath.h"

#define KINDS 7

/* The array of one kind of element, which is spread over chunks. */
struct chunk_array {
	uint32_t element_bytes;
	uint64_t count;
	struct chunk_part {
		uint64_t offset; /* in the file */
		uint64_t first;	 /* number of its first element */
		uint64_t count;
	} parts[MW_HEAP_CHUNKS_MAX];
	uint32_t nr_parts;
};

/**
 * struct own_profile - a file that is being read
 * @end_ns: latest time in the file, CLOCK_MONOTONIC
 * @module_mapping: of each module, its mapping in the heap
 * @stack_of: of each stack, its number in the heap
 * @by_frame: from the hash of a frame to its position in @frames
 * @frames, @locations: frames that were seen, and their locations in the heap
 */
struct own_profile {
	struct memwatch_heap *heap;
	const struct mw_input *input;
	int fd;
	struct mw_heap_header header;
	struct chunk_array arrays[KINDS];
	uint64_t end_ns;
	uint32_t *module_mapping;
	uint32_t *stack_of;
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

/* Copies an element. Returns false if it does not exist. */
static bool read_element(const struct own_profile *p, uint32_t kind, uint64_t number, void *to,
			 size_t bytes)
{
	const struct chunk_array *array = &p->arrays[kind];
	uint32_t low = 0, high = array->nr_parts;

	if (number >= array->count)
		return false;
	while (high - low > 1) {
		uint32_t middle = (low + high) / 2;

		if (array->parts[middle].first <= number)
			low = middle;
		else
			high = middle;
	}
	memcpy(to,
	       p->input->bytes + array->parts[low].offset +
		       (number - array->parts[low].first) * array->element_bytes,
	       bytes);
	return true;
}

static int read_header(struct own_profile *p)
{
	struct mw_heap_header *h = &p->header;

	if (p->input->len < MW_HEAP_CHUNKS_OFFSET)
		return damaged(p, "the header is cut off");
	memcpy(h, p->input->bytes, sizeof(*h));
	if (h->version != MW_HEAP_VERSION)
		return mw_fail(p->heap->ctx, -EPROTO, "its format has version %u", h->version);
	if (h->header_bytes > MW_HEAP_PAGE_BYTES)
		return damaged(p, "the size of the header is impossible");
	/* A shorter header is one of an older version; what follows it is absent. */
	if (h->header_bytes < sizeof(*h))
		memset((char *)h + h->header_bytes, 0, sizeof(*h) - h->header_bytes);
	if (h->sample_bytes < sizeof(struct mw_heap_sample) ||
	    h->stack_bytes < sizeof(struct mw_heap_stack) ||
	    h->module_bytes < sizeof(struct mw_heap_module) ||
	    (h->code_bytes && h->code_bytes < sizeof(struct mw_heap_code)))
		return damaged(p, "the size of an element is impossible");
	p->arrays[MW_HEAP_CHUNK_SAMPLES].element_bytes = h->sample_bytes;
	p->arrays[MW_HEAP_CHUNK_STACKS].element_bytes = h->stack_bytes;
	p->arrays[MW_HEAP_CHUNK_FRAMES].element_bytes = sizeof(uint64_t);
	p->arrays[MW_HEAP_CHUNK_MODULES].element_bytes = h->module_bytes;
	p->arrays[MW_HEAP_CHUNK_STRINGS].element_bytes = 1;
	p->arrays[MW_HEAP_CHUNK_CODE].element_bytes = h->code_bytes;
	return 0;
}

static int read_directory(struct own_profile *p)
{
	uint64_t total = MW_HEAP_CHUNKS_OFFSET;

	for (uint32_t i = 0; i < MW_HEAP_CHUNKS_MAX; i++) {
		struct chunk_array *array;
		struct mw_heap_chunk chunk;

		memcpy(&chunk, p->input->bytes + MW_HEAP_DIRECTORY_OFFSET + i * sizeof(chunk),
		       sizeof(chunk));
		if (chunk.kind == MW_HEAP_CHUNK_NONE)
			break;
		if (chunk.offset > p->input->len || chunk.bytes > p->input->len - chunk.offset)
			return damaged(p, "a part of the file is cut off");
		/* Chunks do not overlap, so the work is bounded by the size of the file. */
		total += chunk.bytes;
		if (chunk.offset < MW_HEAP_CHUNKS_OFFSET || total > p->input->len)
			return damaged(p, "the parts of the file overlap");
		if (chunk.kind >= KINDS || !p->arrays[chunk.kind].element_bytes)
			continue;
		array = &p->arrays[chunk.kind];
		array->parts[array->nr_parts++] = (struct chunk_part){
			.offset = chunk.offset,
			.first = array->count,
			.count = chunk.bytes / array->element_bytes,
		};
		array->count += chunk.bytes / array->element_bytes;
	}
	return 0;
}

/* A string lies within one chunk. What is not a string is "". */
static int read_string(struct own_profile *p, uint64_t at, uint32_t len, uint32_t *ret)
{
	const struct chunk_array *array = &p->arrays[MW_HEAP_CHUNK_STRINGS];

	*ret = 0;
	for (uint32_t i = 0; i < array->nr_parts && len; i++) {
		const struct chunk_part *part = &array->parts[i];

		if (at < part->first || at - part->first >= part->count ||
		    len > part->count - (at - part->first) || len > MW_HEAP_PATH_MAX)
			continue;
		if (mw_strings_add_text(&p->heap->strings,
					p->input->bytes + part->offset + (at - part->first), len,
					ret))
			return no_memory(p);
		break;
	}
	return 0;
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
	uint64_t nr = p->arrays[MW_HEAP_CHUNK_MODULES].count;
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
		read_element(p, MW_HEAP_CHUNK_MODULES, i, &module, sizeof(module));
		if (!module.ready)
			continue;
		mapping.start = module.start;
		mapping.end = module.end;
		mapping.bias = module.bias;
		err = read_string(p, module.path, module.path_bytes, &mapping.path)
			      ?: read_build_id(p, &module, &mapping.build_id);
		if (err)
			return err;
		if (mw_heap_add_mapping(p->heap, &mapping, &p->module_mapping[i + 1]))
			return no_memory(p);
		p->end_ns = mw_max_u64(p->end_ns, module.last_ns);
	}
	return 0;
}

/* A frame of an interpreter has its line with it. */
static int read_code_line(struct own_profile *p, uint64_t address,
			  struct mw_prof_location *location)
{
	struct mw_prof_line line = { .number = address & 0xffffff };
	struct mw_heap_code code;
	int err;

	if (!read_element(p, MW_HEAP_CHUNK_CODE, address >> 24, &code, sizeof(code)) || !code.ready)
		return 0;
	err = read_string(p, code.file, code.file_bytes, &line.file)
		      ?: read_string(p, code.name, code.name_bytes, &line.function);
	if (err)
		return err;
	location->first_line = p->heap->nr_lines;
	location->lines = 1;
	return mw_heap_add_line(p->heap, &line) ? no_memory(p) : 0;
}

static int add_location(struct own_profile *p, uint64_t frame, uint32_t *ret)
{
	uint32_t module = mw_heap_frame_module(frame);
	uint64_t address = mw_heap_frame_address(frame);
	struct mw_prof_location location = { .address = address, .mapping = MW_PROF_NONE };
	int err = 0;

	if (module == MW_HEAP_FRAME_CODE)
		err = read_code_line(p, address, &location);
	else if (module <= p->arrays[MW_HEAP_CHUNK_MODULES].count &&
		 module <= MW_HEAP_FRAME_MODULE_MAX)
		location.mapping = p->module_mapping[module];
	if (location.mapping != MW_PROF_NONE)
		location.address += p->heap->mappings[location.mapping].bias;
	if (err)
		return err;
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

static int read_stack(struct own_profile *p, uint64_t number)
{
	uint32_t locations[MW_HEAP_DEPTH_MAX + 1], depth = 0;
	struct mw_heap_stack stack;
	uint64_t frame;
	int err = 0;

	read_element(p, MW_HEAP_CHUNK_STACKS, number, &stack, sizeof(stack));
	p->stack_of[number] = MW_PROF_NONE;
	if (!stack.ready)
		return 0;
	if (stack.depth > MW_HEAP_DEPTH_MAX)
		return damaged(p, "a stack is too deep");
	if (stack.flags & MW_HEAP_STACK_MMAP)
		err = add_mmap_location(p, &locations[depth++]);
	for (uint32_t i = 0; i < stack.depth && !err; i++) {
		if (!read_element(p, MW_HEAP_CHUNK_FRAMES, stack.frames + i, &frame, sizeof(frame)))
			return damaged(p, "a stack has frames that do not exist");
		err = find_location(p, frame, &locations[depth++]);
	}
	if (err)
		return err;
	if (mw_heap_add_stack(p->heap, locations, depth, &p->stack_of[number]))
		return no_memory(p);
	return add_allocated(p, &stack, p->stack_of[number])
		       ?: add_lifetimes(p, &stack, p->stack_of[number]);
}

static int read_stacks(struct own_profile *p)
{
	uint64_t nr = p->arrays[MW_HEAP_CHUNK_STACKS].count;
	int err = 0;

	p->stack_of = reallocarray(NULL, nr + 1, sizeof(*p->stack_of));
	if (!p->stack_of)
		return no_memory(p);
	for (uint64_t i = 0; i < nr && !err; i++)
		err = read_stack(p, i);
	return err;
}

static int add_live(struct own_profile *p, const struct mw_heap_sample *from)
{
	struct mw_prof_sample sample = { .count = 1 };
	uint64_t nr_stacks = p->arrays[MW_HEAP_CHUNK_STACKS].count;
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
	sample.birth_ns = (int64_t)(p->header.created_realtime_ns +
				    (from->time_ns - p->header.created_ns));
	p->end_ns = mw_max_u64(p->end_ns, from->time_ns);
	return mw_heap_add_sample(p->heap, &sample) ? no_memory(p) : 0;
}

/* The state of each sample of a chunk now, or NULL if the file cannot be read again. */
static char *read_again(const struct own_profile *p, const struct chunk_part *part, size_t bytes)
{
	char *again;

	if (p->fd < 0)
		return NULL;
	again = malloc(bytes + 1);
	if (again && pread(p->fd, again, bytes, (off_t)part->offset) == (ssize_t)bytes)
		return again;
	free(again);
	return NULL;
}

static int read_samples(struct own_profile *p, const struct chunk_part *part)
{
	uint32_t distance = p->header.sample_bytes;
	char *again = read_again(p, part, part->count * distance);
	int err = 0;

	for (uint64_t i = 0; i < part->count && !err; i++) {
		struct mw_heap_sample sample;
		uint64_t state;

		memcpy(&sample, p->input->bytes + part->offset + i * distance, sizeof(sample));
		state = sample.state;
		if (again)
			memcpy(&state, again + i * distance, sizeof(state));
		if (sample.state != state ||
		    (sample.state & MW_HEAP_SAMPLE_MASK) != MW_HEAP_SAMPLE_LIVE)
			continue;
		err = add_live(p, &sample);
	}
	free(again);
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
	const struct mw_heap_header *h = &p->header;
	struct mw_prof_profile *profile = mw_heap_last(p->heap);
	struct memwatch_heap_info *info = &profile->info;

	info->metrics = (1U << MEMWATCH_HEAP_METRICS) - 1;
	info->pid = h->pid;
	info->from_start = h->began == MW_HEAP_BEGAN_PROCESS_START;
	info->rate_bytes = h->rate_bytes;
	info->frame_pointer = h->unwinder.stacks_fp_only;
	info->unwound = mw_sub_sat(h->unwinder.stacks, h->unwinder.stacks_fp_only);
	info->truncated = h->unwinder.stacks_truncated;
	info->start_ns = to_realtime(h, h->began_ns);
	info->state = h->state <= MW_HEAP_STATE_ENDED ? h->state : MEMWATCH_HEAP_STATE_UNKNOWN;
	info->limits = h->limits;
	info->configured_rate_bytes = h->configured_rate;
	info->sampled = h->counters.samples;
	info->freed = h->counters.sampled_frees;
	info->lost = h->counters.lost_samples;
	info->lost_bytes = h->counters.lost_bytes;
	info->peak_live_bytes = h->counters.peak_live_bytes;
	info->peak_live_ns = to_realtime(h, h->counters.peak_live_ns);
	info->sample_ns = h->counters.sample_ns;
	info->file_bytes = p->input->len;
	info->live_bytes = h->live_bytes;
	/* Otherwise the samples are counted as they are read. */
	info->samples = p->heap->header_only ? h->live_samples : 0;
	read_figures(h, profile);
	p->end_ns = mw_max_u64(h->state_ns, h->counters.peak_live_ns);
	p->end_ns = mw_max_u64(p->end_ns, h->snapshot_ns);
	for (int i = 0; i < 2; i++)
		p->end_ns = mw_max_u64(p->end_ns, h->figures[i].time_ns);
	if (mw_strings_add_text(&p->heap->strings, h->comm, sizeof(h->comm), &profile->comm))
		return no_memory(p);
	return 0;
}

int mw_memwatch_profile_read(struct memwatch_heap *heap, const struct mw_input *input, int fd)
{
	struct own_profile *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return mw_fail_memory(heap->ctx, "heap profile");
	p->heap = heap;
	p->input = input;
	p->fd = fd;
	err = read_header(p) ?: read_info(p);
	if (!err && !heap->header_only)
		err = read_directory(p) ?: read_modules(p) ?: read_stacks(p);
	for (uint32_t i = 0; !err && i < p->arrays[MW_HEAP_CHUNK_SAMPLES].nr_parts; i++)
		err = read_samples(p, &p->arrays[MW_HEAP_CHUNK_SAMPLES].parts[i]);
	if (!err)
		mw_heap_last(heap)->info.end_ns = to_realtime(&p->header, p->end_ns);
	free(p->module_mapping);
	free(p->stack_of);
	mw_index_free(&p->by_frame);
	free(p->frames);
	free(p->locations);
	free(p);
	return err;
}
