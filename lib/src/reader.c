// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reading recordings. Where the blocks are comes from the index, or, if there
 * is none, from walking over their headers; either way a block counts only if
 * it is whole, and is read only if its checksum is right.
 */
#include <memwatch/recording.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "context.h"
#include "record-codec.h"
#include "recording-format.h"
#include "timemath.h"

#define SEARCH_CHUNK (64U << 10)

struct memwatch_reader {
	struct memwatch_ctx *ctx;
	char *path;
	int fd;
	struct memwatch_stream_info info;
	char *info_text;

	struct mw_index_entry *blocks;
	size_t nr_blocks, max_blocks;
	size_t next_block;
	uint64_t skip_before_ns; /* after a seek, in the first block */

	uint8_t *stored, *columns;
	size_t max_stored, max_columns;
	struct mw_codec *codec;
	ZSTD_DCtx *zstd;
	const uint8_t *at, *end; /* records of the present block */
	struct memwatch_reader_stats stats;
};

static int fail(struct memwatch_reader *reader, int err, const char *what)
{
	return mw_fail(reader->ctx, err, "%s: %s", reader->path, what);
}

static int grow(struct memwatch_reader *reader, uint8_t **buffer, size_t *max, size_t want)
{
	uint8_t *bigger;

	if (want <= *max)
		return 0;
	bigger = realloc(*buffer, want);
	if (!bigger)
		return fail(reader, -ENOMEM, "no memory");
	*buffer = bigger;
	*max = want;
	return 0;
}

struct memwatch_reader *memwatch_reader_close(struct memwatch_reader *reader)
{
	if (!reader)
		return NULL;
	if (reader->fd >= 0)
		close(reader->fd);
	mw_codec_free(reader->codec);
	ZSTD_freeDCtx(reader->zstd);
	memwatch_ctx_unref(reader->ctx);
	free(reader->path);
	free(reader->info_text);
	free(reader->blocks);
	free(reader->stored);
	free(reader->columns);
	free(reader);
	return NULL;
}

/* ------------------------------------------------------ finding the blocks */

/* 1: there is a whole block; 0: there is none. */
static int header_at(struct memwatch_reader *reader, uint64_t offset,
		     struct mw_block_header *header)
{
	uint64_t size = reader->stats.file_bytes;

	if (offset > size || size - offset < sizeof(*header))
		return 0;
	if (mw_read_at(reader->fd, header, sizeof(*header), offset))
		return 0;
	return mw_block_header_valid(header) &&
	       header->stored_bytes <= size - offset - sizeof(*header);
}

static int add_block(struct memwatch_reader *reader, const struct mw_index_entry *entry)
{
	if (reader->nr_blocks == reader->max_blocks) {
		size_t max = reader->max_blocks ? reader->max_blocks * 2 : 64;
		struct mw_index_entry *blocks = realloc(reader->blocks, max * sizeof(*blocks));

		if (!blocks)
			return fail(reader, -ENOMEM, "no memory");
		reader->blocks = blocks;
		reader->max_blocks = max;
	}
	reader->blocks[reader->nr_blocks++] = *entry;
	return 0;
}

/* The next header behind damage: 1, or 0 if there is none. */
static int search(struct memwatch_reader *reader, uint64_t *offset, struct mw_block_header *header)
{
	uint8_t chunk[SEARCH_CHUNK];
	uint64_t at = *offset + 1;

	while (at + sizeof(*header) <= reader->stats.file_bytes) {
		size_t count = (size_t)mw_min_u64(sizeof(chunk), reader->stats.file_bytes - at);
		uint32_t magic;

		if (mw_read_at(reader->fd, chunk, count, at))
			return 0;
		for (size_t i = 0; i + sizeof(magic) <= count; i++) {
			memcpy(&magic, chunk + i, sizeof(magic));
			if (magic == MW_BLOCK_MAGIC && header_at(reader, at + i, header)) {
				*offset = at + i;
				return 1;
			}
		}
		at += count - (sizeof(magic) - 1);
	}
	return 0;
}

static int walk(struct memwatch_reader *reader, uint64_t offset)
{
	struct mw_block_header header;

	reader->nr_blocks = 0;
	while (offset < reader->stats.file_bytes) {
		if (!header_at(reader, offset, &header)) {
			uint64_t damage = offset;

			if (!search(reader, &offset, &header))
				break;
			mw_log(reader->ctx, MEMWATCH_LOG_WARNING,
			       "%s: damage between %llu and %llu", reader->path,
			       (unsigned long long)damage, (unsigned long long)offset);
			reader->stats.damaged++;
		}
		if (header.type == MW_BLOCK_RECORDS) {
			struct mw_index_entry entry = {
				.offset = offset,
				.first_ns = header.first_ns,
				.last_ns = header.last_ns,
				.records = header.records,
			};

			if (add_block(reader, &entry))
				return -ENOMEM;
		}
		offset += sizeof(header) + header.stored_bytes;
	}
	return 0;
}

/* 1: the index is there, whole and right. */
static int read_index(struct memwatch_reader *reader)
{
	uint64_t size = reader->stats.file_bytes;
	struct mw_block_header header;
	struct mw_index_entry entry;
	struct mw_footer footer;
	size_t count;
	int err;

	if (size < sizeof(footer) ||
	    mw_read_at(reader->fd, &footer, sizeof(footer), size - sizeof(footer)) ||
	    footer.magic != MW_FOOTER_MAGIC ||
	    footer.crc != mw_crc32c(0, &footer, offsetof(struct mw_footer, crc)) ||
	    !header_at(reader, footer.index_offset, &header) || header.type != MW_BLOCK_INDEX)
		return 0;
	err = grow(reader, &reader->stored, &reader->max_stored, header.stored_bytes);
	if (err)
		return err;
	if (mw_read_at(reader->fd, reader->stored, header.stored_bytes,
		       footer.index_offset + sizeof(header)) ||
	    header.payload_crc != mw_crc32c(0, reader->stored, header.stored_bytes))
		return 0;
	count = header.stored_bytes / sizeof(entry);
	for (size_t i = 0; i < count; i++) {
		memcpy(&entry, reader->stored + i * sizeof(entry), sizeof(entry));
		if (add_block(reader, &entry))
			return -ENOMEM;
	}
	return 1;
}

static int find_blocks(struct memwatch_reader *reader, uint64_t start)
{
	struct memwatch_reader_stats *stats = &reader->stats;
	int found = read_index(reader);

	if (found < 0)
		return found;
	stats->indexed = (uint32_t)found;
	stats->truncated = !found;
	if (!found && walk(reader, start))
		return -ENOMEM;

	stats->blocks = reader->nr_blocks;
	for (size_t i = 0; i < reader->nr_blocks; i++) {
		const struct mw_index_entry *block = &reader->blocks[i];

		stats->records += block->records;
		stats->first_ns = i ? mw_min_u64(stats->first_ns, block->first_ns) : block->first_ns;
		stats->last_ns = mw_max_u64(stats->last_ns, block->last_ns);
	}
	return 0;
}

/* --------------------------------------------------------------- opening */

static int read_info(struct memwatch_reader *reader, uint64_t offset, uint64_t *next)
{
	struct mw_block_header header;
	int err;

	if (!header_at(reader, offset, &header) || header.type != MW_BLOCK_INFO)
		return fail(reader, -EBADMSG, "its description is damaged or cut off");
	err = grow(reader, &reader->stored, &reader->max_stored, header.stored_bytes);
	if (err)
		return err;
	err = mw_read_at(reader->fd, reader->stored, header.stored_bytes, offset + sizeof(header));
	if (err)
		return fail(reader, err, "cannot be read");
	if (header.payload_crc != mw_crc32c(0, reader->stored, header.stored_bytes) ||
	    mw_info_parse((const char *)reader->stored, header.stored_bytes, &reader->info,
			  &reader->info_text))
		return fail(reader, -EBADMSG, "its description is damaged");
	*next = offset + sizeof(header) + header.stored_bytes;
	return 0;
}

static void complete_info(struct memwatch_stream_info *info)
{
	const char **texts[] = { &info->backend, &info->backend_reason, &info->hostname,
				 &info->kernel, &info->version };

	info->sz = sizeof(*info);
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		if (!*texts[i])
			*texts[i] = "";
	}
	for (int i = 0; i < MEMWATCH_COUNTER_MAX; i++) {
		if (!info->counter[i].reason)
			info->counter[i].reason = "";
	}
	for (int i = 0; i < MEMWATCH_RDT_MAX; i++) {
		if (!info->rdt[i].reason)
			info->rdt[i].reason = "";
	}
}

static int open_file(struct memwatch_reader *reader)
{
	struct mw_file_header file;
	struct stat status;
	uint64_t start = 0;
	int err;

	reader->fd = open(reader->path, O_RDONLY | O_CLOEXEC);
	if (reader->fd < 0 || fstat(reader->fd, &status))
		return fail(reader, -errno, strerror(errno));
	if (!S_ISREG(status.st_mode))
		return fail(reader, S_ISDIR(status.st_mode) ? -EISDIR : -ENOMSG,
			    "not a file that can be searched");
	reader->stats.file_bytes = (uint64_t)status.st_size;
	if (status.st_size < (off_t)sizeof(file) ||
	    mw_read_at(reader->fd, &file, sizeof(file), 0) ||
	    memcmp(file.magic, MW_FILE_MAGIC, sizeof(file.magic)))
		return fail(reader, -ENOMSG, "not a memwatch recording");
	if (file.crc != mw_crc32c(0, &file, offsetof(struct mw_file_header, crc)))
		return fail(reader, -EBADMSG, "its first bytes are damaged");
	if (file.version != MW_FILE_VERSION)
		return fail(reader, -EPROTO, "its format is newer than this library");

	err = read_info(reader, sizeof(file), &start);
	if (err)
		return err;
	complete_info(&reader->info);
	return find_blocks(reader, start);
}

int memwatch_reader_open(struct memwatch_ctx *ctx, const char *path, struct memwatch_reader **ret)
{
	struct memwatch_reader *reader = calloc(1, sizeof(*reader));
	int err = -ENOMEM;

	if (!reader)
		return mw_fail(ctx, -ENOMEM, "%s: no memory", path);
	reader->ctx = memwatch_ctx_ref(ctx);
	reader->fd = -1;
	reader->path = strdup(path);
	reader->zstd = ZSTD_createDCtx();
	if (reader->path && reader->zstd && !mw_codec_new(&reader->codec))
		err = open_file(reader);
	else
		mw_fail(ctx, err, "%s: no memory", path);
	if (err) {
		memwatch_reader_close(reader);
		return err;
	}
	*ret = reader;
	return 0;
}

/* --------------------------------------------------------------- reading */

/* 0; -EBADMSG if the block is damaged. */
static int load_block(struct memwatch_reader *reader, const struct mw_index_entry *block)
{
	struct mw_block_header header;
	size_t bytes, got;
	const void *records;
	int err;

	if (!header_at(reader, block->offset, &header) || header.type != MW_BLOCK_RECORDS ||
	    header.raw_bytes > MW_CODEC_BYTES_MAX)
		return -EBADMSG;
	err = grow(reader, &reader->stored, &reader->max_stored, header.stored_bytes);
	err = err ? err : grow(reader, &reader->columns, &reader->max_columns, header.raw_bytes);
	if (err)
		return err;
	err = mw_read_at(reader->fd, reader->stored, header.stored_bytes,
			 block->offset + sizeof(header));
	if (err)
		return fail(reader, err, "cannot be read");
	if (header.payload_crc != mw_crc32c(0, reader->stored, header.stored_bytes))
		return -EBADMSG;
	got = ZSTD_decompressDCtx(reader->zstd, reader->columns, header.raw_bytes, reader->stored,
				  header.stored_bytes);
	if (ZSTD_isError(got) || got != header.raw_bytes)
		return -EBADMSG;
	err = mw_codec_decode(reader->codec, reader->columns, got, &records, &bytes);
	if (err)
		return err;
	reader->at = records;
	reader->end = reader->at + bytes;
	return 0;
}

int memwatch_reader_next(struct memwatch_reader *reader, const struct memwatch_record_header **ret)
{
	for (;;) {
		const struct mw_index_entry *block;
		int err;

		while (reader->at < reader->end) {
			const struct memwatch_record_header *header = (const void *)reader->at;

			reader->at += header->size;
			if (header->time_ns >= reader->skip_before_ns) {
				*ret = header;
				return 1;
			}
		}
		/* a seek skips in one block; late records in the next ones count */
		if (reader->end)
			reader->skip_before_ns = 0;
		if (reader->next_block == reader->nr_blocks)
			return 0;
		block = &reader->blocks[reader->next_block++];
		reader->at = NULL;
		reader->end = NULL;
		err = load_block(reader, block);
		if (err == -EBADMSG) {
			mw_log(reader->ctx, MEMWATCH_LOG_WARNING, "%s: block at %llu is damaged",
			       reader->path, (unsigned long long)block->offset);
			reader->stats.damaged++;
		} else if (err) {
			return err;
		}
	}
}

int memwatch_reader_seek(struct memwatch_reader *reader, __u64 time_ns)
{
	size_t at = 0;

	while (at < reader->nr_blocks && reader->blocks[at].last_ns < time_ns)
		at++;
	reader->next_block = at;
	reader->at = NULL;
	reader->end = NULL;
	reader->skip_before_ns = time_ns;
	return 0;
}

const struct memwatch_stream_info *memwatch_reader_info(const struct memwatch_reader *reader)
{
	return &reader->info;
}

int memwatch_reader_stats(const struct memwatch_reader *reader, struct memwatch_reader_stats *ret)
{
	return mw_opts_export(ret, &reader->stats, sizeof(reader->stats));
}
