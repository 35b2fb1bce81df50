/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The profiles of a heap in memory, whatever file they came from. A sample has a stack of
 * locations, innermost first. A location is an address in a mapping, and has lines once its
 * symbols are known: one for the function that contains the address, preceded by one for
 * each function that was inlined there.
 *
 * Readers add mappings, locations, stacks and samples and refer to them by number. Each
 * number is checked where it is read from a file, and is valid from there on.
 */
#ifndef MW_HEAP_MODEL_H
#define MW_HEAP_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <memwatch/heap.h>

#include "heap/profile-format.h"
#include "heap/strings.h"

#define MW_PROF_NONE UINT32_MAX

/* A part of the address space of a process that shows a part of a file. */
struct mw_prof_mapping {
	uint64_t start, end;
	uint64_t offset;   /* of @start in the file */
	uint64_t bias;	   /* if @has_bias: address in memory - address in the ELF file's headers */
	uint32_t path;	   /* string */
	uint32_t build_id; /* string of hexadecimal digits */
	bool has_bias;
	bool is_program; /* of the program itself, and not of a library */
	bool unread;	 /* its file was needed for symbols, and could not be read */
};

/* A line of a source file; all are strings but @number. */
struct mw_prof_line {
	uint32_t function, file, number;
};

struct mw_prof_location {
	uint64_t address; /* in memory, of the call rather than of the next instruction */
	uint32_t mapping; /* MW_PROF_NONE: none */
	uint32_t first_line, lines;
	bool interpreted; /* its only line is from the profile */
};

/* A sum and the variance of its estimate. */
struct mw_prof_sum {
	double value, variance;
};

#define MW_PROF_BIRTH_UNKNOWN INT64_MIN

/* One sample, or the sum of samples of one stack. Metrics that do not exist are 0. */
struct mw_prof_sample {
	struct mw_prof_sum sum[MEMWATCH_HEAP_METRICS];
	uint64_t address, size; /* of a live allocation; 0 if they are not known */
	uint64_t identity;	/* the same for the same allocation in another snapshot; 0: none */
	int64_t birth_ns;	/* CLOCK_REALTIME; or MW_PROF_BIRTH_UNKNOWN */
	uint32_t stack;
	uint32_t count; /* samples that this counts as */
	bool is_mapped; /* no object of the heap: memory that the program has mapped itself */
};

/**
 * struct mw_prof_profile - one file
 * @info: its description; its strings and @samples are set when it is exported
 * @name, @comm, @objects: strings of @info
 * @owner: user who owns the file
 * @zero_ns: of a profile of memwatch, the time of CLOCK_REALTIME at which CLOCK_MONOTONIC was 0, as
 *	both were when the profile was created, modulo 2^64; the times of samples are reckoned so
 * @first_mapping, @mappings: its mappings
 * @samples, @nr_samples, @capacity: its samples, owned
 * @allocator: enum mw_heap_allocator
 * @figures: what the allocator said about itself last; all 0: nothing, or there is none
 * @earlier: and before that
 * @figures_ns: when that was, CLOCK_REALTIME
 * @lifetimes, @nr_lifetimes, @lifetime_capacity: what is known about freed samples, owned
 * @watches, @nr_watches, @watch_capacity: the samples that are watched for accesses, owned
 * @stack_of, @nr_stacks: of a profile of memwatch, the stack in the heap for each of its stacks, or
 *	MW_PROF_NONE; owned
 */
struct mw_prof_profile {
	struct memwatch_heap_info info;
	uint32_t name, comm, objects;
	uid_t owner;
	uint64_t zero_ns;
	uint32_t first_mapping, mappings;
	struct mw_prof_sample *samples;
	uint32_t nr_samples, capacity;
	uint32_t allocator;
	struct mw_heap_figures figures, earlier;
	uint64_t figures_ns;
	struct mw_prof_lifetime {
		uint32_t stack;
		uint32_t samples;
		double seconds;
	} * lifetimes;
	uint32_t nr_lifetimes, lifetime_capacity;
	struct mw_prof_watch {
		uint32_t sample;    /* number of the sample */
		bool is_part;	    /* of the object */
		double weight;	    /* how many live samples it stands for */
		int64_t touched_ns; /* the last access is not later, CLOCK_REALTIME */
	} * watches;
	uint32_t nr_watches, watch_capacity;
	uint32_t *stack_of;
	uint64_t nr_stacks;
};

/**
 * struct memwatch_heap - a set of profiles
 * @ctx: reference
 * @max_bytes: limit of the content of a file
 * @damaged: an addition failed
 * @header_only: samples are not read
 * @native: native frames of interpreters are kept
 * @strings: names and paths
 * @stacks: interned arrays of uint32_t, numbers of locations
 * @profiles: the profiles
 */
struct memwatch_heap {
	struct memwatch_ctx *ctx;
	uint64_t max_bytes;
	bool damaged;
	bool header_only;
	bool native;
	struct mw_strings strings;
	struct mw_strings stacks;
	struct mw_prof_mapping *mappings;
	uint32_t nr_mappings, mapping_capacity;
	struct mw_prof_line *lines;
	uint32_t nr_lines, line_capacity;
	struct mw_prof_location *locations;
	uint32_t nr_locations, location_capacity;
	struct mw_prof_profile *profiles;
	uint32_t nr_profiles, profile_capacity;
};

/* All of these return 0 or -ENOMEM. */
int mw_heap_add_profile(struct memwatch_heap *heap, const char *name);
int mw_heap_add_mapping(struct memwatch_heap *heap, const struct mw_prof_mapping *mapping,
			uint32_t *ret);
int mw_heap_add_line(struct memwatch_heap *heap, const struct mw_prof_line *line);
int mw_heap_add_location(struct memwatch_heap *heap, const struct mw_prof_location *location,
			 uint32_t *ret);
int mw_heap_add_stack(struct memwatch_heap *heap, const uint32_t *locations, size_t nr,
		      uint32_t *ret);
int mw_heap_add_sample(struct memwatch_heap *heap, const struct mw_prof_sample *sample);

/* The profile that is being read. */
static inline struct mw_prof_profile *mw_heap_last(const struct memwatch_heap *heap)
{
	return &heap->profiles[heap->nr_profiles - 1];
}

/*
 * The mapping of the profile being read that contains @address, or MW_PROF_NONE. The
 * mappings must be sorted by address with mw_heap_sort_mappings() before.
 */
uint32_t mw_heap_find_mapping(const struct memwatch_heap *heap, uint64_t address);
void mw_heap_sort_mappings(struct memwatch_heap *heap);

/* The number of the profile that has a mapping. */
uint32_t mw_heap_mapping_profile(const struct memwatch_heap *heap, uint32_t mapping);

/* The locations of a stack. */
const uint32_t *mw_heap_stack(const struct memwatch_heap *heap, uint32_t stack, uint32_t *nr);

/*
 * Adds @count sampled allocations of together @bytes, sampled at one in @rate bytes on
 * average, to the sums of objects and bytes. A rate of 0 or 1 means that every allocation
 * was recorded.
 */
void mw_heap_unsample(double count, double bytes, double rate, struct mw_prof_sum *objects,
		      struct mw_prof_sum *space);

/* The variance of sums that were unsampled already, from the same rate; 0 if it is unknown. */
void mw_heap_estimate_variance(double rate, struct mw_prof_sum *objects, struct mw_prof_sum *space);

#endif /* MW_HEAP_MODEL_H */
