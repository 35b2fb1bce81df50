// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The accesses of a recorded trace.
 */
#include "stale/charges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/context.h"

#define LOAD_RECORDS 65536

/* The kind of an event that ends the address space. */
#define EVENT_EXEC 0xff

int mw_charges_init(struct mw_charges *charges, struct memwatch_ctx *ctx,
		    const struct mw_sorter_place *place, uint64_t begin_ns)
{
	*charges = (struct mw_charges){
		.ctx = ctx,
		.place = *place,
		.begin_ns = begin_ns,
		.end_ns = UINT64_MAX,
	};
	return mw_strings_init(&charges->places);
}

void mw_charges_uninit(struct mw_charges *charges)
{
	for (uint32_t i = 0; i < charges->nr_files; i++)
		mw_access_file_uninit(&charges->files[i]);
	free(charges->files);
	if (charges->sorting)
		mw_sorter_uninit(&charges->sorter);
	free(charges->kept);
	mw_strings_uninit(&charges->places);
	*charges = (struct mw_charges){ 0 };
}

int mw_charges_add(struct mw_charges *charges, int fd, uint32_t pid, const uint8_t boot_id[16])
{
	struct mw_access_file file;
	int err = mw_access_file_init(&file, charges->ctx, fd, pid);

	if (!err &&
	    mw_array_reserve(charges->files, charges->files_capacity, charges->nr_files + 1U))
		err = mw_fail_memory(charges->ctx, "reading accesses");
	if (err) {
		mw_access_file_uninit(&file);
		return err;
	}
	file.other_boot = memcmp(file.header.boot_id, boot_id, 16) != 0;
	charges->files[charges->nr_files++] = file;
	return 0;
}

static int keep_event(struct mw_charges *charges, const struct mw_event *event)
{
	if (mw_array_reserve(charges->kept, charges->kept_capacity, charges->nr_kept + 1))
		return mw_fail_memory(charges->ctx, "reading accesses");
	charges->kept[charges->nr_kept++] = *event;
	return 0;
}

/* The number of a place; when there are too many, further ones are that of address 1. */
static int find_place(struct mw_charges *charges, uint64_t ip, uint32_t *ret)
{
	int err = 0;

	*ret = 0;
	if (ip && charges->places.count >= MW_CHARGES_PLACES_MAX - 1 &&
	    !mw_strings_find(&charges->places, &ip, sizeof(ip), ret))
		ip = 1;
	if (ip)
		err = mw_strings_add(&charges->places, &ip, sizeof(ip), ret);
	*ret += MW_CHARGES_PLACE_FIRST;
	return err ? mw_fail_memory(charges->ctx, "reading accesses") : 0;
}

static int add_record(struct mw_charges *charges, const struct mw_access_record *record)
{
	struct mw_event event = {
		.time_ns = record->time_ns,
		.sequence = charges->sequence++,
		.address = record->address,
		.tid = record->tid,
		.kind = record->is_exec ? EVENT_EXEC : MW_EVENT_ACCESS,
	};
	int err;

	if (record->time_ns < charges->begin_ns)
		return 0;
	err = find_place(charges, record->ip, &event.place);
	if (err)
		return err;
	return event.time_ns > charges->horizon_ns ? keep_event(charges, &event)
						   : mw_sorter_add(&charges->sorter, &event);
}

/* What was kept and is no longer behind the horizon. */
static int add_kept(struct mw_charges *charges)
{
	size_t left = 0;
	int err = 0;

	for (size_t i = 0; !err && i < charges->nr_kept; i++) {
		if (charges->kept[i].time_ns > charges->horizon_ns)
			charges->kept[left++] = charges->kept[i];
		else
			err = mw_sorter_add(&charges->sorter, &charges->kept[i]);
	}
	charges->nr_kept = left;
	return err;
}

void mw_charges_begin(struct mw_charges *charges, uint64_t horizon_ns)
{
	if (charges->sorting)
		mw_sorter_uninit(&charges->sorter);
	mw_sorter_init(&charges->sorter, charges->ctx, &charges->place);
	charges->sorting = true;
	charges->has_next = false;
	charges->horizon_ns = horizon_ns;
	charges->reading = 0;
	for (uint32_t i = 0; i < charges->nr_files; i++)
		mw_access_file_refresh(&charges->files[i]);
}

static int take_next(struct mw_charges *charges)
{
	int rc = mw_sorter_next(&charges->sorter, &charges->next);

	charges->has_next = rc == 1;
	return rc < 0 ? rc : 0;
}

int mw_charges_load(struct mw_charges *charges)
{
	struct mw_access_record record;

	for (int i = 0; i < LOAD_RECORDS; i++) {
		int rc = 0;

		if (charges->reading == charges->nr_files) {
			rc = add_kept(charges) ?: mw_sorter_finish(&charges->sorter);
			return rc ?: take_next(charges);
		}
		rc = mw_access_file_next(&charges->files[charges->reading], &record);
		if (rc < 0)
			return mw_fail(charges->ctx, rc, "the accesses cannot be read: %s",
				       strerror(-rc));
		if (!rc)
			charges->reading++;
		else
			rc = add_record(charges, &record);
		if (rc < 0)
			return rc;
	}
	return 1;
}

int mw_charges_next(struct mw_charges *charges, uint64_t time_ns, struct mw_event *ret)
{
	int err;

	while (charges->has_next && charges->next.time_ns < time_ns) {
		*ret = charges->next;
		err = take_next(charges);
		if (err)
			return err;
		if (ret->kind == EVENT_EXEC && ret->time_ns < charges->end_ns)
			charges->end_ns = ret->time_ns;
		if (ret->kind == MW_EVENT_ACCESS && ret->time_ns < charges->end_ns)
			return 1;
	}
	return 0;
}

uint64_t mw_charges_ip(const struct mw_charges *charges, uint32_t place)
{
	uint32_t number = place - MW_CHARGES_PLACE_FIRST;
	uint64_t ip = 0;

	if (number && number < charges->places.count)
		memcpy(&ip, mw_strings_text(&charges->places, number), sizeof(ip));
	return ip;
}
