// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What was found in a trace.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/context.h"
#include "stale/stale.h"

static const char *name_of(const struct memwatch_stale *stale, uint32_t number)
{
	const char *name;

	if (stale->kind == MW_STALE_TEXT)
		return mw_strings_text(&stale->import.words, number);
	if (number == MW_CHARGES_PLACE_FIRST)
		return "[kernel]";
	name = mw_site_names_text(stale->names, number);
	return *name ? name : "unknown";
}

/* The perf events of all files of accesses, and what is missing in them. */
static void describe_accesses(const struct memwatch_stale *stale, struct memwatch_stale_info *info)
{
	const struct mw_charges *charges = &stale->charges;
	uint32_t last = charges->nr_files;

	/* Of this boot; its losses are told also if it has nothing of the process. */
	while (last-- && charges->files[last].other_boot)
		;
	for (uint32_t i = 0; i < charges->nr_files; i++) {
		const struct mw_access_file_header *h = &charges->files[i].header;

		if (charges->files[i].other_boot || (!charges->files[i].used && i != last))
			continue;
		info->access_event = h->event;
		info->access_period = h->period;
		info->access_flags = h->flags;
		info->access_lost += h->lost;
		info->access_throttled += h->throttled;
		info->access_damaged += charges->files[i].damaged;
		/* While it is written, its last block may be incomplete. */
		info->access_damaged += charges->files[i].cut_off &&
					h->flags & MW_ACCESS_FILE_ENDED;
	}
}

static int export_item(void *ret, const void *item, size_t size)
{
	int err = mw_opts_export(ret, item, size);

	return err ? err : 1;
}

int memwatch_stale_get_info(const struct memwatch_stale *stale, struct memwatch_stale_info *ret)
{
	const struct mw_sim *sim = &stale->sim;
	struct memwatch_stale_info info = {
		.sz = sizeof(info),
		.cut_off = stale->import.cut_off || stale->file.cut_off,
		.sorted = stale->import.sorted,
		.first_ns = sim->first_ns,
		.last_ns = sim->time_ns,
		.active_ns = sim->now,
		.allocations = sim->events[MW_EVENT_MALLOC],
		.frees = sim->events[MW_EVENT_FREE],
		.accesses = sim->events[MW_EVENT_ACCESS],
		.unmatched_frees = sim->unmatched_frees,
		.overlaps = sim->overlaps,
		.misses = sim->misses,
		.live_objects = sim->objects.live,
		.live_bytes = sim->live_bytes,
		.leaked_objects = stale->leaked_objects,
		.leaked_bytes = stale->leaked_bytes,
		.sites = sim->nr_sites,
		.recorded = stale->kind == MW_STALE_RECORDED,
		.pid = stale->file.header.pid,
		.comm = stale->comm,
		.began = stale->file.header.began,
		.state = stale->file.header.state,
		.limits = stale->file.header.limits,
		.threads = stale->file.nr_streams,
		.lost = stale->file.header.lost_nested + stale->file.header.lost_no_room,
		.damaged = stale->file.source.faults.damaged + stale->file.source.faults.missing,
	};

	if (stale->state != MW_STALE_JUDGED && stale->kind != MW_STALE_RECORDED)
		return -EINVAL;
	describe_accesses(stale, &info);
	return mw_opts_export(ret, &info, sizeof(info));
}

/* The number of the site that is shown as number @shown. Returns 1, 0 or -EINVAL. */
static int site_number(const struct memwatch_stale *stale, uint64_t shown, uint32_t *ret)
{
	if (stale->state != MW_STALE_JUDGED)
		return -EINVAL;
	if (shown >= stale->sim.nr_sites)
		return 0;
	*ret = stale->sites[shown];
	return 1;
}

int memwatch_stale_get_distribution(const struct memwatch_stale *stale, __u32 site,
				    struct memwatch_stale_distribution *ret)
{
	struct memwatch_stale_distribution d = {
		sizeof(d), 0, 0, 0, NAN, NAN, NAN, NAN, NAN,
	};
	const struct mw_basis *basis = &stale->decision.global;
	uint32_t number;
	int rc = 1;

	if (site != MEMWATCH_STALE_ALL_SITES)
		rc = site_number(stale, site, &number);
	else if (stale->state != MW_STALE_JUDGED)
		rc = -EINVAL;
	if (rc != 1)
		return rc;
	if (site != MEMWATCH_STALE_ALL_SITES)
		basis = &stale->decision.sites[number].local;
	d.basis = basis->basis;
	d.objects = basis->objects;
	if (basis->basis != MEMWATCH_STALE_BASIS_NONE) {
		d.flat = (uint32_t)basis->fence.flat;
		d.q1 = basis->fence.q1;
		d.median = basis->fence.median;
		d.q3 = basis->fence.q3;
		d.medcouple = basis->fence.medcouple;
		d.threshold = basis->fence.threshold;
	}
	return export_item(ret, &d, sizeof(d));
}

int memwatch_stale_get_site(const struct memwatch_stale *stale, __u32 site,
			    struct memwatch_stale_site *ret)
{
	const struct mw_site_decision *d;
	const struct mw_site *s;
	struct memwatch_stale_site out;
	uint32_t number;
	int rc = site_number(stale, site, &number);

	if (rc != 1)
		return rc;
	s = &stale->sim.sites[number];
	d = &stale->decision.sites[number];
	out = (struct memwatch_stale_site){
		.sz = sizeof(out),
		.site = name_of(stale, s->name),
		.scheme = d->scheme,
		.leak = d->leak,
		.growth = d->growth,
		.threshold_ns = isinf(d->threshold) ? NAN : d->threshold,
		.allocated_objects = s->allocated,
		.allocated_bytes = s->allocated_bytes,
		.freed_objects = s->freed,
		.live_objects = s->live,
		.live_bytes = s->live_bytes,
		.stale_objects = d->stale,
		.stale_bytes = d->stale_bytes,
		.longest_ns = d->longest,
		.access_others = s->access.others,
		.free_others = s->frees.others,
	};
	return export_item(ret, &out, sizeof(out));
}

int memwatch_stale_get_object(const struct memwatch_stale *stale, __u64 object,
			      struct memwatch_stale_object *ret)
{
	const struct mw_sim *sim = &stale->sim;
	struct memwatch_stale_object out;
	const struct mw_object *o;

	if (stale->state != MW_STALE_JUDGED)
		return -EINVAL;
	if (object >= sim->objects.live)
		return 0;
	o = mw_objects_at(&sim->objects, stale->objects[object]);
	out = (struct memwatch_stale_object){
		.sz = sizeof(out),
		.address = o->start,
		.size = o->size,
		.site = stale->decision.sites[o->site].shown,
		.tid = o->tid,
		.allocated_ns = o->birth_ns,
		.accessed_ns = o->last_ns,
		.staleness_ns = sim->time_ns - o->last_ns,
		.active_ns = sim->now - o->last,
		.accesses = o->accesses,
		.last_access = o->accesses ? name_of(stale, o->last_place) : NULL,
		.leak = mw_stale_is_leaked(stale, o),
	};
	return export_item(ret, &out, sizeof(out));
}

static int compare_places(const void *a, const void *b)
{
	const struct mw_object_place *x = a, *y = b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

/* The place of an object that is number @place in the order of counts. */
static int object_place(const struct memwatch_stale *stale, uint64_t object, uint32_t place,
			struct mw_place *ret)
{
	struct mw_object o;

	if (object >= stale->sim.objects.live || place >= MW_OBJECT_PLACES)
		return 0;
	o = *mw_objects_at(&stale->sim.objects, stale->objects[object]);
	qsort(o.places, MW_OBJECT_PLACES, sizeof(*o.places), compare_places);
	*ret = (struct mw_place){ o.places[place].name, o.places[place].count };
	return !!ret->count;
}

static int site_place(const struct memwatch_stale *stale, bool frees, uint64_t site, uint32_t place,
		      struct mw_place *ret)
{
	const struct mw_places *places;
	uint32_t number;
	int rc = site_number(stale, site, &number);

	if (rc != 1)
		return rc;
	places = frees ? &stale->sim.sites[number].frees : &stale->sim.sites[number].access;
	if (place >= places->count)
		return 0;
	*ret = places->list[place];
	return 1;
}

int memwatch_stale_get_place(const struct memwatch_stale *stale, __u32 list, __u64 owner,
			     __u32 place, struct memwatch_stale_place *ret)
{
	struct memwatch_stale_place out = { .sz = sizeof(out) };
	struct mw_place found;
	int rc;

	if (stale->state != MW_STALE_JUDGED || list > MEMWATCH_STALE_OBJECT_ACCESS)
		return -EINVAL;
	if (list == MEMWATCH_STALE_OBJECT_ACCESS)
		rc = object_place(stale, owner, place, &found);
	else
		rc = site_place(stale, list == MEMWATCH_STALE_SITE_FREES, owner, place, &found);
	if (rc != 1)
		return rc;
	out.place = name_of(stale, found.name);
	out.count = found.count;
	return export_item(ret, &out, sizeof(out));
}

int memwatch_stale_get_frame(const struct memwatch_stale *stale, __u32 site, __u32 frame,
			     struct memwatch_heap_frame *ret)
{
	struct memwatch_heap_frame out;
	uint32_t number;
	int rc = site_number(stale, site, &number);

	if (rc != 1)
		return rc;
	if (!mw_site_names_frame(stale->names, stale->sim.sites[number].name, frame, &out))
		return 0;
	return export_item(ret, &out, sizeof(out));
}

int memwatch_stale_get_point(const struct memwatch_stale *stale, __u32 site, __u32 point,
			     struct memwatch_stale_point *ret)
{
	const struct mw_curve_clock *clock = &stale->sim.clock;
	struct memwatch_stale_point out = { .sz = sizeof(out) };
	const struct mw_curve_point *curve;
	uint32_t number;
	int rc = site_number(stale, site, &number);

	if (rc != 1)
		return rc;
	if (point >= clock->count)
		return 0;
	curve = stale->sim.sites[number].curve;
	out.time_ns = clock->first_ns + (point + 1) * clock->distance_ns;
	out.live_objects = curve ? curve[point].objects : 0;
	out.live_bytes = curve ? curve[point].bytes : 0;
	return export_item(ret, &out, sizeof(out));
}
