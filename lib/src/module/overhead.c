// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * /proc/memwatch/overhead: a line of name=value pairs for each CPU, and a
 * histogram.
 */
#include <memwatch/proc.h>

#include <errno.h>
#include <stdlib.h>

#include "base/context.h"
#include "base/text.h"

#define FIELD(name)                                                                                \
	{                                                                                          \
#name, offsetof(struct memwatch_proc_overhead_cpu, name)                           \
	}

static const struct field {
	const char *name;
	size_t offset;
} fields[] = {
	FIELD(ticks),	   FIELD(missed),	 FIELD(jitter_max_ns),	FIELD(switches),
	FIELD(pqr_writes), FIELD(switch_cycles), FIELD(switch_sampled), FIELD(tick_cycles),
	FIELD(rdt_ops),	   FIELD(rdt_ops_max),	 FIELD(rdt_reads),	FIELD(rdt_waits),
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
static int parse_cpu(struct memwatch_proc_overhead *overhead, struct mw_text line)
{
	struct memwatch_proc_overhead_cpu *cpu;
	struct mw_text piece;
	uint64_t number;

	cpu = reallocarray(overhead->cpus, overhead->nr_cpus + 1, sizeof(*cpu));
	if (!cpu)
		return -ENOMEM;
	overhead->cpus = cpu;
	cpu += overhead->nr_cpus;
	*cpu = (struct memwatch_proc_overhead_cpu){};

	if (!mw_text_take(&line, ':', &piece) || !mw_text_number(piece, UINT32_MAX, &number))
		return -EBADMSG;
	cpu->cpu = (uint32_t)number;
	while (mw_text_take(&line, ' ', &piece)) {
		if (piece.len && !parse_pair(piece, cpu))
			return -EBADMSG;
	}
	overhead->nr_cpus++;
	return 0;
}

/* "LOW-HIGH: COUNT" */
static int parse_jitter(struct memwatch_proc_overhead *overhead, struct mw_text line)
{
	struct memwatch_proc_jitter *jitter;
	struct mw_text low, high;

	jitter = reallocarray(overhead->jitter, overhead->nr_jitter + 1, sizeof(*jitter));
	if (!jitter)
		return -ENOMEM;
	overhead->jitter = jitter;
	jitter += overhead->nr_jitter;

	if (!mw_text_take(&line, '-', &low) || !mw_text_take(&line, ':', &high) || !line.at)
		return -EBADMSG;
	mw_text_skip(&line, " ");
	if (!mw_text_number(low, UINT64_MAX, (uint64_t *)&jitter->low_ns) ||
	    !mw_text_number(high, UINT64_MAX, (uint64_t *)&jitter->high_ns) ||
	    !mw_text_number(line, UINT64_MAX, (uint64_t *)&jitter->count))
		return -EBADMSG;
	overhead->nr_jitter++;
	return 0;
}

static int parse_line(struct memwatch_proc_overhead *overhead, struct mw_text line)
{
	struct mw_text name;
	uint64_t number;

	if (mw_text_skip(&line, "cpu "))
		return parse_cpu(overhead, line);
	if (mw_text_skip(&line, "jitter_ns "))
		return parse_jitter(overhead, line);
	if (!mw_text_take(&line, ':', &name) || !line.at)
		return -EBADMSG;
	if (!mw_text_is(name, "memory_bytes"))
		return 0;
	mw_text_skip(&line, " ");
	if (!mw_text_number(line, UINT64_MAX, &number))
		return -EBADMSG;
	overhead->memory_bytes = number;
	return 0;
}

int memwatch_proc_overhead_parse(struct memwatch_ctx *ctx, const char *text, size_t len,
				 struct memwatch_proc_overhead **ret)
{
	struct mw_text rest = { text, len }, line;
	struct memwatch_proc_overhead *overhead;
	unsigned int number = 0;
	int err = 0;

	overhead = calloc(1, sizeof(*overhead));
	if (!overhead)
		return mw_fail(ctx, -ENOMEM, "overhead: no memory");
	while (!err && rest.len && mw_text_take(&rest, '\n', &line)) {
		number++;
		err = parse_line(overhead, line);
	}
	if (err) {
		memwatch_proc_overhead_free(overhead);
		return mw_fail(ctx, err,
			       err == -ENOMEM ? "overhead: line %u: no memory"
					      : "overhead: line %u makes no sense",
			       number);
	}
	*ret = overhead;
	return 0;
}

int memwatch_proc_overhead_read(struct memwatch_ctx *ctx, struct memwatch_proc_overhead **ret)
{
	char *text;
	size_t len;
	int err;

	err = mw_text_read_file(ctx, "/proc/memwatch/overhead", &text, &len);
	if (err)
		return err;
	err = memwatch_proc_overhead_parse(ctx, text, len, ret);
	free(text);
	return err;
}

struct memwatch_proc_overhead *memwatch_proc_overhead_free(struct memwatch_proc_overhead *overhead)
{
	if (overhead) {
		free(overhead->cpus);
		free(overhead->jitter);
	}
	free(overhead);
	return NULL;
}
