// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The writer of recordings. Before @offset the file consists of whole blocks at any time,
 * whatever fails and whenever the process is killed.
 */
#include <memwatch/recording.h>

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

#define BLOCK_BYTES_MIN	    (4U << 10)
#define BLOCK_BYTES_DEFAULT (256U << 10)
#define RECORD_SIZE_MAX	    (64U << 10) /* the size of a record has 16 bits */
#define LEVEL_DEFAULT	    3
#define SYNC_BYTES_DEFAULT  (4ULL << 20)
#define MODE_DEFAULT	    0600

/**
 * struct memwatch_recording - a file being written
 * @ctx: a reference
 * @path: path of the file, for messages
 * @file: the file, its name and its folder
 * @fd: the descriptor of @file
 * @opts: options, with defaults filled in
 * @packer: records that are not written yet
 * @index: the blocks that are written
 * @offset: end of the last whole block
 * @synced: @offset at the last fdatasync
 * @sequence: number of the next block
 * @record_bytes: size of the records in the blocks that are written
 * @taken: statistics of the records taken
 */
struct memwatch_recording {
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

static int recording_fail(struct memwatch_recording *recording, int err, const char *what)
{
	return mw_fail(recording->ctx, err, "%s: %s: %s", recording->path, what, strerror(-err));
}

/* ------------------------------------------------------------- the file */

/*
 * Appends all bytes or none: if an error such as a full disk comes after a part of them,
 * this part is cut off again.
 */
static int append_bytes(struct memwatch_recording *recording, const void *data, size_t len)
{
	size_t done = 0;
	ssize_t n;
	int err;

	while (done < len) {
		n = pwrite(recording->fd, (const char *)data + done, len - done,
			   (off_t)(recording->offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			err = n < 0 ? -errno : -EIO;
			/* If this fails too, readers find an incomplete block at the end. */
			if (done && ftruncate(recording->fd, (off_t)recording->offset))
				mw_log(recording->ctx, MEMWATCH_LOG_WARNING,
				       "%s: cannot cut off an incomplete block: %s",
				       recording->path, strerror(errno));
			return recording_fail(recording, err, "write");
		}
		done += (size_t)n;
	}
	recording->offset += len;
	return 0;
}

static int sync_file(struct memwatch_recording *recording)
{
	int err;

	if (recording->opts.flags & MEMWATCH_RECORDING_NO_SYNC ||
	    recording->synced == recording->offset)
		return 0;
	recording->synced = recording->offset;
	if (!fdatasync(recording->fd))
		return 0;
	err = -errno;
	return recording_fail(recording, err, "sync");
}

/*
 * Appends a block without records. @block has room for the header, then @payload bytes, then
 * @behind bytes that follow the block in the file.
 */
static int append_other(struct memwatch_recording *recording, enum mw_block_kind kind,
			uint8_t *block, size_t payload, size_t behind)
{
	struct mw_block_header header = {
		.version = MW_FORMAT_VERSION,
		.kind = (uint8_t)kind,
		.codec = MW_CODEC_STORED,
		.stored_bytes = (uint32_t)payload,
		.plain_bytes = (uint32_t)payload,
		.sequence = recording->sequence,
		.stored_crc = mw_crc32c(block + MW_BLOCK_HEADER_BYTES, payload),
	};
	int err;

	mw_block_header_pack(block, &header);
	err = append_bytes(recording, block, MW_BLOCK_HEADER_BYTES + payload + behind);
	if (!err)
		recording->sequence++;
	return err;
}

static int append_info(struct memwatch_recording *recording,
		       const struct memwatch_stream_info *info)
{
	uint8_t *block = malloc(MW_BLOCK_HEADER_BYTES + MW_INFO_BYTES_MAX);
	long len;
	int err;

	if (!block)
		return mw_fail_memory(recording->ctx, recording->path);
	len = mw_info_format(info, (char *)block + MW_BLOCK_HEADER_BYTES, MW_INFO_BYTES_MAX);
	if (len < 0)
		err = recording_fail(recording, (int)len, "description");
	else
		err = append_other(recording, MW_BLOCK_INFO, block, (size_t)len, 0);
	free(block);
	return err;
}

static int append_index(struct memwatch_recording *recording)
{
	size_t payload = recording->index.count * MW_INDEX_ENTRY_BYTES;
	uint8_t *block = malloc(MW_BLOCK_HEADER_BYTES + payload + MW_TRAILER_BYTES);
	int err;

	if (!block)
		return mw_fail_memory(recording->ctx, recording->path);
	mw_block_index_pack(&recording->index, block + MW_BLOCK_HEADER_BYTES);
	mw_trailer_pack(block + MW_BLOCK_HEADER_BYTES + payload, recording->offset);
	err = append_other(recording, MW_BLOCK_INDEX, block, payload, MW_TRAILER_BYTES);
	free(block);
	return err;
}

/* ------------------------------------------------------------ beginning */

static int complete_recording_opts(struct memwatch_ctx *ctx, struct memwatch_recording_opts *opts,
				   const struct memwatch_recording_opts *user_opts)
{
	int err = mw_opts_copy(ctx, opts, sizeof(*opts), user_opts);

	if (err)
		return err;
	if (!opts->block_bytes)
		opts->block_bytes = BLOCK_BYTES_DEFAULT;
	if (!opts->level)
		opts->level = LEVEL_DEFAULT;
	if (!opts->block_ns)
		opts->block_ns = MW_NSEC_PER_SEC;
	if (!opts->sync_bytes)
		opts->sync_bytes = SYNC_BYTES_DEFAULT;
	if (!opts->mode)
		opts->mode = MODE_DEFAULT;
	if (opts->flags & ~(MEMWATCH_RECORDING_NO_SYNC | MEMWATCH_RECORDING_OVERWRITE) ||
	    opts->reserved || opts->reserved2 || opts->mode & ~07777U)
		return mw_fail(ctx, -EINVAL, "options of a recording: unknown flag or mode");
	if (opts->block_bytes < BLOCK_BYTES_MIN || opts->block_bytes > MW_RECORD_BYTES_MAX)
		return mw_fail(ctx, -EINVAL,
			       "options of a recording: block_bytes %u: "
			       "not from 4 KiB to 16 MiB",
			       opts->block_bytes);
	return 0;
}

/*
 * --force must not replace a device, a FIFO or a folder, which renaming would do. A symbolic
 * link is replaced, not followed.
 */
static int check_replaced(struct memwatch_recording *recording)
{
	struct stat st;

	if (fstatat(recording->file->dir, recording->file->name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : recording_fail(recording, -errno, "stat");
	if (S_ISDIR(st.st_mode))
		return recording_fail(recording, -EISDIR, "create");
	if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
		return recording_fail(recording, -EINVAL, "it is not a regular file");
	return 0;
}

/*
 * The file gets its name when it has its description, so that a reader never finds less. It
 * is a new file in any case: what another user has prepared under this name, and may have
 * open, is not written to.
 */
static int create_file(struct memwatch_recording *recording,
		       const struct memwatch_stream_info *info)
{
	bool overwrite = recording->opts.flags & MEMWATCH_RECORDING_OVERWRITE;
	int err;

	mw_safe_remove_stale(recording->path);
	err = memwatch_file_create(recording->ctx, recording->path, &recording->file);
	if (err)
		return err;
	recording->fd = recording->file->fd;
	if (recording->opts.mode != MODE_DEFAULT &&
	    fchmod(recording->fd, (mode_t)recording->opts.mode))
		return recording_fail(recording, -errno, "chmod");
	if (overwrite)
		err = check_replaced(recording);
	if (!err)
		err = append_info(recording, info);
	return err ? err
		   : memwatch_file_commit(recording->file, overwrite ? MEMWATCH_FILE_REPLACE : 0);
}

static int recording_start(struct memwatch_recording *recording,
			   const struct memwatch_stream_info *info)
{
	uint32_t capacity = recording->opts.block_bytes;
	int err;

	/* The largest possible record must fit into a block. */
	if (capacity < RECORD_SIZE_MAX)
		capacity = RECORD_SIZE_MAX;
	err = mw_packer_init(&recording->packer, capacity, recording->opts.level);
	if (err)
		return recording_fail(recording, err, "compressor");
	return create_file(recording, info);
}

static void release_recording(struct memwatch_recording *recording)
{
	memwatch_file_close(recording->file);
	mw_packer_uninit(&recording->packer);
	mw_block_index_uninit(&recording->index);
	memwatch_ctx_unref(recording->ctx);
	free(recording->path);
	free(recording);
}

int memwatch_recording_create(struct memwatch_ctx *ctx, const char *path,
			      const struct memwatch_stream_info *user_info,
			      const struct memwatch_recording_opts *user_opts,
			      struct memwatch_recording **ret)
{
	struct memwatch_recording *recording;
	struct memwatch_recording_opts opts;
	struct memwatch_stream_info info;
	int err;

	if (!path || !user_info)
		return mw_fail(ctx, -EINVAL, "recording: no path or no description");
	err = mw_opts_copy(ctx, &info, sizeof(info), user_info);
	if (!err)
		err = complete_recording_opts(ctx, &opts, user_opts);
	if (err)
		return err;

	recording = calloc(1, sizeof(*recording));
	if (!recording)
		return mw_fail_memory(ctx, path);
	recording->ctx = memwatch_ctx_ref(ctx);
	recording->fd = -1;
	recording->opts = opts;
	recording->path = strdup(path);
	err = recording->path ? recording_start(recording, &info) : -ENOMEM;
	if (err) {
		release_recording(recording);
		return err;
	}
	*ret = recording;
	return 0;
}

/* -------------------------------------------------------------- writing */

/*
 * Appends padding if the next block, of @packed bytes with records of @bytes, would decode to
 * more than a file of this size may have; see MW_EXPANSION.
 */
static int append_padding(struct memwatch_recording *recording, size_t packed, uint32_t bytes)
{
	uint64_t needed = mw_expansion_offset(recording->record_bytes + bytes);
	size_t payload;
	uint8_t *block;
	int err;

	if (needed <= recording->offset + packed)
		return 0;
	payload = (size_t)(needed - recording->offset - packed);
	block = calloc(1, MW_BLOCK_HEADER_BYTES + payload);
	if (!block)
		return mw_fail_memory(recording->ctx, recording->path);
	err = append_other(recording, MW_BLOCK_PADDING, block, payload, 0);
	free(block);
	return err;
}

/* Writes the collected records as a block. On failure they stay collected. */
static int write_block(struct memwatch_recording *recording)
{
	struct mw_packer *packer = &recording->packer;
	struct mw_block_header header;
	uint64_t offset;
	int err;

	if (!packer->columns.rows)
		return 0;
	if (mw_block_index_reserve(&recording->index))
		return mw_fail_memory(recording->ctx, recording->path);
	mw_packer_pack(packer, recording->sequence);
	err = append_padding(recording, packer->packed, packer->columns.bytes);
	if (err)
		return err;
	offset = recording->offset;
	err = append_bytes(recording, packer->block, packer->packed);
	if (err)
		return err;
	mw_block_header_unpack(&header, packer->block);
	mw_block_index_add(&recording->index, offset, &header);
	recording->sequence++;
	recording->record_bytes += header.record_bytes;
	recording->taken.blocks++;
	mw_packer_reset(packer);
	if (recording->offset - recording->synced >= recording->opts.sync_bytes)
		return sync_file(recording);
	return 0;
}

/* Whether the collected records must be written before this one is added. */
static bool block_complete(const struct memwatch_recording *recording,
			   const struct memwatch_record_header *record)
{
	const struct mw_packer *packer = &recording->packer;
	uint64_t first = mw_min_u64(packer->first_ns, record->time_ns);
	uint64_t last = mw_max_u64(packer->last_ns, record->time_ns);

	return packer->columns.rows &&
	       (record->size >
			recording->opts.block_bytes -
				mw_min_u64(packer->columns.bytes, recording->opts.block_bytes) ||
		last - first >= recording->opts.block_ns);
}

static void count_accepted(struct memwatch_recording_stats *taken,
			   const struct memwatch_record_header *record)
{
	if (!taken->records || record->time_ns < taken->first_ns)
		taken->first_ns = record->time_ns;
	if (record->time_ns > taken->last_ns)
		taken->last_ns = record->time_ns;
	taken->records++;
	taken->record_bytes += record->size;
}

int memwatch_recording_write(struct memwatch_recording *recording,
			     const struct memwatch_record_header *record)
{
	int err;

	if (!mw_record_valid(record, record->size))
		return mw_fail(recording->ctx, -EINVAL,
			       "%s: a record of type %u cannot have %u bytes", recording->path,
			       record->type, record->size);
	if (block_complete(recording, record)) {
		err = write_block(recording);
		if (err)
			return err;
	}
	if (!mw_packer_take(&recording->packer, record)) {
		/* The block has too many classes already; the record goes into the next one. */
		err = write_block(recording);
		if (err)
			return err;
		mw_packer_take(&recording->packer, record);
	}
	count_accepted(&recording->taken, record);
	return 0;
}

int memwatch_recording_flush(struct memwatch_recording *recording, int sync)
{
	int err = write_block(recording);

	if (!err && sync)
		err = sync_file(recording);
	return err;
}

int memwatch_recording_stats(const struct memwatch_recording *recording,
			     struct memwatch_recording_stats *ret)
{
	struct memwatch_recording_stats stats = recording->taken;

	stats.file_bytes = recording->offset;
	stats.pending = recording->packer.columns.rows;
	return mw_opts_export(ret, &stats, sizeof(stats));
}

int memwatch_recording_close(struct memwatch_recording *recording)
{
	int err;

	if (!recording)
		return 0;
	err = write_block(recording);
	/* An index says that the file is complete, so none is written after a failure. */
	if (!err)
		err = append_index(recording);
	if (!err)
		err = sync_file(recording);
	release_recording(recording);
	return err;
}

void memwatch_recording_discard(struct memwatch_recording *recording)
{
	const struct memwatch_file *file;
	struct stat is, named;

	if (!recording)
		return;
	/* Somebody may have given the name to another file. */
	file = recording->file;
	if (!fstat(file->fd, &is) && !fstatat(file->dir, file->name, &named, AT_SYMLINK_NOFOLLOW) &&
	    is.st_dev == named.st_dev && is.st_ino == named.st_ino)
		unlinkat(file->dir, file->name, 0);
	release_recording(recording);
}
