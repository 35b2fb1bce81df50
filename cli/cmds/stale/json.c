// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A trace that was judged, as JSON.
 */
#include <math.h>

#include "cmds/stale/stale.h"
#include "output/frame.h"
#include "output/json.h"

static const char *const basis_names[] = { "none", "all", "freed" };

static void number_or_null(struct mw_json *json, const char *key, double value)
{
	if (isnan(value))
		mw_json_null(json, key);
	else
		mw_json_double(json, key, value);
}

/* What is known of a trace that the profiler has recorded; null of another one. */
static void recording_json(const struct memwatch_stale_info *info, struct mw_json *json)
{
	static const char *const began[] = { "unknown", "start", "later", "fork" };
	static const char *const state[] = { "unknown", "active", "stopped", "ended", "full" };

	if (!info->recorded) {
		mw_json_null(json, "recording");
		return;
	}
	mw_json_object(json, "recording");
	mw_json_uint(json, "pid", info->pid);
	mw_json_string(json, "comm", info->comm);
	mw_json_string(json, "began", began[info->began < 4 ? info->began : 0]);
	mw_json_string(json, "state", state[info->state < 5 ? info->state : 0]);
	mw_json_uint(json, "threads", info->threads);
	mw_json_uint(json, "lost", info->lost);
	mw_json_uint(json, "damaged", info->damaged);
	mw_json_object_end(json);
}

/* How the accesses of a recorded trace were sampled; null if they were not. */
static void sampling_json(const struct memwatch_stale_info *info, struct mw_json *json)
{
	if (!info->access_event) {
		mw_json_null(json, "sampling");
		return;
	}
	mw_json_object(json, "sampling");
	mw_json_string(json, "event", info->access_event);
	mw_json_uint(json, "period", info->access_period);
	mw_json_bool(json, "page_faults", info->access_flags & MEMWATCH_STALE_ACCESS_PAGE_FAULTS);
	mw_json_bool(json, "user_only", info->access_flags & MEMWATCH_STALE_ACCESS_USER_ONLY);
	mw_json_bool(json, "ended", info->access_flags & MEMWATCH_STALE_ACCESS_ENDED);
	mw_json_uint(json, "lost", info->access_lost);
	mw_json_uint(json, "throttled", info->access_throttled);
	mw_json_uint(json, "damaged", info->access_damaged);
	mw_json_object_end(json);
}

static void stack_json(const struct stale_result *r, uint32_t site, struct mw_json *json)
{
	MEMWATCH_OPTS(memwatch_heap_frame, frame);

	mw_json_array(json, "stack");
	for (uint32_t i = 0; memwatch_stale_get_frame(r->stale, site, i, &frame) == 1; i++) {
		mw_json_row(json, NULL);
		mw_frame_json(json, &frame);
		mw_json_object_end(json);
	}
	mw_json_array_end(json);
}

static void trace_json(const struct stale_result *r, struct mw_json *json)
{
	const struct memwatch_stale_info *info = &r->info;

	mw_json_object(json, "trace");
	mw_json_string(json, "file", r->path);
	mw_json_bool(json, "cut_off", info->cut_off);
	mw_json_bool(json, "sorted", info->sorted);
	mw_json_uint(json, "first_ns", info->first_ns);
	mw_json_uint(json, "last_ns", info->last_ns);
	mw_json_uint(json, "active_ns", info->active_ns);
	mw_json_uint(json, "allocations", info->allocations);
	mw_json_uint(json, "frees", info->frees);
	mw_json_uint(json, "accesses", info->accesses);
	mw_json_uint(json, "unmatched_frees", info->unmatched_frees);
	mw_json_uint(json, "overlaps", info->overlaps);
	mw_json_uint(json, "misses", info->misses);
	recording_json(info, json);
	sampling_json(info, json);
	mw_json_object_end(json);
}

static void distribution_json(const struct stale_result *r, uint32_t site, const char *key,
			      struct mw_json *json)
{
	MEMWATCH_OPTS(memwatch_stale_distribution, d);

	memwatch_stale_get_distribution(r->stale, site, &d);
	mw_json_row(json, key);
	mw_json_string(json, "basis", basis_names[d.basis]);
	mw_json_uint(json, "objects", d.objects);
	mw_json_bool(json, "flat", d.flat);
	number_or_null(json, "q1_ns", d.q1);
	number_or_null(json, "median_ns", d.median);
	number_or_null(json, "q3_ns", d.q3);
	number_or_null(json, "medcouple", d.medcouple);
	number_or_null(json, "threshold_ns", d.threshold);
	mw_json_object_end(json);
}

/* The names of the places, or their counts, in the same order. */
static void places_json(const struct stale_result *r, uint32_t list, uint64_t owner, bool counts,
			const char *key, struct mw_json *json)
{
	MEMWATCH_OPTS(memwatch_stale_place, place);

	mw_json_array(json, key);
	for (uint32_t i = 0; memwatch_stale_get_place(r->stale, list, owner, i, &place) == 1; i++) {
		if (counts)
			mw_json_uint(json, NULL, place.count);
		else
			mw_json_string(json, NULL, place.place);
	}
	mw_json_array_end(json);
}

static void points_json(const struct stale_result *r, uint32_t site, struct mw_json *json)
{
	MEMWATCH_OPTS(memwatch_stale_point, point);

	mw_json_array(json, "live");
	for (uint32_t i = 0; memwatch_stale_get_point(r->stale, site, i, &point) == 1; i++) {
		mw_json_row(json, NULL);
		mw_json_uint(json, "time_ns", point.time_ns);
		mw_json_uint(json, "live_objects", point.live_objects);
		mw_json_uint(json, "live_bytes", point.live_bytes);
		mw_json_object_end(json);
	}
	mw_json_array_end(json);
}

static void site_json(const struct stale_result *r, uint32_t number, struct mw_json *json)
{
	MEMWATCH_OPTS(memwatch_stale_site, site);

	memwatch_stale_get_site(r->stale, number, &site);
	mw_json_object(json, NULL);
	mw_json_string(json, "site", site.site);
	stack_json(r, number, json);
	mw_json_bool(json, "leak", site.leak);
	mw_json_string(json, "scheme", stale_scheme_names[site.scheme]);
	mw_json_string(json, "growth", stale_growth_names[site.growth]);
	number_or_null(json, "threshold_ns", site.threshold_ns);
	mw_json_uint(json, "longest_ns", site.longest_ns);
	mw_json_uint(json, "stale_objects", site.stale_objects);
	mw_json_uint(json, "stale_bytes", site.stale_bytes);
	mw_json_uint(json, "live_objects", site.live_objects);
	mw_json_uint(json, "live_bytes", site.live_bytes);
	mw_json_uint(json, "allocated_objects", site.allocated_objects);
	mw_json_uint(json, "allocated_bytes", site.allocated_bytes);
	mw_json_uint(json, "freed_objects", site.freed_objects);
	places_json(r, MEMWATCH_STALE_SITE_ACCESS, number, false, "access_sites", json);
	places_json(r, MEMWATCH_STALE_SITE_ACCESS, number, true, "access_counts", json);
	mw_json_uint(json, "access_others", site.access_others);
	places_json(r, MEMWATCH_STALE_SITE_FREES, number, false, "free_sites", json);
	places_json(r, MEMWATCH_STALE_SITE_FREES, number, true, "free_counts", json);
	mw_json_uint(json, "free_others", site.free_others);
	distribution_json(r, number, "distribution", json);
	points_json(r, number, json);
	mw_json_object_end(json);
}

static void object_json(const struct stale_result *r, uint64_t number, struct mw_json *json)
{
	MEMWATCH_OPTS(memwatch_stale_object, object);
	MEMWATCH_OPTS(memwatch_stale_site, site);

	memwatch_stale_get_object(r->stale, number, &object);
	memwatch_stale_get_site(r->stale, object.site, &site);
	mw_json_object(json, NULL);
	mw_json_uint(json, "address", object.address);
	mw_json_uint(json, "size_bytes", object.size);
	mw_json_string(json, "site", site.site);
	mw_json_uint(json, "tid", object.tid);
	mw_json_uint(json, "allocated_ns", object.allocated_ns);
	mw_json_uint(json, "staleness_ns", object.staleness_ns);
	mw_json_uint(json, "active_staleness_ns", object.active_ns);
	mw_json_string(json, "scheme", stale_scheme_names[site.scheme]);
	mw_json_string(json, "last_access_site", object.last_access);
	mw_json_uint(json, "accesses", object.accesses);
	places_json(r, MEMWATCH_STALE_OBJECT_ACCESS, number, false, "access_sites", json);
	places_json(r, MEMWATCH_STALE_OBJECT_ACCESS, number, true, "access_counts", json);
	places_json(r, MEMWATCH_STALE_SITE_FREES, object.site, false, "free_sites", json);
	mw_json_bool(json, "leak", object.leak);
	mw_json_object_end(json);
}

void stale_print_json(const struct stale_result *r)
{
	const struct memwatch_stale_info *info = &r->info;
	struct mw_json json;

	mw_json_init(&json, stdout);
	trace_json(r, &json);
	mw_json_string(&json, "scheme", stale_scheme_names[r->scheme]);
	mw_json_uint(&json, "live_objects", info->live_objects);
	mw_json_uint(&json, "live_bytes", info->live_bytes);
	mw_json_uint(&json, "leaked_objects", info->leaked_objects);
	mw_json_uint(&json, "leaked_bytes", info->leaked_bytes);
	distribution_json(r, MEMWATCH_STALE_ALL_SITES, "distribution", &json);
	mw_json_array(&json, "sites");
	for (uint32_t i = 0; i < info->sites && (!r->top || i < r->top); i++)
		site_json(r, i, &json);
	mw_json_array_end(&json);
	mw_json_array(&json, "objects");
	for (uint64_t i = 0; i < info->live_objects && (!r->top || i < r->top); i++)
		object_json(r, i, &json);
	mw_json_array_end(&json);
	mw_json_finish(&json);
}
