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

int mw_snapshot_take(struct memwatch_ctx *ctx, struct mw_snapshot *snapshot,
		     struct mw_bpf_growth *bpf)
{
	struct mw_growth_key *last = NULL;
	struct mw_snapshot_item item;

	snapshot->count = 0;
	memset(&item, 0, sizeof(item));
	while (mw_bpf_growth_next(bpf, last, &item.key, &item.process)) {
		if (mw_array_reserve(snapshot->items, snapshot->capacity, snapshot->count + 1))
			return mw_fail_memory(ctx, "snapshot of all processes");
		snapshot->items[snapshot->count] = item;
		last = &snapshot->items[snapshot->count++].key;
	}
	return (int)snapshot->count;
}

int mw_snapshot_row(const struct mw_snapshot *snapshot, struct mw_bpf_growth *bpf,
		    unsigned int index, struct memwatch_growth_row *ret)
{
	MEMWATCH_OPTS(memwatch_growth_row, row);
	const struct mw_snapshot_item *item;
	struct mw_growth_history history;
	int err;

	if (index >= snapshot->count)
		return 0;
	item = &snapshot->items[index];
	row.tgid = item->key.tgid;
	row.start_time_ns = item->key.start_ns;
	memcpy(row.comm, item->process.comm, sizeof(item->process.comm));
	row.limit = item->process.limit;
	mw_growth_row_fill(&row, &item->process.growth,
			   mw_bpf_growth_history(bpf, &item->key, &history) ? &history : NULL);
	err = mw_opts_export(ret, &row, sizeof(row));
	return err ? err : 1;
}

int mw_snapshot_sample(const struct mw_snapshot *snapshot, unsigned int index,
		       struct memwatch_growth_sample *ret, __u64 *cgroup)
{
	const struct mw_growth_process *p;

	if (index >= snapshot->count)
		return 0;
	p = &snapshot->items[index].process;
	memset(ret, 0, sizeof(*ret));
	ret->time_ns = p->growth.last_ns;
	ret->start_time_ns = snapshot->items[index].key.start_ns;
	ret->tgid = snapshot->items[index].key.tgid;
	memcpy(ret->comm, p->comm, sizeof(p->comm));
	ret->anon_bytes = mw_bytes_from_pages(p->anon);
	ret->file_bytes = mw_bytes_from_pages(p->growth.file);
	ret->shmem_bytes = mw_bytes_from_pages(p->shmem);
	ret->swap_bytes = mw_bytes_from_pages(p->swap);
	ret->vsz_bytes = mw_bytes_from_pages(p->growth.vsz);
	ret->limit_bytes = MEMWATCH_GROWTH_NONE;
	if (p->growth.headroom != MW_GROWTH_NO_LIMIT)
		ret->limit_bytes = ((__u64)p->anon + p->shmem + p->growth.headroom)
				   << MW_GROWTH_PAGE_SHIFT;
	if (cgroup)
		*cgroup = p->cgroup;
	return 1;
}
