// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The profiles of a heap in memory.
 */
#include "heap/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/context.h"

#define DEFAULT_MAX_BYTES (256ULL << 20)

int memwatch_heap_new(struct memwatch_ctx *ctx, const struct memwatch_heap_opts *user_opts,
		      struct memwatch_heap **ret)
{
	struct memwatch_heap_opts opts;
	struct memwatch_heap *heap;
	int err = mw_opts_copy(ctx, &opts, sizeof(opts), user_opts);

	if (err)
		return err;
	if (opts.flags & ~(MEMWATCH_HEAP_HEADER | MEMWATCH_HEAP_NATIVE) || opts.reserved)
		return mw_fail(ctx, -EINVAL, "heap profile: an option has an unknown value");
	heap = calloc(1, sizeof(*heap));
	if (!heap)
		return mw_fail_memory(ctx, "heap profile");
	heap->ctx = memwatch_ctx_ref(ctx);
	heap->max_bytes = opts.max_bytes ?: DEFAULT_MAX_BYTES;
	heap->header_only = opts.flags & MEMWATCH_HEAP_HEADER;
	heap->native = opts.flags & MEMWATCH_HEAP_NATIVE;
	if (mw_strings_init(&heap->strings) || mw_strings_init(&heap->stacks)) {
		memwatch_heap_unref(heap);
		return mw_fail_memory(ctx, "heap profile");
	}
	*ret = heap;
	return 0;
}

struct memwatch_heap *memwatch_heap_unref(struct memwatch_heap *heap)
{
	if (!heap)
		return NULL;
	for (uint32_t i = 0; i < heap->nr_profiles; i++) {
		free(heap->profiles[i].samples);
		free(heap->profiles[i].lifetimes);
		free(heap->profiles[i].watches);
		free(heap->profiles[i].stack_of);
	}
	mw_strings_uninit(&heap->strings);
	mw_strings_uninit(&heap->stacks);
	free(heap->mappings);
	free(heap->lines);
	free(heap->locations);
	free(heap->profiles);
	memwatch_ctx_unref(heap->ctx);
	free(heap);
	return NULL;
}

int memwatch_heap_get_info(const struct memwatch_heap *heap, unsigned int profile,
			   struct memwatch_heap_info *ret)
{
	struct memwatch_heap_info info;
	const struct mw_prof_profile *p;

	if (profile >= heap->nr_profiles)
		return mw_fail(heap->ctx, -ENOENT, "heap profile %u: does not exist", profile);
	p = &heap->profiles[profile];
	info = p->info;
	info.comm = mw_strings_text(&heap->strings, p->comm);
	info.objects = p->objects ? mw_strings_text(&heap->strings, p->objects) : "objects";
	info.name = mw_strings_text(&heap->strings, p->name);
	for (uint32_t i = 0; i < p->nr_samples; i++)
		info.samples += p->samples[i].count;
	info.watched = p->nr_watches;
	return mw_opts_export(ret, &info, sizeof(info));
}

int mw_heap_add_profile(struct memwatch_heap *heap, const char *name)
{
	struct mw_prof_profile profile = {
		.info = { .sz = sizeof(profile.info), .from_start = -1 },
		.first_mapping = heap->nr_mappings,
	};

	if (mw_strings_add(&heap->strings, name, strlen(name), &profile.name) ||
	    mw_array_reserve(heap->profiles, heap->profile_capacity, heap->nr_profiles + 1U))
		return -ENOMEM;
	heap->profiles[heap->nr_profiles++] = profile;
	return 0;
}

int mw_heap_add_mapping(struct memwatch_heap *heap, const struct mw_prof_mapping *mapping,
			uint32_t *ret)
{
	if (mw_array_reserve(heap->mappings, heap->mapping_capacity, heap->nr_mappings + 1U))
		return -ENOMEM;
	*ret = heap->nr_mappings;
	heap->mappings[heap->nr_mappings++] = *mapping;
	mw_heap_last(heap)->mappings++;
	return 0;
}

int mw_heap_add_line(struct memwatch_heap *heap, const struct mw_prof_line *line)
{
	if (mw_array_reserve(heap->lines, heap->line_capacity, heap->nr_lines + 1U))
		return -ENOMEM;
	heap->lines[heap->nr_lines++] = *line;
	return 0;
}

int mw_heap_add_location(struct memwatch_heap *heap, const struct mw_prof_location *location,
			 uint32_t *ret)
{
	if (mw_array_reserve(heap->locations, heap->location_capacity, heap->nr_locations + 1U))
		return -ENOMEM;
	*ret = heap->nr_locations;
	heap->locations[heap->nr_locations++] = *location;
	return 0;
}

int mw_heap_add_stack(struct memwatch_heap *heap, const uint32_t *locations, size_t nr,
		      uint32_t *ret)
{
	return mw_strings_add(&heap->stacks, nr ? locations : (const void *)"",
			      nr * sizeof(*locations), ret);
}

uint32_t mw_heap_mapping_profile(const struct memwatch_heap *heap, uint32_t mapping)
{
	uint32_t profile = 0;

	while (profile + 1 < heap->nr_profiles &&
	       heap->profiles[profile + 1].first_mapping <= mapping)
		profile++;
	return profile;
}

const uint32_t *mw_heap_stack(const struct memwatch_heap *heap, uint32_t stack, uint32_t *nr)
{
	*nr = (uint32_t)(mw_strings_length(&heap->stacks, stack) / sizeof(uint32_t));
	return (const void *)mw_strings_text(&heap->stacks, stack);
}

int mw_heap_add_sample(struct memwatch_heap *heap, const struct mw_prof_sample *sample)
{
	struct mw_prof_profile *profile = mw_heap_last(heap);

	if (mw_array_reserve(profile->samples, profile->capacity, profile->nr_samples + 1U))
		return -ENOMEM;
	profile->samples[profile->nr_samples++] = *sample;
	return 0;
}

static int compare_mappings(const void *a, const void *b)
{
	const struct mw_prof_mapping *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

void mw_heap_sort_mappings(struct memwatch_heap *heap)
{
	struct mw_prof_profile *profile = mw_heap_last(heap);

	if (profile->mappings)
		qsort(heap->mappings + profile->first_mapping, profile->mappings,
		      sizeof(*heap->mappings), compare_mappings);
}

uint32_t mw_heap_find_mapping(const struct memwatch_heap *heap, uint64_t address)
{
	const struct mw_prof_profile *profile = mw_heap_last(heap);
	uint32_t low = profile->first_mapping, high = low + profile->mappings;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (heap->mappings[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == profile->first_mapping || heap->mappings[low - 1].end <= address)
		return MW_PROF_NONE;
	return low - 1;
}

void mw_heap_unsample(double count, double bytes, double rate, struct mw_prof_sum *objects,
		      struct mw_prof_sum *space)
{
	double size, p;

	if (!(count > 0) || !(bytes >= 0))
		return;
	size = bytes / count;
	p = rate > 1 ? -expm1(-size / rate) : 1;
	/* An allocation of 0 bytes cannot be weighted; it counts once. */
	if (!(p > 0))
		p = 1;
	objects->value += count / p;
	objects->variance += count * (1 - p) / (p * p);
	space->value += bytes / p;
	space->variance += count * size * size * (1 - p) / (p * p);
}

void mw_heap_estimate_variance(double rate, struct mw_prof_sum *objects, struct mw_prof_sum *space)
{
	double size, p;

	if (!(rate > 1) || !(objects->value > 0) || !(space->value > 0))
		return;
	size = space->value / objects->value;
	p = -expm1(-size / rate);
	if (!(p > 0))
		return;
	objects->variance = objects->value * (1 - p) / p;
	space->variance = objects->value * size * size * (1 - p) / p;
}
