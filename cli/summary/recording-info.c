// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Head and foot of what is made from a stream.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "summary/recording-info.h"

#define NR_VALUES (MEMWATCH_COUNTER_MAX + MEMWATCH_RDT_MAX)

static const struct memwatch_availability *availability(const struct memwatch_stream_info *info,
							unsigned int i, const char **name)
{
	if (i < MEMWATCH_COUNTER_MAX) {
		*name = memwatch_counter_name(i);
		return &info->counter[i];
	}
	i -= MEMWATCH_COUNTER_MAX;
	*name = memwatch_rdt_event_name(i);
	return &info->rdt[i];
}

static void availability_json(struct mw_json *json, const struct memwatch_stream_info *info,
			      const char *key, unsigned int status)
{
	mw_json_array(json, key);
	for (unsigned int i = 0; i < NR_VALUES; i++) {
		const char *name;
		const struct memwatch_availability *a = availability(info, i, &name);

		if (a->status != status)
			continue;
		mw_json_row(json, NULL);
		mw_json_string(json, "name", name);
		mw_json_string(json, "reason", a->reason);
		mw_json_object_end(json);
	}
	mw_json_array_end(json);
}

void mw_recording_json(struct mw_json *json, const struct memwatch_stream_info *info,
		       uint64_t first_ns, uint64_t last_ns)
{
	mw_json_object(json, "recording");
	mw_json_string(json, "hostname", info->hostname);
	mw_json_string(json, "kernel", info->kernel);
	mw_json_string(json, "memwatch_version", info->version);
	mw_json_uint(json, "cpus", info->nr_cpus);
	mw_json_uint(json, "rmids", info->nr_rmids);
	mw_json_string(json, "backend", info->backend);
	mw_json_string(json, "backend_reason", info->backend_reason);
	mw_json_uint(json, "period_ns", info->period_ns);
	mw_json_string(json, "mode", info->mode == MEMWATCH_STREAM_SWITCH ? "switch" : "slot");
	mw_json_uint(json, "record_schema", info->schema);
	mw_json_uint(json, "start_realtime_ns", info->start_realtime_ns);
	mw_json_uint(json, "start_monotonic_ns", info->start_monotonic_ns);
	mw_json_uint(json, "start_boottime_ns", info->start_boottime_ns);
	mw_json_uint(json, "first_ns", first_ns);
	mw_json_uint(json, "last_ns", last_ns);
	mw_json_object_end(json);
	availability_json(json, info, "unavailable", MEMWATCH_STATUS_UNAVAILABLE);
	availability_json(json, info, "estimated", MEMWATCH_STATUS_ESTIMATED);
}

void mw_recording_print(const char *path, const struct memwatch_stream_info *info,
			uint64_t first_ns, uint64_t last_ns)
{
	time_t start = (time_t)(info->start_realtime_ns / 1000000000);
	char span[32], period[32], date[64] = "";
	struct tm tm;

	if (start && localtime_r(&start, &tm))
		strftime(date, sizeof(date), ", %Y-%m-%d %H:%M:%S", &tm);
	printf("%s: %s%s\n", path,
	       mw_human_uint(last_ns - first_ns, MW_UNIT_NS, span, sizeof(span)), date);
	printf("%s, Linux %s, %u CPU%s, a tick every %s, %s samples\n",
	       *info->hostname ? info->hostname : "unknown machine", info->kernel, info->nr_cpus,
	       info->nr_cpus == 1 ? "" : "s",
	       mw_human_uint(info->period_ns, MW_UNIT_NS, period, sizeof(period)),
	       info->mode == MEMWATCH_STREAM_SWITCH ? "switch" : "slot");
	printf("%u RMIDs, %s%s%s\n", info->nr_rmids, info->backend,
	       *info->backend_reason ? ": " : "", info->backend_reason);
}

void mw_losses_json(struct mw_json *json, const struct memwatch_stream_stats *stream,
		    const struct memwatch_slots_stats *slots)
{
	mw_json_object(json, "losses");
	mw_json_uint(json, "records", stream->delivered);
	/* A replay's own rings lose nothing; what the recording lost is in its records. */
	mw_json_uint(json, "lost", slots->lost);
	mw_json_uint(json, "late", stream->late);
	mw_json_uint(json, "forced", stream->forced);
	mw_json_uint(json, "malformed", stream->malformed + slots->invalid);
	mw_json_uint(json, "unknown", slots->unknown);
	mw_json_bool(json, "truncated", stream->truncated);
	mw_json_object_end(json);
}

void mw_losses_print(const struct memwatch_stream_stats *stream,
		     const struct memwatch_slots_stats *slots)
{
	printf("%" PRIu64 " records, %" PRIu64 " lost, %" PRIu64 " late",
	       (uint64_t)stream->delivered, (uint64_t)slots->lost, (uint64_t)stream->late);
	if (stream->malformed + slots->invalid)
		printf(", %" PRIu64 " malformed", (uint64_t)(stream->malformed + slots->invalid));
	if (slots->unknown)
		printf(", %" PRIu64 " of an unknown process", (uint64_t)slots->unknown);
	putchar('\n');
}

static bool same_reason(const struct memwatch_availability *a,
			const struct memwatch_availability *b)
{
	return a->status == MEMWATCH_STATUS_UNAVAILABLE &&
	       b->status == MEMWATCH_STATUS_UNAVAILABLE && !strcmp(a->reason, b->reason);
}

static const char *title(unsigned int i)
{
	static const char *const titles[NR_VALUES] = {
		"cycles", "instructions",     "LLC references",		"LLC misses",
		"LLC",	  "memory bandwidth", "local memory bandwidth",
	};

	return titles[i];
}

void mw_unavailable_print(const struct memwatch_stream_info *info)
{
	for (unsigned int i = 0; i < NR_VALUES; i++) {
		const struct memwatch_availability *a, *b;
		const char *name;
		bool said = false;

		a = availability(info, i, &name);
		for (unsigned int j = 0; j < i && !said; j++)
			said = same_reason(availability(info, j, &name), a);
		if (a->status != MEMWATCH_STATUS_UNAVAILABLE || said)
			continue;
		printf("Not measured: %s", title(i));
		for (unsigned int j = i + 1; j < NR_VALUES; j++) {
			b = availability(info, j, &name);
			if (same_reason(a, b))
				printf(", %s", title(j));
		}
		printf(": %s\n", *a->reason ? a->reason : "no reason is known");
	}
	for (unsigned int i = 0; i < NR_VALUES; i++) {
		const struct memwatch_availability *a;
		const char *name;

		a = availability(info, i, &name);
		if (a->status == MEMWATCH_STATUS_ESTIMATED)
			printf("Estimated: %s: %s\n", title(i), a->reason);
	}
}

void mw_table_legend(const struct mw_table *table)
{
	bool rough = false, error = false;

	for (size_t i = 0; i < table->nr_rows * table->nr_columns; i++) {
		const struct mw_column *c = &table->columns[i % table->nr_columns];
		uint8_t status = table->cells[i].status;

		if (!(c->flags & MW_COLUMN_MEASURED) || c->flags & MW_COLUMN_HIDDEN ||
		    !mw_status_has_value(status))
			continue;
		error |= status == MEMWATCH_STATUS_ERROR;
		rough |= status != MEMWATCH_STATUS_ERROR && status != MEMWATCH_STATUS_OK;
	}
	if (rough)
		printf("~ is not exact: scaled up from a shared counter, derived, old, or a part "
		       "is missing.\n");
	if (error)
		printf("! could not be read all the time; the value is what was read.\n");
}
