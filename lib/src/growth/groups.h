/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The cgroups and the machine under the detectors: a state for each class of memory of each
 * group. A group is a cgroup, or the machine, whose path is "/". Samples go in at any order
 * within a round; mw_groups_judge() then says what is new. Who is blamed for growth is decided in
 * blame.c.
 */
#ifndef MW_GROWTH_GROUPS_H
#define MW_GROWTH_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include <memwatch/groups.h>

#include "base/index.h"
#include "growth/spans.h"

#include "bpf/growth.h"

struct mw_group;

/**
 * struct mw_group_sample - the memory of one group at one time, in pages
 * @time_ns: not before the previous sample of the group
 * @pages: by class
 * @headroom: until the nearest limit, or MW_GROWTH_NO_LIMIT
 * @limit: &enum memwatch_limit that @headroom is the distance to
 */
struct mw_group_sample {
	uint64_t time_ns;
	uint32_t pages[MEMWATCH_CLASSES];
	uint32_t headroom;
	uint32_t limit;
};

/* A process that holds a part of a growth. */
struct mw_group_by {
	uint32_t tgid;
	uint32_t pages;
	char comm[MEMWATCH_GROWTH_COMM_MAX];
};

/**
 * struct mw_group_class - a class of memory of a group
 * @group: the group
 * @class: &enum memwatch_growth_class
 * @level: what is raised: MEMWATCH_GROWTH_NOTICE, MEMWATCH_GROWTH_ALERT
 * @key: see &struct memwatch_growth_group
 * @state: of the detectors
 * @history: owned; NULL until the class has grown
 * @base_ns: since when the growth of a notice is counted
 * @since_ns: since when the growth of an alert is counted
 * @by: the process that holds most of what was told last
 * @spans: its notices and alerts
 */
struct mw_group_class {
	struct mw_group *group;
	uint32_t class, level;
	uint64_t key;
	struct mw_growth state;
	struct mw_growth_history *history;
	uint64_t base_ns, since_ns;
	struct mw_group_by by;
	struct mw_spans spans;
};

/**
 * struct mw_group - a cgroup or the machine
 * @path: owned
 * @parent: the nearest ancestor that is known, or NULL
 * @first_ns: time of the first sample
 * @last: the last sample
 * @total: pages of all classes
 * @total_floor: lowest @total ever
 * @classes: owned; NULL: never had MW_GROUP_LEAST pages
 */
struct mw_group {
	char *path;
	struct mw_group *parent;
	uint64_t first_ns;
	struct mw_group_sample last;
	uint32_t total, total_floor;
	struct mw_group_class *classes[MEMWATCH_CLASSES];
};

/* A class with fewer pages is not judged. */
#define MW_GROUP_LEAST MW_GROWTH_MIB

/* A state whose last sample is older than this is of something that has ended. */
#define MW_GROUP_CURRENT_NS (150 * MW_GROWTH_SECOND)

/*
 * Finds the process of a group, or of a cgroup below it, that has gained most memory since
 * @since_ns, if it is at least @least pages; else returns false.
 */
typedef bool (*mw_group_blame_fn)(void *userdata, const struct mw_group_class *class,
				  uint64_t since_ns, uint32_t least, struct mw_group_by *ret);

/* Told for each change of @level; @event is one of MEMWATCH_GROWTH_*. */
typedef int (*mw_group_event_fn)(void *userdata, const struct mw_group_class *class,
				 unsigned int event, uint64_t now);

/**
 * struct mw_groups - all groups; the caller sets the first four and calls mw_groups_init()
 * @ctx: context
 * @blame: finds processes, or NULL
 * @tell: is told about events, or NULL
 * @userdata: for both
 * @groups: owned
 * @nr: number of groups
 * @max: how many fit
 * @list: owned; all classes
 * @nr_list: their number
 * @max_list: how many fit
 * @by_path: from a path to a number in @groups
 * @linked: @parent of all groups is set
 * @keys: keys given so far
 * @now: time of the newest sample
 * @judged_ns: time of the last mw_groups_judge()
 */
struct mw_groups {
	struct memwatch_ctx *ctx;
	mw_group_blame_fn blame;
	mw_group_event_fn tell;
	void *userdata;
	struct mw_group **groups;
	uint32_t nr, max;
	struct mw_group_class **list;
	uint32_t nr_list, max_list;
	struct mw_index by_path;
	bool linked;
	uint64_t keys;
	uint64_t now, judged_ns;
};

void mw_groups_init(struct mw_groups *groups);
void mw_groups_uninit(struct mw_groups *groups);

/* The group with a path, which is added if it is new; NULL if memory ran out. */
struct mw_group *mw_groups_get(struct mw_groups *groups, const char *path);

/* Feeds one sample. Returns 0 or a negative errno. */
int mw_groups_feed(struct mw_groups *groups, struct mw_group *group,
		   const struct mw_group_sample *sample);

/* Ends a round: raises and ends notices and alerts. Returns 0 or a negative errno. */
int mw_groups_judge(struct mw_groups *groups);

/**
 * struct mw_state_class - what a state file keeps of a class of a group, see &struct mw_group_class
 * @kind: &enum memwatch_growth_class
 * @level: what is raised
 * @total_floor: of the group
 * @path_size: of the path that follows, with zeros to a multiple of 8
 * @base_ns: of the class
 * @since_ns: of the class
 * @has_history: a history follows the path
 * @state: of the detectors
 */
struct mw_state_class {
	uint32_t kind;
	uint32_t level;
	uint32_t total_floor;
	uint32_t path_size;
	uint64_t base_ns;
	uint64_t since_ns;
	uint64_t has_history;
	struct mw_growth state;
};

/*
 * Goes on with a class as a file has it; @history may be NULL. The group has been fed already.
 * Returns 1; 0 if there is no such group any more; or a negative errno.
 */
int mw_groups_restore(struct mw_groups *groups, const struct mw_state_class *saved,
		      const char *path, const struct mw_growth_history *history);

/* Removes the groups without a sample since @before_ns. */
int mw_groups_drop(struct mw_groups *groups, uint64_t before_ns);

/* Fills in the public structures; their sizes are not looked at. */
void mw_groups_fill(const struct mw_group_class *class, struct memwatch_growth_group *group,
		    struct memwatch_growth_row *row);

/* Is @path the cgroup @above or one below it? */
bool mw_group_contains(const char *above, const char *path);

#endif /* MW_GROWTH_GROUPS_H */
