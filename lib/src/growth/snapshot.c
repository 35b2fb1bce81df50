// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Takes a snapshot of the map of processes, and converts its entries to the structures
 * of the public header.
 */
#include "growth/snapshot.h"

#include <string.h>

#include "base/array.h"
#include "base/context.h"
#include "growth/pages.h"
#include "growth/row.h"

static int snapshot_add(void *userdata, const void *key, const void *value)
{
	const struct mw_growth_process *process = value;
	struct mw_snapshot *snapshot = userdata;

	/* Not yet sampled since it was loaded from a file: it may not exist. */
	if (!process->round)
		return 0;
	if (mw_array_reserve(snapshot->items, snapshot->capacity, snapshot->count + 1))
		return -ENOMEM;
	memcpy(&snapshot->items[snapshot->count].key, key, sizeof(struct mw_growth_key));
	snapshot->items[snapshot->count++].process = *process;
	return 0;
}

/* Only processes with a notice are suspects. */
static void read_touch(struct mw_snapshot_item *item, struct mw_bpf_growth *bpf)
{
	memset(&item->touch, 0, sizeof(item->touch));
	if (item->process.growth.flags & MW_GROWTH_F_NOTICE)
		mw_bpf_growth_get_touch(bpf, &item->key, &item->touch);
}

int mw_snapshot_take(struct memwatch_ctx *ctx, struct mw_snapshot *snapshot,
		     struct mw_bpf_growth *bpf)
{
	int err;

	snapshot->count = 0;
	err = mw_bpf_growth_each(bpf, snapshot_add, snapshot);
	if (err)
		return err == -ENOMEM ? mw_fail_memory(ctx, "snapshot of all processes") : err;
	for (size_t i = 0; i < snapshot->count; i++)
		read_touch(&snapshot->items[i], bpf);
	return (int)snapshot->count;
}

/* Converts one process to a row. Returns 1 or a negative errno. */
static int item_to_row(const struct mw_snapshot_item *item, struct mw_bpf_growth *bpf,
		       struct memwatch_growth_row *ret)
{
	MEMWATCH_OPTS(memwatch_growth_row, row);
	const struct mw_growth *g = &item->process.growth;
	struct mw_growth_history history;
	bool has_history = g->flags & MW_GROWTH_F_HISTORY &&
			   mw_bpf_growth_history(bpf, &item->key, &history);
	int err;

	row.tgid = item->key.tgid;
	row.start_time_ns = item->key.start_ns;
	memcpy(row.comm, item->process.comm, sizeof(item->process.comm));
	row.limit = item->process.limit;
	mw_growth_row_fill(&row, g, has_history ? &history : NULL);
	mw_growth_row_touch(&row, g, has_history ? &history : NULL, &item->touch);
	err = mw_opts_export(ret, &row, sizeof(row));
	return err ? err : 1;
}

int mw_snapshot_row(const struct mw_snapshot *snapshot, struct mw_bpf_growth *bpf,
		    unsigned int index, struct memwatch_growth_row *ret)
{
	return index < snapshot->count ? item_to_row(&snapshot->items[index], bpf, ret) : 0;
}

int mw_snapshot_find(struct mw_bpf_growth *bpf, const struct mw_growth_key *key,
		     struct memwatch_growth_row *ret, __u64 *cgroup)
{
	struct mw_snapshot_item item = { .key = *key };

	if (!mw_bpf_growth_get(bpf, key, &item.process) || !item.process.round)
		return 0;
	if (cgroup)
		*cgroup = item.process.cgroup;
	read_touch(&item, bpf);
	return item_to_row(&item, bpf, ret);
}

int mw_snapshot_sample(const struct mw_snapshot *snapshot, unsigned int index,
		       struct memwatch_growth_sample *ret, __u64 *cgroup)
{
	MEMWATCH_OPTS(memwatch_growth_sample, sample);
	const struct mw_growth_process *p;
	const struct mw_growth_touch *touch;
	__u32 shmem;
	int err;

	if (index >= snapshot->count)
		return 0;
	p = &snapshot->items[index].process;
	touch = &snapshot->items[index].touch;
	shmem = mw_growth_sub_sat(p->growth.signal, mw_growth_add_sat(p->anon, p->swap));
	sample.time_ns = p->growth.last_ns;
	sample.start_time_ns = snapshot->items[index].key.start_ns;
	sample.tgid = snapshot->items[index].key.tgid;
	memcpy(sample.comm, p->comm, sizeof(p->comm));
	sample.anon_bytes = mw_bytes_from_pages(p->anon);
	sample.file_bytes = mw_bytes_from_pages(p->growth.file);
	sample.shmem_bytes = mw_bytes_from_pages(shmem);
	sample.swap_bytes = mw_bytes_from_pages(p->swap);
	sample.vsz_bytes = mw_bytes_from_pages(p->growth.vsz);
	sample.gained_bytes = mw_bytes_from_pages(touch->gained);
	sample.cold_bytes = mw_bytes_from_pages(touch->cold);
	sample.cold_low_bytes = mw_bytes_from_pages(touch->cold_low);
	sample.cold_high_bytes = mw_bytes_from_pages(touch->cold_high);
	sample.untouched_ns = touch->untouched_s * MW_GROWTH_SECOND;
	sample.limit_bytes = MEMWATCH_GROWTH_NONE;
	if (p->growth.headroom != MW_GROWTH_NO_LIMIT)
		sample.limit_bytes = ((__u64)p->anon + shmem + p->growth.headroom)
				     << MW_GROWTH_PAGE_SHIFT;
	if (cgroup)
		*cgroup = p->cgroup;
	err = mw_opts_export(ret, &sample, sizeof(sample));
	return err ? err : 1;
}
