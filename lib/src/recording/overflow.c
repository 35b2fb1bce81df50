// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Dropped records, see overflow.h. They say themselves when the measurement of their CPU becomes
 * incomplete: a sample has its interval, and any other record is about its time. What the CPU
 * sends after the last dropped record begins at the time of that one.
 */
#include "recording/overflow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/timemath.h"

void mw_overflow_uninit(struct mw_overflow *overflow)
{
	free(overflow->cpus);
	memset(overflow, 0, sizeof(*overflow));
}

static int reserve_cpu(struct mw_overflow *overflow, uint32_t cpu)
{
	uint32_t nr = overflow->nr_cpus;

	if (cpu < nr)
		return 0;
	if (mw_array_reserve(overflow->cpus, overflow->nr_cpus, cpu + 1))
		return -ENOMEM;
	memset(overflow->cpus + nr, 0, (overflow->nr_cpus - nr) * sizeof(*overflow->cpus));
	return 0;
}

int mw_overflow_drop(struct mw_overflow *overflow, const struct memwatch_record_header *record)
{
	uint64_t begin = record->time_ns, end = record->time_ns, count = 1;
	struct mw_overflow_cpu *cpu;

	if (reserve_cpu(overflow, record->cpu))
		return -ENOMEM;
	cpu = &overflow->cpus[record->cpu];
	if (record->type == MEMWATCH_RECORD_SAMPLE) {
		begin = mw_min_u64(((const struct memwatch_record_sample *)record)->begin_ns, end);
	} else if (record->type == MEMWATCH_RECORD_LOST) {
		end = mw_max_u64(((const struct memwatch_record_lost *)record)->end_ns, begin);
		count = ((const struct memwatch_record_lost *)record)->count;
	}
	if (!cpu->count) {
		cpu->begin_ns = begin;
		cpu->end_ns = end;
	}
	cpu->begin_ns = mw_min_u64(cpu->begin_ns, begin);
	cpu->end_ns = mw_max_u64(cpu->end_ns, end);
	cpu->count = mw_add_sat(cpu->count, count);
	overflow->dropped = mw_add_sat(overflow->dropped, count);
	/* What a LOST record tells of was lost before it came here. */
	if (record->type != MEMWATCH_RECORD_LOST)
		overflow->total = mw_add_sat(overflow->total, count);
	return 0;
}

int mw_overflow_lost(const struct mw_overflow *overflow, uint32_t cpu, uint64_t last_ns,
		     struct memwatch_record_lost *ret)
{
	while (cpu < overflow->nr_cpus && !overflow->cpus[cpu].count)
		cpu++;
	if (cpu >= overflow->nr_cpus)
		return -1;
	*ret = (struct memwatch_record_lost){
		.h = {
			.time_ns = overflow->cpus[cpu].begin_ns,
			.type = MEMWATCH_RECORD_LOST,
			.size = sizeof(*ret),
			.cpu = (uint16_t)cpu,
		},
		.end_ns = overflow->cpus[cpu].end_ns,
		.count = overflow->cpus[cpu].count,
	};
	if (ret->h.time_ns < last_ns)
		ret->h.flags = MEMWATCH_RECORD_F_LATE;
	return (int)cpu;
}

void mw_overflow_reported(struct mw_overflow *overflow, uint32_t cpu)
{
	overflow->dropped -= overflow->cpus[cpu].count;
	overflow->cpus[cpu].count = 0;
}
