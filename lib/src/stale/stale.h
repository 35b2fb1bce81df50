/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The object behind <memwatch/stale.h>.
 */
#ifndef MW_STALE_STALE_H
#define MW_STALE_STALE_H

#include <memwatch/stale.h>

#include "stale/charges.h"
#include "stale/decide.h"
#include "stale/event-file.h"
#include "stale/import.h"
#include "stale/names.h"
#include "stale/sim.h"

enum mw_stale_kind { MW_STALE_NONE, MW_STALE_TEXT, MW_STALE_RECORDED };
enum mw_stale_state {
	MW_STALE_EMPTY,
	MW_STALE_LOADING, /* reading the accesses of a recorded trace */
	MW_STALE_READING,
	MW_STALE_READ,
	MW_STALE_JUDGED,
};

/**
 * struct memwatch_stale - a trace and what was found in it
 * @ctx: context, a reference
 * @state: enum mw_stale_state
 * @rule: parameters of the decision
 * @sorting: for the sorter
 * @directory: of @sorting; owned
 * @fd: the trace, or -1; owned
 * @kind: what is being read; EMPTY has none
 * @import: valid if the kind is TEXT
 * @file: valid if the kind is RECORDED
 * @charges: accesses that are replayed with @file; valid if the kind is RECORDED
 * @batch: events of @file; owned
 * @places: of @charges in the heap of the names
 * @names: of the sites of @file, or NULL; owned
 * @comm: of the process that wrote @file
 * @sim: the simulation
 * @decision: valid if the state is JUDGED
 * @sites: numbers of the sites in the order of the report; owned
 * @objects: numbers of the live objects in the order of the report; owned
 * @leaked_objects, @leaked_bytes: what was found
 */
struct memwatch_stale {
	struct memwatch_ctx *ctx;
	enum mw_stale_state state;
	struct mw_decision_rule rule;
	struct mw_sorter_place sorting;
	char *directory;
	int fd;
	enum mw_stale_kind kind;
	struct mw_import import;
	struct mw_event_file file;
	struct mw_charges charges;
	struct mw_event *batch;
	struct mw_place_stacks places;
	struct mw_site_names *names;
	char comm[17];
	struct mw_sim sim;
	struct mw_decision decision;
	uint32_t *sites, *objects;
	uint64_t leaked_objects, leaked_bytes;
};

/* As memwatch_stale_open(), from a descriptor that the object closes. */
int mw_stale_open_fd(struct memwatch_stale *stale, int fd);

/* Whether a live object is leaked; the decision must have been made. */
bool mw_stale_is_leaked(const struct memwatch_stale *stale, const struct mw_object *object);

#endif /* MW_STALE_STALE_H */
