// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Writing recordings. A block goes out whole or not at all: when a write fails
 * the file is cut back to where it was good, and the records stay in memory
 * until they can be written. Nothing here grows with the length of the
 * recording; the index is made at the end, from the file itself.
 */
#include <memwatch/recording.h>
#include <memwatch/value.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "context.h"
#include "record-codec.h"
#include "recording-format.h"
#include "ring.h"
#include "timemath.h"

#define BLOCK_BYTES_DEFAULT (256U << 10)
#define BLOCK_BYTES_MIN	    (4U << 10)
#define BLOCK_BYTES_MAX	    (16U << 20)
#define SYNC_BYTES_DEFAULT  (4U << 20)
#define LEVEL_DEFAULT	    3
#define INDEX_CHUNK	    512

struct memwatch_recording {
	struct memwatch_ctx *ctx;
	struct memwatch_recording_opts opts;
	char *path;
	int fd;
	uint64_t end;	 /* everything before it is good */
	uint64_t synced; /* everything before it is on the disk */
	uint64_t sequence;

	/* records that make up the next block */
	uint8_t *raw;
	size_t raw_used;
	uint32_t raw_records;
	uint64_t raw_first_ns, raw_last_ns;

	struct mw_codec *codec;
	ZSTD_CCtx *zstd;
	uint8_t *packed; /* header and payload of a block */
	size_t packed_max;
	struct memwatch_recording_stats stats;
};

static int fail(struct memwatch_recording *recording, int err, const char *what)
{
	return mw_fail(recording->ctx, err, "%s: %s: %s", recording->path, what, strerror(-err));
}

static int set_defaults(struct memwatch_ctx *ctx, struct memwatch_recording_opts *opts)
{
	if (!opts->block_bytes)
		opts->block_bytes = BLOCK_BYTES_DEFAULT;
	if (!opts->level)
		opts->level = LEVEL_DEFAULT;
	if (!opts->block_ns)
		opts->block_ns = MW_NSEC_PER_SEC;
	if (!opts->sync_bytes)
		opts->sync_bytes = SYNC_BYTES_DEFAULT;
	if (!opts->mode)
		opts->mode = 0600;
	if (opts->block_bytes < BLOCK_BYTES_MIN || opts->block_bytes > BLOCK_BYTES_MAX ||
	    opts->level < ZSTD_minCLevel() || opts->level > ZSTD_maxCLevel() ||
	    opts->mode & ~0777U ||
	    opts->flags & ~(MEMWATCH_RECORDING_NO_SYNC | MEMWATCH_RECORDING_OVERWRITE))
		return mw_fail(ctx, -EINVAL, "recording: an option is out of range");
	return 0;
}

static void destroy(struct memwatch_recording *recording)
{
	if (recording->fd >= 0)
		close(recording->fd);
	mw_codec_free(recording->codec);
	ZSTD_freeCCtx(recording->zstd);
	memwatch_ctx_unref(recording->ctx);
	free(recording->raw);
	free(recording->packed);
	free(recording->path);
	free(recording);
}

/* --------------------------------------------------------------- blocks */

/* Appends @bytes, or leaves the file as it was. */
static int append(struct memwatch_recording *recording, const void *from, size_t bytes)
{
	int err = mw_write_at(recording->fd, from, bytes, recording->end);

	if (err) {
		/* a reader would stop here anyway; but there may be more to come */
		if (ftruncate(recording->fd, (off_t)recording->end))
			mw_log(recording->ctx, MEMWATCH_LOG_WARNING,
			       "%s: cannot cut off an incomplete block: %s", recording->path,
			       strerror(errno));
		return fail(recording, err, "write");
	}
	recording->end += bytes;
	recording->stats.file_bytes = recording->end;
	return 0;
}

static int sync_file(struct memwatch_recording *recording, uint64_t above)
{
	if (recording->opts.flags & MEMWATCH_RECORDING_NO_SYNC ||
	    recording->end - recording->synced <= above)
		return 0;
	/* a pipe of a test or a special file: nothing to be synced */
	if (fdatasync(recording->fd) && errno != EINVAL && errno != EROFS)
		return fail(recording, -errno, "sync");
	recording->synced = recording->end;
	return 0;
}

static int write_block(struct memwatch_recording *recording, struct mw_block_header *header,
		       const void *payload)
{
	size_t bytes = sizeof(*header) + header->stored_bytes;
	int err;

	if (bytes > recording->packed_max)
		return -ENOMEM;
	header->sequence = recording->sequence;
	header->payload_crc = mw_crc32c(0, payload, header->stored_bytes);
	mw_block_header_seal(header);
	memcpy(recording->packed, header, sizeof(*header));
	if (payload != recording->packed + sizeof(*header))
		memcpy(recording->packed + sizeof(*header), payload, header->stored_bytes);
	err = append(recording, recording->packed, bytes);
	if (!err)
		recording->sequence++;
	return err;
}

static int reserve_packed(struct memwatch_recording *recording, size_t payload)
{
	size_t max = sizeof(struct mw_block_header) + payload;
	uint8_t *packed;

	if (max <= recording->packed_max)
		return 0;
	packed = realloc(recording->packed, max);
	if (!packed)
		return mw_fail(recording->ctx, -ENOMEM, "recording: no memory");
	recording->packed = packed;
	recording->packed_max = max;
	return 0;
}

static int write_records(struct memwatch_recording *recording)
{
	struct mw_block_header header = {
		.type = MW_BLOCK_RECORDS,
		.records = recording->raw_records,
		.first_ns = recording->raw_first_ns,
		.last_ns = recording->raw_last_ns,
	};
	const void *columns;
	size_t bytes, stored;
	int err;

	if (!recording->raw_records)
		return 0;
	err = mw_codec_encode(recording->codec, recording->raw, recording->raw_used, &columns,
			      &bytes);
	if (err)
		return mw_fail(recording->ctx, err, "recording: no memory");
	err = reserve_packed(recording, ZSTD_compressBound(bytes));
	if (err)
		return err;
	stored = ZSTD_compress2(recording->zstd, recording->packed + sizeof(header),
				recording->packed_max - sizeof(header), columns, bytes);
	if (ZSTD_isError(stored))
		return mw_fail(recording->ctx, -ENOMEM, "recording: zstd: %s",
			       ZSTD_getErrorName(stored));

	header.raw_bytes = (uint32_t)bytes;
	header.stored_bytes = (uint32_t)stored;
	err = write_block(recording, &header, recording->packed + sizeof(header));
	if (err)
		return err;
	recording->stats.blocks++;
	recording->raw_used = 0;
	recording->raw_records = 0;
	return 0;
}

/* ---------------------------------------------------------------- start */

static int write_start(struct memwatch_recording *recording,
		       const struct memwatch_stream_info *info)
{
	struct mw_file_header file = { .version = MW_FILE_VERSION };
	struct mw_block_header block = { .type = MW_BLOCK_INFO };
	size_t bytes;
	char *text;
	int err;

	memcpy(file.magic, MW_FILE_MAGIC, sizeof(file.magic));
	file.crc = mw_crc32c(0, &file, offsetof(struct mw_file_header, crc));
	err = append(recording, &file, sizeof(file));
	if (err)
		return err;
	err = mw_info_format(info, &text, &bytes);
	if (err)
		return mw_fail(recording->ctx, err, "recording: no memory");
	block.raw_bytes = (uint32_t)bytes;
	block.stored_bytes = (uint32_t)bytes;
	err = reserve_packed(recording, bytes);
	err = err ? err : write_block(recording, &block, text);
	free(text);
	return err;
}

static int set_up(struct memwatch_recording *recording)
{
	size_t result;

	/* one record more than a block: the one that makes it full is in it */
	recording->raw = malloc(recording->opts.block_bytes + UINT16_MAX);
	recording->zstd = ZSTD_createCCtx();
	if (!recording->raw || !recording->zstd || mw_codec_new(&recording->codec))
		return mw_fail(recording->ctx, -ENOMEM, "recording: no memory");
	result = ZSTD_CCtx_setParameter(recording->zstd, ZSTD_c_compressionLevel,
					recording->opts.level);
	if (ZSTD_isError(result))
		return mw_fail(recording->ctx, -EINVAL, "recording: zstd: %s",
			       ZSTD_getErrorName(result));
	return 0;
}

int memwatch_recording_create(struct memwatch_ctx *ctx, const char *path,
			      const struct memwatch_stream_info *info,
			      const struct memwatch_recording_opts *opts,
			      struct memwatch_recording **ret)
{
	struct memwatch_recording *recording;
	struct memwatch_recording_opts full;
	bool overwrite;
	int err;

	err = mw_opts_copy(ctx, &full, sizeof(full), opts);
	err = err ? err : set_defaults(ctx, &full);
	if (err)
		return err;
	recording = calloc(1, sizeof(*recording));
	if (!recording)
		return mw_fail(ctx, -ENOMEM, "recording: no memory");
	recording->ctx = memwatch_ctx_ref(ctx);
	recording->opts = full;
	recording->fd = -1;
	recording->path = strdup(path);
	err = recording->path ? set_up(recording) : -ENOMEM;
	if (err)
		goto err_free;

	overwrite = full.flags & MEMWATCH_RECORDING_OVERWRITE;
	recording->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | (overwrite ? O_TRUNC : O_EXCL),
			     full.mode);
	if (recording->fd < 0) {
		err = fail(recording, -errno, "create");
		goto err_free;
	}
	err = write_start(recording, info);
	if (err)
		goto err_unlink;
	*ret = recording;
	return 0;

err_unlink:
	if (!overwrite)
		unlink(path);
err_free:
	destroy(recording);
	return err;
}

/* ---------------------------------------------------------------- going on */

static bool is_block_full(const struct memwatch_recording *recording,
			  const struct memwatch_record_header *record)
{
	uint64_t first = mw_min_u64(recording->raw_first_ns, record->time_ns);
	uint64_t last = mw_max_u64(recording->raw_last_ns, record->time_ns);

	if (!recording->raw_records)
		return false;
	return recording->raw_used + record->size > recording->opts.block_bytes ||
	       last - first > recording->opts.block_ns;
}

int memwatch_recording_write(struct memwatch_recording *recording,
			     const struct memwatch_record_header *record)
{
	struct memwatch_recording_stats *stats = &recording->stats;
	int err;

	if (!mw_record_valid(record, record->size))
		return mw_fail(recording->ctx, -EINVAL, "recording: a %s record of %u bytes",
			       memwatch_record_name(record->type), record->size);
	if (is_block_full(recording, record)) {
		err = write_records(recording);
		err = err ? err : sync_file(recording, recording->opts.sync_bytes);
		if (err)
			return err;
	}
	if (!recording->raw_records) {
		recording->raw_first_ns = record->time_ns;
		recording->raw_last_ns = record->time_ns;
	}
	if (!stats->records)
		stats->first_ns = record->time_ns;
	memcpy(recording->raw + recording->raw_used, record, record->size);
	recording->raw_used += record->size;
	recording->raw_records++;
	recording->raw_first_ns = mw_min_u64(recording->raw_first_ns, record->time_ns);
	recording->raw_last_ns = mw_max_u64(recording->raw_last_ns, record->time_ns);
	stats->records++;
	stats->record_bytes += record->size;
	stats->first_ns = mw_min_u64(stats->first_ns, record->time_ns);
	stats->last_ns = mw_max_u64(stats->last_ns, record->time_ns);
	return 0;
}

int memwatch_recording_flush(struct memwatch_recording *recording, int sync)
{
	int err = write_records(recording);

	return err ? err : sync_file(recording, sync ? 0 : recording->opts.sync_bytes);
}

int memwatch_recording_stats(const struct memwatch_recording *recording,
			     struct memwatch_recording_stats *ret)
{
	struct memwatch_recording_stats stats = recording->stats;

	stats.pending = recording->raw_records;
	return mw_opts_export(ret, &stats, sizeof(stats));
}

/* ------------------------------------------------------------------- end */

/* Walks over the headers of our own file: hands out the blocks of records. */
static int next_entry(struct memwatch_recording *recording, uint64_t *offset, uint64_t end,
		      struct mw_index_entry *entry)
{
	struct mw_block_header header;
	int err;

	while (*offset < end) {
		err = mw_read_at(recording->fd, &header, sizeof(header), *offset);
		if (err)
			return err;
		if (!mw_block_header_valid(&header))
			return -EIO;
		*entry = (struct mw_index_entry){
			.offset = *offset,
			.first_ns = header.first_ns,
			.last_ns = header.last_ns,
			.records = header.records,
		};
		*offset += sizeof(header) + header.stored_bytes;
		if (header.type == MW_BLOCK_RECORDS)
			return 1;
	}
	return 0;
}

/*
 * The index does not fit into memory for sure, so its header is written last,
 * when the checksum is known. Until then the file simply has no index.
 */
static int write_index(struct memwatch_recording *recording)
{
	struct mw_block_header header = { .type = MW_BLOCK_INDEX, .sequence = recording->sequence };
	struct mw_footer footer = { .index_offset = recording->end, .magic = MW_FOOTER_MAGIC };
	uint64_t at = sizeof(struct mw_file_header);
	uint64_t to = recording->end + sizeof(header);
	uint64_t total = recording->stats.blocks * sizeof(struct mw_index_entry);
	struct mw_index_entry entries[INDEX_CHUNK];
	int more = 1, err = 0;

	if (total > MW_BLOCK_STORED_MAX)
		return 0; /* three million blocks: a reader can walk, too */
	while (more > 0 && !err) {
		size_t count = 0;

		while (count < INDEX_CHUNK &&
		       (more = next_entry(recording, &at, recording->end, &entries[count])) > 0)
			count++;
		if (more < 0)
			return more;
		header.payload_crc = mw_crc32c(header.payload_crc, entries,
					       count * sizeof(*entries));
		header.stored_bytes += (uint32_t)(count * sizeof(*entries));
		err = mw_write_at(recording->fd, entries, count * sizeof(*entries), to);
		to += count * sizeof(*entries);
	}
	header.raw_bytes = header.stored_bytes;
	header.first_ns = recording->stats.first_ns;
	header.last_ns = recording->stats.last_ns;
	mw_block_header_seal(&header);
	footer.crc = mw_crc32c(0, &footer, offsetof(struct mw_footer, crc));
	err = err ? err : mw_write_at(recording->fd, &footer, sizeof(footer), to);
	err = err ? err : mw_write_at(recording->fd, &header, sizeof(header), recording->end);
	if (!err)
		recording->end = to + sizeof(footer);
	return err;
}

int memwatch_recording_close(struct memwatch_recording *recording)
{
	int err;

	if (!recording)
		return 0;
	err = write_records(recording);
	if (!err) {
		err = write_index(recording);
		if (err) {
			fail(recording, err, "write the index");
			if (ftruncate(recording->fd, (off_t)recording->end))
				mw_log(recording->ctx, MEMWATCH_LOG_WARNING,
				       "%s: cannot cut off an incomplete index", recording->path);
		}
	}
	err = err ? err : sync_file(recording, 0);
	if (close(recording->fd) && !err)
		err = fail(recording, -errno, "close");
	recording->fd = -1;
	destroy(recording);
	return err;
}
