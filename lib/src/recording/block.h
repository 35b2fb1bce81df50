/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * One block of a recording: records in memory, header and compressed columns
 * in the file. Knows no file and no other block.
 */
#ifndef MW_BLOCK_H
#define MW_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recording/columns.h"
#include "recording/format.h"

typedef struct ZSTD_CCtx_s ZSTD_CCtx;
typedef struct ZSTD_DCtx_s ZSTD_DCtx;

/**
 * struct mw_packer - collects records and makes a block of them
 * @zstd: compressor
 * @columns: of what was collected
 * @records: what was collected
 * @plain: the same as columns
 * @block: the finished block, header included
 * @capacity: of @records
 * @plain_size: of @plain
 * @block_size: of @block
 * @packed: length of @block, 0 if there is none for what was collected
 * @first_ns: smallest time
 * @last_ns: largest time
 */
struct mw_packer {
	ZSTD_CCtx *zstd;
	struct mw_columns columns;
	uint8_t *records;
	uint8_t *plain;
	uint8_t *block;
	uint32_t capacity;
	size_t plain_size;
	size_t block_size;
	size_t packed;
	uint64_t first_ns;
	uint64_t last_ns;
};

/* Everything that is ever needed is allocated here. 0, -ENOMEM or -EINVAL. */
int mw_packer_init(struct mw_packer *packer, uint32_t capacity, int level);
void mw_packer_uninit(struct mw_packer *packer);

/* Forgets the records. */
void mw_packer_reset(struct mw_packer *packer);

/* Takes a valid record. False, and nothing taken, if it has no room. */
bool mw_packer_take(struct mw_packer *packer, const struct memwatch_record_header *record);

/* Makes @block, unless it is made already. There is something in it. */
void mw_packer_pack(struct mw_packer *packer, uint64_t sequence);

/**
 * struct mw_unpacker - makes records of a block
 * @zstd: decompressor
 * @columns: of the block
 * @stored: what follows the header in the file; the caller reads it in
 * @plain: decompressed
 * @records: decoded, 8-byte aligned
 * @stored_size: of @stored
 * @plain_size: of @plain
 * @records_size: of @records
 *
 * The buffers only grow, up to the limits of recording-format.h. All zero is a
 * valid beginning.
 */
struct mw_unpacker {
	ZSTD_DCtx *zstd;
	struct mw_columns columns;
	uint8_t *stored;
	uint8_t *plain;
	uint8_t *records;
	size_t stored_size;
	size_t plain_size;
	size_t records_size;
};

void mw_unpacker_uninit(struct mw_unpacker *unpacker);

/* Room in @stored for @len bytes. 0 or -ENOMEM. */
int mw_unpacker_reserve(struct mw_unpacker *unpacker, size_t len);

/*
 * Unpacks @stored, which belongs to the header @header of kind RECORDS, into
 * @records. 0, -EBADMSG or -ENOMEM.
 */
int mw_unpacker_unpack(struct mw_unpacker *unpacker, const struct mw_block_header *header);

/* Bytes of memory held. */
size_t mw_unpacker_memory(const struct mw_unpacker *unpacker);

#endif /* MW_BLOCK_H */
