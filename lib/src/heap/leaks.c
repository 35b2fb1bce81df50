// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The rows that leak. Sites are sorted by their frames, the innermost first, so that those with
 * the same innermost frames are neighbours. One pass over them closes each group after all that
 * are inside it: a leak is told of the smallest group that has one, and what is left over of the
 * larger ones is tested without it.
 */
#include "heap/leaks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Frames that are farther out do not tell groups apart. */
#define GROUP_FRAMES 32U

struct site {
	uint32_t row;
	uint32_t frames[GROUP_FRAMES]; /* innermost first; MW_ROW_NONE behind the last */
};

/**
 * struct group - sites with the same innermost frames, of which more may follow
 * @frames: how many frames they have in common
 * @first: the first of them in the order of sites
 * @grown: sites were added since it was tested
 * @curve: of its sites without those of leaks that were found
 */
struct group {
	uint32_t frames, first;
	bool grown;
	double *curve;
};

/**
 * struct search - a search for leaks
 * @group: the groups around the current site, the largest first; each is inside the one before
 * @curves_of_groups: what @curve of the groups points to
 * @rows_tests, @groups_tests: number of tests of rows and of groups that can find a leak
 * @counting: only count those
 * @into: of each row of a leak of several, the first one of them; otherwise MW_ROW_NONE
 */
struct search {
	struct mw_heap_rows *rows;
	struct mw_curves curves;
	struct site *sites;
	struct group group[GROUP_FRAMES + 2];
	uint32_t nr_groups;
	double *curves_of_groups;
	uint32_t rows_tests, groups_tests;
	bool counting;
	struct mw_trend *trends;
	uint32_t *into;
};

static int compare_sites(const void *a, const void *b)
{
	const struct site *x = a, *y = b;

	for (uint32_t i = 0; i < GROUP_FRAMES; i++)
		if (x->frames[i] != y->frames[i])
			return x->frames[i] < y->frames[i] ? -1 : 1;
	return x->row < y->row ? -1 : x->row > y->row;
}

static void sort_sites(struct search *s)
{
	for (uint32_t i = 0; i < s->rows->count; i++) {
		const struct mw_row *row = &s->rows->rows[i];
		struct site *site = &s->sites[i];

		site->row = i;
		memset(site->frames, 0xff, sizeof(site->frames));
		if (s->rows->by == MEMWATCH_HEAP_BY_SITE && row->frame != MW_ROW_NONE)
			mw_frames_expand(&s->rows->frames, row->stack, site->frames, GROUP_FRAMES);
	}
	qsort(s->sites, s->rows->count, sizeof(*s->sites), compare_sites);
}

/* How many innermost frames site @i has in common with the next one. */
static uint32_t common_frames(const struct search *s, uint32_t i)
{
	const uint32_t *a = s->sites[i].frames, *b = s->sites[i + 1].frames;
	uint32_t n = 0;

	if (i + 1 == s->rows->count)
		return 0;
	while (n < GROUP_FRAMES && a[n] == b[n] && a[n] != MW_ROW_NONE)
		n++;
	return n;
}

static void clear_curve(const struct search *s, double *curve)
{
	memset(curve, 0, s->curves.width * sizeof(*curve));
}

static void open_group(struct search *s, uint32_t site)
{
	struct group *g = &s->group[s->nr_groups];
	uint32_t row = s->sites[site].row;

	/* One frame more than two sites can have in common, so that it is closed at once. */
	g->frames = GROUP_FRAMES + 1;
	g->first = site;
	g->grown = false;
	g->curve = s->curves_of_groups + (size_t)s->nr_groups * s->curves.width;
	clear_curve(s, g->curve);
	if (s->counting || !s->trends[row].leak)
		mw_curve_add(&s->curves, g->curve, mw_curves_at(&s->curves, row));
	s->nr_groups++;
}

static bool is_in_leak(const struct search *s, uint32_t row)
{
	return s->trends[row].leak || s->into[row] != MW_ROW_NONE;
}

/* The sites from the first of the group to @last that are in no leak become one row. */
static void take_leak(struct search *s, struct group *g, uint32_t last, struct mw_trend trend)
{
	uint32_t into = MW_ROW_NONE;

	for (uint32_t i = g->first; i <= last; i++)
		if (!is_in_leak(s, s->sites[i].row) && s->sites[i].row < into)
			into = s->sites[i].row;
	for (uint32_t i = g->first; i <= last; i++) {
		uint32_t row = s->sites[i].row;

		if (is_in_leak(s, row))
			continue;
		s->into[row] = into;
		s->trends[row] = trend;
	}
	s->rows->rows[into].shared = g->frames;
	clear_curve(s, g->curve);
}

static void test_group(struct search *s, struct group *g, uint32_t last)
{
	struct mw_trend trend;

	if (!g->grown)
		return;
	g->grown = false;
	if (s->counting) {
		s->groups_tests += mw_trend_candidates(&s->curves, g->curve);
		return;
	}
	trend = mw_trend_of(&s->curves, g->curve, s->groups_tests);
	if (trend.leak)
		take_leak(s, g, last, trend);
}

/* Closes the groups that have more frames in common than the next site has with @last. */
static void close_groups(struct search *s, uint32_t last, uint32_t frames)
{
	while (s->nr_groups && s->group[s->nr_groups - 1].frames > frames) {
		struct group *g = &s->group[s->nr_groups - 1];
		struct group *outer = s->nr_groups > 1 ? g - 1 : NULL;

		test_group(s, g, last);
		if (!frames && !outer) {
			s->nr_groups = 0;
		} else if (outer && outer->frames >= frames) {
			mw_curve_add(&s->curves, outer->curve, g->curve);
			outer->grown = true;
			s->nr_groups--;
		} else {
			g->frames = frames;
		}
	}
}

static void pass_over_sites(struct search *s)
{
	for (uint32_t i = 0; i < s->rows->count; i++) {
		open_group(s, i);
		close_groups(s, i, common_frames(s, i));
	}
}

/* Rows and groups are counted apart, so that a leak of one row is found as if there were no groups.
 */
static void find_leaks(struct search *s)
{
	uint32_t count = s->rows->count;

	s->counting = true;
	for (uint32_t i = 0; i < count; i++)
		s->rows_tests += mw_trend_candidates(&s->curves, mw_curves_at(&s->curves, i));
	pass_over_sites(s);
	s->counting = false;
	for (uint32_t i = 0; i <= count; i++)
		s->trends[i] = mw_trend_of(&s->curves, mw_curves_at(&s->curves, i), s->rows_tests);
	pass_over_sites(s);
}

/* The trends follow their rows to the numbers that they have now. */
static void merge_rows(struct search *s)
{
	uint32_t count = s->rows->count;
	struct mw_trend all = s->trends[count];

	mw_heap_rows_merge(s->rows, s->into);
	for (uint32_t i = 0; i < count; i++)
		s->trends[s->into[i]] = s->trends[i];
	s->trends[s->rows->count] = all;
}

int mw_leaks_find(struct mw_heap_rows *rows, struct mw_trend **ret)
{
	struct search s = { .rows = rows };
	size_t count = rows->count + 1UL;
	int err = mw_curves_init(&s.curves, rows);

	if (!err) {
		s.sites = reallocarray(NULL, count, sizeof(*s.sites));
		s.trends = reallocarray(NULL, count, sizeof(*s.trends));
		s.into = reallocarray(NULL, count, sizeof(*s.into));
		s.curves_of_groups = reallocarray(NULL, (GROUP_FRAMES + 2) * s.curves.width,
						  sizeof(*s.curves_of_groups));
		if (!s.sites || !s.trends || !s.into || !s.curves_of_groups)
			err = -ENOMEM;
	}
	if (!err) {
		memset(s.into, 0xff, count * sizeof(*s.into));
		sort_sites(&s);
		find_leaks(&s);
		merge_rows(&s);
		*ret = s.trends;
	} else {
		free(s.trends);
	}
	mw_curves_uninit(&s.curves);
	free(s.sites);
	free(s.into);
	free(s.curves_of_groups);
	return err;
}
