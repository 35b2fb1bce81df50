/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Something that an operator is told: a notice of the module, or a notice or an alert of the
 * growth monitor.
 */
#ifndef MW_EVENTS_EVENT_H
#define MW_EVENTS_EVENT_H

#include <memwatch/memwatch.h>

/* As in syslog(3). */
enum mw_event_priority { MW_EVENT_WARNING = 4, MW_EVENT_NOTICE = 5, MW_EVENT_INFO = 6 };

/* One of @notice and @alert is not NULL. */
struct mw_event {
	const char *name; /* what kind of event, for programs */
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	enum mw_event_priority priority;
	const struct memwatch_notice_message *notice;
	const struct memwatch_record_growth *alert;
	/* What @alert is about: a cgroup or the machine; NULL: a process. */
	const struct memwatch_growth_group *group;
	struct memwatch_growth_row row; /* of that */
	uint64_t start_ns;		/* when the growth monitor began */
	/* What happened. It may contain the name of a process as it is. */
	char sentence[2048];
};

void mw_event_of_notice(const struct memwatch_notice_message *notice, struct mw_event *ret);

/* @watch: the monitor that has raised the alert, since @start_ns */
void mw_event_of_alert(const struct memwatch_record_growth *alert, struct memwatch_watch *watch,
		       uint64_t start_ns, struct mw_event *ret);

/* The same for an alert about @group, on which the verdict is @row. */
void mw_event_of_group(const struct memwatch_record_growth *alert,
		       const struct memwatch_growth_group *group,
		       const struct memwatch_growth_row *row, uint64_t start_ns,
		       struct mw_event *ret);

#endif
