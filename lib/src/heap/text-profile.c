// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reads the text profiles of jemalloc and gperftools.
 *
 * jemalloc writes a line "heap_v2/RATE", then a line "@ ADDRESS..." for each stack, followed
 * by lines "t*: OBJECTS: BYTES [OBJECTS: BYTES]" for all threads and "tN: ..." for each one.
 * gperftools writes "heap profile: TOTALS @ TYPE/RATE" and then, for each stack, a line
 * "OBJECTS: BYTES [OBJECTS: BYTES] @ ADDRESS...". The numbers in brackets are those allocated
 * since the start, the others are live. Both end with the lines of /proc/PID/maps after a
 * line "MAPPED_LIBRARIES:".
 *
 * Both write what was sampled. The numbers of each stack are divided by the probability that
 * an allocation of its mean size was sampled, as jeprof and pprof do.
 */
#include "heap/text-profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/context.h"
#include "base/text.h"

#define JEMALLOC_HEAD	"heap_v2/"
#define GPERFTOOLS_HEAD "heap profile:"

enum sampling {
	SAMPLING_EXACT,	  /* every allocation was recorded */
	SAMPLING_POISSON, /* an allocation of s bytes with probability 1 - exp(-s / rate) */
	SAMPLING_OLD,	  /* with probability s / rate: tcmalloc before heap_v2 */
};

/**
 * struct text_profile - a file that is being read
 * @rest: what has not been read yet
 * @line: number of the line that was read last
 * @stack: locations of the current stack
 * @has_stack: jemalloc: a line of addresses was read
 * @by_address: from the hash of an address to the number of its location
 */
struct text_profile {
	struct memwatch_heap *heap;
	struct mw_text rest;
	uint64_t line;
	enum sampling sampling;
	double rate;
	uint32_t *stack;
	size_t stack_len, stack_room;
	bool has_stack;
	struct mw_index by_address;
};

/* The four numbers of a line: live objects and bytes, allocated objects and bytes. */
struct counts {
	double live_objects, live_bytes, allocated_objects, allocated_bytes;
};

bool mw_text_profile_is(const struct mw_input *input, uint32_t *format)
{
	struct mw_text text = { .at = input->bytes, .len = input->len };

	if (mw_text_skip(&text, JEMALLOC_HEAD))
		*format = MEMWATCH_HEAP_JEMALLOC;
	else if (mw_text_skip(&text, GPERFTOOLS_HEAD))
		*format = MEMWATCH_HEAP_GPERFTOOLS;
	else
		return false;
	return true;
}

static int fail_line(const struct text_profile *t, const char *what)
{
	return mw_fail(t->heap->ctx, -EBADMSG, "line %llu: %s", (unsigned long long)t->line, what);
}

static void skip_blanks(struct mw_text *text)
{
	while (text->len && (*text->at == ' ' || *text->at == '\t' || *text->at == '\r')) {
		text->at++;
		text->len--;
	}
}

static bool take_line(struct text_profile *t, struct mw_text *line)
{
	if (!mw_text_take(&t->rest, '\n', line))
		return false;
	t->line++;
	while (line->len && line->at[line->len - 1] == '\r')
		line->len--;
	skip_blanks(line);
	return true;
}

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 16;
}

/* Takes a number to base @base from the start of @text. */
static bool take_number(struct mw_text *text, unsigned int base, uint64_t *ret)
{
	uint64_t value = 0;
	size_t len = 0;

	for (; len < text->len; len++) {
		unsigned int digit = (unsigned int)digit_value(text->at[len]);

		if (digit >= base)
			break;
		if (__builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, digit, &value))
			return false;
	}
	text->at += len;
	text->len -= len;
	*ret = value;
	return len != 0;
}

/* "N: N [N: N]" */
static bool take_counts(struct mw_text *text, struct counts *counts)
{
	static const char *const behind[] = { ":", "[", ":", "]" };
	uint64_t value[4];

	for (int i = 0; i < 4; i++) {
		skip_blanks(text);
		if (!take_number(text, 10, &value[i]))
			return false;
		skip_blanks(text);
		if (!mw_text_skip(text, behind[i]))
			return false;
	}
	*counts = (struct counts){ (double)value[0], (double)value[1], (double)value[2],
				   (double)value[3] };
	return true;
}

/*
 * Stacks consist of return addresses. The instruction before may belong to another line or
 * function, so the address is decreased by one, into the call.
 */
static int find_location(struct text_profile *t, uint64_t address, uint32_t *ret)
{
	struct memwatch_heap *heap = t->heap;
	struct mw_prof_location location = { .address = address ? address - 1 : 0,
					     .mapping = MW_PROF_NONE };
	uint32_t hash = mw_strings_hash(heap->strings.seed, &location.address, 8), at, number;

	mw_index_for_each (&t->by_address, hash, &at, number) {
		if (heap->locations[number].address == location.address) {
			*ret = number;
			return 0;
		}
	}
	return mw_heap_add_location(heap, &location, ret)
		       ?: mw_index_insert(&t->by_address, hash, *ret);
}

/* " 0x1 0x2 ...", innermost first */
static int read_stack(struct text_profile *t, struct mw_text text)
{
	uint64_t address;

	t->stack_len = 0;
	for (skip_blanks(&text); text.len; skip_blanks(&text)) {
		if (!mw_text_skip(&text, "0x") || !take_number(&text, 16, &address))
			return fail_line(t, "a stack has something that is not an address");
		if (mw_array_reserve(t->stack, t->stack_room, t->stack_len + 1) ||
		    find_location(t, address, &t->stack[t->stack_len++]))
			return mw_fail_memory(t->heap->ctx, "heap profile");
	}
	t->has_stack = true;
	return 0;
}

/* Of the old sampling; see AdjustSamples of google-pprof. */
static void unsample_old(double count, double bytes, double rate, struct mw_prof_sum *objects,
			 struct mw_prof_sum *space)
{
	double size = count > 0 ? bytes / count : 0;
	double p = rate > 0 && size > 0 && size < rate ? size / rate : 1;

	objects->value += count / p;
	objects->variance += count * (1 - p) / (p * p);
	space->value += bytes / p;
	space->variance += count * size * size * (1 - p) / (p * p);
}

static void unsample(const struct text_profile *t, double count, double bytes,
		     struct mw_prof_sum *objects, struct mw_prof_sum *space)
{
	if (t->sampling == SAMPLING_OLD)
		unsample_old(count, bytes, t->rate, objects, space);
	else
		mw_heap_unsample(count, bytes, t->sampling == SAMPLING_EXACT ? 1 : t->rate, objects,
				 space);
}

static int add_counts(struct text_profile *t, const struct counts *counts)
{
	struct mw_prof_sample sample = { .birth_ns = MW_PROF_BIRTH_UNKNOWN, .count = 1 };

	unsample(t, counts->live_objects, counts->live_bytes,
		 &sample.sum[MEMWATCH_HEAP_LIVE_OBJECTS], &sample.sum[MEMWATCH_HEAP_LIVE_BYTES]);
	unsample(t, counts->allocated_objects, counts->allocated_bytes,
		 &sample.sum[MEMWATCH_HEAP_ALLOCATED_OBJECTS],
		 &sample.sum[MEMWATCH_HEAP_ALLOCATED_BYTES]);
	if (counts->allocated_objects > 0)
		mw_heap_last(t->heap)->info.metrics |= 1U << MEMWATCH_HEAP_ALLOCATED_BYTES |
						       1U << MEMWATCH_HEAP_ALLOCATED_OBJECTS;
	if (mw_heap_add_stack(t->heap, t->stack, t->stack_len, &sample.stack) ||
	    mw_heap_add_sample(t->heap, &sample))
		return mw_fail_memory(t->heap->ctx, "heap profile");
	return 0;
}

static int read_jemalloc_line(struct text_profile *t, struct mw_text line)
{
	struct counts counts;

	if (mw_text_skip(&line, "@"))
		return read_stack(t, line);
	if (!mw_text_skip(&line, "t"))
		return fail_line(t, "is neither a stack nor the numbers of a thread");
	/* The lines of single threads add up to that of all threads. */
	if (!mw_text_skip(&line, "*:"))
		return 0;
	if (!take_counts(&line, &counts))
		return fail_line(t, "does not have the form \"t*: N: N [N: N]\"");
	/* Before the first stack, the line has the total. */
	return t->has_stack ? add_counts(t, &counts) : 0;
}

static int read_gperftools_line(struct text_profile *t, struct mw_text line)
{
	struct counts counts;
	int err;

	if (!take_counts(&line, &counts))
		return fail_line(t, "does not have the form \"N: N [N: N] @ ADDRESS...\"");
	skip_blanks(&line);
	if (!mw_text_skip(&line, "@"))
		return fail_line(t, "has no stack");
	err = read_stack(t, line);
	return err ?: add_counts(t, &counts);
}

/* "START-END PERMISSIONS OFFSET DEVICE INODE PATH", as in /proc/PID/maps */
static int read_mapping(struct text_profile *t, struct mw_text line)
{
	struct mw_prof_mapping mapping = { 0 };
	uint32_t number;

	if (!take_number(&line, 16, &mapping.start) || !mw_text_skip(&line, "-") ||
	    !take_number(&line, 16, &mapping.end))
		return 0;
	skip_blanks(&line);
	/* Code is executable; without this the other parts of a file would win. */
	if (line.len < 4 || line.at[2] != 'x')
		return 0;
	line.at += 4;
	line.len -= 4;
	skip_blanks(&line);
	if (!take_number(&line, 16, &mapping.offset))
		return 0;
	for (int i = 0; i < 2; i++) {
		skip_blanks(&line);
		while (line.len && *line.at != ' ') {
			line.at++;
			line.len--;
		}
	}
	skip_blanks(&line);
	if (mw_strings_add_text(&t->heap->strings, line.at, line.len, &mapping.path) ||
	    mw_heap_add_mapping(t->heap, &mapping, &number))
		return mw_fail_memory(t->heap->ctx, "heap profile");
	return 0;
}

/* "heap_v2/RATE" */
static int read_jemalloc_head(struct text_profile *t, struct mw_text head)
{
	uint64_t rate;

	mw_text_skip(&head, JEMALLOC_HEAD);
	if (!mw_text_number(head, UINT64_MAX, &rate))
		return fail_line(t, "the sampling rate is not a number");
	t->sampling = SAMPLING_POISSON;
	t->rate = (double)rate;
	mw_heap_last(t->heap)->info.rate_bytes = rate;
	return 0;
}

/* "heap profile: N: N [N: N] @ TYPE/RATE" */
static int read_gperftools_head(struct text_profile *t, struct mw_text head)
{
	struct memwatch_heap_info *info = &mw_heap_last(t->heap)->info;
	struct counts totals;
	struct mw_text type;
	uint64_t rate = 1;

	mw_text_skip(&head, GPERFTOOLS_HEAD);
	if (!take_counts(&head, &totals))
		return fail_line(t, "does not have the form \"heap profile: N: N [N: N] @ TYPE\"");
	skip_blanks(&head);
	if (!mw_text_skip(&head, "@"))
		return fail_line(t, "has no type of profile");
	skip_blanks(&head);
	mw_text_take(&head, '/', &type);
	if (head.len && !mw_text_number(head, UINT64_MAX, &rate))
		return fail_line(t, "the sampling rate is not a number");
	if (mw_text_is(type, "heapprofile")) {
		t->sampling = SAMPLING_EXACT;
		rate = 1;
	} else if (mw_text_is(type, "heap_v2") || mw_text_is(type, "heapz_v2")) {
		t->sampling = SAMPLING_POISSON;
	} else if (mw_text_is(type, "heap")) {
		t->sampling = SAMPLING_OLD;
		rate /= 2;
	} else {
		return fail_line(t, "the type of profile is not known");
	}
	t->rate = (double)rate;
	info->rate_bytes = rate;
	return 0;
}

static int read_lines(struct text_profile *t, bool jemalloc)
{
	struct mw_text line;
	bool maps = false;
	int err = 0;

	if (!take_line(t, &line))
		return fail_line(t, "is empty");
	err = jemalloc ? read_jemalloc_head(t, line) : read_gperftools_head(t, line);
	while (!err && take_line(t, &line)) {
		if (mw_text_is(line, "MAPPED_LIBRARIES:"))
			maps = true;
		else if (maps)
			err = read_mapping(t, line);
		else if (line.len)
			err = jemalloc ? read_jemalloc_line(t, line)
				       : read_gperftools_line(t, line);
	}
	return err;
}

int mw_text_profile_read(struct memwatch_heap *heap, const struct mw_input *input)
{
	struct text_profile t = { .heap = heap, .rest = { input->bytes, input->len } };
	struct memwatch_heap_info *info = &mw_heap_last(heap)->info;
	uint32_t first = heap->nr_locations;
	int err;

	info->metrics = 1U << MEMWATCH_HEAP_LIVE_BYTES | 1U << MEMWATCH_HEAP_LIVE_OBJECTS;
	err = read_lines(&t, info->format == MEMWATCH_HEAP_JEMALLOC);
	mw_heap_sort_mappings(heap);
	for (uint32_t i = first; !err && i < heap->nr_locations; i++)
		heap->locations[i].mapping = mw_heap_find_mapping(heap, heap->locations[i].address);
	free(t.stack);
	mw_index_free(&t.by_address);
	return err;
}
