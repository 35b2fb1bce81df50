/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A reader of profiles for the tests of the writer, independent of the library's reader. It
 * trusts the file.
 */
#ifndef _MW_HEAP_TESTS_PROFILE_READ_H
#define _MW_HEAP_TESTS_PROFILE_READ_H

#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "heap/profile-format.h"

#define PROFILE_KINDS 9 /* enum mw_heap_chunk_kind */

struct profile {
	uint8_t *base;
	size_t bytes;
	const struct mw_heap_header *header;
	const uint8_t *chunk[PROFILE_KINDS][MW_HEAP_CHUNKS_MAX];
	uint32_t chunks[PROFILE_KINDS];
};

/* False if there is no complete header. The mapping is shared: a living profile is seen live. */
static inline bool profile_open(struct profile *profile, const char *path)
{
	const struct mw_heap_chunk *entry;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	memset(profile, 0, sizeof(*profile));
	if (fd < 0 || fstat(fd, &st) || st.st_size < (off_t)MW_HEAP_CHUNKS_OFFSET) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	profile->bytes = (size_t)st.st_size;
	profile->base = mmap(NULL, profile->bytes, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (profile->base == MAP_FAILED)
		return false;
	profile->header = (const struct mw_heap_header *)profile->base;
	if (memcmp(profile->header->magic, MW_HEAP_MAGIC, 8)) {
		munmap(profile->base, profile->bytes);
		return false;
	}
	entry = (const struct mw_heap_chunk *)(profile->base + MW_HEAP_DIRECTORY_OFFSET);
	for (uint32_t n = 0; n < MW_HEAP_CHUNKS_MAX; n++) {
		uint32_t kind = __atomic_load_n(&entry[n].kind, __ATOMIC_ACQUIRE);

		if (!kind || kind >= PROFILE_KINDS ||
		    entry[n].offset + entry[n].bytes > profile->bytes)
			break;
		profile->chunk[kind][profile->chunks[kind]++] = profile->base + entry[n].offset;
	}
	return true;
}

static inline void profile_close(struct profile *profile)
{
	munmap(profile->base, profile->bytes);
}

static inline uint64_t profile_count(const struct profile *profile, uint32_t kind, size_t size)
{
	return (uint64_t)profile->chunks[kind] * MW_HEAP_CHUNK_BYTES / size;
}

static inline const void *profile_at(const struct profile *profile, uint32_t kind, uint64_t index,
				     size_t size)
{
	uint64_t offset = index * size;

	return profile->chunk[kind][offset / MW_HEAP_CHUNK_BYTES] + offset % MW_HEAP_CHUNK_BYTES;
}

static inline const struct mw_heap_stack *profile_stack(const struct profile *profile,
							uint64_t index)
{
	if (index >= profile_count(profile, MW_HEAP_CHUNK_STACKS, sizeof(struct mw_heap_stack)))
		return NULL;
	return profile_at(profile, MW_HEAP_CHUNK_STACKS, index, sizeof(struct mw_heap_stack));
}

static inline const uint64_t *profile_frames(const struct profile *profile,
					     const struct mw_heap_stack *stack)
{
	return profile_at(profile, MW_HEAP_CHUNK_FRAMES, stack->frames, sizeof(uint64_t));
}

static inline const struct mw_heap_module *profile_module(const struct profile *profile,
							  uint32_t number)
{
	return profile_at(profile, MW_HEAP_CHUNK_MODULES, number - 1,
			  sizeof(struct mw_heap_module));
}

static inline const struct mw_heap_code *profile_code(const struct profile *profile, uint64_t index)
{
	return profile_at(profile, MW_HEAP_CHUNK_CODE, index, sizeof(struct mw_heap_code));
}

/* Copies a live sample; false if the slot has none, or it changed while it was copied. */
static inline bool profile_sample(const struct profile *profile, uint64_t slot,
				  struct mw_heap_sample *ret)
{
	const struct mw_heap_sample *sample = profile_at(profile, MW_HEAP_CHUNK_SAMPLES, slot,
							 sizeof(*sample));
	uint64_t state = __atomic_load_n(&sample->state, __ATOMIC_ACQUIRE);

	if ((state & MW_HEAP_SAMPLE_MASK) != MW_HEAP_SAMPLE_LIVE)
		return false;
	memcpy(ret, sample, sizeof(*ret));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&sample->state, __ATOMIC_RELAXED) == state;
}

static inline uint64_t profile_slots(const struct profile *profile)
{
	return profile_count(profile, MW_HEAP_CHUNK_SAMPLES, sizeof(struct mw_heap_sample));
}

/* Copies the watch of a sample; false if it has none. */
static inline bool profile_watch(const struct profile *profile, const struct mw_heap_sample *sample,
				 struct mw_heap_watch *ret)
{
	if (!sample->watch ||
	    sample->watch > profile_count(profile, MW_HEAP_CHUNK_WATCHES, sizeof(*ret)))
		return false;
	memcpy(ret, profile_at(profile, MW_HEAP_CHUNK_WATCHES, sample->watch - 1u, sizeof(*ret)),
	       sizeof(*ret));
	return (ret->state & MW_HEAP_SAMPLE_MASK) == MW_HEAP_SAMPLE_LIVE &&
	       ret->address == sample->address && ret->time_ns == sample->time_ns;
}

static inline double profile_probability(uint64_t size, uint64_t rate)
{
	return rate <= 1 ? 1 : -expm1(-(double)(size ? size : 1) / (double)rate);
}

/* What is live, estimated from the samples. */
struct profile_live {
	uint64_t samples;
	double bytes, objects;
	double bytes_variance;
};

static inline struct profile_live profile_live(const struct profile *profile)
{
	struct profile_live live = { 0 };
	struct mw_heap_sample sample;

	for (uint64_t slot = 0; slot < profile_slots(profile); slot++) {
		double p;

		if (!profile_sample(profile, slot, &sample))
			continue;
		p = profile_probability(sample.size, sample.rate);
		live.samples++;
		live.bytes += (double)sample.size / p;
		live.objects += 1 / p;
		live.bytes_variance += (double)sample.size * (double)sample.size * (1 - p) / p / p;
	}
	return live;
}

/* False if what the frame refers to is not complete. */
static inline bool profile_frame_is_complete(const struct profile *profile, uint64_t frame)
{
	uint32_t module = mw_heap_frame_module(frame);
	uint64_t code = mw_heap_frame_address(frame) >> MW_HEAP_FRAME_PLACE_BITS;

	if (module == MW_HEAP_FRAME_CODE)
		return code == MW_HEAP_CODE_NONE || profile_code(profile, code)->ready;
	return !module || profile_module(profile, module)->ready;
}

/* What the sample lacks, or NULL. */
static inline const char *profile_sample_lacks(const struct profile *profile,
					       const struct mw_heap_sample *sample)
{
	const struct mw_heap_stack *stack = profile_stack(profile, sample->stack);

	if (!sample->address || !sample->rate)
		return "an address or a rate";
	if (!stack || !stack->ready)
		return "a stack that is complete";
	if (!stack->depth)
		return stack->flags & MW_HEAP_STACK_OVERFLOW ? "a stack, for want of room"
							     : "the frames of its stack";
	for (uint32_t i = 0; i < stack->depth; i++)
		if (!profile_frame_is_complete(profile, profile_frames(profile, stack)[i]))
			return "a module or a function of Python";
	return NULL;
}

/* Every sample of the profile must point to complete stacks, modules and code objects. */
static inline bool profile_is_complete(const struct profile *profile)
{
	struct mw_heap_sample sample;
	const char *lacks = NULL;

	for (uint64_t slot = 0; slot < profile_slots(profile) && !lacks; slot++)
		if (profile_sample(profile, slot, &sample))
			lacks = profile_sample_lacks(profile, &sample);
	if (lacks)
		printf("# a sample lacks %s\n", lacks);
	return !lacks;
}

#endif
