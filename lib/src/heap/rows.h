/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The rows of a view and the sums in them, from the samples of up to two profiles.
 */
#ifndef MW_HEAP_ROWS_H
#define MW_HEAP_ROWS_H

#include "heap/frames.h"

/* Rows beyond this number are added up in one; a file can have more than memory holds. */
#define MW_ROWS_MAX (1U << 20)
/* Frames beyond this number, which are the outermost, are left out. */
#define MW_ROWS_FRAMES 2048

enum mw_side { MW_SIDE_MAIN, MW_SIDE_BASE, MW_SIDES };

/* Sums of one side, and for the difference the variance of what is not on both sides. */
struct mw_row_sums {
	struct mw_prof_sum side[MW_SIDES][MEMWATCH_HEAP_METRICS];
	double change_variance[MEMWATCH_HEAP_METRICS];
};

#define MW_ROW_NONE UINT32_MAX

struct mw_row {
	struct mw_row_sums flat, cum;
	uint32_t frame;	 /* MW_ROW_NONE: the row of what has no frame */
	uint32_t stack;	 /* of the frames; with BY_SITE */
	uint32_t shared; /* innermost frames of it that all stacks of the row have; 0: all */
	uint32_t stacks; /* how many; with BY_SITE */
	uint32_t parent; /* with BY_TREE; MW_ROW_NONE: a root */
	uint32_t depth;
	uint32_t stamp; /* the stack that was added to @cum last, plus 1 */
	uint64_t samples;
};

/**
 * struct mw_heap_rows - the rows
 * @by: enum memwatch_heap_by
 * @keys: interned keys of the rows; the number of a key is that of its row plus 1
 * @other: the row of what is beyond MW_ROWS_MAX, or MW_ROW_NONE
 * @stack_row: of each stack in @frames, the row of its flat values, or MW_ROW_NONE
 */
struct mw_heap_rows {
	const struct memwatch_heap *heap;
	struct mw_frames frames;
	uint32_t by;
	struct mw_strings keys;
	struct mw_row *rows;
	uint32_t count, capacity;
	uint32_t other;
	uint32_t *stack_row;
	struct mw_row total;
};

/*
 * Adds the samples of @profile, and those of @base unless it is NULL. Returns 0 or -ENOMEM;
 * the caller calls mw_heap_rows_uninit() in both cases.
 */
int mw_heap_rows_init(struct mw_heap_rows *rows, const struct memwatch_heap *heap, uint32_t by,
		      const struct mw_prof_profile *profile, const struct mw_prof_profile *base);
void mw_heap_rows_uninit(struct mw_heap_rows *rows);

/*
 * Adds each row to the row @into[row] if this is a lower number. Rows keep their order and get new
 * numbers, which are in @into then. No stack can be added any more.
 */
void mw_heap_rows_merge(struct mw_heap_rows *rows, uint32_t *into);

/* The row of the flat values of a sample, or MW_ROW_NONE. */
static inline uint32_t mw_heap_rows_of(const struct mw_heap_rows *rows, uint32_t heap_stack)
{
	return rows->stack_row[rows->frames.stack_of[heap_stack]];
}

/* Creates rows for stacks that only another profile has. Returns 0 or -ENOMEM. */
int mw_heap_rows_add_stacks(struct mw_heap_rows *rows, const struct mw_prof_profile *profile);

#endif /* MW_HEAP_ROWS_H */
