/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The index of a recording: which part of the file has the records of a time. An entry
 * stands for several consecutive blocks. When there are too many entries, neighbours are
 * joined, so the index of a week is not larger than that of an hour. Within the blocks of
 * an entry, a reader goes from header to header.
 */
#ifndef MW_RECORDING_INDEX_H
#define MW_RECORDING_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "recording/format.h"

#define MW_INDEX_ENTRIES_MAX 8192
#define MW_INDEX_ENTRY_BYTES 40

/**
 * struct mw_block_index_entry - consecutive blocks of records
 * @offset: where the first of them begins in the file
 * @first_ns: smallest time of a record in them
 * @last_ns: largest time of a record in them
 * @records: number of records in them
 * @blocks: number of blocks
 */
struct mw_block_index_entry {
	uint64_t offset;
	uint64_t first_ns;
	uint64_t last_ns;
	uint64_t records;
	uint64_t blocks;
};

/**
 * struct mw_block_index - the index of a file
 * @entry: the entries, in the order of the file
 * @count: length of @entry
 * @size: how many entries fit
 * @stride: number of blocks of a complete entry
 */
struct mw_block_index {
	struct mw_block_index_entry *entry;
	size_t count;
	size_t size;
	uint64_t stride;
};

void mw_block_index_uninit(struct mw_block_index *index);

/* Makes room for one more block, so that mw_block_index_add() cannot fail. 0 or -ENOMEM. */
int mw_block_index_reserve(struct mw_block_index *index);

/* Adds a block of records at @offset, which lies behind all others. */
void mw_block_index_add(struct mw_block_index *index, uint64_t offset,
			const struct mw_block_header *header);

/* The sum of all entries, with @total->offset 0. */
void mw_block_index_total(const struct mw_block_index *index, struct mw_block_index_entry *total);

/* The first entry with a record of @time_ns or later, or NULL. */
const struct mw_block_index_entry *mw_block_index_find(const struct mw_block_index *index,
						       uint64_t time_ns);

/* Writes the index in the format of the file: MW_INDEX_ENTRY_BYTES for each entry. */
void mw_block_index_pack(const struct mw_block_index *index, uint8_t *to);

/*
 * Reads an index that lies at @end of the file, behind all blocks that it names.
 * Returns 0, -EBADMSG or -ENOMEM.
 */
int mw_block_index_unpack(struct mw_block_index *index, const uint8_t *from, size_t len,
			  uint64_t end);

#endif /* MW_RECORDING_INDEX_H */
