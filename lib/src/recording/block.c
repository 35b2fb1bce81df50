// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Blocks: see block.h. A block that is read passes these checks, in this order, before its
 * records are used: header and limits (by the caller), checksum of the stored bytes, the
 * checks of the compressor, columns.
 */
#include "recording/block.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

/* --------------------------------------------------------------- packing */

int mw_packer_init(struct mw_packer *packer, uint32_t capacity, int level)
{
	size_t err;

	memset(packer, 0, sizeof(*packer));
	packer->capacity = capacity;
	packer->plain_size = mw_columns_bound(capacity);
	packer->block_size = MW_BLOCK_HEADER_BYTES + ZSTD_compressBound(packer->plain_size);
	packer->plain = malloc(packer->plain_size);
	packer->block = malloc(packer->block_size);
	packer->zstd = ZSTD_createCCtx();
	if (!packer->plain || !packer->block || !packer->zstd ||
	    mw_columns_reserve(&packer->columns,
			       capacity / sizeof(struct memwatch_record_header))) {
		mw_packer_uninit(packer);
		return -ENOMEM;
	}
	err = ZSTD_CCtx_setParameter(packer->zstd, ZSTD_c_compressionLevel, level);
	if (ZSTD_isError(err)) {
		mw_packer_uninit(packer);
		return -EINVAL;
	}
	return 0;
}

void mw_packer_uninit(struct mw_packer *packer)
{
	ZSTD_freeCCtx(packer->zstd);
	mw_columns_uninit(&packer->columns);
	free(packer->plain);
	free(packer->block);
	memset(packer, 0, sizeof(*packer));
}

uint32_t mw_packer_pack(struct mw_packer *packer, const uint8_t *records, uint32_t bytes,
			uint64_t sequence)
{
	struct mw_block_header header = {
		.version = MW_FORMAT_VERSION,
		.kind = MW_BLOCK_RECORDS,
		.codec = MW_CODEC_ZSTD,
		.sequence = sequence,
	};
	uint8_t *to = packer->block + MW_BLOCK_HEADER_BYTES;
	size_t plain, stored;

	mw_columns_index(&packer->columns, records,
			 bytes < packer->capacity ? bytes : packer->capacity);
	plain = mw_columns_encode(&packer->columns, records, packer->plain);
	stored = ZSTD_compress2(packer->zstd, to, packer->block_size - MW_BLOCK_HEADER_BYTES,
				packer->plain, plain);
	/* If the compressor lacks memory, the block is stored uncompressed: nothing is lost. */
	if (ZSTD_isError(stored) || stored >= plain) {
		memcpy(to, packer->plain, plain);
		stored = plain;
		header.codec = MW_CODEC_STORED;
	}
	header.records = packer->columns.rows;
	header.record_bytes = packer->columns.bytes;
	header.first_ns = packer->columns.first_ns;
	header.last_ns = packer->columns.last_ns;
	header.stored_bytes = (uint32_t)stored;
	header.plain_bytes = (uint32_t)plain;
	header.stored_crc = mw_crc32c(to, stored);
	mw_block_header_pack(packer->block, &header);
	packer->packed = MW_BLOCK_HEADER_BYTES + stored;
	return packer->columns.bytes;
}

/* ------------------------------------------------------------- unpacking */

void mw_unpacker_uninit(struct mw_unpacker *unpacker)
{
	ZSTD_freeDCtx(unpacker->zstd);
	mw_columns_uninit(&unpacker->columns);
	free(unpacker->stored);
	free(unpacker->plain);
	free(unpacker->records);
	memset(unpacker, 0, sizeof(*unpacker));
}

/* Makes a buffer at least @wanted bytes long. Its contents are lost. */
static int grow_buffer(uint8_t **buffer, size_t *size, size_t wanted)
{
	uint8_t *bigger;

	if (wanted <= *size)
		return 0;
	bigger = malloc(wanted);
	if (!bigger)
		return -ENOMEM;
	free(*buffer);
	*buffer = bigger;
	*size = wanted;
	return 0;
}

int mw_unpacker_reserve(struct mw_unpacker *unpacker, size_t len)
{
	return grow_buffer(&unpacker->stored, &unpacker->stored_size, len);
}

static int decompress_block(struct mw_unpacker *unpacker, const struct mw_block_header *header)
{
	size_t len;

	if (grow_buffer(&unpacker->plain, &unpacker->plain_size, header->plain_bytes))
		return -ENOMEM;
	if (!unpacker->zstd)
		unpacker->zstd = ZSTD_createDCtx();
	if (!unpacker->zstd)
		return -ENOMEM;
	/* zstd never writes beyond plain_bytes, whatever the frame says. */
	len = ZSTD_decompressDCtx(unpacker->zstd, unpacker->plain, header->plain_bytes,
				  unpacker->stored, header->stored_bytes);
	return ZSTD_isError(len) || len != header->plain_bytes ? -EBADMSG : 0;
}

/* Whether the times in the header are those of the records. Seeking relies on them. */
static bool times_match(const struct mw_unpacker *unpacker, const struct mw_block_header *header)
{
	uint64_t first = UINT64_MAX, last = 0;

	for (uint32_t i = 0; i < header->records; i++) {
		uint64_t time;

		memcpy(&time, unpacker->records + unpacker->columns.offset[i], sizeof(time));
		first = time < first ? time : first;
		last = time > last ? time : last;
	}
	return first == header->first_ns && last == header->last_ns;
}

int mw_unpacker_unpack(struct mw_unpacker *unpacker, const struct mw_block_header *header)
{
	const uint8_t *plain = unpacker->stored;
	int err = 0;

	if (mw_crc32c(unpacker->stored, header->stored_bytes) != header->stored_crc)
		return -EBADMSG;
	if (header->codec == MW_CODEC_ZSTD) {
		err = decompress_block(unpacker, header);
		plain = unpacker->plain;
	} else if (header->codec != MW_CODEC_STORED) {
		return -EBADMSG;
	}
	if (!err)
		err = grow_buffer(&unpacker->records, &unpacker->records_size,
				  header->record_bytes);
	if (!err)
		err = mw_columns_reserve(&unpacker->columns, header->records);
	unpacker->columns.dense = header->version < 2;
	if (!err)
		err = mw_columns_decode(&unpacker->columns, plain, header->plain_bytes,
					header->records, unpacker->records, header->record_bytes);
	if (!err && !times_match(unpacker, header))
		err = -EBADMSG;
	return err;
}

size_t mw_unpacker_memory(const struct mw_unpacker *unpacker)
{
	return unpacker->stored_size + unpacker->plain_size + unpacker->records_size +
	       mw_columns_memory(&unpacker->columns) +
	       (unpacker->zstd ? ZSTD_sizeof_DCtx(unpacker->zstd) : 0);
}
