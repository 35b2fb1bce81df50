/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Recordings: a stream in a file. The format is in docs/recording-format.md.
 *
 * The file is a sequence of blocks, each complete in itself: compressed, with
 * a checksum, its number of records and its first and last time. It describes
 * itself: the first block is &struct memwatch_stream_info as text. The last
 * one is an index, for seeking; a file without it (the writer was killed, the
 * disk was full) is read up to its last whole block.
 */
#ifndef MEMWATCH_RECORDING_H
#define MEMWATCH_RECORDING_H

#include <stddef.h>

#include <linux/memwatch.h>
#include <memwatch/ctx.h>
#include <memwatch/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------- writing */

struct memwatch_recording;

#define MEMWATCH_RECORDING_NO_SYNC   (1U << 0) /* never call fdatasync */
#define MEMWATCH_RECORDING_OVERWRITE (1U << 1) /* replace a file that exists */

/**
 * struct memwatch_recording_opts - options of memwatch_recording_create()
 * @sz: sizeof(struct memwatch_recording_opts)
 * @flags: MEMWATCH_RECORDING_*
 * @block_bytes: records collected before a block is written; default 256 KiB,
 *	4 KiB to 16 MiB. This, and not more, is what a kill loses.
 * @level: of zstd, default 3
 * @reserved: 0
 * @block_ns: a block is also written when its records span so much time;
 *	default 1 s
 * @sync_bytes: fdatasync after so many bytes written, and at the end; default
 *	4 MiB. What a crash of the machine loses.
 * @mode: permission bits of the file; default 0600: it says who ran what
 */
struct memwatch_recording_opts {
	size_t sz;
	__u32 flags;
	__u32 block_bytes;
	__s32 level;
	__u32 reserved;
	__u64 block_ns;
	__u64 sync_bytes;
	__u32 mode;
	__u32 reserved2;
};

/**
 * memwatch_recording_create - start a file
 * @ctx: context
 * @path: file; must not exist unless OVERWRITE is given
 * @info: what the records come from, usually memwatch_stream_info(); copied
 * @opts: options or NULL
 * @ret: the recording; caller frees with memwatch_recording_close()
 *
 * Returns: 0; -EEXIST; any errno of open() and write(); -EINVAL; -ENOMEM.
 * Since: 0.1
 */
int memwatch_recording_create(struct memwatch_ctx *ctx, const char *path,
			      const struct memwatch_stream_info *info,
			      const struct memwatch_recording_opts *opts,
			      struct memwatch_recording **ret);

/**
 * memwatch_recording_write - append a record
 * @recording: recording
 * @record: any record; types not known here are kept as they are
 *
 * Returns: 0; -EINVAL, its size makes no sense; -ENOSPC, -EDQUOT, -EFBIG or
 * -EIO, the block could not be written. Then what was written before is whole
 * and readable, an incomplete block has been cut off again, and the block is
 * kept: the same call may be repeated when there is room. A record for which
 * an error was returned has not been taken.
 * Since: 0.1
 */
int memwatch_recording_write(struct memwatch_recording *recording,
			     const struct memwatch_record_header *record);

/**
 * memwatch_recording_flush - write what has been collected as a block now
 * @recording: recording
 * @sync: not 0: fdatasync too
 *
 * For streams that may fall silent; costs compression if done often.
 *
 * Returns: 0 or as memwatch_recording_write().
 * Since: 0.1
 */
int memwatch_recording_flush(struct memwatch_recording *recording, int sync);

/**
 * struct memwatch_recording_stats - counts
 * @sz: in: sizeof(struct memwatch_recording_stats)
 * @records: taken
 * @record_bytes: their size in memory
 * @file_bytes: written; all of it is readable
 * @blocks: written
 * @pending: records taken but not yet written
 * @first_ns: smallest time
 * @last_ns: largest time
 */
struct memwatch_recording_stats {
	size_t sz;
	__u64 records;
	__u64 record_bytes;
	__u64 file_bytes;
	__u64 blocks;
	__u64 pending;
	__u64 first_ns;
	__u64 last_ns;
};

/**
 * memwatch_recording_stats - counts
 * @recording: recording
 * @ret: filled in up to ret->sz
 *
 * Returns: 0 or -EINVAL.
 * Since: 0.1
 */
int memwatch_recording_stats(const struct memwatch_recording *recording,
			     struct memwatch_recording_stats *ret);

/**
 * memwatch_recording_close - write the rest and the index, sync, free
 * @recording: recording or NULL; freed in every case
 *
 * Returns: 0, or the first error: the file is then readable up to its last
 * whole block.
 * Since: 0.1
 */
int memwatch_recording_close(struct memwatch_recording *recording);

/* ------------------------------------------------------------- reading */

struct memwatch_reader;

/**
 * memwatch_reader_open - open a recording
 * @ctx: context
 * @path: file; must be seekable
 * @ret: the reader; caller frees with memwatch_reader_close()
 *
 * Returns: 0; any errno of open(); -ENOMSG, not a recording; -EPROTO, of a
 * newer format; -EBADMSG, its description is damaged or cut off; -ENOMEM.
 * Since: 0.1
 */
int memwatch_reader_open(struct memwatch_ctx *ctx, const char *path, struct memwatch_reader **ret);

/**
 * memwatch_reader_close - free
 * @reader: reader or NULL
 *
 * Returns: NULL.
 * Since: 0.1
 */
struct memwatch_reader *memwatch_reader_close(struct memwatch_reader *reader);

/**
 * memwatch_reader_info - what the records come from
 * @reader: reader
 *
 * Returns: owned by the reader, valid as long as it.
 * Since: 0.1
 */
const struct memwatch_stream_info *memwatch_reader_info(const struct memwatch_reader *reader);

/**
 * memwatch_reader_next - the next record
 * @reader: reader
 * @ret: the record as it was written; valid until the next call with this
 *	reader
 *
 * A damaged block is skipped, if the next one can be found behind it, and
 * counted.
 *
 * Returns: 1; 0 at the end; a negative errno of read(); -ENOMEM.
 * Since: 0.1
 */
int memwatch_reader_next(struct memwatch_reader *reader, const struct memwatch_record_header **ret);

/**
 * memwatch_reader_seek - go to a time
 * @reader: reader
 * @time_ns: memwatch_reader_next() goes on with the first block that has a
 *	record of this time or later, and skips the earlier ones in it. Before
 *	the first: the start; behind the last: the end.
 *
 * Note that the assignments before that time are then not seen; feed a tracker
 * from the start for names.
 *
 * Returns: 0 or a negative errno.
 * Since: 0.1
 */
int memwatch_reader_seek(struct memwatch_reader *reader, __u64 time_ns);

/**
 * struct memwatch_reader_stats - what is in the file
 * @sz: in: sizeof(struct memwatch_reader_stats)
 * @blocks: whole blocks of records
 * @records: in them, by their headers
 * @file_bytes: size of the file
 * @damaged: blocks found damaged up to now
 * @first_ns: smallest time
 * @last_ns: largest time
 * @indexed: 1: the file was closed properly
 * @truncated: 1: it was not: what is behind the last whole block is lost
 */
struct memwatch_reader_stats {
	size_t sz;
	__u64 blocks;
	__u64 records;
	__u64 file_bytes;
	__u64 damaged;
	__u64 first_ns;
	__u64 last_ns;
	__u32 indexed;
	__u32 truncated;
};

/**
 * memwatch_reader_stats - what is in the file
 * @reader: reader
 * @ret: filled in up to ret->sz; complete from the start on
 *
 * Returns: 0 or -EINVAL.
 * Since: 0.1
 */
int memwatch_reader_stats(const struct memwatch_reader *reader, struct memwatch_reader_stats *ret);

#ifdef __cplusplus
}
#endif

#endif /* MEMWATCH_RECORDING_H */
