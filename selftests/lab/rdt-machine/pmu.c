// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The simulated PMU. A counter does not count by itself: its value is computed from the
 * state of its event when it is read, and settled when its control changes.
 */
#include "pmu.h"

#include <stddef.h>
#include <string.h>

#include "cache.h"

enum {
	GENERAL = 4,
	FIXED = 3,
	COUNTERS = GENERAL + FIXED,
	WIDTH = 48,

	MSR_PMC = 0xc1,
	MSR_EVENTSEL = 0x186,
	MSR_FIXED = 0x309,
	MSR_FIXED_CTRL = 0x38d,
	MSR_GLOBAL_STATUS = 0x38e,
	MSR_GLOBAL_CTRL = 0x38f,
	MSR_GLOBAL_OVF_CTRL = 0x390,

	/* Event and unit mask, as in the event select registers. */
	INSTRUCTIONS = 0x00c0,
	CYCLES = 0x003c,
	REF_CYCLES = 0x013c,
	LLC_REFERENCES = 0x4f2e,
	LLC_MISSES = 0x412e,

	SELECT_USER = 1 << 16,
	SELECT_KERNEL = 1 << 17,
	SELECT_ENABLE = 1 << 22,

	/* An instruction takes one cycle, and these in addition: */
	CYCLES_REFERENCE = 10,
	CYCLES_MISS = 100,
};

struct counter {
	uint64_t value;	   /* when it was last settled */
	uint64_t event_at; /* count of its event at that time */
};

/* Only the thread of its vCPU accesses it. */
struct pmu {
	uint64_t select[GENERAL];
	uint64_t fixed_ctrl;
	uint64_t global_ctrl;
	struct counter counter[COUNTERS];
} __attribute__((aligned(64)));

static struct pmu pmus[MAX_CPUS];

void pmu_cpuid(struct x86_hook_cpuid *c)
{
	if (machine.amd || c->leaf != 0xa)
		return;
	c->eax = 2 | GENERAL << 8 | WIDTH << 16 | 7 << 24;
	c->ebx = 1 << 5 | 1 << 6; /* without the two events of branches */
	c->ecx = 0;
	c->edx = FIXED | WIDTH << 5;
}

void pmu_reset(void)
{
	memset(pmus, 0, sizeof(pmus));
}

static uint64_t event_count_of_mode(unsigned int cpu, unsigned int event, bool kernel)
{
	switch (event) {
	case INSTRUCTIONS:
		return machine_instructions(cpu, kernel);
	case CYCLES:
	case REF_CYCLES:
		return machine_instructions(cpu, kernel) +
		       cache_references(cpu, kernel) * CYCLES_REFERENCE +
		       cache_misses(cpu, kernel) * CYCLES_MISS;
	case LLC_REFERENCES:
		return cache_references(cpu, kernel);
	case LLC_MISSES:
		return cache_misses(cpu, kernel);
	}
	return 0;
}

/* A fixed counter's control, in the form of an event select register. */
static uint64_t counter_select(const struct pmu *p, int i)
{
	static const uint64_t event[FIXED] = { INSTRUCTIONS, CYCLES, REF_CYCLES };
	uint64_t bits;

	if (i < GENERAL)
		return p->select[i];
	i -= GENERAL;
	bits = p->fixed_ctrl >> i * 4 & 3;
	return event[i] | (bits ? SELECT_ENABLE : 0) | (bits & 1 ? SELECT_KERNEL : 0) |
	       (bits & 2 ? SELECT_USER : 0);
}

static bool counter_runs(const struct pmu *p, int i)
{
	int bit = i < GENERAL ? i : 32 + i - GENERAL;

	return p->global_ctrl >> bit & 1 && counter_select(p, i) & SELECT_ENABLE;
}

static uint64_t event_count(unsigned int cpu, int i)
{
	uint64_t select = counter_select(&pmus[cpu], i), sum = 0;

	if (select & SELECT_USER)
		sum += event_count_of_mode(cpu, select & 0xffff, false);
	if (select & SELECT_KERNEL)
		sum += event_count_of_mode(cpu, select & 0xffff, true);
	return sum;
}

static uint64_t counter_value(unsigned int cpu, int i)
{
	const struct counter *c = &pmus[cpu].counter[i];
	uint64_t value = c->value;

	if (counter_runs(&pmus[cpu], i))
		value += event_count(cpu, i) - c->event_at;
	return value & ((1ull << WIDTH) - 1);
}

/* Called before a control changes; counters_resume() is called after it. */
static void counters_settle(unsigned int cpu)
{
	int i;

	for (i = 0; i < COUNTERS; i++)
		pmus[cpu].counter[i].value = counter_value(cpu, i);
}

static void counters_resume(unsigned int cpu)
{
	int i;

	for (i = 0; i < COUNTERS; i++) {
		unsigned int event = counter_select(&pmus[cpu], i) & 0xffff;

		if (counter_runs(&pmus[cpu], i) && (event == LLC_REFERENCES || event == LLC_MISSES))
			machine_track(true);
		pmus[cpu].counter[i].event_at = event_count(cpu, i);
	}
}

/* The index of the counter that an MSR accesses, or -1. */
static int counter_of(uint32_t msr)
{
	if (msr >= MSR_PMC && msr < MSR_PMC + GENERAL)
		return msr - MSR_PMC;
	if (msr >= MSR_FIXED && msr < MSR_FIXED + FIXED)
		return msr - MSR_FIXED + GENERAL;
	return -1;
}

static uint64_t *control_of(struct pmu *p, uint32_t msr)
{
	if (msr >= MSR_EVENTSEL && msr < MSR_EVENTSEL + GENERAL)
		return &p->select[msr - MSR_EVENTSEL];
	if (msr == MSR_FIXED_CTRL)
		return &p->fixed_ctrl;
	return msr == MSR_GLOBAL_CTRL ? &p->global_ctrl : NULL;
}

enum x86_hook_answer pmu_rdmsr(unsigned int cpu, uint32_t msr, uint64_t *value)
{
	uint64_t *control = control_of(&pmus[cpu], msr);
	int i = counter_of(msr);

	if (machine.amd)
		return X86_HOOK_PASS;
	if (i >= 0)
		*value = counter_value(cpu, i);
	else if (control)
		*value = *control;
	else if (msr == MSR_GLOBAL_STATUS || msr == MSR_GLOBAL_OVF_CTRL)
		*value = 0;
	else
		return X86_HOOK_PASS;
	return X86_HOOK_DONE;
}

enum x86_hook_answer pmu_wrmsr(unsigned int cpu, uint32_t msr, uint64_t value)
{
	uint64_t *control = control_of(&pmus[cpu], msr);
	int i = counter_of(msr);

	if (machine.amd)
		return X86_HOOK_PASS;
	if (i < 0 && !control)
		return msr == MSR_GLOBAL_OVF_CTRL ? X86_HOOK_DONE : X86_HOOK_PASS;
	counters_settle(cpu);
	if (control)
		*control = value;
	else
		/* A write to a general counter has 32 bits, and its sign is extended. */
		pmus[cpu].counter[i].value = i < GENERAL ? (int64_t)(int32_t)value : (int64_t)value;
	counters_resume(cpu);
	return X86_HOOK_DONE;
}

enum x86_hook_answer pmu_rdpmc(unsigned int cpu, uint32_t index, uint64_t *value)
{
	bool fixed = index >> 30 & 1;
	unsigned int i = index & 0x3fffffff;

	if (machine.amd)
		return X86_HOOK_PASS;
	if (i >= (fixed ? FIXED : GENERAL))
		return X86_HOOK_FAULT;
	*value = counter_value(cpu, fixed ? GENERAL + i : i);
	return X86_HOOK_DONE;
}
