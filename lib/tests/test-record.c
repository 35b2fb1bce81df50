// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The tables that describe record types and metrics agree with linux/memwatch.h.
 */
#include <errno.h>
#include <stdlib.h>

#include <memwatch/memwatch.h>

#include "../../selftests/tap.h"
#include "base/record.h"

static const unsigned int types[] = {
	MEMWATCH_RECORD_SAMPLE,	       MEMWATCH_RECORD_TICK,	  MEMWATCH_RECORD_RMID_ALLOC,
	MEMWATCH_RECORD_RMID_EXISTING, MEMWATCH_RECORD_RMID_EXEC, MEMWATCH_RECORD_RMID_FREE,
	MEMWATCH_RECORD_DUMP_BEGIN,    MEMWATCH_RECORD_DUMP_END,  MEMWATCH_RECORD_CPU_STATE,
	MEMWATCH_RECORD_RDT,	       MEMWATCH_RECORD_NOTICE,	  MEMWATCH_RECORD_LOST,
	MEMWATCH_RECORD_GROWTH,
};

#define NR_TYPES (sizeof(types) / sizeof(*types))

/* The number of fields that have no key although they should have one, or the reverse. */
static unsigned int wrong_keys(unsigned int type)
{
	struct memwatch_field_info field = { .sz = sizeof(field) };
	unsigned int wrong = 0;

	for (unsigned int i = 0; memwatch_record_get_field(type, i, &field) == 1; i++) {
		bool hidden = field.kind == MEMWATCH_FIELD_STATUS ||
			      field.kind == MEMWATCH_FIELD_RESERVED;

		wrong += hidden != !field.key;
		wrong += (field.kind == MEMWATCH_FIELD_NAME) != !!field.names;
	}
	return wrong;
}

/* Fields that refer to a field that does not precede them. */
static unsigned int wrong_predictions(const struct mw_record_type *type)
{
	unsigned int wrong = 0;

	for (unsigned int i = 0; type->predicted && i < type->nr_fields; i++) {
		const struct mw_field *field = &type->fields[i];

		switch (field->predictor) {
		case MW_PREDICT_SCALE:
			wrong += field->b >= i;
			wrong += field->a >= i;
			break;
		case MW_PREDICT_KEY:
		case MW_PREDICT_REST:
			wrong += field->a >= i;
			break;
		default:
			break;
		}
	}
	return wrong;
}

static void test_fields(void)
{
	struct memwatch_field_info field = { .sz = sizeof(field) };

	for (size_t t = 0; t < NR_TYPES; t++) {
		const char *name = memwatch_record_name(types[t]);
		size_t end = sizeof(struct memwatch_record_header), gaps = 0;

		for (unsigned int i = 0; memwatch_record_get_field(types[t], i, &field) == 1; i++) {
			gaps += field.offset != end;
			end = field.offset + field.width;
		}
		tap_eq(gaps, 0, "the fields of a %s record follow each other without a gap", name);
		tap_eq(end, mw_record_size_min(types[t]), "the fields of a %s record fill it",
		       name);
		tap_eq(wrong_keys(types[t]), 0, "every field of a %s record to be shown has a key",
		       name);
		tap_eq(wrong_predictions(mw_record_type(types[t])), 0,
		       "a field of a %s record is predicted from fields before it", name);
	}
	tap_eq(memwatch_record_get_field(0, 0, &field), 0, "record type 0 has no fields");
	tap_eq(memwatch_record_get_field(4711, 0, &field), 0,
	       "an unknown record type has no fields");
	field.sz = 0;
	tap_eq(memwatch_record_get_field(MEMWATCH_RECORD_TICK, 0, &field), -EINVAL,
	       "a description without a size is refused");
}

static void test_measured_fields(void)
{
	struct memwatch_field_info field = { .sz = sizeof(field) };
	const struct memwatch_record_sample sample = { 0 };
	const char *base = (const char *)&sample;
	unsigned int counters = 0, wrong = 0;

	for (unsigned int i = 0; memwatch_record_get_field(MEMWATCH_RECORD_SAMPLE, i, &field) == 1;
	     i++) {
		if (field.kind != MEMWATCH_FIELD_MEASURED)
			continue;
		wrong += strcmp(field.key, memwatch_counter_name(counters)) != 0;
		wrong += base + field.offset !=
			 (const char *)&MEMWATCH_SAMPLE_COUNTER(&sample, counters);
		wrong += base + field.status_offset !=
			 (const char *)&MEMWATCH_SAMPLE_STATUS(&sample, counters);
		counters++;
	}
	tap_eq(counters, MEMWATCH_COUNTER_MAX, "a sample record has a field for each counter");
	tap_eq(wrong, 0, "a counter in a sample record has the key, value and status of its own");
}

static void test_metrics(const struct memwatch_summary_row *row)
{
	const struct memwatch_metric_info *metric, *other;
	unsigned int same_key = 0, same_event = 0, misplaced = 0, nameless = 0;
	const struct memwatch_value *value;

	for (unsigned int i = 0; (metric = memwatch_metric_at(i)); i++) {
		nameless += !metric->key || !metric->title || !metric->heading || !metric->help;
		/* Each metric but a ratio has a value of its own in the row. */
		value = memwatch_summary_value(row, metric);
		misplaced += !value != (metric->source == MEMWATCH_METRIC_RATIO);
		for (unsigned int j = 0; j < i; j++) {
			other = memwatch_metric_at(j);
			same_key += !strcmp(metric->key, other->key);
			misplaced += value && value == memwatch_summary_value(row, other);
			same_event += metric->source == MEMWATCH_METRIC_COUNTER &&
				      other->source == MEMWATCH_METRIC_COUNTER &&
				      metric->event_type == other->event_type &&
				      metric->event_config == other->event_config;
		}
	}
	tap_eq(nameless, 0, "every metric has a key, a title, a heading and an explanation");
	tap_eq(same_key, 0, "no two metrics have the same key");
	tap_eq(same_event, 0, "no two counters have the same perf event");
	tap_eq(misplaced, 0, "every metric but a ratio has its place in a row of a summary");
}

static void test_sources(void)
{
	unsigned int missing = 0;

	for (unsigned int i = 0; i < MEMWATCH_COUNTER_MAX; i++)
		missing += !memwatch_metric_find(MEMWATCH_METRIC_COUNTER, i);
	tap_eq(missing, 0, "every counter is described");
	for (unsigned int i = 0; i < MEMWATCH_RDT_MAX; i++)
		missing += !memwatch_metric_find(MEMWATCH_METRIC_RDT, i);
	tap_eq(missing, 0, "every RDT event is described");
	tap_ok(!memwatch_counter_name(MEMWATCH_COUNTER_MAX),
	       "a counter that does not exist has no name");
	tap_ok(!memwatch_rdt_event_name(MEMWATCH_RDT_MAX),
	       "an RDT event that does not exist has no name");
}

int main(void)
{
	const struct memwatch_summary_row *total;
	struct memwatch_summary *summary;
	struct memwatch_ctx *ctx;

	tap_start();
	if (memwatch_ctx_new(NULL, &ctx) || memwatch_summary_new(ctx, NULL, &summary))
		return EXIT_FAILURE;
	test_fields();
	test_measured_fields();
	memwatch_summary_get_total(summary, &total);
	test_metrics(total);
	test_sources();
	memwatch_summary_unref(summary);
	memwatch_ctx_unref(ctx);
	return tap_done();
}
