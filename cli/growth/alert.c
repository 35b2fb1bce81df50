// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Notices and alerts in words and as JSON.
 */
#include <string.h>

#include "growth/alert.h"
#include "growth/verdict.h"

/* The row of a process that has ended already: only the values of the record are known. */
static void alert_row_of_record(const struct memwatch_record_growth *record, uint64_t start_ns,
				struct memwatch_growth_row *row)
{
	row->tgid = record->tgid;
	memcpy(row->comm, record->comm, sizeof(record->comm));
	row->verdict = record->verdict;
	row->reason = record->reason;
	row->confidence = record->confidence;
	row->signal_bytes = record->signal_bytes;
	row->slope = row->alert_slope = record->slope;
	row->first_ns = row->last_ns = row->since_ns = start_ns;
	row->first_notice_ns = row->first_alert_ns = MEMWATCH_GROWTH_NONE;
	if (record->what == MEMWATCH_GROWTH_ALERTED)
		row->first_alert_ns = record->h.time_ns;
	if (record->what == MEMWATCH_GROWTH_NOTICED)
		row->first_notice_ns = record->h.time_ns;
	row->room_bytes = MEMWATCH_GROWTH_NONE;
	row->eta_ns = row->eta_low_ns = row->eta_high_ns = row->alert_eta_ns = MEMWATCH_GROWTH_NONE;
	if (record->eta_s != UINT32_MAX)
		row->eta_ns = row->alert_eta_ns = record->eta_s * 1000000000ULL;
}

void mw_alert_find(struct memwatch_watch *watch, const struct memwatch_record_growth *record,
		   uint64_t start_ns, struct memwatch_growth_row *row, __u64 *cgroup)
{
	*row = (struct memwatch_growth_row){ .sz = sizeof(*row) };
	*cgroup = 0;
	if (memwatch_watch_find(watch, record->tgid, record->start_time_ns, row, cgroup) != 1)
		alert_row_of_record(record, start_ns, row);
}

const char *mw_alert_name(const struct memwatch_record_growth *record)
{
	switch (record->what) {
	case MEMWATCH_GROWTH_ALERTED:
		return "alert";
	case MEMWATCH_GROWTH_CLEARED:
		return "clear";
	case MEMWATCH_GROWTH_NOTICED:
		return "notice";
	case MEMWATCH_GROWTH_SETTLED:
		return "settle";
	case MEMWATCH_GROWTH_TOUCHED:
		return "touch";
	default:
		return NULL;
	}
}

void mw_alert_sentence(const struct memwatch_record_growth *record,
		       const struct memwatch_growth_row *row, char *buf, size_t size)
{
	if (record->what != MEMWATCH_GROWTH_CLEARED && record->what != MEMWATCH_GROWTH_SETTLED)
		mw_verdict_sentence(row, memwatch_watch_limit_name(record->limit), buf, size);
	else
		snprintf(buf, size, "process %s (%u): memory has stopped growing", record->comm,
			 record->tgid);
}

void mw_alert_json_members(const struct memwatch_record_growth *record, uint64_t start_ns,
			   const char *sentence, struct mw_json *json)
{
	mw_json_string(json, "event", mw_alert_name(record));
	mw_json_double(json, "time_s", (double)(record->h.time_ns - start_ns) / 1e9);
	mw_json_uint(json, "time_ns", record->h.time_ns);
	/* Of a cgroup or the machine it is only a key. */
	if (record->tgid)
		mw_json_uint(json, "start_time_ns", record->start_time_ns);
	mw_json_string(json, "limit", memwatch_watch_limit_name(record->limit));
	mw_json_string(json, "sentence", sentence);
}
