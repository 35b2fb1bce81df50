/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The cgroups of this machine and the machine itself as groups: samples them in the rounds of the
 * growth monitor, and keeps what was raised until the caller takes it.
 */
#ifndef MW_GROWTH_SURVEY_H
#define MW_GROWTH_SURVEY_H

#include <memwatch/watch.h>

#include "growth/groups.h"
#include "growth/snapshot.h"
#include "growth/sums.h"
#include "loader/growth.h"
#include "loader/groups.h"

/**
 * struct mw_survey_id - a cgroup, by its id
 * @id: the id; a cgroup that was removed and made again has the same path, and another id
 * @last_ns: time of the last sample of this cgroup
 * @group: the group of its path
 */
struct mw_survey_id {
	uint64_t id;
	uint64_t last_ns;
	struct mw_group *group;
};

/* A notice or an alert of a group, or the end of one. */
struct mw_survey_event {
	struct memwatch_record_growth record;
	struct memwatch_growth_group group; /* @path is owned */
	struct memwatch_growth_row row;
};

/**
 * struct mw_survey - the cgroups; zero watches none
 * @ctx: context
 * @bpf: the program that reads them, or NULL: only the machine is watched
 * @processes: the maps of the processes, in which growth may be found
 * @snapshot: owned; what was in them in the visit at @snapshot_ns
 * @snapshot_ns: time of a visit
 * @groups: the detectors
 * @mount_fd: the mount point of the memory controller
 * @mount: its path
 * @stat_fd: memory.stat of the root, or -1
 * @legacy: it is a hierarchy of version 1
 * @ids: owned; the groups in the order of their first rounds, and the ids of their cgroups
 * @nr_ids: their number
 * @max_ids: how many fit
 * @by_id: from an id to a number in @ids
 * @events: owned; those that were not taken yet
 * @nr_events: their number
 * @max_events: how many fit
 * @taken: the next of them
 * @next_ns: when they are due again
 * @cost_ns: CPU time of a visit, on average
 * @told_full: it was said that there are too many cgroups
 * @memory: owned; what was read in the last visit, by number in @ids; @round is 0: nothing
 * @max_memory: how many fit
 * @sums: whether what was read in the last visit is what it is taken for
 */
struct mw_survey {
	struct memwatch_ctx *ctx;
	struct mw_bpf_groups *bpf;
	struct mw_bpf_growth *processes;
	struct mw_snapshot snapshot;
	uint64_t snapshot_ns;
	struct mw_groups groups;
	int mount_fd, stat_fd;
	char mount[64];
	bool legacy;
	struct mw_survey_id *ids;
	uint32_t nr_ids, max_ids;
	struct mw_index by_id;
	struct mw_survey_event *events;
	uint32_t nr_events, max_events, taken;
	uint64_t next_ns, cost_ns;
	bool told_full;
	struct mw_group_memory *memory;
	uint32_t max_memory;
	struct mw_sums sums;
};

/* Opens what can be watched. A machine without memory cgroups is no error. */
int mw_survey_open(struct memwatch_ctx *ctx, struct mw_bpf_growth *processes,
		   struct mw_survey **ret);
void mw_survey_close(struct mw_survey *survey);

/*
 * Samples and judges all if they are due, and then again after @period_ns or as late as a cost of
 * @ppm of a CPU asks. Returns 0 or a negative errno.
 */
int mw_survey_visit(struct mw_survey *survey, uint64_t now, uint64_t period_ns, uint32_t ppm);

/* The next event, valid until the next visit; NULL if there is none. */
const struct mw_survey_event *mw_survey_take(struct mw_survey *survey);
bool mw_survey_have_events(const struct mw_survey *survey);

/* The survey of a monitor. */
struct mw_survey *mw_watch_survey(struct memwatch_watch *watch);

/* As memwatch_watch_get_group_sample(). */
int mw_survey_sample(const struct mw_survey *survey, unsigned int index,
		     struct memwatch_growth_sample *ret);

/* As memwatch_watch_group_of(). */
int mw_survey_group_of(const struct mw_survey *survey, uint32_t tgid, uint64_t cgroup, char *path,
		       size_t size);

#endif /* MW_GROWTH_SURVEY_H */
