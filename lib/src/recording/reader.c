// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The reader of recordings. The file may be cut off anywhere, damaged or hostile: every
 * number in it is checked before it is used, the limits of the format bound the memory,
 * and every step moves forward in the file.
 */
#include "recording/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recording/block.h"
#include "base/context.h"
#include "base/file-io.h"
#include "recording/format.h"
#include "recording/block-index.h"
#include "recording/delivery.h"
#include "base/timemath.h"

#define SEARCH_BYTES 65536 /* read at once when looking for the next block */

/*
 * Searching a damaged block for others reads its bytes again. All of this together is at most
 * this many times the size of the file; after that, damaged blocks are passed over whole.
 */
#define SEARCH_TIMES 4

/**
 * struct memwatch_reader - a file being read
 * @ctx: a reference
 * @path: path of the file, for messages
 * @fd: the file
 * @size: size of the file when it was opened; what is appended later is not read
 * @start: where the blocks behind the description begin
 * @offset: where the next block begins
 * @info: the description
 * @info_text: the strings of @info
 * @index: the index of the file, or one made from the headers of all blocks
 * @indexed: @index is that of the file
 * @damaged: number of damaged blocks found
 * @damaged_to: damaged blocks before this offset have been counted
 * @unpacker: the current block
 * @bytes: size of the records in the current block
 * @at: offset of the next record in the current block
 * @decoded: since opening or the last seek: size of the records in the blocks so far
 * @searched: since then: bytes of damaged blocks that were searched
 * @skip_ns: after a seek: records before this time are skipped
 * @delivery: room for a record of an older schema
 */
struct memwatch_reader {
	struct memwatch_ctx *ctx;
	char *path;
	int fd;
	uint64_t size;
	uint64_t start;
	uint64_t offset;
	struct memwatch_stream_info info;
	char *info_text;
	struct mw_block_index index;
	bool indexed;
	uint64_t damaged;
	uint64_t damaged_to;
	struct mw_unpacker unpacker;
	uint32_t bytes;
	uint32_t at;
	uint64_t decoded;
	uint64_t searched;
	uint64_t skip_ns;
	struct mw_delivery delivery;
};

static int reader_fail(struct memwatch_reader *reader, int err, const char *what)
{
	return mw_fail(reader->ctx, err, "%s: %s", reader->path, what);
}

/* Reads @len bytes at @offset, fewer at the end of the file. Returns a length or -errno. */
static ssize_t read_at(struct memwatch_reader *reader, void *to, size_t len, uint64_t offset)
{
	ssize_t n = mw_file_read_at(reader->fd, to, len, offset);

	return n < 0 ? reader_fail(reader, (int)n, strerror((int)-n)) : n;
}

/* ---------------------------------------------------------- block headers */

/*
 * Reads the header at @offset. Returns 1 if it is good and the whole block lies in the file, 0
 * if not, or a negative errno.
 */
static int header_at(struct memwatch_reader *reader, uint64_t offset,
		     struct mw_block_header *header)
{
	uint8_t bytes[MW_BLOCK_HEADER_BYTES];
	ssize_t n;

	if (offset > reader->size || reader->size - offset < sizeof(bytes))
		return 0;
	n = read_at(reader, bytes, sizeof(bytes), offset);
	if (n < 0)
		return (int)n;
	return n == sizeof(bytes) && mw_block_header_unpack(header, bytes) == MW_HEADER_OK &&
	       header->stored_bytes <= reader->size - offset - sizeof(bytes);
}

static uint64_t block_end(uint64_t offset, const struct mw_block_header *header)
{
	return offset + MW_BLOCK_HEADER_BYTES + header->stored_bytes;
}

/*
 * Finds a good block that begins in the first @len bytes at @bytes, which are those at
 * @offset of the file. Returns its position, or that from which on the search must go on.
 */
static size_t search_bytes(const struct memwatch_reader *reader, const uint8_t *bytes, size_t len,
			   uint64_t offset, bool *found)
{
	struct mw_block_header header;
	const uint8_t *magic;
	size_t at = 0;

	*found = false;
	while ((magic = memmem(bytes + at, len - at, MW_BLOCK_MAGIC, MW_MAGIC_BYTES))) {
		at = (size_t)(magic - bytes);
		if (len - at < MW_BLOCK_HEADER_BYTES)
			return at;
		*found = mw_block_header_unpack(&header, magic) == MW_HEADER_OK &&
			 block_end(offset + at, &header) <= reader->size;
		if (*found)
			return at;
		at++;
	}
	return len - (MW_MAGIC_BYTES - 1);
}

/* Finds the next good block from @offset on; *@ret is the end of the file if there is none. */
static int search_block(struct memwatch_reader *reader, uint64_t offset, uint64_t *ret)
{
	uint8_t *bytes = malloc(SEARCH_BYTES);
	bool found = false;
	ssize_t n = 0;

	if (!bytes)
		return mw_fail_memory(reader->ctx, reader->path);
	while (!found && reader->size >= offset && reader->size - offset >= MW_BLOCK_HEADER_BYTES) {
		n = read_at(reader, bytes, SEARCH_BYTES, offset);
		if (n < MW_BLOCK_HEADER_BYTES)
			break;
		offset += search_bytes(reader, bytes, (size_t)n, offset, &found);
	}
	free(bytes);
	*ret = found ? offset : reader->size;
	return n < 0 ? (int)n : 0;
}

/* Counts a damaged block, but only when the reader comes to it for the first time. */
static void count_damage(struct memwatch_reader *reader, uint64_t offset)
{
	if (offset < reader->damaged_to)
		return;
	reader->damaged++;
	reader->damaged_to = offset + 1;
	mw_log(reader->ctx, MEMWATCH_LOG_WARNING,
	       "%s: the block at %llu is damaged and was skipped", reader->path,
	       (unsigned long long)offset);
}

/*
 * Whether the bytes at @offset, behind which no good block follows, are only the beginning
 * of a block: then the file was cut off, and nothing is damaged.
 */
static int is_cut_off(struct memwatch_reader *reader, uint64_t offset)
{
	uint8_t bytes[MW_BLOCK_HEADER_BYTES];
	struct mw_block_header header;
	ssize_t n = read_at(reader, bytes, sizeof(bytes), offset);

	if (n < 0)
		return (int)n;
	if (n < (ssize_t)sizeof(bytes))
		return true;
	return mw_block_header_unpack(&header, bytes) == MW_HEADER_OK;
}

/*
 * Moves reader->offset to the next block of records. Returns 1, 0 at the end, or a negative
 * errno. Damaged blocks are counted only if @count is set.
 */
static int next_block(struct memwatch_reader *reader, struct mw_block_header *header, bool count)
{
	uint64_t next;
	int found, err;

	while (reader->offset < reader->size) {
		found = header_at(reader, reader->offset, header);
		if (found < 0)
			return found;
		if (found && header->kind == MW_BLOCK_RECORDS)
			return 1;
		if (found && header->kind == MW_BLOCK_INDEX) {
			reader->offset = reader->size;
			break;
		}
		if (found) {
			reader->offset = block_end(reader->offset, header);
			continue;
		}
		err = search_block(reader, reader->offset + 1, &next);
		if (err)
			return err;
		found = next == reader->size ? is_cut_off(reader, reader->offset) : 0;
		if (found < 0)
			return found;
		if (!found && count)
			count_damage(reader, reader->offset);
		reader->offset = next;
	}
	return 0;
}

/* ---------------------------------------------------------------- opening */

static int read_info(struct memwatch_reader *reader)
{
	uint8_t bytes[MW_BLOCK_HEADER_BYTES];
	struct mw_block_header header;
	ssize_t n = read_at(reader, bytes, sizeof(bytes), 0);

	if (n < 0)
		return (int)n;
	if (n < MW_MAGIC_BYTES || memcmp(bytes, MW_BLOCK_MAGIC, MW_MAGIC_BYTES))
		return reader_fail(reader, -ENOMSG, "it is not a recording");
	if (n < (ssize_t)sizeof(bytes))
		return reader_fail(reader, -EBADMSG, "it ends within its description");
	switch (mw_block_header_unpack(&header, bytes)) {
	case MW_HEADER_NEWER:
		return reader_fail(
			reader, -EPROTO,
			"its format is newer than this memwatch: read it with a newer one");
	case MW_HEADER_INVALID:
		return reader_fail(reader, -EBADMSG, "its description is damaged");
	case MW_HEADER_OK:
		break;
	}
	if (header.kind != MW_BLOCK_INFO || header.codec != MW_CODEC_STORED)
		return reader_fail(reader, -EBADMSG, "it does not begin with a description");

	reader->info_text = malloc(header.stored_bytes + 1);
	if (!reader->info_text)
		return mw_fail_memory(reader->ctx, reader->path);
	n = read_at(reader, reader->info_text, header.stored_bytes, sizeof(bytes));
	if (n < 0)
		return (int)n;
	if (n < (ssize_t)header.stored_bytes)
		return reader_fail(reader, -EBADMSG, "it ends within its description");
	if (mw_crc32c(reader->info_text, header.stored_bytes) != header.stored_crc)
		return reader_fail(reader, -EBADMSG, "its description is damaged");
	reader->info_text[header.stored_bytes] = '\0';
	mw_info_parse(&reader->info, reader->info_text, header.stored_bytes);
	reader->start = reader->offset = block_end(0, &header);
	return 0;
}

/* Reads the index. Returns 1, 0 if there is none or it is damaged, or a negative errno. */
static int read_index(struct memwatch_reader *reader)
{
	uint8_t trailer[MW_TRAILER_BYTES];
	struct mw_block_header header;
	uint64_t offset;
	ssize_t n;
	int err;

	if (reader->size < reader->start + sizeof(trailer))
		return 0;
	n = read_at(reader, trailer, sizeof(trailer), reader->size - sizeof(trailer));
	if (n < 0)
		return (int)n;
	if (n < (ssize_t)sizeof(trailer) || !mw_trailer_unpack(&offset, trailer))
		return 0;
	err = header_at(reader, offset, &header);
	if (err <= 0)
		return err;
	if (header.kind != MW_BLOCK_INDEX || header.codec != MW_CODEC_STORED ||
	    block_end(offset, &header) != reader->size - sizeof(trailer))
		return 0;
	if (mw_unpacker_reserve(&reader->unpacker, header.stored_bytes))
		return mw_fail_memory(reader->ctx, reader->path);
	n = read_at(reader, reader->unpacker.stored, header.stored_bytes,
		    offset + MW_BLOCK_HEADER_BYTES);
	if (n < 0)
		return (int)n;
	if (n < (ssize_t)header.stored_bytes ||
	    mw_crc32c(reader->unpacker.stored, header.stored_bytes) != header.stored_crc)
		return 0;
	err = mw_block_index_unpack(&reader->index, reader->unpacker.stored, header.stored_bytes,
				    offset);
	if (err == -EBADMSG)
		return 0;
	return err ? mw_fail_memory(reader->ctx, reader->path) : 1;
}

/* Makes an index from the headers of all blocks. */
static int scan_blocks(struct memwatch_reader *reader)
{
	struct mw_block_header header;
	int found;

	while ((found = next_block(reader, &header, false)) > 0) {
		if (mw_block_index_reserve(&reader->index))
			return mw_fail_memory(reader->ctx, reader->path);
		mw_block_index_add(&reader->index, reader->offset, &header);
		reader->offset = block_end(reader->offset, &header);
	}
	reader->offset = reader->start;
	return found;
}

static int open_file(struct memwatch_reader *reader)
{
	struct stat st;
	int err;

	reader->fd = open(reader->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (reader->fd < 0 || fstat(reader->fd, &st)) {
		err = -errno;
		return reader_fail(reader, err, strerror(-err));
	}
	if (S_ISDIR(st.st_mode))
		return reader_fail(reader, -EISDIR, strerror(EISDIR));
	if (!S_ISREG(st.st_mode))
		return reader_fail(reader, -ESPIPE, "it is not a regular file");
	reader->size = (uint64_t)st.st_size;
	return 0;
}

static int reader_start(struct memwatch_reader *reader)
{
	int err = open_file(reader);

	if (!err)
		err = read_info(reader);
	if (err)
		return err;
	err = read_index(reader);
	if (err < 0)
		return err;
	reader->indexed = err;
	return err ? 0 : scan_blocks(reader);
}

int memwatch_reader_open(struct memwatch_ctx *ctx, const char *path, struct memwatch_reader **ret)
{
	struct memwatch_reader *reader;
	int err;

	if (!path)
		return mw_fail(ctx, -EINVAL, "recording: no path");
	reader = calloc(1, sizeof(*reader));
	if (!reader)
		return mw_fail_memory(ctx, path);
	reader->ctx = memwatch_ctx_ref(ctx);
	reader->fd = -1;
	reader->path = strdup(path);
	err = reader->path ? reader_start(reader) : mw_fail_memory(ctx, path);
	if (err) {
		memwatch_reader_close(reader);
		return err;
	}
	*ret = reader;
	return 0;
}

struct memwatch_reader *memwatch_reader_close(struct memwatch_reader *reader)
{
	if (!reader)
		return NULL;
	if (reader->fd >= 0)
		close(reader->fd);
	mw_unpacker_uninit(&reader->unpacker);
	mw_block_index_uninit(&reader->index);
	memwatch_ctx_unref(reader->ctx);
	free(reader->info_text);
	free(reader->path);
	free(reader);
	return NULL;
}

const struct memwatch_stream_info *memwatch_reader_get_info(const struct memwatch_reader *reader)
{
	return &reader->info;
}

/* ---------------------------------------------------------------- reading */

/* Whether the file may be so small for what it decodes to; see MW_EXPANSION. */
static bool expansion_plausible(struct memwatch_reader *reader,
				const struct mw_block_header *header)
{
	/* This includes damaged blocks, because they cost the same. */
	reader->decoded = mw_add_sat(reader->decoded, header->record_bytes);
	return mw_expansion_offset(reader->decoded) <= block_end(reader->offset, header);
}

/* Reads and unpacks the block at reader->offset. Returns 0, -EBADMSG, or another errno. */
static int read_block(struct memwatch_reader *reader, const struct mw_block_header *header)
{
	ssize_t n;
	int err;

	if (mw_unpacker_reserve(&reader->unpacker, header->stored_bytes))
		return mw_fail_memory(reader->ctx, reader->path);
	n = read_at(reader, reader->unpacker.stored, header->stored_bytes,
		    reader->offset + MW_BLOCK_HEADER_BYTES);
	if (n < 0)
		return (int)n;
	err = n < (ssize_t)header->stored_bytes ? -EBADMSG
						: mw_unpacker_unpack(&reader->unpacker, header);
	return err && err != -EBADMSG ? mw_fail_memory(reader->ctx, reader->path) : err;
}

/* Moves from a damaged block to the next good one. */
static int pass_damage(struct memwatch_reader *reader, const struct mw_block_header *header)
{
	uint64_t end = block_end(reader->offset, header);
	struct mw_block_header next;
	int err;

	count_damage(reader, reader->offset);
	/* If the block lacks bytes, the next one begins before its end. */
	err = header_at(reader, end, &next);
	if (err < 0)
		return err;
	if (!err && end < reader->size &&
	    reader->searched + header->stored_bytes <= mw_mul_sat(reader->size, SEARCH_TIMES)) {
		reader->searched += header->stored_bytes;
		return search_block(reader, reader->offset + MW_BLOCK_HEADER_BYTES,
				    &reader->offset);
	}
	reader->offset = end;
	return 0;
}

/*
 * Unpacks the block at reader->offset and moves behind it. Returns 1; 0 if it is damaged; or a
 * negative errno.
 */
static int unpack_block(struct memwatch_reader *reader, const struct mw_block_header *header)
{
	int err = expansion_plausible(reader, header) ? read_block(reader, header) : -EBADMSG;

	if (err == -EBADMSG)
		return pass_damage(reader, header);
	if (err)
		return err;
	reader->offset = block_end(reader->offset, header);
	return 1;
}

static int load_block(struct memwatch_reader *reader)
{
	struct mw_block_header header;
	int err;

	reader->at = reader->bytes = 0;
	do {
		err = next_block(reader, &header, true);
		if (err <= 0)
			return err;
		err = unpack_block(reader, &header);
	} while (!err);
	if (err > 0)
		reader->bytes = header.record_bytes;
	return err;
}

int mw_reader_next(struct memwatch_reader *reader, struct memwatch_record_header **ret)
{
	struct memwatch_record_header *record;
	int err;

	for (;;) {
		while (reader->at < reader->bytes) {
			record = (void *)(reader->unpacker.records + reader->at);
			reader->at += record->size;
			if (record->time_ns < reader->skip_ns)
				continue;
			*ret = mw_delivery_complete(&reader->delivery, record);
			return 1;
		}
		/* The block to which memwatch_reader_seek() went has been read. */
		if (reader->bytes)
			reader->skip_ns = 0;
		err = load_block(reader);
		if (err <= 0)
			return err;
	}
}

int memwatch_reader_next(struct memwatch_reader *reader, const struct memwatch_record_header **ret)
{
	struct memwatch_record_header *record;
	int found = mw_reader_next(reader, &record);

	if (found > 0)
		*ret = record;
	return found;
}

int memwatch_reader_seek(struct memwatch_reader *reader, __u64 time_ns)
{
	const struct mw_block_index_entry *entry = mw_block_index_find(&reader->index, time_ns);
	struct mw_block_header header;
	int found;

	reader->at = reader->bytes = 0;
	reader->decoded = reader->searched = 0;
	reader->skip_ns = time_ns;
	reader->offset = entry ? entry->offset : reader->size;
	while ((found = next_block(reader, &header, false)) > 0 && header.last_ns < time_ns)
		reader->offset = block_end(reader->offset, &header);
	return found < 0 ? found : 0;
}

int memwatch_reader_get_stats(const struct memwatch_reader *reader,
			      struct memwatch_reader_stats *ret)
{
	struct memwatch_reader_stats stats = { 0 };
	struct mw_block_index_entry total;

	mw_block_index_total(&reader->index, &total);
	stats.blocks = total.blocks;
	stats.records = total.records;
	stats.file_bytes = reader->size;
	stats.damaged = reader->damaged;
	stats.first_ns = total.first_ns;
	stats.last_ns = total.last_ns;
	stats.indexed = reader->indexed;
	stats.truncated = !reader->indexed;
	return mw_opts_export(ret, &stats, sizeof(stats));
}

size_t mw_reader_memory(const struct memwatch_reader *reader)
{
	return sizeof(*reader) + mw_unpacker_memory(&reader->unpacker) +
	       reader->index.size * sizeof(*reader->index.entry) + reader->info.sz;
}
