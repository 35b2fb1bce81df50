// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A radix sort. Merging 128 rings with a heap takes seven unpredictable comparisons
 * per record. The times of one round span some milliseconds, so a radix sort takes
 * two passes over 11 bits, without branches that depend on the data. It is stable:
 * entries with equal times stay in the order of the input, which is by CPU and then
 * by arrival.
 */
#include "merge/sort.h"

#include <string.h>

#define DIGIT_MAX  11
#define PASSES_MAX 8
#define SMALL	   40

/* For few entries. */
static void insertion_sort(struct mw_merge_entry *entries, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		struct mw_merge_entry entry = entries[i];
		size_t at = i;

		for (; at > 0 && entries[at - 1].time_ns > entry.time_ns; at--)
			entries[at] = entries[at - 1];
		entries[at] = entry;
	}
}

/* Finds the smallest and the largest time; returns 1 if the entries are sorted already. */
static int find_time_range(const struct mw_merge_entry *entries, size_t count, uint64_t *min,
			   uint64_t *max)
{
	uint64_t low = entries[0].time_ns;
	uint64_t high = low;
	size_t ordered = 1;

	for (size_t i = 1; i < count; i++) {
		uint64_t time_ns = entries[i].time_ns;

		ordered += time_ns >= entries[i - 1].time_ns;
		low = time_ns < low ? time_ns : low;
		high = time_ns > high ? time_ns : high;
	}
	*min = low;
	*max = high;
	return ordered == count;
}

static inline __attribute__((always_inline)) void
count_passes(const struct mw_merge_entry *entries, size_t count, uint64_t min, unsigned int digit,
	     unsigned int passes, uint32_t (*counts)[1 << DIGIT_MAX])
{
	uint64_t mask = (1ULL << digit) - 1;

	for (unsigned int pass = 0; pass < passes; pass++)
		memset(counts[pass], 0, sizeof(counts[pass][0]) << digit);
	for (size_t i = 0; i < count; i++) {
		uint64_t key = entries[i].time_ns - min;

		for (unsigned int pass = 0; pass < passes; pass++) {
			counts[pass][key & mask]++;
			key >>= digit;
		}
	}
}

static void count_digits(const struct mw_merge_entry *entries, size_t count, uint64_t min,
			 unsigned int digit, unsigned int passes,
			 uint32_t (*counts)[1 << DIGIT_MAX])
{
	/* the usual numbers as constants, so that the compiler unrolls the inner loop */
	if (passes == 2)
		count_passes(entries, count, min, digit, 2, counts);
	else if (passes == 3)
		count_passes(entries, count, min, digit, 3, counts);
	else
		count_passes(entries, count, min, digit, passes, counts);
}

static void distribute_by_digit(const struct mw_merge_entry *from, struct mw_merge_entry *to,
				size_t count, uint64_t min, unsigned int shift, unsigned int digit,
				uint32_t *starts)
{
	uint64_t mask = (1ULL << digit) - 1;
	uint32_t sum = 0;

	for (size_t i = 0; i <= mask; i++) {
		uint32_t here = starts[i];

		starts[i] = sum;
		sum += here;
	}
	for (size_t i = 0; i < count; i++)
		to[starts[((from[i].time_ns - min) >> shift) & mask]++] = from[i];
}

void mw_merge_sort(struct mw_merge_entry **entries, struct mw_merge_entry **scratch, size_t count)
{
	uint32_t counts[PASSES_MAX][1 << DIGIT_MAX];
	struct mw_merge_entry *from = *entries;
	struct mw_merge_entry *to = *scratch;
	unsigned int bits, digit, passes;
	uint64_t min, max;

	if (count <= SMALL) {
		insertion_sort(from, count);
		return;
	}
	if (find_time_range(from, count, &min, &max))
		return;

	bits = 64 - (unsigned int)__builtin_clzll((max - min) | 1);
	digit = count < 1024 ? 8 : DIGIT_MAX;
	passes = (bits + digit - 1) / digit;
	digit = (bits + passes - 1) / passes;

	count_digits(from, count, min, digit, passes, counts);
	for (unsigned int pass = 0; pass < passes; pass++) {
		unsigned int shift = pass * digit;
		struct mw_merge_entry *other = from;
		uint64_t first = ((from[0].time_ns - min) >> shift) & ((1ULL << digit) - 1);

		if (counts[pass][first] == count)
			continue; /* all entries have the same digit */
		distribute_by_digit(from, to, count, min, shift, digit, counts[pass]);
		from = to;
		to = other;
	}
	*entries = from;
	*scratch = to;
}
