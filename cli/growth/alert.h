/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A notice or an alert of the growth monitor, or the end of one, in words and as JSON.
 */
#ifndef MW_GROWTH_ALERT_H
#define MW_GROWTH_ALERT_H

#include <memwatch/memwatch.h>

#include "output/json.h"

/*
 * Finds the process of a record: its row and its cgroup. If it has ended already, the row has
 * what the record says. Times are relative to @start_ns.
 */
void mw_alert_find(struct memwatch_watch *watch, const struct memwatch_record_growth *record,
		   uint64_t start_ns, struct memwatch_growth_row *row, __u64 *cgroup);

/* "alert", "clear", "notice", "settle" or "touch"; NULL for a record that is none of these. */
const char *mw_alert_name(const struct memwatch_record_growth *record);

/* What has happened. It contains the name of the process as it is, see mw_verdict_sentence(). */
void mw_alert_sentence(const struct memwatch_record_growth *record,
		       const struct memwatch_growth_row *row, char *buf, size_t size);

/* Writes what the record says, and the sentence, as members of the object that is open. */
void mw_alert_json_members(const struct memwatch_record_growth *record, uint64_t start_ns,
			   const char *sentence, struct mw_json *json);

#endif
