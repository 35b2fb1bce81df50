// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The decision.
 */
#include "stale/decide.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "stale/kept.h"

/* Shares of the time and of the third quartile, see GUARDS. */
#define SPREAD_TIME	0.001
#define SPREAD_QUARTILE 0.5

/* The medcouple holds as long as fewer observations than this are outliers. */
#define OUTLIERS_MAX 0.25

/* The share of the freed objects that were not stale for as long as the limit, see find_limit(). */
#define FREED_EARLIER 0.99

/**
 * struct work - a decision that is being made
 * @by_site: numbers of the live objects, by site
 * @first: where those of each site begin, and one more
 * @live: number of live objects in each cohort
 * @limit: the global fence for sites that may be abandoned; infinity if there is none
 * @sample: of the distribution at hand
 */
struct work {
	struct mw_decision *decision;
	const struct mw_sim *sim;
	const struct mw_decision_rule *rule;
	uint32_t *by_site, *first;
	uint64_t live[MW_COHORTS];
	double limit;
	struct mw_sample sample;
};

static uint64_t staleness_of(const struct work *w, uint32_t number)
{
	return w->sim->now - mw_objects_at(&w->sim->objects, number)->last;
}

/* Sorts the live objects by their site, by counting, and counts them by cohort. */
static int sort_by_site(struct work *w)
{
	const struct mw_sim *sim = w->sim;

	w->first = calloc(sim->nr_sites + 2UL, sizeof(*w->first));
	w->by_site = malloc((sim->objects.live + 1UL) * sizeof(*w->by_site));
	if (!w->first || !w->by_site)
		return -ENOMEM;
	for (uint32_t i = 0; i < sim->nr_sites; i++)
		w->first[i + 2] = w->first[i + 1] + sim->sites[i].live;
	for (uint32_t i = 0; i < sim->objects.used; i++) {
		const struct mw_object *object = mw_objects_at(&sim->objects, i);

		if (object->site == MW_OBJECT_NONE)
			continue;
		w->by_site[w->first[object->site + 1]++] = i;
		w->live[mw_cohorts_of(&sim->cohorts, object->birth)]++;
	}
	return 0;
}

static int add_freed(struct work *w, uint32_t site)
{
	return mw_histogram_export(&w->sim->sites[site].idle, &w->sample);
}

static int add_live(struct work *w, uint32_t site)
{
	int err = 0;

	for (uint32_t i = w->first[site]; !err && i < w->first[site + 1]; i++)
		err = mw_sample_add(&w->sample, (double)staleness_of(w, w->by_site[i]), 1);
	return err;
}

/* The fence of the sites from @begin to before @end, with the live objects or without. */
static int find_fence(struct work *w, uint32_t begin, uint32_t end, bool with_live,
		      struct mw_basis *ret)
{
	const struct mw_fence_rule rule = { w->rule->coefficient, SPREAD_TIME * (double)w->sim->now,
					    SPREAD_QUARTILE, (double)w->sim->pause };
	int err = 0;

	mw_sample_clear(&w->sample);
	for (uint32_t site = begin; !err && site < end; site++) {
		err = add_freed(w, site);
		if (!err && with_live)
			err = add_live(w, site);
	}
	if (err)
		return err;
	ret->objects = w->sample.total;
	ret->basis = MEMWATCH_STALE_BASIS_NONE;
	if (w->sample.total < MW_FENCE_LEAST)
		return 0;
	mw_sample_sort(&w->sample);
	ret->fence = mw_fence_of(&w->sample, &rule);
	ret->basis = with_live ? MEMWATCH_STALE_BASIS_ALL : MEMWATCH_STALE_BASIS_FREED;
	return 0;
}

static bool are_too_many(uint64_t outliers, uint64_t all)
{
	return (double)outliers > OUTLIERS_MAX * (double)all;
}

/* The global fence is needed to tell how many objects of a site are outliers. */
static int decide_global(struct work *w)
{
	struct mw_basis *global = &w->decision->global;
	uint64_t live = w->sim->objects.live, freed = 0;
	bool with_live;

	for (uint32_t i = 0; i < w->sim->nr_sites; i++)
		freed += w->sim->sites[i].freed;
	with_live = !are_too_many(live, live + freed) || freed < MW_FENCE_LEAST;
	return find_fence(w, 0, w->sim->nr_sites, with_live, global);
}

static double threshold_of(const struct mw_basis *basis)
{
	return basis->basis == MEMWATCH_STALE_BASIS_NONE ? INFINITY : basis->fence.threshold;
}

/*
 * A fence beyond the whole time tells nothing: no object can be as stale. Then it is rare enough
 * that an object is staler than nearly all were that were freed.
 */
static int find_limit(struct work *w)
{
	double now = (double)w->sim->now, least = w->rule->coefficient * SPREAD_TIME * now;
	int err = 0;

	w->limit = threshold_of(&w->decision->global);
	if (w->limit <= now)
		return 0;
	mw_sample_clear(&w->sample);
	for (uint32_t site = 0; !err && site < w->sim->nr_sites; site++)
		err = add_freed(w, site);
	if (err || w->sample.total < MW_FENCE_LEAST)
		return err;
	mw_sample_sort(&w->sample);
	w->limit = fmax(mw_sample_quantile(&w->sample, FREED_EARLIER), least) +
		   (double)w->sim->pause;
	return 0;
}

/* Only of a site that has freed hardly anything: others show by that how long objects live. */
static bool is_abandoned(const struct work *w, uint32_t site)
{
	const struct mw_sim *sim = w->sim;
	struct mw_kept kept = { 0 };

	if (sim->sites[site].freed >= MW_FENCE_LEAST || sim->sites[site].live < MW_FENCE_LEAST)
		return false;
	for (uint32_t i = w->first[site]; i < w->first[site + 1]; i++)
		mw_kept_add(&kept, &sim->cohorts, mw_objects_at(&sim->objects, w->by_site[i]),
			    sim->now, w->limit);
	return mw_kept_is_abandoned(&kept, &sim->cohorts, w->live);
}

/* The global fence as it holds for a site. */
static double global_of(const struct work *w, const struct mw_site_decision *d)
{
	return d->abandoned ? w->limit : threshold_of(&w->decision->global);
}

/* What is stale by the global fence; also the largest staleness. */
static uint64_t survey_site(struct work *w, uint32_t site, struct mw_site_decision *d)
{
	double threshold = global_of(w, d);
	uint64_t stale = 0;

	for (uint32_t i = w->first[site]; i < w->first[site + 1]; i++) {
		uint64_t staleness = staleness_of(w, w->by_site[i]);

		if (staleness > d->longest)
			d->longest = staleness;
		if ((double)staleness <= threshold)
			continue;
		stale++;
		d->global_bytes += mw_objects_at(&w->sim->objects, w->by_site[i])->size;
	}
	return stale;
}

static void choose_scheme(const struct work *w, struct mw_site_decision *d)
{
	double local = threshold_of(&d->local), global = global_of(w, d);
	double share = w->rule->share * (double)w->sim->live_bytes;
	bool is_candidate = (double)d->longest > global && (double)d->longest <= local;

	d->scheme = MEMWATCH_STALE_LOCAL;
	d->threshold = local;
	if (w->rule->scheme == MEMWATCH_STALE_LOCAL)
		return;
	if (w->rule->scheme == MEMWATCH_STALE_GLOBAL ||
	    (is_candidate && (double)d->global_bytes >= share)) {
		d->scheme = MEMWATCH_STALE_GLOBAL;
		d->threshold = global;
	}
}

static void find_stale(struct work *w, uint32_t site, struct mw_site_decision *d)
{
	uint64_t horizon;

	if (!((double)d->longest > d->threshold))
		return;
	horizon = w->sim->now - (uint64_t)d->threshold;
	for (uint32_t i = w->first[site]; i < w->first[site + 1]; i++) {
		const struct mw_object *object = mw_objects_at(&w->sim->objects, w->by_site[i]);

		if ((double)(w->sim->now - object->last) <= d->threshold)
			continue;
		d->stale++;
		d->stale_bytes += object->size;
		mw_births_add(&d->births, object->birth, horizon);
	}
	if (mw_births_have_stopped(&d->births, horizon))
		d->growth = MEMWATCH_STALE_STOPPED;
	else if (mw_births_are_spread(&d->births))
		d->growth = MEMWATCH_STALE_GROWING;
	else
		d->growth = MEMWATCH_STALE_BURST;
}

/*
 * A site that frees most of its objects leaks those that it has left stale, also if it does not any
 * more. Of one that is judged by others, or that keeps most of what it allocates, only growth tells
 * a leak from what is meant to stay, or that it has abandoned what it allocated over a longer time.
 */
static bool is_leak(const struct work *w, const struct mw_site_decision *d)
{
	if (!d->stale || w->rule->any_growth)
		return d->stale;
	if (d->scheme == MEMWATCH_STALE_GLOBAL)
		return d->growth == MEMWATCH_STALE_GROWING ||
		       (d->abandoned && mw_births_are_spread(&d->births));
	return d->growth != MEMWATCH_STALE_STOPPED || !are_too_many(d->stale, d->local.objects);
}

static int decide_site(struct work *w, uint32_t site)
{
	struct mw_site_decision *d = &w->decision->sites[site];
	const struct mw_site *s = &w->sim->sites[site];
	uint64_t stale;
	bool with_live;
	int err;

	d->abandoned = is_abandoned(w, site);
	stale = survey_site(w, site, d);
	with_live = !are_too_many(stale, s->live + s->freed) || s->freed < MW_FENCE_LEAST;
	err = find_fence(w, site, site + 1, with_live, &d->local);
	if (err)
		return err;
	choose_scheme(w, d);
	find_stale(w, site, d);
	d->leak = is_leak(w, d);
	return 0;
}

int mw_decision_make(struct mw_decision *decision, const struct mw_sim *sim,
		     const struct mw_decision_rule *rule)
{
	struct work w = { .decision = decision, .sim = sim, .rule = rule };
	int err;

	*decision = (struct mw_decision){ 0 };
	decision->sites = calloc(sim->nr_sites + 1UL, sizeof(*decision->sites));
	err = decision->sites ? sort_by_site(&w) : -ENOMEM;
	if (!err)
		err = decide_global(&w);
	if (!err)
		err = find_limit(&w);
	for (uint32_t site = 0; !err && site < sim->nr_sites; site++)
		err = decide_site(&w, site);
	mw_sample_uninit(&w.sample);
	free(w.by_site);
	free(w.first);
	return err;
}

void mw_decision_uninit(struct mw_decision *decision)
{
	free(decision->sites);
	*decision = (struct mw_decision){ 0 };
}
