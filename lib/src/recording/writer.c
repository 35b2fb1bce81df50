// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The writer of recordings, see writer.h. Before @offset the file consists of whole blocks at any
 * time, whatever fails and whenever the process is killed.
 */
#include "recording/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recording/block.h"
#include "base/context.h"
#include "recording/format.h"
#include "recording/block-index.h"
#include "base/record.h"
#include "base/safe-file.h"
#include "base/timemath.h"

/**
 * struct mw_writer - a file being written
 * @ctx: a reference
 * @path: path of the file, for messages
 * @file: the file, its name and its folder
 * @fd: the descriptor of @file
 * @opts: options, with defaults filled in
 * @packer: makes the blocks
 * @index: the blocks that are written
 * @offset: end of the last whole block
 * @synced: @offset at the last fdatasync
 * @sequence: number of the next block
 * @record_bytes: size of the records in the blocks that are written
 * @taken: statistics of the records written
 */
struct mw_writer {
	struct memwatch_ctx *ctx;
	char *path;
	struct memwatch_file *file;
	int fd;
	struct memwatch_recording_opts opts;
	struct mw_packer packer;
	struct mw_block_index index;
	uint64_t offset;
	uint64_t synced;
	uint64_t sequence;
	uint64_t record_bytes;
	struct memwatch_recording_stats taken;
};

static int writer_fail(struct mw_writer *writer, int err, const char *what)
{
	return mw_fail(writer->ctx, err, "%s: %s: %s", writer->path, what, strerror(-err));
}

/* ------------------------------------------------------------- the file */

/*
 * Appends all bytes or none: if an error such as a full disk comes after a part of them,
 * this part is cut off again.
 */
static int append_bytes(struct mw_writer *writer, const void *data, size_t len)
{
	size_t done = 0;
	ssize_t n;
	int err;

	while (done < len) {
		n = pwrite(writer->fd, (const char *)data + done, len - done,
			   (off_t)(writer->offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			err = n < 0 ? -errno : -EIO;
			/* If this fails too, readers find an incomplete block at the end. */
			if (done && ftruncate(writer->fd, (off_t)writer->offset))
				mw_log(writer->ctx, MEMWATCH_LOG_WARNING,
				       "%s: cannot cut off an incomplete block: %s", writer->path,
				       strerror(errno));
			return writer_fail(writer, err, "write");
		}
		done += (size_t)n;
	}
	writer->offset += len;
	return 0;
}

int mw_writer_sync(struct mw_writer *writer)
{
	int err;

	if (writer->opts.flags & MEMWATCH_RECORDING_NO_SYNC || writer->synced == writer->offset)
		return 0;
	if (fdatasync(writer->fd)) {
		err = -errno;
		return writer_fail(writer, err, "sync");
	}
	writer->synced = writer->offset;
	return 0;
}

/*
 * Appends a block without records. @block has room for the header, then @payload bytes, then
 * @behind bytes that follow the block in the file.
 */
static int append_other(struct mw_writer *writer, enum mw_block_kind kind, uint8_t *block,
			size_t payload, size_t behind)
{
	struct mw_block_header header = {
		.version = MW_FORMAT_VERSION,
		.kind = (uint8_t)kind,
		.codec = MW_CODEC_STORED,
		.stored_bytes = (uint32_t)payload,
		.plain_bytes = (uint32_t)payload,
		.sequence = writer->sequence,
		.stored_crc = mw_crc32c(block + MW_BLOCK_HEADER_BYTES, payload),
	};
	int err;

	mw_block_header_pack(block, &header);
	err = append_bytes(writer, block, MW_BLOCK_HEADER_BYTES + payload + behind);
	if (!err)
		writer->sequence++;
	return err;
}

static int append_info(struct mw_writer *writer, const struct memwatch_stream_info *info)
{
	uint8_t *block = malloc(MW_BLOCK_HEADER_BYTES + MW_INFO_BYTES_MAX);
	long len;
	int err;

	if (!block)
		return mw_fail_memory(writer->ctx, writer->path);
	len = mw_info_format(info, (char *)block + MW_BLOCK_HEADER_BYTES, MW_INFO_BYTES_MAX);
	if (len < 0)
		err = writer_fail(writer, (int)len, "description");
	else
		err = append_other(writer, MW_BLOCK_INFO, block, (size_t)len, 0);
	free(block);
	return err;
}

static int append_index(struct mw_writer *writer)
{
	size_t payload = writer->index.count * MW_INDEX_ENTRY_BYTES;
	uint8_t *block = malloc(MW_BLOCK_HEADER_BYTES + payload + MW_TRAILER_BYTES);
	int err;

	if (!block)
		return mw_fail_memory(writer->ctx, writer->path);
	mw_block_index_pack(&writer->index, block + MW_BLOCK_HEADER_BYTES);
	mw_trailer_pack(block + MW_BLOCK_HEADER_BYTES + payload, writer->offset);
	err = append_other(writer, MW_BLOCK_INDEX, block, payload, MW_TRAILER_BYTES);
	free(block);
	return err;
}

/* ------------------------------------------------------------ beginning */

/*
 * The file gets its name when it has its description, so that a reader never finds less. It
 * is a new file in any case: what another user has prepared under this name, and may have
 * open, is not written to.
 */
static int create_file(struct mw_writer *writer, const struct memwatch_stream_info *info)
{
	bool overwrite = writer->opts.flags & MEMWATCH_RECORDING_OVERWRITE;
	int err;

	err = memwatch_file_create(writer->ctx, writer->path, &writer->file);
	if (err)
		return err;
	writer->fd = writer->file->fd;
	if (fchmod(writer->fd, (mode_t)writer->opts.mode))
		return writer_fail(writer, -errno, "chmod");
	err = append_info(writer, info);
	return err ? err
		   : memwatch_file_commit(writer->file, overwrite ? MEMWATCH_FILE_REPLACE : 0);
}

static int writer_start(struct mw_writer *writer, const struct memwatch_stream_info *info)
{
	uint32_t capacity = writer->opts.block_bytes;
	int err;

	/* The largest possible record must fit into a block. */
	if (capacity < MW_RECORD_SIZE_MAX)
		capacity = MW_RECORD_SIZE_MAX;
	err = mw_packer_init(&writer->packer, capacity, writer->opts.level);
	if (err)
		return writer_fail(writer, err, "compressor");
	return create_file(writer, info);
}

static void writer_release(struct mw_writer *writer)
{
	memwatch_file_close(writer->file);
	mw_packer_uninit(&writer->packer);
	mw_block_index_uninit(&writer->index);
	memwatch_ctx_unref(writer->ctx);
	free(writer->path);
	free(writer);
}

int mw_writer_create(struct memwatch_ctx *ctx, const char *path,
		     const struct memwatch_stream_info *info,
		     const struct memwatch_recording_opts *opts, struct mw_writer **ret)
{
	struct mw_writer *writer = calloc(1, sizeof(*writer));
	int err;

	if (!writer)
		return mw_fail_memory(ctx, path);
	writer->ctx = memwatch_ctx_ref(ctx);
	writer->fd = -1;
	writer->opts = *opts;
	writer->path = strdup(path);
	err = writer->path ? writer_start(writer, info) : mw_fail_memory(ctx, path);
	if (err) {
		writer_release(writer);
		return err;
	}
	*ret = writer;
	return 0;
}

/* -------------------------------------------------------------- writing */

/*
 * Appends padding if the next block, of @packed bytes with records of @bytes, would decode to
 * more than a file of this size may have; see MW_EXPANSION.
 */
static int append_padding(struct mw_writer *writer, size_t packed, uint32_t bytes)
{
	uint64_t needed = mw_expansion_offset(writer->record_bytes + bytes);
	size_t payload;
	uint8_t *block;
	int err;

	if (needed <= writer->offset + packed)
		return 0;
	payload = (size_t)(needed - writer->offset - packed);
	block = calloc(1, MW_BLOCK_HEADER_BYTES + payload);
	if (!block)
		return mw_fail_memory(writer->ctx, writer->path);
	err = append_other(writer, MW_BLOCK_PADDING, block, payload, 0);
	free(block);
	return err;
}

/* Writes the block that was packed. */
static int write_block(struct mw_writer *writer)
{
	struct mw_packer *packer = &writer->packer;
	struct mw_block_header header;
	uint64_t offset;
	int err;

	if (mw_block_index_reserve(&writer->index))
		return mw_fail_memory(writer->ctx, writer->path);
	mw_block_header_unpack(&header, packer->block);
	err = append_padding(writer, packer->packed, header.record_bytes);
	if (err)
		return err;
	/* Padding is a block too and has taken the number of this one. */
	if (header.sequence != writer->sequence) {
		header.sequence = writer->sequence;
		mw_block_header_pack(packer->block, &header);
	}
	offset = writer->offset;
	err = append_bytes(writer, packer->block, packer->packed);
	if (err)
		return err;
	mw_block_index_add(&writer->index, offset, &header);
	writer->sequence++;
	writer->record_bytes += header.record_bytes;
	writer->taken.records += header.records;
	writer->taken.blocks++;
	return 0;
}

uint32_t mw_writer_batch_bytes(const struct mw_writer *writer)
{
	return writer->opts.block_bytes;
}

int mw_writer_write(struct mw_writer *writer, struct mw_batch *batch)
{
	uint32_t packed;
	int err;

	while (batch->written < batch->bytes) {
		packed = mw_packer_pack(&writer->packer, batch->records + batch->written,
					batch->bytes - batch->written, writer->sequence);
		err = write_block(writer);
		if (err)
			return err;
		batch->written += packed;
	}
	if (writer->offset - writer->synced >= writer->opts.sync_bytes)
		return mw_writer_sync(writer);
	return 0;
}

void mw_writer_stats(const struct mw_writer *writer, struct memwatch_recording_stats *ret)
{
	*ret = writer->taken;
	ret->file_bytes = writer->offset;
}

void mw_writer_set_ctx(struct mw_writer *writer, struct memwatch_ctx *ctx)
{
	memwatch_ctx_ref(ctx);
	memwatch_ctx_unref(writer->ctx);
	writer->ctx = ctx;
}

int mw_writer_close(struct mw_writer *writer, bool complete)
{
	int err = complete ? append_index(writer) : 0;

	if (!err)
		err = mw_writer_sync(writer);
	writer_release(writer);
	return err;
}

void mw_writer_discard(struct mw_writer *writer)
{
	const struct memwatch_file *file = writer->file;
	struct stat is, named;

	/* Somebody may have given the name to another file. */
	if (!fstat(file->fd, &is) && !fstatat(file->dir, file->name, &named, AT_SYMLINK_NOFOLLOW) &&
	    is.st_dev == named.st_dev && is.st_ino == named.st_ino)
		unlinkat(file->dir, file->name, 0);
	writer_release(writer);
}
