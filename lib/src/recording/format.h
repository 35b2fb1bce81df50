/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The format of the file, except the columns in a block (columns.h). It is described in
 * docs/recording-format.md; both must change together.
 */
#ifndef MW_RECORDING_FORMAT_H
#define MW_RECORDING_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memwatch/stream.h>

#define MW_FORMAT_VERSION     2

#define MW_MAGIC_BYTES	      8
#define MW_BLOCK_MAGIC	      "\x89MWBLK\r\n"
#define MW_INDEX_MAGIC	      "\x89MWEND\r\n"

#define MW_BLOCK_HEADER_BYTES 64
#define MW_TRAILER_BYTES      24

/* Limits that bound the memory of a reader. */
#define MW_RECORD_BYTES_MAX (16U << 20)			       /* records of a block */
#define MW_PLAIN_BYTES_MAX  (MW_RECORD_BYTES_MAX + (1U << 16)) /* the same, as columns */
#define MW_STORED_BYTES_MAX MW_PLAIN_BYTES_MAX
#define MW_INFO_BYTES_MAX   (64U << 10)

/* Columns have at most this more bytes than their records: class table and masks. */
#define MW_PLAIN_OVERHEAD (32U << 10)

/*
 * A file must not be much smaller than what it decodes to: the records up to the end of a
 * block have at most MW_EXPANSION_BASE + MW_EXPANSION * (offset of this end) bytes. Records of
 * a real machine take no more than 1/50 of this. The writer adds blocks of padding if the
 * records are so regular that they would compress even better.
 */
#define MW_EXPANSION	  256ULL
#define MW_EXPANSION_BASE (4ULL << 20)

enum mw_block_kind {
	MW_BLOCK_INFO = 1,
	MW_BLOCK_RECORDS = 2,
	MW_BLOCK_INDEX = 3,
	MW_BLOCK_PADDING = 4,
};

enum mw_block_codec {
	MW_CODEC_STORED = 0,
	MW_CODEC_ZSTD = 1,
};

/**
 * struct mw_block_header - header of a block, as numbers
 * @version: 1 to MW_FORMAT_VERSION
 * @kind: &enum mw_block_kind
 * @codec: &enum mw_block_codec
 * @stored_bytes: length of the payload in the file
 * @plain_bytes: length of the payload, decoded by @codec
 * @records: number of records
 * @record_bytes: size of all records
 * @first_ns: smallest time of a record
 * @last_ns: largest time of a record
 * @sequence: number of the block in the file, counted from 0
 * @stored_crc: crc32c of the payload in the file
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
	MW_HEADER_INVALID, /* damaged, or not a header */
	MW_HEADER_NEWER,   /* undamaged, but of a newer version */
};

void mw_block_header_pack(uint8_t *to, const struct mw_block_header *header);

/* Reads a header and checks all that can be checked without the rest of the file. */
enum mw_header_state mw_block_header_unpack(struct mw_block_header *header, const uint8_t *from);

/* The offset that the end of a block must reach so that its file may hold @record_bytes. */
static inline uint64_t mw_expansion_offset(uint64_t record_bytes)
{
	if (record_bytes <= MW_EXPANSION_BASE)
		return 0;
	return (record_bytes - MW_EXPANSION_BASE + MW_EXPANSION - 1) / MW_EXPANSION;
}

/* The trailer has the offset of the index block. */
void mw_trailer_pack(uint8_t *to, uint64_t index_offset);
bool mw_trailer_unpack(uint64_t *index_offset, const uint8_t *from);

/* CRC with Castagnoli's polynomial, as in iSCSI and ext4. */
uint32_t mw_crc32c(const void *data, size_t len);

/*
 * Writes &struct memwatch_stream_info as text. Returns the length, or -EINVAL if it exceeds
 * @size.
 */
long mw_info_format(const struct memwatch_stream_info *info, char *to, size_t size);

/*
 * Reads this text, which must have a NUL at @len. The text is modified, and the strings of
 * @info point into it. Unknown keys are skipped.
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
