// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Sorted arrays of intervals. Losses come almost in the order of time, so most are added at the
 * end of the intervals of their CPU.
 */
#include "account/losses.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/timemath.h"

#define ENTRIES_MAX 4096U /* intervals of a set */

void mw_losses_uninit(struct mw_losses *losses)
{
	free(losses->any.entries);
	free(losses->by_cpu.entries);
	*losses = (struct mw_losses){ 0 };
}

/* The first interval of @cpu, or of a higher one, that ends at or after @time_ns. */
static uint32_t find_loss(const struct mw_loss_set *set, uint32_t cpu, uint64_t time_ns)
{
	uint32_t low = 0, high = set->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct mw_loss *entry = &set->entries[middle];

		if (entry->cpu < cpu || (entry->cpu == cpu && entry->end_ns < time_ns))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Joins each interval with the next one of its CPU; if that is not enough, all with each other. */
static void join_neighbours(struct mw_loss_set *set)
{
	struct mw_loss *entries = set->entries;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < set->count; i++) {
		entries[kept] = entries[i];
		if (i + 1 < set->count && entries[i + 1].cpu == entries[i].cpu) {
			entries[kept].end_ns = entries[++i].end_ns;
			entries[kept].sampled = entries[i].sampled;
		}
		kept++;
	}
	set->count = kept;
	if (kept < ENTRIES_MAX)
		return;
	entries[0].cpu = MEMWATCH_CPU_ANY;
	for (uint32_t i = 1; i < kept; i++) {
		entries[0].begin_ns = mw_min_u64(entries[0].begin_ns, entries[i].begin_ns);
		entries[0].end_ns = mw_max_u64(entries[0].end_ns, entries[i].end_ns);
	}
	set->count = 1;
}

static int add_interval(struct mw_loss_set *set, struct mw_loss loss)
{
	uint32_t first, last;

	if (set->count >= ENTRIES_MAX)
		join_neighbours(set);
	if (mw_array_reserve(set->entries, set->capacity, set->count + 1))
		return -ENOMEM;
	first = find_loss(set, loss.cpu, loss.begin_ns);
	for (last = first; last < set->count && set->entries[last].cpu == loss.cpu &&
			   set->entries[last].begin_ns <= loss.end_ns;
	     last++) {
		loss.begin_ns = mw_min_u64(loss.begin_ns, set->entries[last].begin_ns);
		loss.end_ns = mw_max_u64(loss.end_ns, set->entries[last].end_ns);
	}
	memmove(&set->entries[first + 1], &set->entries[last],
		(set->count - last) * sizeof(*set->entries));
	set->entries[first] = loss;
	set->count += first + 1 - last;
	return 0;
}

int mw_losses_add(struct mw_losses *losses, const struct memwatch_loss *loss)
{
	struct mw_loss interval = {
		.cpu = loss->cpu,
		.begin_ns = loss->begin_ns,
		/* Even a loss between two records of one time is a loss. */
		.end_ns = mw_max_u64(loss->end_ns, mw_add_sat(loss->begin_ns, 1)),
	};
	int err = add_interval(&losses->by_cpu, interval);

	interval.cpu = MEMWATCH_CPU_ANY;
	return err ? err : add_interval(&losses->any, interval);
}

static bool set_touches(const struct mw_loss_set *set, uint32_t cpu, uint64_t begin_ns,
			uint64_t end_ns)
{
	uint32_t at = find_loss(set, cpu, mw_add_sat(begin_ns, 1));

	return at < set->count && set->entries[at].cpu == cpu && set->entries[at].begin_ns < end_ns;
}

bool mw_losses_touch(const struct mw_losses *losses, uint32_t cpu, uint64_t begin_ns,
		     uint64_t end_ns)
{
	if (cpu == MEMWATCH_CPU_ANY)
		return set_touches(&losses->any, cpu, begin_ns, end_ns);
	return set_touches(&losses->by_cpu, cpu, begin_ns, end_ns) ||
	       set_touches(&losses->by_cpu, MEMWATCH_CPU_ANY, begin_ns, end_ns);
}

bool mw_losses_take_sample(struct mw_losses *losses, uint32_t cpu, uint64_t begin_ns,
			   uint64_t end_ns)
{
	struct mw_loss_set *set = &losses->by_cpu;

	if (!set->count)
		return false;
	/* Those before one that was sampled were, too, unless they were noticed late. */
	for (uint32_t i = find_loss(set, cpu, mw_add_sat(end_ns, 1)); i-- > 0;) {
		struct mw_loss *entry = &set->entries[i];

		if (entry->cpu != cpu || entry->sampled)
			break;
		entry->sampled = true;
	}
	return mw_losses_touch(losses, cpu, begin_ns, end_ns);
}

/* The set as if all CPUs were one is asked for slots only, and no sample is that of any CPU. */
static bool is_needed(const struct mw_loss *loss, uint64_t time_ns)
{
	return loss->end_ns >= time_ns || (loss->cpu != MEMWATCH_CPU_ANY && !loss->sampled);
}

static void forget_intervals(struct mw_loss_set *set, uint64_t time_ns)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < set->count; i++)
		if (is_needed(&set->entries[i], time_ns))
			set->entries[kept++] = set->entries[i];
	set->count = kept;
}

void mw_losses_forget(struct mw_losses *losses, uint64_t time_ns)
{
	forget_intervals(&losses->any, time_ns);
	forget_intervals(&losses->by_cpu, time_ns);
}
