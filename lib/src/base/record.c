// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The table of record types. A record that is longer than its type comes from a newer
 * schema and is valid; the fields that are not in the table are ignored. One that is shorter
 * comes from an older schema; recordings deliver it with zeros at its end.
 *
 * How a field is predicted decides how well recordings compress, not whether they can be
 * read: each block says how its columns are predicted. Fields are named by their number
 * there, so the tables count them.
 */
#include "base/record.h"

#include <string.h>

#include <memwatch/metric.h>

#include "base/context.h"

#define PREDICT(how, field_a, field_b) .predictor = MW_PREDICT_##how, .a = (field_a), .b = (field_b)

#define MEMBER(type, member)                                                                       \
	.offset = offsetof(struct memwatch_record_##type, member),                                 \
	.width = sizeof(((struct memwatch_record_##type *)0)->member)

#define UINT(type, member, ...)                                                                    \
	{                                                                                          \
		.kind = MEMWATCH_FIELD_UINT, MEMBER(type, member), .key = #member,                 \
		PREDICT(__VA_ARGS__)                                                               \
	}

#define TEXT(type, member)                                                                         \
	{                                                                                          \
		.kind = MEMWATCH_FIELD_TEXT, MEMBER(type, member), .key = #member,                 \
		PREDICT(RAW, 0, 0)                                                                 \
	}

#define NAME(type, member, shown_as, list, ...)                                                    \
	{                                                                                          \
		.kind = MEMWATCH_FIELD_NAME, MEMBER(type, member), .key = (shown_as),              \
		.names = &(list), PREDICT(__VA_ARGS__)                                             \
	}

#define MEASURED(type, array, from, number, ...)                                                   \
	{                                                                                          \
		.kind = MEMWATCH_FIELD_MEASURED, MEMBER(type, array[number]),                      \
		.status_offset = offsetof(struct memwatch_record_##type, status[number]),          \
		.source = MEMWATCH_METRIC_##from, .index = (number), PREDICT(__VA_ARGS__)          \
	}

#define COUNTER(name, ...) MEASURED(sample, counter, COUNTER, MEMWATCH_COUNTER_##name, __VA_ARGS__)
#define RDT(name, ...)	   MEASURED(rdt, value, RDT, MEMWATCH_RDT_##name, __VA_ARGS__)

#define OTHER(field_kind, type, member, ...)                                                       \
	{                                                                                          \
		.kind = MEMWATCH_FIELD_##field_kind, MEMBER(type, member), PREDICT(__VA_ARGS__)    \
	}

static const struct mw_field sample_fields[] = {
	/* 0 */ UINT(sample, rmid, CPU, 0, 0),
	/* 1 */ UINT(sample, generation, KEY, 0, 0),
	/* 2 */ UINT(sample, begin_ns, BEGIN, 0, 0),
	/* 3 */ UINT(sample, run_ns, REST, 2, 0),
	/* 4 */ COUNTER(CYCLES, SCALE, 3, 0),
	/* 5 */ COUNTER(INSTRUCTIONS, SCALE, 4, 0),
	/* 6 */ COUNTER(LLC_REFERENCES, SCALE, 5, 0),
	/* 7 */ COUNTER(LLC_MISSES, SCALE, 6, 0),
	/* 8 */ OTHER(STATUS, sample, status, KEY, 0, 0),
	/* 9 */ UINT(sample, running_ppm, KEY, 0, 0),
};

static const struct mw_field tick_fields[] = {
	UINT(tick, expected_ns, CPU_LINEAR, 0, 0),
	UINT(tick, period_ns, LAST, 0, 0),
	UINT(tick, overruns, VALUE, 0, 0),
	UINT(tick, produced, CPU, 0, 0),
	UINT(tick, dropped, CPU, 0, 0),
};

static const struct mw_field rmid_fields[] = {
	UINT(rmid, rmid, LAST, 0, 0),
	UINT(rmid, generation, KEY, 0, 0),
	UINT(rmid, tgid, LAST, 0, 0),
	UINT(rmid, parent_tgid, LAST, 0, 0),
	UINT(rmid, start_time_ns, LAST, 0, 0),
	UINT(rmid, alloc_time_ns, LAST, 0, 0),
	UINT(rmid, cgroup_id, LAST, 0, 0),
	UINT(rmid, uid, LAST, 0, 0),
	NAME(rmid, reason, "reason", mw_reason_names, LAST, 0, 0),
	TEXT(rmid, comm),
	UINT(rmid, unmeasured_ns, LAST, 0, 0),
};

static const struct mw_field dump_fields[] = {
	UINT(dump, sequence, LAST, 0, 0),
	UINT(dump, count, LAST, 0, 0),
	UINT(dump, unmeasured, LAST, 0, 0),
};

static const struct mw_field cpu_fields[] = {
	NAME(cpu, state, "state", mw_cpu_state_names, VALUE, 0, 0),
	OTHER(RESERVED, cpu, reserved, VALUE, 0, 0),
	UINT(cpu, since_ns, BEGIN, 0, 0),
};

/* The column of the statuses holds the reserved byte behind them too. */
static const struct mw_field rdt_fields[] = {
	/* 0 */ UINT(rdt, rmid, LAST, 0, 0),
	/* 1 */ UINT(rdt, generation, KEY, 0, 0),
	/* 2 */ UINT(rdt, domain, LAST, 0, 0),
	/* 3 */
	{ .kind = MEMWATCH_FIELD_STATUS,
	  .offset = offsetof(struct memwatch_record_rdt, status),
	  .width = 4,
	  PREDICT(LAST, 0, 0) },
	/* 4 */ RDT(OCCUPANCY, KEY, 0, 0),
	/* 5 */ RDT(MBM_TOTAL, KEY, 0, 0),
	/* 6 */ RDT(MBM_LOCAL, KEY, 0, 0),
	/* 7 */ UINT(rdt, age_ns, LAST, 0, 0),
};

static const struct mw_field notice_fields[] = {
	NAME(notice, kind, "reason", mw_notice_names, RAW, 0, 0),
	OTHER(RESERVED, notice, reserved, RAW, 0, 0),
	UINT(notice, count, RAW, 0, 0),
	UINT(notice, value, RAW, 0, 0),
};

static const struct mw_field lost_fields[] = {
	UINT(lost, end_ns, TIME, 0, 0),
	UINT(lost, count, LAST, 0, 0),
};

/*
 * A report shows the last of these records of each process in columns of its own. Fields that
 * have such a column have its key, which begins with "growth_".
 */
static const struct mw_field growth_fields[] = {
	UINT(growth, start_time_ns, RAW, 0, 0),
	UINT(growth, tgid, RAW, 0, 0),
	NAME(growth, what, "event", mw_growth_event_names, RAW, 0, 0),
	NAME(growth, verdict, "growth_verdict", mw_growth_verdict_names, RAW, 0, 0),
	UINT(growth, confidence, RAW, 0, 0),
	NAME(growth, reason, "reason", mw_growth_reason_names, RAW, 0, 0),
	NAME(growth, limit, "limit", mw_limit_names, RAW, 0, 0),
	{ .kind = MEMWATCH_FIELD_OPTIONAL, MEMBER(growth, eta_s), .key = "growth_eta_seconds" },
	UINT(growth, signal_bytes, RAW, 0, 0),
	{ .kind = MEMWATCH_FIELD_UINT, MEMBER(growth, slope), .key = "growth_bytes_per_second" },
	TEXT(growth, comm),
};

#define FIELDS(list)	   .fields = (list), .nr_fields = sizeof(list) / sizeof(*(list))
#define SIZES(type, first) .size = sizeof(struct memwatch_record_##type), .size_first = (first)
#define TEXT_END(type)                                                                             \
	.text_end = offsetof(struct memwatch_record_##type, comm) +                                \
		    sizeof(((struct memwatch_record_##type *)0)->comm) - 1

/*
 * The numbers are the sizes of schema 1. They are frozen: recordings have such records for
 * ever. A type that is added later has the size of its first schema here.
 */
const struct mw_record_type mw_record_types[MW_RECORD_TYPES] = {
	[MEMWATCH_RECORD_SAMPLE] = { "sample", SIZES(sample, 80), FIELDS(sample_fields),
				     .predicted = true },
	[MEMWATCH_RECORD_TICK] = { "tick", SIZES(tick, 48), FIELDS(tick_fields),
				   .predicted = true },
	[MEMWATCH_RECORD_RMID_ALLOC] = { "rmid_alloc", SIZES(rmid, 80), FIELDS(rmid_fields),
					 TEXT_END(rmid), .predicted = true },
	[MEMWATCH_RECORD_RMID_EXISTING] = { "rmid_existing", SIZES(rmid, 80), FIELDS(rmid_fields),
					    TEXT_END(rmid), .predicted = true },
	[MEMWATCH_RECORD_RMID_EXEC] = { "rmid_exec", SIZES(rmid, 80), FIELDS(rmid_fields),
					TEXT_END(rmid), .predicted = true },
	[MEMWATCH_RECORD_RMID_FREE] = { "rmid_free", SIZES(rmid, 80), FIELDS(rmid_fields),
					TEXT_END(rmid), .predicted = true },
	[MEMWATCH_RECORD_DUMP_BEGIN] = { "dump_begin", SIZES(dump, 32), FIELDS(dump_fields),
					 .predicted = true },
	[MEMWATCH_RECORD_DUMP_END] = { "dump_end", SIZES(dump, 32), FIELDS(dump_fields),
				       .predicted = true },
	[MEMWATCH_RECORD_CPU_STATE] = { "cpu_state", SIZES(cpu, 32), FIELDS(cpu_fields),
					.predicted = true },
	[MEMWATCH_RECORD_RDT] = { "rdt", SIZES(rdt, 64), FIELDS(rdt_fields), .predicted = true },
	[MEMWATCH_RECORD_NOTICE] = { "notice", SIZES(notice, 40), FIELDS(notice_fields) },
	[MEMWATCH_RECORD_LOST] = { "lost", SIZES(lost, 32), FIELDS(lost_fields),
				   .predicted = true },
	[MEMWATCH_RECORD_GROWTH] = { "growth", SIZES(growth, 72), FIELDS(growth_fields),
				     TEXT_END(growth) },
};

bool mw_record_readable(unsigned int type, unsigned int size)
{
	const struct mw_record_type *known = mw_record_type(type);

	return size % 8 == 0 &&
	       size >= (known ? known->size_first : sizeof(struct memwatch_record_header));
}

const char *memwatch_record_name(unsigned int type)
{
	const struct mw_record_type *known = mw_record_type(type);

	return known ? known->name : "unknown";
}

int memwatch_record_get_field(unsigned int type, unsigned int position,
			      struct memwatch_field_info *ret)
{
	const struct mw_record_type *known = mw_record_type(type);
	const struct mw_field *field;
	struct memwatch_field_info info = { .sz = sizeof(info) };
	int err;

	if (!known || position >= known->nr_fields)
		return 0;
	field = &known->fields[position];
	info.kind = field->kind;
	info.offset = field->offset;
	info.width = field->width;
	info.key = field->key;
	if (field->kind == MEMWATCH_FIELD_MEASURED) {
		info.key = memwatch_metric_find(field->source, field->index)->key;
		info.status_offset = field->status_offset;
	}
	if (field->names) {
		info.names = field->names->name;
		info.nr_names = field->names->count;
	}
	err = mw_opts_export(ret, &info, sizeof(info));
	return err ? err : 1;
}
