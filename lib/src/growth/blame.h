/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Who is told about when memory of a cgroup grows. The same bytes are in each of its ancestors, in
 * the machine, and often in a process: they are reported once, where an operator can act.
 */
#ifndef MW_GROWTH_BLAME_H
#define MW_GROWTH_BLAME_H

#include "growth/groups.h"

/* Notes since when the growth behind a new notice or alert is counted. */
void mw_blame_note_times(struct mw_group_class *class, unsigned int event);

/*
 * Is the alert that the detectors raised one for a group? Growth that may be the start-up of some
 * of its processes, or that is small beside what the group always had, must have used
 * MW_GROWTH_CONSUMED_MEANT percent of the headroom.
 */
bool mw_blame_is_urgent(const struct mw_group_class *class);

/*
 * Returns whether a notice or an alert (@level) is to be told about the growth of a class since
 * @since_ns, and sets @by. It is not if another class, cgroups below or a process account for it.
 */
bool mw_blame_group(const struct mw_groups *groups, struct mw_group_class *class,
		    unsigned int level, uint64_t since_ns);

#endif /* MW_GROWTH_BLAME_H */
