// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Writes the verdicts on cgroups and on the machine.
 */
#include <stdio.h>
#include <string.h>

#include "growth/group.h"
#include "growth/verdict.h"
#include "output/human.h"

bool mw_group_is_host(const struct memwatch_growth_group *group)
{
	return !strcmp(group->path, "/");
}

const char *mw_group_class_words(unsigned int class)
{
	switch (class) {
	case MEMWATCH_CLASS_ANON:
		return "memory of processes";
	case MEMWATCH_CLASS_SHMEM:
		return "tmpfs and shared memory";
	case MEMWATCH_CLASS_SLAB:
		return "objects of the kernel (slab)";
	case MEMWATCH_CLASS_SOCK:
		return "buffers of sockets";
	case MEMWATCH_CLASS_PAGETABLES:
		return "page tables";
	default:
		return "memory of the kernel";
	}
}

const char *mw_group_name(const struct memwatch_growth_group *group, char *buf, size_t size)
{
	const char *class = memwatch_growth_class_name(group->kind);

	if (mw_group_is_host(group))
		snprintf(buf, size, "host %s", class);
	else
		snprintf(buf, size, "cgroup %s %s", group->path, class);
	return buf;
}

void mw_group_fill_cells(const char *name, const struct memwatch_growth_row *row,
			 uint64_t origin_ns, struct mw_cell *cells)
{
	mw_verdict_fill_cells(row, origin_ns, cells);
	cells[MW_VERDICT_PID] = (struct mw_cell){ .missing = true };
	cells[MW_VERDICT_COMM] = (struct mw_cell){ .text = name };
}

void mw_group_json_members(const struct memwatch_growth_group *group,
			   const struct memwatch_growth_row *row, uint64_t origin_ns,
			   struct mw_json *json)
{
	mw_json_string(json, "path", group->path);
	mw_json_string(json, "class", memwatch_growth_class_name(group->kind));
	if (group->by_tgid) {
		mw_json_uint(json, "mostly_pid", group->by_tgid);
		mw_json_string(json, "mostly_comm", group->by_comm);
	} else {
		mw_json_null(json, "mostly_pid");
		mw_json_null(json, "mostly_comm");
	}
	mw_verdict_json_values(row, origin_ns, json);
}

/* As memwatch_watch_limit_name(), which speaks of a process. */
static const char *limit_name(unsigned int limit)
{
	switch (limit) {
	case MEMWATCH_LIMIT_CGROUP_MAX:
		return "memory.max";
	case MEMWATCH_LIMIT_CGROUP_HIGH:
		return "memory.high";
	default:
		return memwatch_watch_limit_name(limit);
	}
}

const char *mw_group_sentence(const struct memwatch_growth_group *group,
			      const struct memwatch_growth_row *row, const char *limit, char *buf,
			      size_t size)
{
	char grown[32], span[32], slope[32], eta[32], now[32];
	bool host = mw_group_is_host(group);
	size_t len;

	mw_human_uint(row->growth_bytes, MW_UNIT_BYTES, grown, sizeof(grown));
	mw_human_uint(row->signal_bytes, MW_UNIT_BYTES, now, sizeof(now));
	mw_verdict_estimate(row->last_ns - row->since_ns, span, sizeof(span));
	snprintf(buf, size, "%s%s: %s grew by %s in the last %s%s, to %s%s",
		 host ? "the machine" : "cgroup ", host ? "" : group->path,
		 mw_group_class_words(group->kind), grown, span,
		 mw_verdict_pace(row->slope, slope, sizeof(slope)), now,
		 row->reason == MEMWATCH_GROWTH_REASON_HEIGHT ? ", more than in the week before"
							      : "");
	len = strlen(buf);
	if (row->eta_ns != MEMWATCH_GROWTH_NONE)
		snprintf(buf + len, size - len, "; at this rate it reaches %s in %s",
			 limit ? limit : "its limit",
			 mw_verdict_estimate(row->eta_ns, eta, sizeof(eta)));
	len = strlen(buf);
	if (group->by_tgid)
		snprintf(buf + len, size - len, "; process %s (%u) holds most of it",
			 group->by_comm, group->by_tgid);
	return buf;
}

const char *mw_group_state_sentence(const struct memwatch_growth_group *group,
				    const struct memwatch_growth_row *row, char *buf, size_t size)
{
	return mw_group_sentence(group, row, limit_name(row->limit), buf, size);
}

const char *mw_group_event_sentence(const struct memwatch_record_growth *record,
				    const struct memwatch_growth_group *group,
				    const struct memwatch_growth_row *row, char *buf, size_t size)
{
	bool host = mw_group_is_host(group);

	if (record->what == MEMWATCH_GROWTH_ALERTED || record->what == MEMWATCH_GROWTH_NOTICED)
		return mw_group_sentence(group, row, limit_name(record->limit), buf, size);
	snprintf(buf, size, "%s%s: %s has stopped growing", host ? "the machine" : "cgroup ",
		 host ? "" : group->path, mw_group_class_words(group->kind));
	return buf;
}
