// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The index of a recording: see block-index.h.
 */
#include "recording/block-index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/timemath.h"

void mw_block_index_uninit(struct mw_block_index *index)
{
	free(index->entry);
	memset(index, 0, sizeof(*index));
}

int mw_block_index_reserve(struct mw_block_index *index)
{
	/* At MW_INDEX_ENTRIES_MAX entries, adding a block joins others. */
	if (index->count == MW_INDEX_ENTRIES_MAX)
		return 0;
	return mw_array_reserve(index->entry, index->size, index->count + 1);
}

static void join_entries(struct mw_block_index_entry *to, const struct mw_block_index_entry *from)
{
	to->first_ns = mw_min_u64(to->first_ns, from->first_ns);
	to->last_ns = mw_max_u64(to->last_ns, from->last_ns);
	to->records = mw_add_sat(to->records, from->records);
	to->blocks = mw_add_sat(to->blocks, from->blocks);
}

/* Joins neighbours: half as many entries, each for twice as many blocks. */
static void halve_index(struct mw_block_index *index)
{
	for (size_t i = 0; i < index->count; i++) {
		if (i % 2)
			join_entries(&index->entry[i / 2], &index->entry[i]);
		else
			index->entry[i / 2] = index->entry[i];
	}
	index->count = (index->count + 1) / 2;
	index->stride *= 2;
}

void mw_block_index_add(struct mw_block_index *index, uint64_t offset,
			const struct mw_block_header *header)
{
	struct mw_block_index_entry entry = {
		.offset = offset,
		.first_ns = header->first_ns,
		.last_ns = header->last_ns,
		.records = header->records,
		.blocks = 1,
	};
	struct mw_block_index_entry *last = index->count ? &index->entry[index->count - 1] : NULL;

	if (!index->stride)
		index->stride = 1;
	if (last && last->blocks < index->stride) {
		join_entries(last, &entry);
		return;
	}
	if (index->count == MW_INDEX_ENTRIES_MAX)
		halve_index(index);
	index->entry[index->count++] = entry;
}

void mw_block_index_total(const struct mw_block_index *index, struct mw_block_index_entry *total)
{
	memset(total, 0, sizeof(*total));
	if (!index->count)
		return;
	total->first_ns = UINT64_MAX;
	for (size_t i = 0; i < index->count; i++)
		join_entries(total, &index->entry[i]);
}

const struct mw_block_index_entry *mw_block_index_find(const struct mw_block_index *index,
						       uint64_t time_ns)
{
	for (size_t i = 0; i < index->count; i++) {
		if (index->entry[i].last_ns >= time_ns)
			return &index->entry[i];
	}
	return NULL;
}

void mw_block_index_pack(const struct mw_block_index *index, uint8_t *to)
{
	for (size_t i = 0; i < index->count; i++, to += MW_INDEX_ENTRY_BYTES) {
		mw_put64(to, index->entry[i].offset);
		mw_put64(to + 8, index->entry[i].first_ns);
		mw_put64(to + 16, index->entry[i].last_ns);
		mw_put64(to + 24, index->entry[i].records);
		mw_put64(to + 32, index->entry[i].blocks);
	}
}

int mw_block_index_unpack(struct mw_block_index *index, const uint8_t *from, size_t len,
			  uint64_t end)
{
	size_t count = len / MW_INDEX_ENTRY_BYTES;
	uint64_t before = 0;

	memset(index, 0, sizeof(*index));
	if (len % MW_INDEX_ENTRY_BYTES || count > MW_INDEX_ENTRIES_MAX)
		return -EBADMSG;
	index->entry = calloc(count ? count : 1, sizeof(*index->entry));
	if (!index->entry)
		return -ENOMEM;
	index->size = index->count = count;
	for (size_t i = 0; i < count; i++, from += MW_INDEX_ENTRY_BYTES) {
		struct mw_block_index_entry *entry = &index->entry[i];

		entry->offset = mw_get64(from);
		entry->first_ns = mw_get64(from + 8);
		entry->last_ns = mw_get64(from + 16);
		entry->records = mw_get64(from + 24);
		entry->blocks = mw_get64(from + 32);
		if (entry->offset <= before || entry->offset >= end ||
		    entry->first_ns > entry->last_ns) {
			mw_block_index_uninit(index);
			return -EBADMSG;
		}
		before = entry->offset;
	}
	return 0;
}
