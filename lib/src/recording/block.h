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
 * struct mw_packer - makes a block of records
 * @zstd: compressor
 * @columns: columns of the records
 * @plain: the records as encoded columns
 * @block: the finished block with its header
 * @capacity: bytes of records that fit into a block
 * @plain_size: size of @plain
 * @block_size: size of @block
 * @packed: length of the finished block
 */
struct mw_packer {
	ZSTD_CCtx *zstd;
	struct mw_columns columns;
	uint8_t *plain;
	uint8_t *block;
	uint32_t capacity;
	size_t plain_size;
	size_t block_size;
	size_t packed;
};

/* Allocates all memory that the packer will need. Returns 0, -ENOMEM or -EINVAL. */
int mw_packer_init(struct mw_packer *packer, uint32_t capacity, int level);
void mw_packer_uninit(struct mw_packer *packer);

/*
 * Makes a block of the records at @records, which are valid and lie directly behind each other.
 * Returns how many of the @bytes are in it: all, unless there are too many for a block.
 */
uint32_t mw_packer_pack(struct mw_packer *packer, const uint8_t *records, uint32_t bytes,
			uint64_t sequence);

/**
 * struct mw_unpacker - decodes the records of a block
 * @zstd: decompressor
 * @columns: columns of the block
 * @stored: payload of the block as in the file; the caller reads it
 * @plain: decompressed payload
 * @records: decoded records, 8-byte aligned
 * @stored_size: size of @stored
 * @plain_size: size of @plain
 * @records_size: size of @records
 *
 * The buffers grow up to the limits of format.h. A zeroed structure is valid.
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

/* Makes room for @len bytes in @stored. Returns 0 or -ENOMEM. */
int mw_unpacker_reserve(struct mw_unpacker *unpacker, size_t len);

/*
 * Decodes @stored, the payload of a block of records with this header, into @records. Returns
 * 0, -EBADMSG or -ENOMEM.
 */
int mw_unpacker_unpack(struct mw_unpacker *unpacker, const struct mw_block_header *header);

/* The number of bytes that the unpacker has allocated. */
size_t mw_unpacker_memory(const struct mw_unpacker *unpacker);

#endif /* MW_BLOCK_H */
