// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The simulation of a heap.
 */
#include "stale/sim.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

void mw_sim_init(struct mw_sim *sim, bool is_active)
{
	*sim = (struct mw_sim){ .is_active = is_active };
}

void mw_sim_uninit(struct mw_sim *sim)
{
	for (uint32_t i = 0; i < sim->nr_sites; i++) {
		mw_histogram_uninit(&sim->sites[i].idle);
		mw_places_uninit(&sim->sites[i].access);
		mw_places_uninit(&sim->sites[i].frees);
		free(sim->sites[i].curve);
	}
	free(sim->sites);
	free(sim->site_of);
	mw_ranges_uninit(&sim->ranges);
	mw_objects_uninit(&sim->objects);
	*sim = (struct mw_sim){ 0 };
}

/* The number of the site with this name, which is added if it is new. */
static int find_site(struct mw_sim *sim, uint32_t name, uint32_t *ret)
{
	while (sim->names <= name) {
		if (mw_array_reserve(sim->site_of, sim->names_capacity, name + 1U))
			return -ENOMEM;
		sim->site_of[sim->names++] = MW_OBJECT_NONE;
	}
	if (sim->site_of[name] == MW_OBJECT_NONE) {
		if (sim->nr_sites == MW_SIM_SITES_MAX)
			return -E2BIG;
		if (mw_array_reserve(sim->sites, sim->sites_capacity, sim->nr_sites + 1U))
			return -ENOMEM;
		sim->sites[sim->nr_sites] = (struct mw_site){ .name = name };
		sim->site_of[name] = sim->nr_sites++;
	}
	*ret = sim->site_of[name];
	return 0;
}

static uint64_t end_of(const struct mw_object *object)
{
	return object->start + (object->size ? object->size : 1);
}

static void forget_object(struct mw_sim *sim, uint32_t number)
{
	struct mw_object *object = mw_objects_at(&sim->objects, number);
	struct mw_site *site = &sim->sites[object->site];

	site->live--;
	site->live_bytes -= object->size;
	sim->live_bytes -= object->size;
	mw_objects_free(&sim->objects, number);
}

/* The object with the highest first address that is at most @address; NULL if there is none. */
static struct mw_object *find_object(const struct mw_sim *sim, uint64_t address,
				     struct mw_ranges_spot *spot, uint32_t *number)
{
	uint64_t start;

	mw_ranges_seek(&sim->ranges, address, spot);
	return mw_ranges_before(&sim->ranges, spot, &start, number)
		       ? mw_objects_at(&sim->objects, *number)
		       : NULL;
}

/* The object that mw_ranges_before() tells was freed, which was not seen. */
static void end_object(struct mw_sim *sim, const struct mw_ranges_spot *spot, uint32_t number)
{
	mw_ranges_remove(&sim->ranges, spot);
	forget_object(sim, number);
	sim->overlaps++;
}

/*
 * An allocator does not give out memory twice: what overlaps was freed. Finds the spot of @start.
 */
static void end_overlapped(struct mw_sim *sim, uint64_t start, uint64_t size,
			   struct mw_ranges_spot *spot)
{
	uint64_t last = start + (size ? size - 1 : 0);
	struct mw_object *before;
	uint32_t number;

	before = find_object(sim, start, spot, &number);
	if (before && end_of(before) > start) {
		end_object(sim, spot, number);
		mw_ranges_seek(&sim->ranges, start, spot);
	}
	while (mw_ranges_behind(&sim->ranges, spot) <= last) {
		find_object(sim, last, spot, &number);
		end_object(sim, spot, number);
		mw_ranges_seek(&sim->ranges, start, spot);
	}
}

static int feed_malloc(struct mw_sim *sim, const struct mw_event *event,
		       struct mw_ranges_spot *spot)
{
	struct mw_object *object;
	uint32_t number, site;
	int err = find_site(sim, event->place, &site);

	if (err)
		return err;
	end_overlapped(sim, event->address, event->size, spot);
	if (mw_objects_new(&sim->objects, &number))
		return -ENOMEM;
	object = mw_objects_at(&sim->objects, number);
	object->start = event->address;
	object->size = event->size;
	object->birth_ns = object->last_ns = event->time_ns;
	object->birth = object->last = sim->now;
	object->site = site;
	object->tid = event->tid;
	sim->sites[site].live++;
	sim->sites[site].live_bytes += event->size;
	sim->sites[site].allocated++;
	sim->sites[site].allocated_bytes += event->size;
	sim->live_bytes += event->size;
	mw_cohorts_add(&sim->cohorts, sim->now);
	err = mw_ranges_add(&sim->ranges, spot, event->address, number);
	if (err)
		forget_object(sim, number);
	return err;
}

static int feed_free(struct mw_sim *sim, const struct mw_event *event, struct mw_ranges_spot *spot)
{
	struct mw_object *object;
	struct mw_site *site;
	uint32_t number;
	int err;

	if (!event->address)
		return 0;
	object = find_object(sim, event->address, spot, &number);
	if (!object || object->start != event->address) {
		sim->unmatched_frees++;
		return 0;
	}
	mw_ranges_remove(&sim->ranges, spot);
	site = &sim->sites[object->site];
	err = mw_histogram_add(&site->idle, sim->now - object->last);
	if (!err)
		err = mw_places_count(&site->frees, event->place);
	site->freed++;
	forget_object(sim, number);
	return err;
}

static int feed_access(struct mw_sim *sim, const struct mw_event *event,
		       struct mw_ranges_spot *spot)
{
	uint32_t number;
	struct mw_object *object = find_object(sim, event->address, spot, &number);

	if (!object || end_of(object) <= event->address) {
		sim->misses++;
		return 0;
	}
	object->last_ns = event->time_ns;
	object->last = sim->now;
	mw_object_touch(object, event->place);
	return mw_places_count(&sim->sites[object->site].access, event->place);
}

/* Enters the points that lie before @time_ns into the curves. */
static int update_curves(struct mw_sim *sim, uint64_t time_ns)
{
	while (mw_curve_is_due(&sim->clock, time_ns)) {
		bool thin = sim->clock.count == MW_CURVE_POINTS;

		for (uint32_t i = 0; i < sim->nr_sites; i++) {
			struct mw_site *site = &sim->sites[i];

			if (!site->curve && site->live)
				site->curve = calloc(MW_CURVE_POINTS, sizeof(*site->curve));
			if (!site->curve && site->live)
				return -ENOMEM;
			if (site->curve && thin)
				mw_curve_thin(site->curve);
			else if (site->curve)
				site->curve[sim->clock.count] = (struct mw_curve_point){
					site->live_bytes, site->live
				};
		}
		if (thin)
			mw_curve_clock_thin(&sim->clock);
		else
			sim->clock.count++;
	}
	return 0;
}

static int advance_clock(struct mw_sim *sim, uint64_t time_ns)
{
	uint64_t passed = time_ns - sim->time_ns;
	uint64_t counted = passed > MW_SIM_ACTIVE_NS ? MW_SIM_ACTIVE_NS : passed;

	if (!sim->started) {
		sim->started = true;
		sim->first_ns = sim->time_ns = time_ns;
		mw_curve_clock_init(&sim->clock, time_ns);
		return 0;
	}
	sim->time_ns = time_ns;
	sim->now += sim->is_active ? counted : passed;
	if (counted > sim->pause)
		sim->pause = counted;
	return update_curves(sim, time_ns);
}

static int feed(struct mw_sim *sim, const struct mw_event *event, struct mw_ranges_spot *spot)
{
	int err = advance_clock(sim, event->time_ns);

	if (err)
		return err;
	sim->events[event->kind]++;
	switch (event->kind) {
	case MW_EVENT_MALLOC:
		return feed_malloc(sim, event, spot);
	case MW_EVENT_FREE:
		return feed_free(sim, event, spot);
	default:
		return feed_access(sim, event, spot);
	}
}

int mw_sim_feed(struct mw_sim *sim, const struct mw_event *event)
{
	struct mw_ranges_spot spot = { 0 };

	return feed(sim, event, &spot);
}

/*
 * The events in a batch are known before they are replayed, so what they need is found and fetched
 * while others are replayed: first the leaf, then the object, then its site. What is replayed in
 * between may change the map, so their spots are hints.
 */
#define FETCH_OBJECTS 16384 /* fewer are in the caches of the processor */
#define AHEAD_MAX     32    /* a power of two */
#define AHEAD_LEAF    24
#define AHEAD_OBJECT  16
#define AHEAD_SITE    8

struct ahead {
	struct mw_ranges_spot spot;
	const struct mw_object *object; /* may be NULL */
};

static void fetch_object(const struct mw_sim *sim, uint64_t address, struct ahead *ahead)
{
	uint32_t number;

	/* Of an allocation it is the object before it, which may overlap. */
	ahead->object = find_object(sim, address, &ahead->spot, &number);
	if (!ahead->object)
		return;
	__builtin_prefetch(ahead->object);
	__builtin_prefetch((const char *)ahead->object + 64);
}

static void fetch_site(const struct mw_sim *sim, const struct ahead *ahead)
{
	uint32_t site = ahead->object ? ahead->object->site : MW_OBJECT_NONE;

	if (site < sim->nr_sites) {
		__builtin_prefetch(&sim->sites[site]);
		__builtin_prefetch((const char *)&sim->sites[site] + 64);
	}
}

static int feed_fetching(struct mw_sim *sim, const struct mw_event *events, uint32_t count)
{
	struct ahead ahead[AHEAD_MAX] = { 0 };
	int err = 0;

	for (uint32_t i = 0; !err && i < count; i++) {
		struct ahead *leaf = &ahead[(i + AHEAD_LEAF) % AHEAD_MAX];

		if (i + AHEAD_LEAF < count)
			mw_ranges_fetch(&sim->ranges, events[i + AHEAD_LEAF].address, &leaf->spot);
		if (i + AHEAD_OBJECT < count)
			fetch_object(sim, events[i + AHEAD_OBJECT].address,
				     &ahead[(i + AHEAD_OBJECT) % AHEAD_MAX]);
		if (i + AHEAD_SITE < count)
			fetch_site(sim, &ahead[(i + AHEAD_SITE) % AHEAD_MAX]);
		err = feed(sim, &events[i], &ahead[i % AHEAD_MAX].spot);
	}
	return err;
}

int mw_sim_feed_all(struct mw_sim *sim, const struct mw_event *events, uint32_t count)
{
	int err = 0;

	if (sim->objects.live >= FETCH_OBJECTS)
		return feed_fetching(sim, events, count);
	for (uint32_t i = 0; !err && i < count; i++)
		err = mw_sim_feed(sim, &events[i]);
	return err;
}
