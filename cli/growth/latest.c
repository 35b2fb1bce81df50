// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Growth beside other things: in tables of processes, and in recordings.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "growth/latest.h"
#include "growth/monitor.h"
#include "common/message.h"

const struct mw_column mw_known_columns[MW_KNOWN_COLUMNS] = {
	[MW_KNOWN_VERDICT] = { "growth_verdict", "VERDICT", MW_KIND_TEXT, 0, 0 },
	[MW_KNOWN_SLOPE] = { "growth_bytes_per_second", "RATE", MW_KIND_UINT, MW_UNIT_RATE, 0 },
	[MW_KNOWN_ETA] = { "growth_eta_seconds", "LIMIT IN", MW_KIND_UINT, 0, 0 },
};

void mw_known_fill(const struct memwatch_record_growth *record, struct mw_cell *cells)
{
	for (int i = 0; i < MW_KNOWN_COLUMNS; i++)
		cells[i] = (struct mw_cell){ .missing = true };
	if (!record)
		return;
	cells[MW_KNOWN_VERDICT] = (struct mw_cell){ .text = memwatch_growth_verdict_name(
							    record->verdict) };
	cells[MW_KNOWN_SLOPE] = (struct mw_cell){ .number = record->slope };
	if (record->eta_s != UINT32_MAX)
		cells[MW_KNOWN_ETA] = (struct mw_cell){ .number = record->eta_s };
}

/* ------------------------------------------------------------------ table */

/* Where the process is, or would be. */
static uint32_t *slot_of(const struct mw_known *known, uint32_t tgid, uint64_t start_ns)
{
	size_t at = (tgid * 0x9e3779b97f4a7c15ULL ^ start_ns) * 0x9e3779b97f4a7c15ULL >> 32;

	for (;; at++) {
		uint32_t *slot = &known->slots[at & (known->nr_slots - 1)];
		const struct memwatch_record_growth *r = known->records + *slot - 1;

		if (!*slot || (r->tgid == tgid && r->start_time_ns == start_ns))
			return slot;
	}
}

static int make_room(struct mw_known *known)
{
	size_t room = known->room ? known->room * 2 : 256;
	struct memwatch_record_growth *records;
	uint32_t *slots;

	if (known->nr < known->room)
		return 0;
	records = reallocarray(known->records, room, sizeof(*records));
	if (!records)
		return -ENOMEM;
	known->records = records;
	slots = calloc(room * 2, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(known->slots);
	known->slots = slots;
	known->room = room;
	known->nr_slots = room * 2;
	for (uint32_t i = 0; i < known->nr; i++)
		*slot_of(known, records[i].tgid, records[i].start_time_ns) = i + 1;
	return 0;
}

int mw_known_take(struct mw_known *known, const struct memwatch_record_growth *record)
{
	uint32_t *slot;

	if (make_room(known))
		return -ENOMEM;
	slot = slot_of(known, record->tgid, record->start_time_ns);
	if (!*slot)
		*slot = (uint32_t)++known->nr;
	known->records[*slot - 1] = *record;
	return 0;
}

const struct memwatch_record_growth *mw_known_find(const struct mw_known *known, uint32_t tgid,
						   uint64_t start_ns)
{
	uint32_t slot = known->nr_slots ? *slot_of(known, tgid, start_ns) : 0;

	return slot ? &known->records[slot - 1] : NULL;
}

void mw_known_free(struct mw_known *known)
{
	free(known->records);
	free(known->slots);
	*known = (struct mw_known){ 0 };
}

/* ----------------------------------------------------------------- monitor */

int mw_beside_open(struct mw_beside *beside, const struct mw_cli *cli, struct memwatch_ctx *ctx,
		   const char *command)
{
	struct memwatch_watch *watch;
	int err = memwatch_watch_open(ctx, NULL, &watch);

	if (err)
		return mw_monitor_failed(ctx, err, command);
	*beside = (struct mw_beside){
		.ctx = ctx,
		.watch = watch,
		.run = { .cli = cli, .command = command },
	};
	return 0;
}

void mw_beside_close(struct mw_beside *beside)
{
	if (!beside->watch)
		return;
	mw_growth_run_end(&beside->run);
	memwatch_watch_unref(beside->watch);
	mw_known_free(&beside->known);
	beside->watch = NULL;
}

/* As the kernel's records of alerts are, but of now. */
static void to_record(const struct memwatch_growth_row *row, uint64_t now_ns,
		      struct memwatch_record_growth *ret)
{
	uint64_t eta_s = row->eta_ns / 1000000000;

	*ret = (struct memwatch_record_growth){
		.h = { .time_ns = now_ns, .type = MEMWATCH_RECORD_GROWTH, .size = sizeof(*ret) },
		.start_time_ns = row->start_time_ns,
		.tgid = row->tgid,
		.what = MEMWATCH_GROWTH_STATE,
		.verdict = row->verdict,
		.confidence = row->confidence,
		.reason = row->reason,
		.limit = (uint8_t)row->limit,
		.eta_s = row->eta_ns == MEMWATCH_GROWTH_NONE || eta_s > UINT32_MAX
				 ? UINT32_MAX
				 : (uint32_t)eta_s,
		.signal_bytes = row->signal_bytes,
		.slope = row->slope,
	};
	memcpy(ret->comm, row->comm, sizeof(ret->comm) - 1);
}

/* All that is known is made new: what has ended is forgotten. */
static int take_states(struct mw_beside *beside, uint64_t now_ns,
		       int (*take)(void *data, const struct memwatch_record_growth *record),
		       void *data)
{
	const struct memwatch_record_growth *before;
	struct memwatch_record_growth record;
	MEMWATCH_OPTS(memwatch_growth_row, row);
	struct mw_known known = { 0 };
	int err = memwatch_watch_snapshot(beside->watch);

	if (err < 0)
		return err;
	err = 0;
	for (unsigned int i = 0; !err && memwatch_watch_row(beside->watch, i, &row) == 1; i++) {
		to_record(&row, now_ns, &record);
		before = mw_known_find(&beside->known, row.tgid, row.start_time_ns);
		if (take && (row.verdict >= MEMWATCH_GROWTH_GROWING || !before ||
			     before->verdict != row.verdict))
			err = take(data, &record);
		if (!err)
			err = mw_known_take(&known, &record);
	}
	mw_known_free(&beside->known);
	beside->known = known;
	return err;
}

int mw_beside_poll(struct mw_beside *beside,
		   int (*take)(void *data, const struct memwatch_record_growth *record), void *data)
{
	const struct memwatch_record_header *record;
	uint64_t now = mw_clock_ns(CLOCK_MONOTONIC);
	int bits = memwatch_watch_poll(beside->watch, 0), err = 0;

	if (bits < 0)
		return bits == -EINTR ? 0 : bits;
	mw_growth_run_tell(&beside->run, beside->watch, now);
	while (!err && bits & MEMWATCH_WATCH_EVENT &&
	       memwatch_watch_next(beside->watch, &record) == 1)
		if (take && record->type == MEMWATCH_RECORD_GROWTH)
			err = take(data, (const struct memwatch_record_growth *)record);
	if (!err && bits & MEMWATCH_WATCH_ROUND)
		err = take_states(beside, mw_clock_ns(CLOCK_MONOTONIC), take, data);
	return err;
}
