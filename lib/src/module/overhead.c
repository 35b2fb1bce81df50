// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Parses /proc/memwatch/overhead: a line of name=value pairs for each CPU, and a histogram
 * of the delay of ticks.
 */
#include <memwatch/proc.h>

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/context.h"
#include "base/text.h"
#include "module/proc-file.h"

/**
 * struct overhead - the result with its lists
 * @seen: what the caller sees; the first member, so that its address is that of the whole
 * @cpus: one for each CPU
 * @jitter: histogram of the delay of ticks
 */
struct overhead {
	struct memwatch_proc_overhead seen;
	struct memwatch_proc_overhead_cpu *cpus;
	struct memwatch_proc_jitter *jitter;
};

/* The result, and the capacity of its arrays. */
struct overhead_parser {
	struct overhead *overhead;
	size_t max_cpus;
	size_t max_jitter;
};

#define FIELD(name)                                                                                \
	{                                                                                          \
#name, offsetof(struct memwatch_proc_overhead_cpu, name)                           \
	}

static const struct field {
	const char *name;
	size_t offset;
} fields[] = {
	FIELD(ticks),		FIELD(missed),	      FIELD(jitter_max_ns),  FIELD(switches),
	FIELD(pqr_writes),	FIELD(switch_cycles), FIELD(switch_sampled), FIELD(tick_cycles),
	FIELD(rdt_ops),		FIELD(rdt_ops_max),   FIELD(rdt_reads),	     FIELD(rdt_waits),
	FIELD(rdt_ns),		FIELD(rdt_sync_ns),   FIELD(rdt_busy),	     FIELD(rdt_age_max_ns),
	FIELD(irqs_off_max_ns), FIELD(tick_ns),	      FIELD(tick_ppm),
};

static bool parse_pair(struct mw_text value, struct memwatch_proc_overhead_cpu *cpu)
{
	struct mw_text name;
	uint64_t number;

	if (!mw_text_take(&value, '=', &name) || !value.at ||
	    !mw_text_number(value, UINT64_MAX, &number))
		return false;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (mw_text_is(name, fields[i].name))
			*(uint64_t *)((char *)cpu + fields[i].offset) = number;
	}
	return true;
}

/* "N: ticks=1 missed=0 ..." */
static int parse_cpu(struct overhead_parser *parser, struct mw_text line)
{
	struct overhead *overhead = parser->overhead;
	struct memwatch_proc_overhead_cpu *cpu;
	struct mw_text piece;
	uint64_t number;

	if (mw_array_reserve(overhead->cpus, parser->max_cpus, overhead->seen.nr_cpus + 1))
		return -ENOMEM;
	cpu = &overhead->cpus[overhead->seen.nr_cpus];
	*cpu = (struct memwatch_proc_overhead_cpu){};

	if (!mw_text_take(&line, ':', &piece) || !mw_text_number(piece, UINT32_MAX, &number))
		return -EBADMSG;
	cpu->cpu = (uint32_t)number;
	while (mw_text_take(&line, ' ', &piece)) {
		if (piece.len && !parse_pair(piece, cpu))
			return -EBADMSG;
	}
	overhead->seen.nr_cpus++;
	return 0;
}

/* "LOW-HIGH: COUNT" */
static int parse_jitter(struct overhead_parser *parser, struct mw_text line)
{
	struct overhead *overhead = parser->overhead;
	struct memwatch_proc_jitter *jitter;
	struct mw_text low, high;

	if (mw_array_reserve(overhead->jitter, parser->max_jitter, overhead->seen.nr_jitter + 1))
		return -ENOMEM;
	jitter = &overhead->jitter[overhead->seen.nr_jitter];
	if (!mw_text_take(&line, '-', &low) || !mw_text_take(&line, ':', &high) || !line.at)
		return -EBADMSG;
	mw_text_skip(&line, " ");
	if (!mw_text_number(low, UINT64_MAX, (uint64_t *)&jitter->low_ns) ||
	    !mw_text_number(high, UINT64_MAX, (uint64_t *)&jitter->high_ns) ||
	    !mw_text_number(line, UINT64_MAX, (uint64_t *)&jitter->count))
		return -EBADMSG;
	overhead->seen.nr_jitter++;
	return 0;
}

static int parse_overhead_line(struct overhead_parser *parser, struct mw_text line)
{
	struct mw_text name;
	uint64_t number;

	if (mw_text_skip(&line, "cpu "))
		return parse_cpu(parser, line);
	if (mw_text_skip(&line, "jitter_ns "))
		return parse_jitter(parser, line);
	if (!mw_text_take(&line, ':', &name) || !line.at)
		return -EBADMSG;
	if (!mw_text_is(name, "memory_bytes"))
		return 0;
	mw_text_skip(&line, " ");
	if (!mw_text_number(line, UINT64_MAX, &number))
		return -EBADMSG;
	parser->overhead->seen.memory_bytes = number;
	return 0;
}

int memwatch_proc_overhead_parse(struct memwatch_ctx *ctx, const char *text, size_t len,
				 struct memwatch_proc_overhead **ret)
{
	struct mw_text rest = { text, len }, line;
	struct overhead_parser parser = { 0 };
	unsigned int number = 0;
	int err = 0;

	parser.overhead = calloc(1, sizeof(*parser.overhead));
	if (!parser.overhead)
		return mw_fail_memory(ctx, "overhead");
	while (!err && rest.len && mw_text_take(&rest, '\n', &line)) {
		number++;
		err = parse_overhead_line(&parser, line);
	}
	if (err) {
		memwatch_proc_overhead_free(&parser.overhead->seen);
		if (err == -ENOMEM)
			return mw_fail_memory(ctx, "overhead");
		return mw_fail(ctx, err, "/proc/memwatch/overhead: line %u is not valid", number);
	}
	*ret = &parser.overhead->seen;
	return 0;
}

int memwatch_proc_overhead_read(struct memwatch_ctx *ctx, struct memwatch_proc_overhead **ret)
{
	char *text;
	size_t len;
	int err;

	err = mw_proc_file_read(ctx, "overhead", &text, &len);
	if (err)
		return err;
	err = memwatch_proc_overhead_parse(ctx, text, len, ret);
	free(text);
	return err;
}

struct memwatch_proc_overhead *memwatch_proc_overhead_free(struct memwatch_proc_overhead *overhead)
{
	struct overhead *whole = (struct overhead *)(void *)overhead;

	if (whole) {
		free(whole->cpus);
		free(whole->jitter);
	}
	free(whole);
	return NULL;
}

const struct memwatch_proc_overhead_cpu *
memwatch_proc_cpu_at(const struct memwatch_proc_overhead *overhead, size_t index)
{
	const struct overhead *whole = (const struct overhead *)(const void *)overhead;

	return index < overhead->nr_cpus ? &whole->cpus[index] : NULL;
}

const struct memwatch_proc_jitter *
memwatch_proc_jitter_at(const struct memwatch_proc_overhead *overhead, size_t index)
{
	const struct overhead *whole = (const struct overhead *)(const void *)overhead;

	return index < overhead->nr_jitter ? &whole->jitter[index] : NULL;
}
