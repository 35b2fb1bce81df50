/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The frame of a recording: file header, block header, index, footer, checksum.
 * docs/recording-format.md has it in words. All numbers are little endian.
 */
#ifndef MW_RECORDING_FORMAT_H
#define MW_RECORDING_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memwatch/stream.h>

#define MW_FILE_MAGIC	"\x89MWREC\r\n"
#define MW_FILE_VERSION 1
#define MW_BLOCK_MAGIC	0x4b42574dU /* "MWBK" */
#define MW_FOOTER_MAGIC 0x4e45574dU /* "MWEN" */

/* Larger is not ours. */
#define MW_BLOCK_STORED_MAX (80U << 20)

struct mw_file_header {
	char magic[8];
	uint32_t version;
	uint32_t crc; /* of what is before */
};

enum mw_block_type {
	MW_BLOCK_INFO	 = 1, /* text, see mw_info_format() */
	MW_BLOCK_RECORDS = 2, /* zstd of mw_codec_encode() */
	MW_BLOCK_INDEX	 = 3, /* array of struct mw_index_entry */
};

struct mw_block_header {
	uint32_t magic;
	uint16_t type;
	uint16_t flags;
	uint32_t stored_bytes; /* that follow */
	uint32_t raw_bytes;    /* when decompressed */
	uint32_t records;
	uint32_t payload_crc;
	uint64_t first_ns;
	uint64_t last_ns;
	uint64_t sequence; /* number of the block in the file */
	uint32_t reserved[3];
	uint32_t header_crc; /* of what is before */
};

struct mw_index_entry {
	uint64_t offset; /* of the block header */
	uint64_t first_ns;
	uint64_t last_ns;
	uint32_t records;
	uint32_t reserved;
};

struct mw_footer {
	uint64_t index_offset;
	uint32_t magic;
	uint32_t crc; /* of what is before */
};

_Static_assert(sizeof(struct mw_file_header) == 16, "file header");
_Static_assert(sizeof(struct mw_block_header) == 64, "block header");
_Static_assert(sizeof(struct mw_index_entry) == 32, "index entry");
_Static_assert(sizeof(struct mw_footer) == 16, "footer");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the format is little endian");

/* CRC-32C; start with 0, feed the result back in to go on. */
uint32_t mw_crc32c(uint32_t crc, const void *bytes, size_t count);

/* Fills in magic and header_crc. */
void mw_block_header_seal(struct mw_block_header *header);
bool mw_block_header_valid(const struct mw_block_header *header);

/* pread() and pwrite() of all bytes. -EIO for a premature end. */
int mw_read_at(int fd, void *to, size_t count, uint64_t offset);
int mw_write_at(int fd, const void *from, size_t count, uint64_t offset);

/*
 * The description of a stream as lines "key: value". Caller frees *@ret with
 * free().
 */
int mw_info_format(const struct memwatch_stream_info *info, char **ret, size_t *ret_bytes);

/*
 * The inverse. Unknown keys are skipped. Strings point into *@text_ret, which
 * the caller frees with free(), after the last use of @info. -EBADMSG, -ENOMEM.
 */
int mw_info_parse(const char *text, size_t bytes, struct memwatch_stream_info *info,
		  char **text_ret);

#endif /* MW_RECORDING_FORMAT_H */
