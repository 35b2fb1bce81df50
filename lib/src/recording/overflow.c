// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Dropped records, see overflow.h. The first record that a CPU sends after its last dropped one
 * begins where that one ended, so the interval of a loss is known exactly.
 */
#include "recording/overflow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/record.h"
#include "base/timemath.h"

void mw_overflow_uninit(struct mw_overflow *overflow)
{
	free(overflow->cpus);
	memset(overflow, 0, sizeof(*overflow));
}

int mw_overflow_reserve(struct mw_overflow *overflow, const struct memwatch_record_header *record)
{
	uint32_t nr = overflow->nr_cpus;

	if (record->cpu < nr)
		return 0;
	if (mw_array_reserve(overflow->cpus, overflow->nr_cpus, record->cpu + 1U))
		return -ENOMEM;
	memset(overflow->cpus + nr, 0, (overflow->nr_cpus - nr) * sizeof(*overflow->cpus));
	return 0;
}

void mw_overflow_take(struct mw_overflow *overflow, const struct memwatch_record_header *record)
{
	if (!overflow->first_ns)
		overflow->first_ns = record->time_ns;
	if (record->time_ns > overflow->last_ns)
		overflow->last_ns = record->time_ns;
	if (mw_record_completes(record))
		overflow->cpus[record->cpu].complete_ns = record->time_ns;
}

void mw_overflow_drop(struct mw_overflow *overflow, const struct memwatch_record_header *record)
{
	struct mw_overflow_cpu *cpu = &overflow->cpus[record->cpu];
	const struct memwatch_record_lost *lost = (const void *)record;
	uint64_t count = record->type == MEMWATCH_RECORD_LOST ? lost->count : 1;
	uint64_t end_ns = record->type == MEMWATCH_RECORD_LOST ? lost->end_ns : record->time_ns;

	if (!cpu->count) {
		cpu->begin_ns = cpu->complete_ns ? cpu->complete_ns : overflow->first_ns;
		if (!cpu->begin_ns || cpu->begin_ns > record->time_ns)
			cpu->begin_ns = record->time_ns;
		cpu->end_ns = cpu->begin_ns;
	}
	cpu->end_ns = mw_max_u64(cpu->end_ns, end_ns);
	cpu->count = mw_add_sat(cpu->count, count);
	overflow->dropped = mw_add_sat(overflow->dropped, count);
	overflow->total = mw_add_sat(overflow->total, count);
}

int mw_overflow_lost(const struct mw_overflow *overflow, uint32_t cpu,
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
	if (ret->h.time_ns < overflow->last_ns)
		ret->h.flags = MEMWATCH_RECORD_F_LATE;
	return (int)cpu;
}

void mw_overflow_reported(struct mw_overflow *overflow, uint32_t cpu)
{
	overflow->dropped -= overflow->cpus[cpu].count;
	overflow->cpus[cpu].count = 0;
}
