/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The simulation of a heap: it follows allocations, frees and accesses in the order of time, and
 * charges each access to the live object that contains its address. Of objects that were freed
 * only the sums of their site remain, so memory follows the live objects.
 *
 * CLOCK. Staleness is measured on a clock of the process, which stands still while the process
 * does nothing: of a time without any event only the first MW_SIM_ACTIVE_NS count.
 */
#ifndef MW_STALE_SIM_H
#define MW_STALE_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stale/cohorts.h"
#include "stale/curve.h"
#include "stale/histogram.h"
#include "stale/objects.h"
#include "stale/places.h"
#include "stale/ranges.h"

#define MW_SIM_ACTIVE_NS 10000000ULL
#define MW_SIM_SITES_MAX (1U << 18)

enum mw_event_kind { MW_EVENT_MALLOC, MW_EVENT_FREE, MW_EVENT_ACCESS };

/**
 * struct mw_event - what happened
 * @time_ns: when; not before the event before it
 * @sequence: its number in the input, which orders events of the same time
 * @address: of the object, or of the access
 * @size: of the object
 * @place: number of the name of its site
 * @tid: thread
 * @kind: enum mw_event_kind
 */
struct mw_event {
	uint64_t time_ns, sequence;
	uint64_t address, size;
	uint32_t place, tid;
	uint8_t kind;
};

/**
 * struct mw_site - what is known of an allocation site
 * @name: number of its name
 * @live: number of live objects
 * @live_bytes: their size
 * @allocated, @allocated_bytes: since the start
 * @freed: objects that were freed
 * @idle: staleness of the objects that were freed, at that moment
 * @access, @frees: where its objects were accessed and freed
 * @curve: its live memory at the times of the clock of the curves; NULL if it was always 0
 */
struct mw_site {
	uint32_t name;
	uint32_t live;
	uint64_t live_bytes;
	uint64_t allocated, allocated_bytes;
	uint64_t freed;
	struct mw_histogram idle;
	struct mw_places access, frees;
	struct mw_curve_point *curve;
};

/**
 * struct mw_sim - the simulation; initialise with mw_sim_init()
 * @is_active: the clock is that of the process; otherwise it is time
 * @started: there was an event
 * @first_ns, @time_ns: time of the first and of the last event
 * @now: the clock of the process, which starts at 0
 * @pause: the longest time without an event, at most MW_SIM_ACTIVE_NS
 * @site_of: from the number of a name to that of the site; MW_OBJECT_NONE if it is none
 * @cohorts: allocations by time
 * @live_bytes: size of all live objects
 * @events: number of events by kind
 * @unmatched_frees: frees of addresses where no object begins
 * @overlaps: objects that ended unseen: their memory was allocated again
 * @misses: accesses to memory of no live object
 */
struct mw_sim {
	bool is_active, started;
	uint64_t first_ns, time_ns, now, pause;
	struct mw_ranges ranges;
	struct mw_objects objects;
	struct mw_site *sites;
	uint32_t nr_sites, sites_capacity;
	uint32_t *site_of;
	uint32_t names, names_capacity;
	struct mw_curve_clock clock;
	struct mw_cohorts cohorts;
	uint64_t live_bytes;
	uint64_t events[3];
	uint64_t unmatched_frees, overlaps, misses;
};

void mw_sim_init(struct mw_sim *sim, bool is_active);
void mw_sim_uninit(struct mw_sim *sim);

/* Returns 0, -ENOMEM, or -E2BIG if there are more than MW_SIM_SITES_MAX sites. */
int mw_sim_feed(struct mw_sim *sim, const struct mw_event *event);

/* The same for several events, which is faster. Events behind one that failed are not replayed. */
int mw_sim_feed_all(struct mw_sim *sim, const struct mw_event *events, uint32_t count);

/* Whether an object of @size bytes can be at @address. */
static inline bool mw_sim_fits(uint64_t address, uint64_t size)
{
	return size <= 1ULL << 47 && address < UINT64_MAX - size;
}

#endif /* MW_STALE_SIM_H */
