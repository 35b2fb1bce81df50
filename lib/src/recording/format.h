/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What a recording looks like in the file, apart from the columns inside of a
 * block (columns.h). The words for it are in docs/recording-format.md; both
 * change together.
 */
#ifndef MW_RECORDING_FORMAT_H
#define MW_RECORDING_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memwatch/stream.h>

#define MW_FORMAT_VERSION     1

#define MW_MAGIC_BYTES	      8
#define MW_BLOCK_MAGIC	      "\x89MWBLK\r\n"
#define MW_INDEX_MAGIC	      "\x89MWEND\r\n"

#define MW_BLOCK_HEADER_BYTES 64
#define MW_TRAILER_BYTES      24

/* Limits of what a reader has to expect; they bound its memory. */
#define MW_RECORD_BYTES_MAX (16U << 20)			       /* records of a block, unpacked */
#define MW_PLAIN_BYTES_MAX  (MW_RECORD_BYTES_MAX + (1U << 16)) /* the same as columns */
#define MW_STORED_BYTES_MAX MW_PLAIN_BYTES_MAX
#define MW_INFO_BYTES_MAX   (64U << 10)

enum mw_block_kind {
	MW_BLOCK_INFO = 1,
	MW_BLOCK_RECORDS = 2,
	MW_BLOCK_INDEX = 3,
};

enum mw_block_codec {
	MW_CODEC_STORED = 0,
	MW_CODEC_ZSTD = 1,
};

/**
 * struct mw_block_header - header of a block, unpacked
 * @version: MW_FORMAT_VERSION
 * @kind: &enum mw_block_kind
 * @codec: &enum mw_block_codec
 * @stored_bytes: in the file, behind the header
 * @plain_bytes: of these, unpacked by @codec
 * @records: in the block
 * @record_bytes: their sizes added up
 * @first_ns: smallest time of a record
 * @last_ns: largest time
 * @sequence: of the block in the file, from 0
 * @stored_crc: crc32c of what is stored
 */
struct mw_block_header {
	uint16_t version;
	uint8_t kind;
	uint8_t codec;
	uint32_t stored_bytes;
	uint32_t plain_bytes;
	uint32_t records;
	uint32_t record_bytes;
	uint64_t first_ns;
	uint64_t last_ns;
	uint64_t sequence;
	uint32_t stored_crc;
};

enum mw_header_state {
	MW_HEADER_OK,
	MW_HEADER_INVALID, /* damaged, or no header at all */
	MW_HEADER_NEWER,   /* whole, but of a later version */
};

void mw_block_header_pack(uint8_t *to, const struct mw_block_header *header);

/* Checks everything that can be checked without the rest of the file. */
enum mw_header_state mw_block_header_unpack(struct mw_block_header *header, const uint8_t *from);

/* The trailer says where the index block is. */
void mw_trailer_pack(uint8_t *to, uint64_t index_offset);
bool mw_trailer_unpack(uint64_t *index_offset, const uint8_t *from);

/* Castagnoli's polynomial, as in iSCSI and ext4. */
uint32_t mw_crc32c(const void *data, size_t len);

/*
 * &struct memwatch_stream_info as text. Returns its length, or -EINVAL if it
 * would be longer than @size.
 */
long mw_info_format(const struct memwatch_stream_info *info, char *to, size_t size);

/*
 * The reverse: changes @text, which ends with a NUL at @len, and lets the
 * strings of @info point into it. Keys not known are skipped.
 */
void mw_info_parse(struct memwatch_stream_info *info, char *text, size_t len);

static inline void mw_put16(uint8_t *to, uint16_t value)
{
	to[0] = (uint8_t)value;
	to[1] = (uint8_t)(value >> 8);
}

static inline void mw_put32(uint8_t *to, uint32_t value)
{
	mw_put16(to, (uint16_t)value);
	mw_put16(to + 2, (uint16_t)(value >> 16));
}

static inline void mw_put64(uint8_t *to, uint64_t value)
{
	mw_put32(to, (uint32_t)value);
	mw_put32(to + 4, (uint32_t)(value >> 32));
}

static inline uint16_t mw_get16(const uint8_t *from)
{
	return (uint16_t)(from[0] | from[1] << 8);
}

static inline uint32_t mw_get32(const uint8_t *from)
{
	return mw_get16(from) | (uint32_t)mw_get16(from + 2) << 16;
}

static inline uint64_t mw_get64(const uint8_t *from)
{
	return mw_get32(from) | (uint64_t)mw_get32(from + 4) << 32;
}

#endif /* MW_RECORDING_FORMAT_H */
