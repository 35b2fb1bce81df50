// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What is printed before and after the rows of a stream.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "summary/recording-info.h"
#include "text/escape.h"

/* Whether the hardware can measure a metric; NULL for one that is computed. */
static const struct memwatch_availability *
metric_availability(const struct memwatch_stream_info *info,
		    const struct memwatch_metric_info *metric)
{
	switch (metric->source) {
	case MEMWATCH_METRIC_COUNTER:
		return &info->counter[metric->index];
	case MEMWATCH_METRIC_RDT:
		return &info->rdt[metric->index];
	default:
		return NULL;
	}
}

static void availability_json(struct mw_json *json, const struct memwatch_stream_info *info,
			      const char *key, unsigned int status)
{
	const struct memwatch_metric_info *metric;

	mw_json_array(json, key);
	for (unsigned int i = 0; (metric = memwatch_metric_at(i)); i++) {
		const struct memwatch_availability *a = metric_availability(info, metric);

		if (!a || a->status != status)
			continue;
		mw_json_row(json, NULL);
		mw_json_string(json, "name", metric->key);
		mw_json_string(json, "reason", a->reason);
		mw_json_object_end(json);
	}
	mw_json_array_end(json);
}

/* 0: a stream that has not been read does not say when it begins and ends. */
static void moment_json(struct mw_json *json, const char *key, uint64_t time_ns)
{
	if (time_ns)
		mw_json_uint(json, key, time_ns);
	else
		mw_json_null(json, key);
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
	moment_json(json, "first_ns", first_ns);
	moment_json(json, "last_ns", last_ns);
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
	mw_escape_line(stdout, "%s: %s%s", path,
		       mw_human_uint(last_ns - first_ns, MW_UNIT_NS, span, sizeof(span)), date);
	mw_escape_line(stdout, "%s, Linux %s, %u CPU%s, a tick every %s, %s samples",
		       *info->hostname ? info->hostname : "unknown machine", info->kernel,
		       info->nr_cpus, info->nr_cpus == 1 ? "" : "s",
		       mw_human_uint(info->period_ns, MW_UNIT_NS, period, sizeof(period)),
		       info->mode == MEMWATCH_STREAM_SWITCH ? "switch" : "slot");
	mw_escape_line(stdout, "%u RMIDs, %s%s%s", info->nr_rmids, info->backend,
		       *info->backend_reason ? ": " : "", info->backend_reason);
}

void mw_period_note(uint64_t *longest_ns, const struct memwatch_record_header *record)
{
	const struct memwatch_record_tick *tick = (const void *)record;

	if (record->type == MEMWATCH_RECORD_TICK && tick->period_ns > *longest_ns)
		*longest_ns = tick->period_ns;
}

void mw_period_json(struct mw_json *json, uint64_t longest_ns)
{
	if (longest_ns)
		mw_json_uint(json, "period_max_ns", longest_ns);
	else
		mw_json_null(json, "period_max_ns");
}

void mw_period_print(FILE *file, const struct memwatch_stream_info *info, uint64_t longest_ns)
{
	char from[32], to[32];

	if (longest_ns > info->period_ns)
		fprintf(file, "The tick period became longer: %s at first, %s at most.\n",
			mw_human_uint(info->period_ns, MW_UNIT_NS, from, sizeof(from)),
			mw_human_uint(longest_ns, MW_UNIT_NS, to, sizeof(to)));
}

void mw_losses_json(struct mw_json *json, const struct memwatch_stream_stats *stream,
		    const struct memwatch_slots_stats *slots)
{
	mw_json_object(json, "losses");
	mw_json_uint(json, "records", stream->delivered);
	/* Reading a file loses nothing. What was lost at recording is in its LOST records. */
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

/* The reason why a metric is unavailable; NULL if it is available. */
static const char *missing_reason(const struct memwatch_stream_info *info,
				  const struct memwatch_metric_info *metric)
{
	const struct memwatch_availability *a = metric_availability(info, metric);

	return a && a->status == MEMWATCH_STATUS_UNAVAILABLE ? a->reason : NULL;
}

/* Prints the titles of all metrics from @first on that are unavailable for @reason. */
static void print_missing(const struct memwatch_stream_info *info, unsigned int first,
			  const char *reason)
{
	const struct memwatch_metric_info *metric;
	const char *separator = "";

	printf("Not measured: ");
	for (unsigned int i = first; (metric = memwatch_metric_at(i)); i++) {
		const char *other = missing_reason(info, metric);

		if (!other || strcmp(other, reason))
			continue;
		printf("%s%s", separator, metric->title);
		separator = ", ";
	}
	mw_escape_line(stdout, ": %s", *reason ? reason : "no reason is known");
}

static bool is_first_with_reason(const struct memwatch_stream_info *info, unsigned int position,
				 const char *reason)
{
	for (unsigned int i = 0; i < position; i++) {
		const char *other = missing_reason(info, memwatch_metric_at(i));

		if (other && !strcmp(other, reason))
			return false;
	}
	return true;
}

void mw_unavailable_print(const struct memwatch_stream_info *info)
{
	const struct memwatch_metric_info *metric;

	for (unsigned int i = 0; (metric = memwatch_metric_at(i)); i++) {
		const char *reason = missing_reason(info, metric);

		if (reason && is_first_with_reason(info, i, reason))
			print_missing(info, i, reason);
	}
	for (unsigned int i = 0; (metric = memwatch_metric_at(i)); i++) {
		const struct memwatch_availability *a = metric_availability(info, metric);

		if (a && a->status == MEMWATCH_STATUS_ESTIMATED)
			mw_escape_line(stdout, "Estimated: %s: %s", metric->title, a->reason);
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
		printf("~ is not exact: scaled up from a shared counter, estimated, old, or "
		       "incomplete.\n");
	if (error)
		printf("! could not always be read; the value is the sum of the readings.\n");
}
