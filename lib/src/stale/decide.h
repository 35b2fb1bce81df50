/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Which live objects are leaked. An object is stale if it was not accessed for longer than the
 * fence of a distribution: that of its site (local), or that of all objects (global). The
 * distributions have the staleness of the objects that were freed, at that moment, and of those
 * that live. The stale objects of a site are leaked if they become more, or if it has freed most
 * others.
 *
 * HYBRID. A site has the local scheme. It changes to the global one if it has no stale objects by
 * its own fence, or no fence, and has some by the global fence, which take at least a share of
 * the live memory.
 *
 * ABANDONED. A site that has freed fewer than MW_FENCE_LEAST objects, see kept.h, leaks also if it
 * does not grow any more. A global fence that no object can reach, because it is longer than the
 * whole time, gives way for it to the staleness below which nearly all objects were freed.
 *
 * GUARDS. There is no fence for fewer than MW_FENCE_LEAST objects. The spread of a distribution,
 * with its skewness, is at least a thousandth of the time and half of its third quartile. The
 * longest pause is added to a fence: while the process waits for a CPU or for a disk, all objects
 * age, and those that live at the end would be staler than those that were freed before. If more
 * than a quarter of the objects of a distribution live and are stale by the global fence (or, for
 * the global distribution, live at all), they would move its fence: it then consists of the freed
 * ones alone.
 */
#ifndef MW_STALE_DECIDE_H
#define MW_STALE_DECIDE_H

#include <memwatch/stale.h>

#include "stale/fence.h"
#include "stale/sim.h"
#include "stale/trend.h"

/**
 * struct mw_decision_rule - parameters
 * @scheme: enum memwatch_stale_scheme
 * @coefficient: of the fences
 * @share: of the live memory that a site must have stale for the global scheme
 * @any_growth: the growth of a site does not matter
 */
struct mw_decision_rule {
	uint32_t scheme;
	double coefficient, share;
	bool any_growth;
};

/**
 * struct mw_basis - a distribution and its fence
 * @fence: valid if @basis is not MEMWATCH_STALE_BASIS_NONE
 * @basis: enum memwatch_stale_basis
 * @objects: number of objects in it
 */
struct mw_basis {
	struct mw_fence fence;
	uint32_t basis;
	uint64_t objects;
};

/**
 * struct mw_site_decision - of one site
 * @local: its own distribution
 * @scheme: MEMWATCH_STALE_LOCAL or MEMWATCH_STALE_GLOBAL
 * @threshold: objects with more staleness are stale; infinity: none can be
 * @stale, @stale_bytes: how many are, and their size
 * @longest: the largest staleness of a live object
 * @abandoned: what it keeps is no longer used, and what others allocated at that time was freed
 * @global_bytes: size of the objects that are stale by the global fence
 * @births: of the stale objects
 * @growth: enum memwatch_stale_growth
 * @leak: they are leaked
 * @shown: its number in the order of the report
 */
struct mw_site_decision {
	struct mw_basis local;
	uint32_t scheme;
	double threshold;
	uint64_t stale, stale_bytes;
	uint64_t longest, global_bytes;
	bool abandoned;
	struct mw_births births;
	uint32_t growth;
	bool leak;
	uint32_t shown;
};

/* The decision; @sites has one element for each site of the simulation. */
struct mw_decision {
	struct mw_basis global;
	struct mw_site_decision *sites;
};

/* Returns 0 or -ENOMEM. The caller calls mw_decision_uninit() in any case. */
int mw_decision_make(struct mw_decision *decision, const struct mw_sim *sim,
		     const struct mw_decision_rule *rule);
void mw_decision_uninit(struct mw_decision *decision);

#endif /* MW_STALE_DECIDE_H */
