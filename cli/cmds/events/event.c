// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Events in words.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmds/events/event.h"
#include "growth/alert.h"
#include "growth/group.h"

/* A notice whose text is in it needs no sentence of ours. */
static void describe_notice(const struct memwatch_notice_message *n, char *buf, size_t size)
{
	switch (n->kind) {
	case MEMWATCH_NOTICE_FOREIGN_WRITE:
		snprintf(buf, size,
			 "another program writes PQR_ASSOC of CPU %u; writes since the module was "
			 "loaded: %" PRIu64,
			 n->cpu, (uint64_t)n->count);
		break;
	case MEMWATCH_NOTICE_RESCTRL:
		snprintf(buf, size, "resctrl was mounted, and RDT is left to it");
		break;
	case MEMWATCH_NOTICE_SMALL_CPU:
		snprintf(buf, size, "a CPU came online with fewer RMIDs than have been given out");
		break;
	case MEMWATCH_NOTICE_EXHAUSTED:
		snprintf(buf, size,
			 "no RMID was free for a new process; since the module was loaded for "
			 "%" PRIu64 ", and %" PRIu64 " processes wait now",
			 (uint64_t)n->count, (uint64_t)n->value);
		break;
	case MEMWATCH_NOTICE_CPU_OFFLINE:
		snprintf(buf, size, "CPU %u went offline and is not measured any more", n->cpu);
		break;
	case MEMWATCH_NOTICE_CPU_ONLINE:
		snprintf(buf, size, "CPU %u came online and is measured", n->cpu);
		break;
	default:
		snprintf(buf, size, "notice %u of CPU %u: count %" PRIu64 ", value %" PRIu64,
			 n->kind, n->cpu, (uint64_t)n->count, (uint64_t)n->value);
	}
}

static enum mw_event_priority notice_priority(unsigned int kind)
{
	switch (kind) {
	case MEMWATCH_NOTICE_PERIOD:
	case MEMWATCH_NOTICE_CPU_OFFLINE:
	case MEMWATCH_NOTICE_CPU_ONLINE:
		return MW_EVENT_NOTICE;
	default:
		return MW_EVENT_WARNING;
	}
}

void mw_event_of_notice(const struct memwatch_notice_message *notice, struct mw_event *ret)
{
	size_t len;

	*ret = (struct mw_event){
		.name = memwatch_notice_name(notice->kind),
		.time_ns = notice->time_ns,
		.priority = notice_priority(notice->kind),
		.notice = notice,
	};
	if (notice->text[0])
		snprintf(ret->sentence, sizeof(ret->sentence), "%s", notice->text);
	else
		describe_notice(notice, ret->sentence, sizeof(ret->sentence));
	if (notice->suppressed) {
		len = strlen(ret->sentence);
		snprintf(ret->sentence + len, sizeof(ret->sentence) - len,
			 " (and %" PRIu64 " more such events before)",
			 (uint64_t)notice->suppressed);
	}
}

static enum mw_event_priority alert_priority(const struct memwatch_record_growth *alert)
{
	switch (alert->what) {
	case MEMWATCH_GROWTH_ALERTED:
		return MW_EVENT_WARNING;
	case MEMWATCH_GROWTH_NOTICED:
		return MW_EVENT_NOTICE;
	default:
		return MW_EVENT_INFO;
	}
}

static void begin_alert(const struct memwatch_record_growth *alert, uint64_t start_ns,
			struct mw_event *ret)
{
	*ret = (struct mw_event){
		.name = mw_alert_name(alert),
		.time_ns = alert->h.time_ns,
		.priority = alert_priority(alert),
		.alert = alert,
		.start_ns = start_ns,
	};
}

void mw_event_of_alert(const struct memwatch_record_growth *alert, struct memwatch_watch *watch,
		       uint64_t start_ns, struct mw_event *ret)
{
	__u64 cgroup;

	begin_alert(alert, start_ns, ret);
	mw_alert_find(watch, alert, start_ns, &ret->row, &cgroup);
	mw_alert_sentence(alert, &ret->row, ret->sentence, sizeof(ret->sentence));
}

void mw_event_of_group(const struct memwatch_record_growth *alert,
		       const struct memwatch_growth_group *group,
		       const struct memwatch_growth_row *row, uint64_t start_ns,
		       struct mw_event *ret)
{
	begin_alert(alert, start_ns, ret);
	ret->group = group;
	ret->row = *row;
	mw_group_event_sentence(alert, group, row, ret->sentence, sizeof(ret->sentence));
}
