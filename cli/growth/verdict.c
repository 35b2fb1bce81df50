// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Writes the verdicts of the library.
 */
#include <inttypes.h>
#include <stdio.h>

#include "growth/verdict.h"
#include "output/human.h"

enum {
	PID = MW_VERDICT_PID,
	COMM = MW_VERDICT_COMM,
	VERDICT,
	CONFIDENCE,
	SIZE,
	SLOPE,
	R2,
	NOTICE,
	ALERT,
	ETA
};

const struct mw_column mw_verdict_columns[MW_VERDICT_COLUMNS] = {
	[PID] = { "pid", "PID", MW_KIND_UINT, 0, 0 },
	[COMM] = { "comm", "COMMAND", MW_KIND_TEXT, 0, 0 },
	[VERDICT] = { "verdict", "VERDICT", MW_KIND_TEXT, 0, 0 },
	[CONFIDENCE] = { "confidence", "CONFIDENCE", MW_KIND_UINT, 0, 0 },
	[SIZE] = { "signal_bytes", "MEMORY", MW_KIND_UINT, MW_UNIT_BYTES, 0 },
	[SLOPE] = { "slope_bytes_per_second", "GROWTH", MW_KIND_UINT, MW_UNIT_RATE, 0 },
	[R2] = { "r2_permille", "R2", MW_KIND_UINT, 0, MW_COLUMN_HIDDEN },
	[NOTICE] = { "first_notice_s", "NOTICE AT (S)", MW_KIND_DOUBLE, 0, 0 },
	[ALERT] = { "first_alert_s", "ALERT AT (S)", MW_KIND_DOUBLE, 0, 0 },
	[ETA] = { "eta_oom_seconds", "LIMIT IN (S)", MW_KIND_UINT, 0, 0 },
};

/* 0 for a time before the origin: a state file contains older times. */
static uint64_t time_since(uint64_t time_ns, uint64_t origin_ns)
{
	return time_ns > origin_ns ? time_ns - origin_ns : 0;
}

/* A time in seconds since @origin_ns, or an empty cell for MEMWATCH_GROWTH_NONE. */
static struct mw_cell time_cell(uint64_t time_ns, uint64_t origin_ns)
{
	if (time_ns == MEMWATCH_GROWTH_NONE)
		return (struct mw_cell){ .missing = true };
	return (struct mw_cell){ .real = (double)time_since(time_ns, origin_ns) / 1e9 };
}

void mw_verdict_fill_cells(const struct memwatch_growth_row *row, uint64_t origin_ns,
			   struct mw_cell *cells)
{
	bool alerted = row->first_alert_ns != MEMWATCH_GROWTH_NONE;

	cells[PID] = (struct mw_cell){ .number = row->tgid };
	cells[COMM] = (struct mw_cell){ .text = row->comm };
	cells[VERDICT] = (struct mw_cell){ .text = memwatch_growth_verdict_name(row->verdict) };
	cells[CONFIDENCE] = (struct mw_cell){ .number = row->confidence };
	cells[SIZE] = (struct mw_cell){ .number = row->signal_bytes };
	cells[SLOPE] = (struct mw_cell){
		.number = row->slope,
		.missing = !mw_verdict_has_slope(row->verdict, row->slope),
	};
	cells[R2] = (struct mw_cell){ .number = row->r2_permille };
	cells[NOTICE] = time_cell(row->first_notice_ns, origin_ns);
	cells[ALERT] = time_cell(row->first_alert_ns, origin_ns);
	cells[ETA] = (struct mw_cell){ .missing = true };
	if (alerted && row->alert_eta_ns != MEMWATCH_GROWTH_NONE)
		cells[ETA] = (struct mw_cell){ .number = row->alert_eta_ns / 1000000000 };
}

static void write_seconds_or_null(struct mw_json *json, const char *key, uint64_t ns)
{
	if (ns == MEMWATCH_GROWTH_NONE)
		mw_json_null(json, key);
	else
		mw_json_double(json, key, (double)ns / 1e9);
}

static void write_score(struct mw_json *json, const char *key, unsigned int value)
{
	mw_json_object(json, key);
	mw_json_uint(json, "score", value);
	mw_json_object_end(json);
}

static void write_uint_or_null(struct mw_json *json, const char *key, bool known, uint64_t value)
{
	if (known)
		mw_json_uint(json, key, value);
	else
		mw_json_null(json, key);
}

static void write_bytes_or_null(struct mw_json *json, const char *key, uint64_t bytes)
{
	write_uint_or_null(json, key, bytes != MEMWATCH_GROWTH_NONE, bytes);
}

static void write_time_or_null(struct mw_json *json, const char *key, uint64_t time_ns,
			       uint64_t origin_ns)
{
	if (time_ns != MEMWATCH_GROWTH_NONE)
		time_ns = time_since(time_ns, origin_ns);
	write_seconds_or_null(json, key, time_ns);
}

void mw_verdict_span_json(const struct memwatch_growth_span *span, uint64_t origin_ns,
			  struct mw_json *json)
{
	mw_json_row(json, NULL);
	write_time_or_null(json, "start_s", span->start_ns, origin_ns);
	write_time_or_null(json, "end_s", span->end_ns, origin_ns);
	if (span->level == MEMWATCH_GROWTH_ALERT) {
		mw_json_string(json, "reason", memwatch_growth_reason_name(span->reason));
		write_seconds_or_null(json, "eta_oom_seconds", span->eta_ns);
		write_seconds_or_null(json, "eta_low_seconds", span->eta_low_ns);
		write_seconds_or_null(json, "eta_high_seconds", span->eta_high_ns);
	}
	mw_json_object_end(json);
}

/* All are null if it is not known what the process touches. */
static void write_touch_members(const struct memwatch_growth_row *row, struct mw_json *json)
{
	bool known = row->gained_bytes;

	write_bytes_or_null(json, "gained_bytes", known ? row->gained_bytes : MEMWATCH_GROWTH_NONE);
	write_bytes_or_null(json, "cold_bytes", known ? row->cold_bytes : MEMWATCH_GROWTH_NONE);
	write_bytes_or_null(json, "cold_low_bytes",
			    known ? row->cold_low_bytes : MEMWATCH_GROWTH_NONE);
	write_bytes_or_null(json, "cold_high_bytes",
			    known ? row->cold_high_bytes : MEMWATCH_GROWTH_NONE);
	write_seconds_or_null(json, "untouched_seconds",
			      known ? row->untouched_ns : MEMWATCH_GROWTH_NONE);
}

void mw_verdict_json_members(const struct memwatch_growth_row *row, uint64_t origin_ns,
			     struct mw_json *json)
{
	mw_json_uint(json, "pid", row->tgid);
	mw_json_string(json, "comm", row->comm);
	mw_verdict_json_values(row, origin_ns, json);
}

void mw_verdict_json_values(const struct memwatch_growth_row *row, uint64_t origin_ns,
			    struct mw_json *json)
{
	bool alerted = row->first_alert_ns != MEMWATCH_GROWTH_NONE;

	mw_json_string(json, "verdict", memwatch_growth_verdict_name(row->verdict));
	mw_json_uint(json, "confidence", row->confidence);
	write_time_or_null(json, "first_notice_s", row->first_notice_ns, origin_ns);
	write_time_or_null(json, "first_alert_s", row->first_alert_ns, origin_ns);
	write_uint_or_null(json, "slope_bytes_per_second",
			   mw_verdict_has_slope(row->verdict, row->slope), row->slope);
	mw_json_uint(json, "r2_permille", row->r2_permille);
	write_seconds_or_null(json, "eta_oom_seconds",
			      alerted ? row->alert_eta_ns : MEMWATCH_GROWTH_NONE);
	mw_json_object(json, "detectors");
	write_score(json, "regression", row->trend_score);
	write_score(json, "ratio", row->composition_score);
	write_score(json, "threshold", row->threshold_score);
	mw_json_object_end(json);
	mw_json_string(json, "reason", memwatch_growth_reason_name(row->reason));
	mw_json_bool(json, "reserved_growth", row->flags & MEMWATCH_GROWTH_F_RESERVED);
	mw_json_bool(json, "reached_limit_before", row->flags & MEMWATCH_GROWTH_F_KNOWN);
	write_uint_or_null(json, "alert_slope_bytes_per_second", alerted && row->alert_slope,
			   row->alert_slope);
	write_seconds_or_null(json, "eta_now_seconds", row->eta_ns);
	write_seconds_or_null(json, "eta_low_seconds", row->eta_low_ns);
	write_seconds_or_null(json, "eta_high_seconds", row->eta_high_ns);
	mw_json_uint(json, "growth_bytes", row->growth_bytes);
	write_seconds_or_null(json, "since_s", time_since(row->since_ns, origin_ns));
	mw_json_uint(json, "signal_bytes", row->signal_bytes);
	mw_json_uint(json, "file_bytes", row->file_bytes);
	mw_json_uint(json, "vsz_bytes", row->vsz_bytes);
	write_bytes_or_null(json, "room_bytes", row->room_bytes);
	write_touch_members(row, json);
}

const char *mw_verdict_estimate(uint64_t ns, char *buf, size_t size)
{
	double s = (double)ns / 1e9;

	if (ns && s < 0.1)
		snprintf(buf, size, "%.0f ms", s * 1e3);
	else if (ns && s < 9.95)
		snprintf(buf, size, "%.1f s", s);
	else if (s < 120)
		snprintf(buf, size, "%.0f s", s);
	else if (s < 7200)
		snprintf(buf, size, "%.0f min", s / 60);
	else if (s < 172800)
		snprintf(buf, size, "%.1f h", s / 3600);
	else
		snprintf(buf, size, "%.1f days", s / 86400);
	return buf;
}

const char *mw_verdict_pace(uint64_t slope, char *buf, size_t size)
{
	char rate[32];

	buf[0] = '\0';
	if (slope)
		snprintf(buf, size, ", at %s",
			 mw_human_uint(slope, MW_UNIT_RATE, rate, sizeof(rate)));
	return buf;
}

/* What of the growth is not used any more, as a part of a sentence; empty if it is not known. */
static const char *format_cold(const struct memwatch_growth_row *row, char *buf, size_t size)
{
	char cold[32], span[32];

	buf[0] = '\0';
	if (!row->gained_bytes)
		return buf;
	mw_human_uint(row->cold_bytes, MW_UNIT_BYTES, cold, sizeof(cold));
	mw_verdict_estimate(row->untouched_ns, span, sizeof(span));
	snprintf(buf, size, ", %s of it untouched for %s", cold, span);
	return buf;
}

const char *mw_verdict_sentence(const struct memwatch_growth_row *row, const char *limit, char *buf,
				size_t size)
{
	char grown[32], span[32], slope[32], eta[32], now[32], cold[96];
	int len;

	mw_human_uint(row->growth_bytes, MW_UNIT_BYTES, grown, sizeof(grown));
	mw_human_uint(row->signal_bytes, MW_UNIT_BYTES, now, sizeof(now));
	mw_verdict_estimate(row->last_ns - row->since_ns, span, sizeof(span));
	len = snprintf(buf, size, "process %s (%u): memory grew by %s in the last %s%s%s, to %s%s",
		       row->comm, row->tgid, grown, span, format_cold(row, cold, sizeof(cold)),
		       mw_verdict_pace(row->slope, slope, sizeof(slope)), now,
		       row->reason == MEMWATCH_GROWTH_REASON_HEIGHT
			       ? ", more than in the week before"
			       : "");
	if (len < 0 || (size_t)len >= size || row->eta_ns == MEMWATCH_GROWTH_NONE)
		return buf;
	snprintf(buf + len, size - (size_t)len, "; at this rate it reaches %s in %s%s",
		 limit ? limit : "its limit", mw_verdict_estimate(row->eta_ns, eta, sizeof(eta)),
		 row->flags & MEMWATCH_GROWTH_F_KNOWN && row->reason == MEMWATCH_GROWTH_REASON_LIMIT
			 ? "; an earlier process of this name came near it"
			 : "");
	return buf;
}
