// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Views: the rows of a heap in sorted order, with their intervals.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "heap/estimate.h"
#include "heap/leaks.h"
#include "heap/quantiles.h"
#include "heap/rows.h"
#include "heap/touched.h"
#include "base/context.h"

/**
 * struct memwatch_heap_view - a view
 * @order: numbers of the rows in sorted order
 * @frames: of each row, and an empty one of all together: what the caller sees
 * @quantiles: of each row, and of all together
 * @trends: the same, or NULL
 * @touched: of each row, and of all together
 * @known: by metric, whether the rate is known, and with it intervals
 */
struct memwatch_heap_view {
	struct memwatch_heap *heap;
	struct memwatch_heap_view_opts opts;
	struct mw_heap_rows rows;
	uint32_t *order;
	struct memwatch_heap_frame *frames;
	struct mw_quantiles *quantiles;
	struct mw_trend *trends;
	struct mw_touched *touched;
	bool known;
};

static double sort_value(const struct memwatch_heap_view *view, uint32_t number)
{
	const struct mw_row *row = &view->rows.rows[number];
	const struct mw_row_sums *sums = view->opts.flags & MEMWATCH_HEAP_CUM ||
							 view->opts.by == MEMWATCH_HEAP_BY_TREE
						 ? &row->cum
						 : &row->flat;
	uint32_t m = view->opts.metric;

	if (view->trends)
		return view->trends[number].per_hour.low;
	if (view->opts.flags & MEMWATCH_HEAP_BASE)
		return fabs(sums->side[MW_SIDE_MAIN][m].value - sums->side[MW_SIDE_BASE][m].value);
	return sums->side[MW_SIDE_MAIN][m].value;
}

/* Largest first; then the one that allocated more with what it calls; then the one found first. */
static int compare_rows(const void *a, const void *b, void *data)
{
	const struct memwatch_heap_view *view = data;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	double p = sort_value(view, x), q = sort_value(view, y);

	if (p == q) {
		p = fabs(view->rows.rows[x].cum.side[MW_SIDE_MAIN][view->opts.metric].value);
		q = fabs(view->rows.rows[y].cum.side[MW_SIDE_MAIN][view->opts.metric].value);
	}
	if (p != q)
		return p > q ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* Rows of a tree: siblings sorted, and children behind their parent. */
static int order_tree(struct memwatch_heap_view *view, const uint32_t *sorted)
{
	uint32_t count = view->rows.count, used = 0, at;
	uint32_t *child = reallocarray(NULL, count + 1UL, sizeof(*child));
	uint32_t *sibling = reallocarray(NULL, count + 1UL, sizeof(*sibling));

	if (!child || !sibling) {
		free(child);
		free(sibling);
		return -ENOMEM;
	}
	memset(child, 0xff, (count + 1UL) * sizeof(*child));
	/* Element @count is the parent of the roots. Each list is built from its end. */
	for (uint32_t i = count; i-- > 0;) {
		uint32_t parent = view->rows.rows[sorted[i]].parent;
		uint32_t *first = &child[parent == MW_ROW_NONE ? count : parent];

		sibling[sorted[i]] = *first;
		*first = sorted[i];
	}
	at = child[count];
	while (at != MW_ROW_NONE) {
		view->order[used++] = at;
		if (child[at] != MW_ROW_NONE) {
			at = child[at];
			continue;
		}
		while (at != MW_ROW_NONE && sibling[at] == MW_ROW_NONE)
			at = view->rows.rows[at].parent;
		if (at != MW_ROW_NONE)
			at = sibling[at];
	}
	free(child);
	free(sibling);
	return 0;
}

static int sort_rows(struct memwatch_heap_view *view)
{
	uint32_t count = view->rows.count;
	uint32_t *sorted;
	int err;

	view->order = reallocarray(NULL, count + 1UL, sizeof(*view->order));
	sorted = reallocarray(NULL, count + 1UL, sizeof(*sorted));
	if (!view->order || !sorted) {
		free(sorted);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++)
		sorted[i] = i;
	qsort_r(sorted, count, sizeof(*sorted), compare_rows, view);
	if (view->opts.by == MEMWATCH_HEAP_BY_TREE) {
		err = order_tree(view, sorted);
		free(sorted);
		return err;
	}
	free(view->order);
	view->order = sorted;
	return 0;
}

static int check_opts(struct memwatch_heap *heap, struct memwatch_heap_view_opts *opts)
{
	uint32_t flags = MEMWATCH_HEAP_CUM | MEMWATCH_HEAP_BASE | MEMWATCH_HEAP_GROWTH;
	const struct memwatch_heap_info *info;

	if (opts->flags & ~flags || opts->by > MEMWATCH_HEAP_BY_TREE ||
	    opts->metric >= MEMWATCH_HEAP_METRICS || opts->reserved)
		return mw_fail(heap->ctx, -EINVAL, "heap view: an option has an unknown value");
	if (opts->flags & MEMWATCH_HEAP_GROWTH && opts->flags & MEMWATCH_HEAP_BASE)
		return mw_fail(heap->ctx, -EINVAL, "heap view: growth has no base");
	if (opts->flags & MEMWATCH_HEAP_GROWTH && heap->nr_profiles)
		opts->profile = heap->nr_profiles - 1;
	if (opts->profile >= heap->nr_profiles ||
	    (opts->flags & MEMWATCH_HEAP_BASE && opts->base >= heap->nr_profiles))
		return mw_fail(heap->ctx, -ENOENT, "heap view: the profile does not exist");
	info = &heap->profiles[opts->profile].info;
	if (!(info->metrics & 1U << opts->metric) ||
	    (opts->flags & MEMWATCH_HEAP_GROWTH &&
	     !(info->metrics & 1U << MEMWATCH_HEAP_LIVE_BYTES)))
		return mw_fail(heap->ctx, -EOPNOTSUPP, "the profile does not contain this value");
	return 0;
}

static int add_trends(struct memwatch_heap_view *view)
{
	int err = 0;

	for (uint32_t i = 0; i < view->heap->nr_profiles && !err; i++)
		err = mw_heap_rows_add_stacks(&view->rows, &view->heap->profiles[i]);
	if (!err)
		err = mw_leaks_find(&view->rows, &view->trends);
	if (err == -ENODATA)
		return mw_fail(view->heap->ctx, err,
			       "growth needs two or more profiles of different times");
	return err;
}

static int fill_view(struct memwatch_heap_view *view)
{
	const struct mw_prof_profile *profile = &view->heap->profiles[view->opts.profile];
	const struct mw_prof_profile *base = view->opts.flags & MEMWATCH_HEAP_BASE
						     ? &view->heap->profiles[view->opts.base]
						     : NULL;
	int err = mw_heap_rows_init(&view->rows, view->heap, view->opts.by, profile, base);

	view->known = profile->info.rate_bytes && (!base || base->info.rate_bytes);
	if (!err && view->opts.flags & MEMWATCH_HEAP_GROWTH)
		err = add_trends(view);
	if (!err)
		err = mw_quantiles_new(&view->rows, profile, &view->quantiles);
	if (!err)
		err = mw_touched_new(&view->rows, profile, &view->touched);
	if (!err)
		err = sort_rows(view);
	if (!err)
		view->frames = calloc(view->rows.count + 1UL, sizeof(*view->frames));
	return err ? err : view->frames ? 0 : -ENOMEM;
}

int memwatch_heap_view_new(struct memwatch_heap *heap,
			   const struct memwatch_heap_view_opts *user_opts,
			   struct memwatch_heap_view **ret)
{
	struct memwatch_heap_view *view;
	struct memwatch_heap_view_opts opts;
	int err = mw_opts_copy(heap->ctx, &opts, sizeof(opts), user_opts);

	if (!err)
		err = check_opts(heap, &opts);
	if (err)
		return err;
	view = calloc(1, sizeof(*view));
	if (!view)
		return mw_fail_memory(heap->ctx, "heap view");
	view->heap = heap;
	view->opts = opts;
	err = fill_view(view);
	if (err) {
		memwatch_heap_view_unref(view);
		return err == -ENOMEM ? mw_fail_memory(heap->ctx, "heap view") : err;
	}
	*ret = view;
	return 0;
}

struct memwatch_heap_view *memwatch_heap_view_unref(struct memwatch_heap_view *view)
{
	if (!view)
		return NULL;
	mw_heap_rows_uninit(&view->rows);
	free(view->order);
	free(view->frames);
	free(view->quantiles);
	free(view->trends);
	free(view->touched);
	free(view);
	return NULL;
}

static void export_sums(const struct memwatch_heap_view *view, const struct mw_row_sums *sums,
			struct memwatch_heap_estimate *value, struct memwatch_heap_estimate *base)
{
	for (int m = 0; m < MEMWATCH_HEAP_METRICS; m++) {
		const struct mw_prof_sum *here = &sums->side[MW_SIDE_MAIN][m];
		const struct mw_prof_sum *there = &sums->side[MW_SIDE_BASE][m];

		base[m] = mw_estimate_sum(*there, view->known);
		if (view->opts.flags & MEMWATCH_HEAP_BASE)
			value[m] = mw_estimate_change(here->value - there->value,
						      sums->change_variance[m], view->known);
		else
			value[m] = mw_estimate_sum(*here, view->known);
	}
}

static void export_frame(const struct memwatch_heap_view *view, uint32_t number,
			 struct memwatch_heap_frame *ret)
{
	const struct mw_strings *strings = &view->heap->strings;
	const struct mw_frame *frame = mw_frames_at(&view->rows.frames, number);

	*ret = (struct memwatch_heap_frame){
		.sz = sizeof(*ret),
		.function = mw_strings_text(strings, frame->function),
		.file = mw_strings_text(strings, frame->file),
		.module = mw_strings_text(strings, frame->module),
		.line = frame->line,
		.inlined = frame->inlined,
		.address = view->rows.frames.addresses[number],
	};
}

/* Leaves out what the rows of this kind were added up over. */
static void export_row_frame(const struct memwatch_heap_view *view, const struct mw_row *row,
			     struct memwatch_heap_frame *ret)
{
	*ret = (struct memwatch_heap_frame){
		.sz = sizeof(*ret), .function = "", .file = "", .module = ""
	};
	if (row->frame == MW_ROW_NONE)
		return;
	export_frame(view, row->frame, ret);
	if (view->opts.by == MEMWATCH_HEAP_BY_MODULE)
		ret->function = "";
	if (view->opts.by == MEMWATCH_HEAP_BY_MODULE ||
	    (view->opts.by == MEMWATCH_HEAP_BY_FUNCTION && *ret->function))
		ret->line = 0;
	if (view->opts.by == MEMWATCH_HEAP_BY_MODULE)
		ret->file = "";
	if (view->opts.by == MEMWATCH_HEAP_BY_MODULE ||
	    (view->opts.by == MEMWATCH_HEAP_BY_FUNCTION && *ret->function))
		ret->address = 0;
}

static uint32_t site_frames(const struct memwatch_heap_view *view, const struct mw_row *row,
			    uint32_t *frames)
{
	if (row->frame == MW_ROW_NONE)
		return 0;
	return mw_frames_expand(&view->rows.frames, row->stack, frames,
				row->shared ? row->shared : MW_ROWS_FRAMES);
}

/* @number is that of a row, or the number of rows for the total. */
static int export_row(const struct memwatch_heap_view *view, uint32_t number,
		      const struct mw_row *row, struct memwatch_heap_row *ret)
{
	const struct mw_quantiles *quantiles = &view->quantiles[number];
	struct memwatch_heap_row out = { .sz = sizeof(out), .depth = row->depth, .frames = 1 };
	uint32_t frames[MW_ROWS_FRAMES];

	export_sums(view, &row->flat, out.flat, out.base_flat);
	export_sums(view, &row->cum, out.cum, out.base_cum);
	export_row_frame(view, row, &view->frames[number]);
	out.frame = &view->frames[number];
	if (view->opts.by == MEMWATCH_HEAP_BY_SITE) {
		out.frames = site_frames(view, row, frames);
		out.stacks = row->stacks;
	}
	out.samples = row->samples;
	memcpy(out.age_seconds, quantiles->age, sizeof(out.age_seconds));
	memcpy(out.lifetime_seconds, quantiles->lifetime, sizeof(out.lifetime_seconds));
	for (int w = 0; w < MEMWATCH_HEAP_WINDOWS; w++)
		out.touched[w] = view->opts.flags & MEMWATCH_HEAP_BASE
					 ? mw_estimate_around(NAN, NAN)
					 : view->touched[number].window[w];
	out.watched = view->touched[number].watched;
	out.watched_parts = view->touched[number].parts;
	out.growth = mw_estimate_around(NAN, NAN);
	if (view->trends) {
		out.growth = view->trends[number].per_hour;
		out.leak = view->trends[number].leak;
	}
	return mw_opts_export(ret, &out, sizeof(out));
}

int memwatch_heap_view_get_total(const struct memwatch_heap_view *view,
				 struct memwatch_heap_row *ret)
{
	return export_row(view, view->rows.count, &view->rows.total, ret);
}

int memwatch_heap_view_get_row(const struct memwatch_heap_view *view, __u64 index,
			       struct memwatch_heap_row *ret)
{
	uint32_t number;

	if (index >= view->rows.count)
		return 0;
	number = view->order[index];
	return export_row(view, number, &view->rows.rows[number], ret) ?: 1;
}

int memwatch_heap_view_get_frame(const struct memwatch_heap_view *view, __u64 index, __u32 frame,
				 struct memwatch_heap_frame *ret)
{
	uint32_t frames[MW_ROWS_FRAMES];
	struct memwatch_heap_frame out;
	uint32_t nr;

	if (index >= view->rows.count)
		return 0;
	nr = site_frames(view, &view->rows.rows[view->order[index]], frames);
	if (frame >= nr)
		return 0;
	export_frame(view, frames[frame], &out);
	return mw_opts_export(ret, &out, sizeof(out)) ?: 1;
}
