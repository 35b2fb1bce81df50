// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The rows of a view. Samples are first added up by stack, and then each stack is expanded
 * into its frames once.
 */
#include "heap/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "heap/identity.h"
#include "base/array.h"

static void row_sums_add(struct mw_row_sums *to, const struct mw_row_sums *from)
{
	for (int m = 0; m < MEMWATCH_HEAP_METRICS; m++) {
		for (int side = 0; side < MW_SIDES; side++) {
			to->side[side][m].value += from->side[side][m].value;
			to->side[side][m].variance += from->side[side][m].variance;
		}
		to->change_variance[m] += from->change_variance[m];
	}
}

static int new_row(struct mw_heap_rows *rows, uint32_t *ret)
{
	if (mw_array_reserve(rows->rows, rows->capacity, rows->count + 1U))
		return -ENOMEM;
	rows->rows[rows->count] = (struct mw_row){ .frame = MW_ROW_NONE,
						   .parent = MW_ROW_NONE,
						   .stack = 0 };
	*ret = rows->count++;
	return 0;
}

/* Finds or creates the row of a key. @ret is @rows->other if there are too many. */
static int find_row(struct mw_heap_rows *rows, const void *key, size_t len, uint32_t *ret)
{
	uint32_t number;

	if (mw_strings_find(&rows->keys, key, len, &number)) {
		*ret = number - 1;
		return 0;
	}
	if (rows->other != MW_ROW_NONE) {
		*ret = rows->other;
		return 0;
	}
	if (rows->count >= MW_ROWS_MAX) {
		if (new_row(rows, &rows->other))
			return -ENOMEM;
		*ret = rows->other;
		return 0;
	}
	return mw_strings_add(&rows->keys, key, len, &number) ?: new_row(rows, ret);
}

/* The row of a frame, for all kinds of rows but sites and trees. */
static int find_frame_row(struct mw_heap_rows *rows, uint32_t frame, uint32_t *ret)
{
	const struct mw_frame *f = mw_frames_at(&rows->frames, frame);
	struct mw_frame key = *f;
	int err;

	key.inlined = 0;
	if (rows->by == MEMWATCH_HEAP_BY_MODULE)
		key = (struct mw_frame){ .module = f->module };
	else if (rows->by == MEMWATCH_HEAP_BY_FUNCTION && f->function)
		key.line = key.file = 0;
	err = find_row(rows, &key, sizeof(key), ret);
	if (!err && rows->rows[*ret].frame == MW_ROW_NONE && *ret != rows->other)
		rows->rows[*ret].frame = frame;
	return err;
}

static int add_frame_rows(struct mw_heap_rows *rows, uint32_t stack, const struct mw_row_sums *sums,
			  const uint32_t *frames, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t number;
		struct mw_row *row;

		if (find_frame_row(rows, frames[i], &number))
			return -ENOMEM;
		row = &rows->rows[number];
		if (!i) {
			row_sums_add(&row->flat, sums);
			rows->stack_row[stack] = number;
		}
		/* A function that is in a stack several times counts once. */
		if (row->stamp != stack + 1)
			row_sums_add(&row->cum, sums);
		row->stamp = stack + 1;
	}
	return 0;
}

static int add_site_row(struct mw_heap_rows *rows, uint32_t stack, const struct mw_row_sums *sums,
			uint32_t frame)
{
	uint32_t number;
	struct mw_row *row;

	if (find_row(rows, &stack, sizeof(stack), &number))
		return -ENOMEM;
	row = &rows->rows[number];
	if (number != rows->other) {
		row->frame = frame;
		row->stack = stack;
	}
	row->stacks++;
	row_sums_add(&row->flat, sums);
	row_sums_add(&row->cum, sums);
	rows->stack_row[stack] = number;
	return 0;
}

/* From the outermost frame inwards, one row for each step. */
static int add_tree_rows(struct mw_heap_rows *rows, uint32_t stack, const struct mw_row_sums *sums,
			 const uint32_t *frames, uint32_t nr)
{
	uint32_t parent = MW_ROW_NONE, number = MW_ROW_NONE;

	for (uint32_t i = nr; i-- > 0;) {
		uint32_t key[2] = { parent, frames[i] };
		struct mw_row *row;

		if (find_row(rows, key, sizeof(key), &number))
			return -ENOMEM;
		row = &rows->rows[number];
		if (number != rows->other) {
			row->frame = frames[i];
			row->parent = parent;
			row->depth = nr - 1 - i;
		}
		row_sums_add(&row->cum, sums);
		if (number == rows->other)
			break;
		parent = number;
	}
	if (number != MW_ROW_NONE)
		row_sums_add(&rows->rows[number].flat, sums);
	rows->stack_row[stack] = number;
	return 0;
}

static int add_stack_rows(struct mw_heap_rows *rows, uint32_t stack, const struct mw_row_sums *sums)
{
	uint32_t frames[MW_ROWS_FRAMES];
	uint32_t nr = mw_frames_expand(&rows->frames, stack, frames, MW_ROWS_FRAMES);

	if (!nr) {
		/* A sample without a stack is a row without a frame. */
		if (rows->by == MEMWATCH_HEAP_BY_SITE)
			return add_site_row(rows, stack, sums, MW_ROW_NONE);
		if (find_row(rows, "none", 4, &rows->stack_row[stack]))
			return -ENOMEM;
		row_sums_add(&rows->rows[rows->stack_row[stack]].flat, sums);
		row_sums_add(&rows->rows[rows->stack_row[stack]].cum, sums);
		return 0;
	}
	if (rows->by == MEMWATCH_HEAP_BY_SITE)
		return add_site_row(rows, stack, sums, frames[0]);
	if (rows->by == MEMWATCH_HEAP_BY_TREE)
		return add_tree_rows(rows, stack, sums, frames, nr);
	return add_frame_rows(rows, stack, sums, frames, nr);
}

/* Adds the samples of one side up by stack. @other has the allocations of the other side. */
static void add_samples(const struct mw_heap_rows *rows, struct mw_row_sums *sums, bool *used,
			const struct mw_prof_profile *profile, enum mw_side side,
			const struct mw_identities *other)
{
	for (uint32_t i = 0; i < profile->nr_samples; i++) {
		const struct mw_prof_sample *sample = &profile->samples[i];
		uint32_t stack = rows->frames.stack_of[sample->stack];
		bool shared = other && mw_identities_have(other, sample);

		used[stack] = true;
		for (int m = 0; m < MEMWATCH_HEAP_METRICS; m++) {
			struct mw_prof_sum *sum = &sums[stack].side[side][m];

			sum->value += sample->sum[m].value;
			sum->variance += sample->sum[m].variance;
			if (!shared)
				sums[stack].change_variance[m] += sample->sum[m].variance;
		}
	}
}

/* What one process allocated since its start grows: the older part is in both profiles. */
static void share_allocated(struct mw_row_sums *sums, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++)
		for (int m = MEMWATCH_HEAP_ALLOCATED_BYTES; m <= MEMWATCH_HEAP_ALLOCATED_OBJECTS;
		     m++)
			sums[i].change_variance[m] = fabs(sums[i].side[MW_SIDE_MAIN][m].variance -
							  sums[i].side[MW_SIDE_BASE][m].variance);
}

static int add_profiles(struct mw_heap_rows *rows, const struct mw_prof_profile *profile,
			const struct mw_prof_profile *base)
{
	uint32_t nr = rows->frames.stacks.count;
	struct mw_row_sums *sums = calloc(nr, sizeof(*sums));
	bool *used = calloc(nr, sizeof(*used));
	struct mw_identities here = { 0 }, there = { 0 };
	int err = sums && used ? 0 : -ENOMEM;

	if (!err && base)
		err = mw_identities_init(&here, rows->heap, profile)
			      ?: mw_identities_init(&there, rows->heap, base);
	if (!err) {
		add_samples(rows, sums, used, profile, MW_SIDE_MAIN, base ? &there : NULL);
		if (base)
			add_samples(rows, sums, used, base, MW_SIDE_BASE, &here);
		if (base && mw_identities_same_process(profile, base))
			share_allocated(sums, nr);
	}
	for (uint32_t i = 0; i < nr && !err; i++) {
		if (!used[i])
			continue;
		row_sums_add(&rows->total.flat, &sums[i]);
		row_sums_add(&rows->total.cum, &sums[i]);
		err = add_stack_rows(rows, i, &sums[i]);
	}
	mw_identities_uninit(&here);
	mw_identities_uninit(&there);
	free(sums);
	free(used);
	return err;
}

static void count_samples(struct mw_heap_rows *rows, const struct mw_prof_profile *profile)
{
	for (uint32_t i = 0; i < profile->nr_samples; i++) {
		uint32_t row = mw_heap_rows_of(rows, profile->samples[i].stack);

		rows->total.samples += profile->samples[i].count;
		if (row != MW_ROW_NONE)
			rows->rows[row].samples += profile->samples[i].count;
	}
}

int mw_heap_rows_init(struct mw_heap_rows *rows, const struct memwatch_heap *heap, uint32_t by,
		      const struct mw_prof_profile *profile, const struct mw_prof_profile *base)
{
	int err;

	*rows = (struct mw_heap_rows){ .heap = heap,
				       .by = by,
				       .other = MW_ROW_NONE,
				       .total = { .frame = MW_ROW_NONE, .parent = MW_ROW_NONE } };
	err = mw_frames_init(&rows->frames, heap) ?: mw_strings_init(&rows->keys);
	if (err)
		return err;
	rows->stack_row = reallocarray(NULL, rows->frames.stacks.count, sizeof(*rows->stack_row));
	if (!rows->stack_row)
		return -ENOMEM;
	memset(rows->stack_row, 0xff, rows->frames.stacks.count * sizeof(*rows->stack_row));
	err = add_profiles(rows, profile, base);
	if (!err)
		count_samples(rows, profile);
	return err;
}

int mw_heap_rows_add_stacks(struct mw_heap_rows *rows, const struct mw_prof_profile *profile)
{
	static const struct mw_row_sums nothing;
	int err = 0;

	for (uint32_t i = 0; i < profile->nr_samples && !err; i++) {
		uint32_t stack = rows->frames.stack_of[profile->samples[i].stack];

		if (rows->stack_row[stack] == MW_ROW_NONE)
			err = add_stack_rows(rows, stack, &nothing);
	}
	return err;
}

static void row_add(struct mw_row *to, const struct mw_row *from)
{
	row_sums_add(&to->flat, &from->flat);
	row_sums_add(&to->cum, &from->cum);
	to->samples += from->samples;
	to->stacks += from->stacks;
}

void mw_heap_rows_merge(struct mw_heap_rows *rows, uint32_t *into)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < rows->count; i++) {
		if (into[i] < i) {
			/* The number that this row has by now. */
			into[i] = into[into[i]];
			row_add(&rows->rows[into[i]], &rows->rows[i]);
		} else {
			rows->rows[kept] = rows->rows[i];
			into[i] = kept++;
		}
	}
	rows->count = kept;
	for (uint32_t i = 0; i < rows->frames.stacks.count; i++)
		if (rows->stack_row[i] != MW_ROW_NONE)
			rows->stack_row[i] = into[rows->stack_row[i]];
}

void mw_heap_rows_uninit(struct mw_heap_rows *rows)
{
	mw_frames_uninit(&rows->frames);
	mw_strings_uninit(&rows->keys);
	free(rows->rows);
	free(rows->stack_row);
	*rows = (struct mw_heap_rows){ 0 };
}
