// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The latest growth record of each process: a hash table with open addressing.
 */
#include <errno.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/hash.h"
#include "growth/latest.h"

const struct mw_column mw_growth_latest_columns[MW_GROWTH_LATEST_COLUMNS] = {
	[MW_GROWTH_LATEST_VERDICT] = { "growth_verdict", "VERDICT", MW_KIND_TEXT, 0, 0 },
	[MW_GROWTH_LATEST_SLOPE] = { "growth_bytes_per_second", "RATE", MW_KIND_UINT, MW_UNIT_RATE,
				     0 },
	[MW_GROWTH_LATEST_ETA] = { "growth_eta_seconds", "LIMIT IN", MW_KIND_UINT, 0, 0 },
};

void mw_growth_latest_fill_cells(const struct memwatch_record_growth *record, struct mw_cell *cells)
{
	for (int i = 0; i < MW_GROWTH_LATEST_COLUMNS; i++)
		cells[i] = (struct mw_cell){ .missing = true };
	if (!record)
		return;
	cells[MW_GROWTH_LATEST_VERDICT] = (struct mw_cell){ .text = memwatch_growth_verdict_name(
								    record->verdict) };
	cells[MW_GROWTH_LATEST_SLOPE] = (struct mw_cell){ .number = record->slope };
	if (record->eta_s != UINT32_MAX)
		cells[MW_GROWTH_LATEST_ETA] = (struct mw_cell){ .number = record->eta_s };
}

/* The slot of this process, or the empty slot where it belongs. */
static uint32_t *latest_slot(const struct mw_growth_latest *latest, uint32_t tgid,
			     uint64_t start_ns)
{
	size_t at = mw_hash_pair(start_ns, tgid);

	for (;; at++) {
		uint32_t *slot = &latest->slots[at & (latest->nr_slots - 1)];
		const struct memwatch_record_growth *r = latest->records + *slot - 1;

		if (!*slot || (r->tgid == tgid && r->start_time_ns == start_ns))
			return slot;
	}
}

/* Makes room for one more record. At most half of the slots are in use. */
static int latest_grow(struct mw_growth_latest *latest)
{
	const struct memwatch_record_growth *r;
	uint32_t *slots;

	if (mw_array_reserve(latest->records, latest->capacity, latest->nr + 1))
		return -ENOMEM;
	if (latest->nr_slots == latest->capacity * 2)
		return 0;
	slots = calloc(latest->capacity * 2, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(latest->slots);
	latest->slots = slots;
	latest->nr_slots = latest->capacity * 2;
	for (uint32_t i = 0; i < latest->nr; i++) {
		r = &latest->records[i];
		*latest_slot(latest, r->tgid, r->start_time_ns) = i + 1;
	}
	return 0;
}

int mw_growth_latest_update(struct mw_growth_latest *latest,
			    const struct memwatch_record_growth *record)
{
	uint32_t *slot;

	if (latest_grow(latest))
		return -ENOMEM;
	slot = latest_slot(latest, record->tgid, record->start_time_ns);
	if (!*slot && latest->max && latest->nr >= latest->max)
		return 0;
	if (!*slot)
		*slot = (uint32_t)++latest->nr;
	latest->records[*slot - 1] = *record;
	return 0;
}

const struct memwatch_record_growth *mw_growth_latest_find(const struct mw_growth_latest *latest,
							   uint32_t tgid, uint64_t start_ns)
{
	uint32_t slot = latest->nr_slots ? *latest_slot(latest, tgid, start_ns) : 0;

	return slot ? &latest->records[slot - 1] : NULL;
}

void mw_growth_latest_uninit(struct mw_growth_latest *latest)
{
	free(latest->records);
	free(latest->slots);
	*latest = (struct mw_growth_latest){ 0 };
}
