// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The rows of a view as blocks of text with their call stacks, and as JSON.
 */
#include <math.h>
#include <string.h>

#include "cmds/heap/rows.h"
#include "output/human.h"
#include "text/escape.h"

static const char *const metric_keys[MEMWATCH_HEAP_METRICS] = {
	[MEMWATCH_HEAP_LIVE_BYTES] = "live_bytes",
	[MEMWATCH_HEAP_LIVE_OBJECTS] = "live_objects",
	[MEMWATCH_HEAP_ALLOCATED_BYTES] = "allocated_bytes",
	[MEMWATCH_HEAP_ALLOCATED_OBJECTS] = "allocated_objects",
};

static const char *human_value(const struct heap_rows *rows, uint32_t metric, double value,
			       char *buf, size_t size)
{
	enum mw_unit unit = heap_metric_is_bytes(metric) ? MW_UNIT_BYTES : MW_UNIT_COUNT;

	return rows->is_diff ? mw_human_change(value, unit, buf, size)
			     : mw_human_double(value, unit, buf, size);
}

/* "12.0 MiB (11.2 MiB to 12.9 MiB)" */
static void print_estimate(const struct heap_rows *rows, uint32_t metric,
			   const struct memwatch_heap_estimate *e)
{
	char value[32], low[32], high[32];

	printf("%s", human_value(rows, metric, e->value, value, sizeof(value)));
	if (!isnan(e->low) && e->low != e->high)
		printf(" (%s to %s)", human_value(rows, metric, e->low, low, sizeof(low)),
		       human_value(rows, metric, e->high, high, sizeof(high)));
}

static void print_growth(const struct memwatch_heap_row *row)
{
	char value[32], low[32], high[32];

	printf("%s an hour (%s to %s)%s, ",
	       mw_human_change(row->growth.value, MW_UNIT_BYTES, value, sizeof(value)),
	       mw_human_change(row->growth.low, MW_UNIT_BYTES, low, sizeof(low)),
	       mw_human_change(row->growth.high, MW_UNIT_BYTES, high, sizeof(high)),
	       row->leak ? ": leak" : "");
}

static void print_frame(const struct memwatch_heap_frame *frame)
{
	char buf[MW_FRAME_NAME_SIZE], name[512], file[512];

	printf("        %s", mw_escape(mw_frame_name(frame, buf, sizeof(buf)), name, sizeof(name)));
	if (*frame->file && frame->line)
		printf("  %s:%u", mw_escape(frame->file, file, sizeof(file)), frame->line);
	else if (*frame->file || *frame->module)
		printf("  %s",
		       mw_escape(*frame->file ? frame->file : frame->module, file, sizeof(file)));
	printf("%s\n", frame->inlined ? " (inlined)" : "");
}

static const char *const window_keys[MEMWATCH_HEAP_WINDOWS] = {
	[MEMWATCH_HEAP_MINUTE] = "minute",
	[MEMWATCH_HEAP_HOUR] = "hour",
	[MEMWATCH_HEAP_DAY] = "day",
};

static bool is_touched_known(const struct memwatch_heap_row *row)
{
	for (int w = 0; w < MEMWATCH_HEAP_WINDOWS; w++)
		if (!isnan(row->touched[w].value))
			return true;
	return false;
}

/* "touched in the last minute 1.2 MiB (1.1 MiB to 1.4 MiB), hour 2.0 MiB, of 12 watched" */
bool heap_touched_print(const struct memwatch_heap_row *row, const char *title)
{
	const char *before = " in the last";
	char value[32], low[32], high[32];

	if (!is_touched_known(row))
		return false;
	printf("%s", title);
	for (int w = 0; w < MEMWATCH_HEAP_WINDOWS; w++) {
		const struct memwatch_heap_estimate *e = &row->touched[w];

		if (isnan(e->value))
			continue;
		printf("%s %s %s", before, window_keys[w],
		       mw_human_double(e->value, MW_UNIT_BYTES, value, sizeof(value)));
		if (e->low < e->high)
			printf(" (%s to %s)",
			       mw_human_double(e->low, MW_UNIT_BYTES, low, sizeof(low)),
			       mw_human_double(e->high, MW_UNIT_BYTES, high, sizeof(high)));
		before = ",";
	}
	printf("; %llu watched", (unsigned long long)row->watched);
	if (row->watched_parts)
		printf(", of %llu a part", (unsigned long long)row->watched_parts);
	putchar('\n');
	return true;
}

static void touched_json(struct mw_json *json, const struct memwatch_heap_row *row)
{
	if (!is_touched_known(row)) {
		mw_json_null(json, "touched");
		return;
	}
	mw_json_object(json, "touched");
	for (int w = 0; w < MEMWATCH_HEAP_WINDOWS; w++)
		mw_estimate_json(json, window_keys[w], &row->touched[w]);
	mw_json_uint(json, "watched", row->watched);
	mw_json_uint(json, "watched_parts", row->watched_parts);
	mw_json_object_end(json);
}

static void print_site(const struct heap_rows *rows, uint64_t number, uint64_t index,
		       const struct memwatch_heap_row *row)
{
	MEMWATCH_OPTS(memwatch_heap_frame, frame);
	uint32_t other = rows->metric ^ 1;
	char buf[32], objects[64];

	printf("%3llu. ", (unsigned long long)number);
	if (rows->is_growth)
		print_growth(row);
	print_estimate(rows, rows->metric, &row->flat[rows->metric]);
	if (!heap_metric_is_bytes(rows->metric))
		printf(" %s", mw_escape(rows->objects, objects, sizeof(objects)));
	if (rows->metrics & 1U << other)
		printf(", %s %s",
		       human_value(rows, other, row->flat[other].value, buf, sizeof(buf)),
		       heap_metric_is_bytes(other)
			       ? ""
			       : mw_escape(rows->objects, objects, sizeof(objects)));
	if (!isnan(row->age_seconds[0]))
		printf(", age %s",
		       mw_human_double(row->age_seconds[0] * 1e9, MW_UNIT_NS, buf, sizeof(buf)));
	putchar('\n');
	if (!rows->is_diff)
		heap_touched_print(row, "     touched");
	for (uint32_t i = 0; memwatch_heap_view_get_frame(rows->view, index, i, &frame) == 1; i++)
		print_frame(&frame);
	if (row->stacks > 1)
		printf("        ... %u call stacks that have these frames in common\n",
		       row->stacks);
}

static bool is_shown(const struct heap_rows *rows, const struct memwatch_heap_row *row)
{
	if (rows->is_growth)
		return row->leak;
	return row->flat[rows->metric].value != 0;
}

void heap_sites_print(const struct heap_rows *rows)
{
	MEMWATCH_OPTS(memwatch_heap_row, row);
	uint64_t shown = 0;

	for (uint64_t i = 0; memwatch_heap_view_get_row(rows->view, i, &row) == 1; i++) {
		if (!is_shown(rows, &row))
			continue;
		if (rows->top && shown == rows->top)
			break;
		print_site(rows, ++shown, i, &row);
	}
}

static void metrics_json(const struct heap_rows *rows, struct mw_json *json, const char *key,
			 const struct memwatch_heap_estimate *values)
{
	if (key)
		mw_json_object(json, key);
	for (int m = 0; m < MEMWATCH_HEAP_METRICS; m++) {
		if (rows->metrics & 1U << m)
			mw_estimate_json(json, metric_keys[m], &values[m]);
		else
			mw_json_null(json, metric_keys[m]);
	}
	if (key)
		mw_json_object_end(json);
}

static void times_json(struct mw_json *json, const char *key, const double *seconds)
{
	mw_json_row(json, key);
	mw_json_double(json, "median", seconds[0]);
	mw_json_double(json, "p90", seconds[1]);
	mw_json_object_end(json);
}

static void site_json(const struct heap_rows *rows, struct mw_json *json, uint64_t index,
		      const struct memwatch_heap_row *row)
{
	MEMWATCH_OPTS(memwatch_heap_frame, frame);

	mw_json_object(json, NULL);
	mw_json_array(json, "stack");
	for (uint32_t i = 0; memwatch_heap_view_get_frame(rows->view, index, i, &frame) == 1; i++) {
		mw_json_row(json, NULL);
		mw_frame_json(json, &frame);
		mw_json_object_end(json);
	}
	mw_json_array_end(json);
	metrics_json(rows, json, NULL, row->flat);
	mw_json_uint(json, "samples", row->samples);
	times_json(json, "age_seconds", row->age_seconds);
	times_json(json, "lifetime_seconds", row->lifetime_seconds);
	touched_json(json, row);
	if (rows->is_growth) {
		mw_estimate_json(json, "growth_bytes_per_hour", &row->growth);
		mw_json_bool(json, "leak", row->leak);
		mw_json_uint(json, "stacks", row->stacks);
	}
	mw_json_object_end(json);
}

const char *heap_site_text(const struct memwatch_heap_view *view, uint64_t index, char *buf,
			   size_t size)
{
	struct memwatch_heap_frame frames[MW_STACK_TEXT_FRAMES];
	char text[2048];
	uint32_t nr = 0;

	for (; nr < MW_STACK_TEXT_FRAMES; nr++) {
		frames[nr].sz = sizeof(frames[nr]);
		if (memwatch_heap_view_get_frame(view, index, nr, &frames[nr]) != 1)
			break;
	}
	return mw_escape(mw_stack_text(frames, nr, text, sizeof(text)), buf, size);
}

void heap_sites_json(const struct heap_rows *rows, struct mw_json *json, const char *key)
{
	MEMWATCH_OPTS(memwatch_heap_row, row);

	mw_json_array(json, key);
	for (uint64_t i = 0;
	     (!rows->top || i < rows->top) && memwatch_heap_view_get_row(rows->view, i, &row) == 1;
	     i++)
		site_json(rows, json, i, &row);
	mw_json_array_end(json);
}

void heap_rows_json(const struct heap_rows *rows, struct mw_json *json, const char *key)
{
	MEMWATCH_OPTS(memwatch_heap_row, row);

	mw_json_array(json, key);
	for (uint64_t i = 0;
	     (!rows->top || i < rows->top) && memwatch_heap_view_get_row(rows->view, i, &row) == 1;
	     i++) {
		mw_json_object(json, NULL);
		mw_frame_json(json, row.frame);
		if (rows->by == MEMWATCH_HEAP_BY_TREE)
			mw_json_uint(json, "depth", row.depth);
		metrics_json(rows, json, "flat", row.flat);
		metrics_json(rows, json, "cum", row.cum);
		mw_json_object_end(json);
	}
	mw_json_array_end(json);
}
