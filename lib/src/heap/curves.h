/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The live bytes of each row in each snapshot. What all rows have at one moment can be added
 * up, because no sample is in two rows: the curve of a group is the sum of the curves of its
 * rows.
 *
 * What a program allocates for its current work comes and goes, and can hide a leak that is as
 * large. Where samples have identities, a second series of each row therefore counts only those
 * that were in the snapshot before: what lives for less than one interval is left out.
 */
#ifndef MW_HEAP_CURVES_H
#define MW_HEAP_CURVES_H

#include "heap/rows.h"

/* Values of a snapshot: live bytes, their variance, and that of the change from the one before. */
enum mw_curve_part { MW_CURVE_LIVE, MW_CURVE_VARIANCE, MW_CURVE_CHANGE, MW_CURVE_PARTS };

/**
 * struct mw_series - the snapshots of which a curve has values
 * @hours: times of the snapshots, from the first of all
 * @weight: factor of each snapshot in the slope of the least squares line
 * @at: place of the first value in a curve
 * @identified: the changes are known sample by sample; otherwise they are at least as large
 */
struct mw_series {
	uint32_t snapshots, at;
	double *hours, *weight;
	bool identified;
};

/**
 * struct mw_curves - the curves of all rows
 * @series: of all samples, and of the survivors
 * @nr: 1 or 2
 * @width: number of values of one curve
 * @values: curves by row, and that of all rows together
 */
struct mw_curves {
	struct mw_series series[2];
	uint32_t nr, width;
	double *values;
};

/*
 * Rows must exist for the stacks of all profiles of the heap, which are in the order of their
 * times. Returns 0; -ENODATA if there are no two profiles with different times; -ENOMEM. The
 * caller calls mw_curves_uninit() in all cases.
 */
int mw_curves_init(struct mw_curves *curves, const struct mw_heap_rows *rows);
void mw_curves_uninit(struct mw_curves *curves);

/* The curve of a row; @row is the number of rows for all together. */
static inline double *mw_curves_at(const struct mw_curves *curves, uint32_t row)
{
	return curves->values + (size_t)row * curves->width;
}

static inline void mw_curve_add(const struct mw_curves *curves, double *to, const double *from)
{
	for (uint32_t i = 0; i < curves->width; i++)
		to[i] += from[i];
}

/* The values of one part, by snapshot. */
static inline const double *mw_curve_part(const struct mw_series *s, const double *curve,
					  enum mw_curve_part part)
{
	return curve + s->at + part * s->snapshots;
}

#endif /* MW_HEAP_CURVES_H */
