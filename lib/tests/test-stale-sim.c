// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The simulation of a heap against a model that looks at all objects for each event, its ordered
 * map against a sorted array, and its histograms.
 */
#include <math.h>

#include "stale/sim.h"

#include "../../selftests/prng.h"
#include "../../selftests/tap.h"

#define SEED	20261123
#define EVENTS	20000
#define OBJECTS 4096

struct model_object {
	bool live;
	uint64_t start, size, last_ns, accesses;
	uint32_t site, last_place;
};

struct model {
	struct model_object objects[OBJECTS];
	uint64_t unmatched, overlaps, misses;
	uint64_t allocated[4], freed[4], live_bytes;
};

static uint64_t model_end(const struct model_object *o)
{
	return o->start + (o->size ? o->size : 1);
}

static void model_malloc(struct model *m, const struct mw_event *e)
{
	uint64_t end = e->address + (e->size ? e->size : 1);
	struct model_object *unused = NULL;

	for (struct model_object *o = m->objects; o < m->objects + OBJECTS; o++) {
		if (o->live && o->start < end && model_end(o) > e->address) {
			o->live = false;
			m->overlaps++;
			m->live_bytes -= o->size;
		}
		if (!o->live)
			unused = o;
	}
	*unused = (struct model_object){ true, e->address, e->size, e->time_ns, 0, e->place, 0 };
	m->allocated[e->place]++;
	m->live_bytes += e->size;
}

static struct model_object *model_find(struct model *m, uint64_t address)
{
	for (struct model_object *o = m->objects; o < m->objects + OBJECTS; o++)
		if (o->live && o->start <= address && model_end(o) > address)
			return o;
	return NULL;
}

static void model_feed(struct model *m, const struct mw_event *e)
{
	struct model_object *o = model_find(m, e->address);

	if (e->kind == MW_EVENT_MALLOC) {
		model_malloc(m, e);
	} else if (e->kind == MW_EVENT_FREE) {
		if (!o || o->start != e->address) {
			m->unmatched++;
			return;
		}
		o->live = false;
		m->freed[o->site]++;
		m->live_bytes -= o->size;
	} else if (!o) {
		m->misses++;
	} else {
		o->last_ns = e->time_ns;
		o->last_place = e->place;
		o->accesses++;
	}
}

/* The object with the highest first address that is at most @address. */
static bool find_before(const struct mw_ranges *ranges, uint64_t address, uint64_t *start,
			uint32_t *number)
{
	struct mw_ranges_spot spot = { 0 };

	mw_ranges_seek(ranges, address, &spot);
	return mw_ranges_before(ranges, &spot, start, number);
}

/* Whether each live object of the model is in the simulation, with the same history. */
static bool objects_agree(struct model *m, const struct mw_sim *sim)
{
	uint32_t live = 0, number;
	uint64_t start;

	for (struct model_object *o = m->objects; o < m->objects + OBJECTS; o++) {
		const struct mw_object *got;

		if (!o->live)
			continue;
		live++;
		if (!find_before(&sim->ranges, o->start, &start, &number) || start != o->start)
			return false;
		got = mw_objects_at(&sim->objects, number);
		if (got->size != o->size || got->last_ns != o->last_ns ||
		    got->accesses != o->accesses || sim->sites[got->site].name != o->site ||
		    (o->accesses && got->last_place != o->last_place))
			return false;
	}
	return live == sim->objects.live && m->live_bytes == sim->live_bytes;
}

static bool sites_agree(const struct model *m, const struct mw_sim *sim)
{
	for (uint32_t i = 0; i < sim->nr_sites; i++) {
		const struct mw_site *site = &sim->sites[i];
		uint64_t freed = 0;

		for (uint32_t j = 0; j < site->idle.count; j++)
			freed += site->idle.buckets[j].count;
		if (site->allocated != m->allocated[site->name] ||
		    site->freed != m->freed[site->name] || site->freed != freed)
			return false;
	}
	return true;
}

static void test_against_model(void)
{
	static struct model model;
	struct prng prng = { SEED };
	bool objects = true, sites = true;
	struct mw_sim sim;
	int err = 0;

	tap_note("seed %d", SEED);
	mw_sim_init(&sim, true);
	for (uint64_t i = 0; i < EVENTS; i++) {
		struct mw_event e = { .time_ns = 1000 + i * 7, .sequence = i };
		uint64_t kind = prng_below(&prng, 10);

		/* A small memory, so that objects meet; some frees and accesses find nothing. */
		e.kind = kind < 4 ? MW_EVENT_MALLOC : kind < 7 ? MW_EVENT_FREE : MW_EVENT_ACCESS;
		e.address = 4096 + 8 * prng_below(&prng, 4000);
		e.size = prng_below(&prng, 5) ? prng_below(&prng, 64) : 0;
		e.place = (uint32_t)prng_below(&prng, 4);
		err |= mw_sim_feed(&sim, &e);
		model_feed(&model, &e);
		if (i % 500 == 0 || i == EVENTS - 1) {
			objects &= objects_agree(&model, &sim);
			sites &= sites_agree(&model, &sim);
		}
	}
	tap_eq(err, 0, "no event fails");
	tap_ok(objects, "the live objects and their accesses are those of the model");
	tap_ok(sites, "the sums of the sites are those of the model");
	tap_eq(sim.unmatched_frees, model.unmatched, "frees of no object are counted");
	tap_eq(sim.overlaps, model.overlaps, "objects that end unseen are counted");
	tap_eq(sim.misses, model.misses, "accesses to no object are counted");
	mw_sim_uninit(&sim);
}

/* Enough objects that their memory is fetched ahead. */
static void test_batches(void)
{
	enum { COUNT = 400000, SLOTS = 60000 };
	struct mw_event *events = calloc(COUNT, sizeof(*events));
	struct prng prng = { SEED };
	struct mw_sim one, all;
	int err = 0;

	mw_sim_init(&one, true);
	mw_sim_init(&all, true);
	for (int i = 0; i < COUNT; i++) {
		struct mw_event *e = &events[i];

		e->time_ns = (uint64_t)i * 10;
		e->kind = (uint8_t)(i < 100000 ? 0 : prng_below(&prng, 3));
		e->address = 4096 + 64 * prng_below(&prng, SLOTS);
		e->size = prng_below(&prng, 80);
		e->place = (uint32_t)prng_below(&prng, 50);
		err |= mw_sim_feed(&one, e);
	}
	for (int i = 0; i < COUNT; i += 4000)
		err |= mw_sim_feed_all(&all, events + i, 4000);
	tap_eq(err, 0, "no batch fails");
	tap_ok(all.objects.live > 16384 && one.objects.live == all.objects.live &&
		       one.live_bytes == all.live_bytes && one.overlaps == all.overlaps &&
		       one.misses == all.misses && one.unmatched_frees == all.unmatched_frees,
	       "events in batches do what they do one by one (%u live objects)", all.objects.live);
	mw_sim_uninit(&one);
	mw_sim_uninit(&all);
	free(events);
}

enum { KEYS = 5000 };

/* Any spot may be a hint, and whatever @hint says. */
static struct mw_ranges_spot seek_with_hint(const struct mw_ranges *ranges, uint64_t address,
					    struct prng *prng, struct mw_ranges_spot hint)
{
	switch (prng_below(prng, 3)) {
	case 0:
		hint = (struct mw_ranges_spot){ 0 };
		break;
	case 1:
		hint.leaf = (uint32_t)prng_below(prng, ranges->count + 2);
		hint.after = (uint32_t)prng_below(prng, MW_RANGES_LEAF + 2);
		break;
	}
	mw_ranges_seek(ranges, address, &hint);
	return hint;
}

/* Whether the map has the same neighbours of this spot as the sorted array. */
static bool neighbours_agree(const struct mw_ranges *ranges, const struct mw_ranges_spot *spot,
			     const bool *there, uint64_t key)
{
	uint64_t start, behind = key + 1;
	int64_t before = (int64_t)key;
	uint32_t number;

	while (before >= 0 && !there[before])
		before--;
	while (behind < KEYS && !there[behind])
		behind++;
	return mw_ranges_behind(ranges, spot) == (behind < KEYS ? 10 * behind : UINT64_MAX) &&
	       mw_ranges_before(ranges, spot, &start, &number) == (before >= 0) &&
	       (before < 0 || (start == 10 * (uint64_t)before && number == before));
}

static void test_ranges(void)
{
	static bool there[KEYS];
	struct prng prng = { SEED };
	struct mw_ranges ranges = { 0 };
	struct mw_ranges_spot spot = { 0 };
	int wrong = 0, live = 0;
	uint64_t leaves;

	for (int i = 0; i < 200000; i++) {
		/* The map fills up, and becomes empty at the end. */
		uint64_t key = prng_below(&prng, KEYS);
		bool add = prng_below(&prng, 200000) > (uint64_t)i;

		spot = seek_with_hint(&ranges, 10 * key, &prng, spot);
		if (add && !there[key])
			wrong += mw_ranges_add(&ranges, &spot, 10 * key, (uint32_t)key) != 0;
		else if (!add && there[key])
			mw_ranges_remove(&ranges, &spot);
		there[key] = add;
		spot = seek_with_hint(&ranges, 10 * key + 9, &prng, spot);
		wrong += !neighbours_agree(&ranges, &spot, there, key);
	}
	tap_eq(wrong, 0, "the ordered map finds what a sorted array has");
	for (int i = 0; i < KEYS; i++)
		live += there[i];
	leaves = ranges.count;
	tap_ok(leaves <= 1 + 4 * (uint64_t)live / MW_RANGES_LEAF,
	       "leaves are at least a quarter full on average");
	for (uint64_t key = 0; key < KEYS; key++) {
		if (!there[key])
			continue;
		mw_ranges_seek(&ranges, 10 * key, &spot);
		mw_ranges_remove(&ranges, &spot);
	}
	tap_eq(ranges.count, 0, "an empty map has no leaf");
	mw_ranges_uninit(&ranges);
}

static void test_histogram(void)
{
	struct mw_histogram histogram = { 0 };
	struct mw_sample sample = { 0 };
	double worst = 0;

	for (uint64_t d = 0; d < 64; d++)
		mw_histogram_add(&histogram, d);
	mw_histogram_export(&histogram, &sample);
	for (uint64_t d = 0; d < 64; d++)
		worst = fmax(worst, fabs(sample.values[d].value - (double)d));
	tap_ok(sample.count == 64 && worst == 0, "durations below 64 are exact");
	worst = 0;
	for (uint64_t d = 64; d < UINT64_MAX / 3; d += d / 7) {
		mw_histogram_uninit(&histogram);
		mw_sample_clear(&sample);
		mw_histogram_add(&histogram, d);
		mw_histogram_export(&histogram, &sample);
		worst = fmax(worst, fabs(sample.values[0].value / (double)d - 1));
	}
	tap_ok(worst <= 1.0 / 64, "other durations are exact to 1/64");
	mw_histogram_uninit(&histogram);
	mw_histogram_add(&histogram, UINT64_MAX);
	tap_eq(histogram.count, 1, "the longest duration has a place");
	mw_histogram_uninit(&histogram);
	mw_sample_uninit(&sample);
}

static void test_places(void)
{
	struct mw_object object = { 0 };
	uint64_t sum = 0;

	for (uint32_t i = 0; i < 5; i++)
		for (uint32_t n = 0; n <= i; n++)
			mw_object_touch(&object, 100 + i);
	for (uint32_t i = 0; i < 10; i++)
		mw_object_touch(&object, 200 + i);
	for (int i = 0; i < MW_OBJECT_PLACES; i++)
		sum += object.places[i].name == 104 ? object.places[i].count : 0;
	tap_eq(sum, 5, "a place that is frequent stays when more places come than there is room");
	tap_eq(object.accesses, 25, "all accesses are counted");
	tap_eq(object.last_place, 209, "the last place is kept");
}

int main(void)
{
	tap_plan(17);
	test_against_model();
	test_batches();
	test_ranges();
	test_histogram();
	test_places();
	return tap_done();
}
