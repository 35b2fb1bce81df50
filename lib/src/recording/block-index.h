/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Where in a recording which times are. One entry stands for a run of blocks;
 * when there are too many entries, neighbours are joined. So the index of a
 * week is as large as that of an hour, and finds a place as well: within an
 * entry the block headers say the rest.
 */
#ifndef MW_RECORDING_INDEX_H
#define MW_RECORDING_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "recording/format.h"

#define MW_INDEX_ENTRIES_MAX 8192
#define MW_INDEX_ENTRY_BYTES 40

/**
 * struct mw_index_entry - a run of blocks
 * @offset: of the first, in the file
 * @first_ns: smallest time in them
 * @last_ns: largest time
 * @records: in them
 * @blocks: how many
 */
struct mw_index_entry {
	uint64_t offset;
	uint64_t first_ns;
	uint64_t last_ns;
	uint64_t records;
	uint64_t blocks;
};

/**
 * struct mw_index - index of a file
 * @entry: the runs, in the order of the file
 * @count: of them
 * @size: room in @entry
 * @stride: blocks that make a run full
 */
struct mw_index {
	struct mw_index_entry *entry;
	size_t count;
	size_t size;
	uint64_t stride;
};

void mw_index_uninit(struct mw_index *index);

/* Room for one more block, so that mw_index_add() cannot fail. 0 or -ENOMEM. */
int mw_index_reserve(struct mw_index *index);

/* Adds a block of records that lies at @offset, behind all others. */
void mw_index_add(struct mw_index *index, uint64_t offset, const struct mw_block_header *header);

/* Totals of all entries; @total->offset is 0. */
void mw_index_total(const struct mw_index *index, struct mw_index_entry *total);

/* The first entry with a time of @time_ns or later, or NULL. */
const struct mw_index_entry *mw_index_find(const struct mw_index *index, uint64_t time_ns);

/* Writes MW_INDEX_ENTRY_BYTES for each entry. */
void mw_index_pack(const struct mw_index *index, uint8_t *to);

/*
 * Reads the index that lies at @end, behind everything that it speaks of.
 * 0, -EBADMSG or -ENOMEM.
 */
int mw_index_unpack(struct mw_index *index, const uint8_t *from, size_t len, uint64_t end);

#endif /* MW_RECORDING_INDEX_H */
