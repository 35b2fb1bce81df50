/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Recordings: a stream in a file. The format is in docs/recording-format.md.
 *
 * The file is a sequence of blocks. Each block is compressed on its own and has a checksum, the
 * number of its records, and their first and last time. The first block is the description:
 * &struct memwatch_stream_info as text. The last block is an index, for seeking. A file without
 * an index, because the writer was killed or the disk was full, is read up to its last whole
 * block.
 *
 * A recording may come from a stranger. The work and the memory of a reader are proportional to
 * the size of the file, with factors that docs/recording-format.md states under "Cost of
 * reading": of a file of N bytes, at most 4 MiB + 256 N bytes of records are delivered.
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
#define MEMWATCH_RECORDING_OVERWRITE (1U << 1) /* replace an existing file by a new one */

/**
 * struct memwatch_recording_opts - options of memwatch_recording_create()
 * @sz: sizeof(struct memwatch_recording_opts)
 * @flags: MEMWATCH_RECORDING_*
 * @block_bytes: bytes of records that are collected before a block is written; from 4 KiB to
 *	16 MiB, default 256 KiB. They are lost if the writer is killed.
 * @level: compression level of zstd, default -3
 * @reserved: 0
 * @block_ns: a block is also written when its records span this time; default 1 s
 * @sync_bytes: fdatasync is called when this many bytes have been written, and at the end;
 *	default 4 MiB. They are lost if the machine crashes.
 * @mode: permission bits of the file, to which the umask does not apply; default 0600, because
 *	it shows who ran which program
 * @reserved2: 0
 * @queue_bytes: 0: the calls below write the file. Else a thread writes it, and this is
 *	the memory for records that it has not written yet, but at least that of two blocks.
 *	Then memwatch_recording_write() never waits for a disk, and records that find no
 *	room are dropped: each CPU gets a record LOST with their number and interval as soon
 *	as there is room.
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
	__u64 queue_bytes;
};

/**
 * memwatch_recording_create - start a file
 * @ctx: context
 * @path: path of the file, which must not exist unless OVERWRITE is given
 * @info: description of the source, usually that of memwatch_stream_get_info(); copied
 * @opts: options or NULL
 * @ret: the recording; caller frees with memwatch_recording_close()
 *
 * The folder may be one that other users can write to. The file is always a new one, no
 * symbolic link is followed at its name, and it appears under its name with its description in
 * it. From then on it can be read while it grows. With OVERWRITE, only a regular file or a
 * symbolic link is replaced, and what was open or linked elsewhere stays as it was.
 *
 * Returns: 0; -EEXIST; any errno of open() and write(); -EINVAL; -ENOMEM.
 * Since: 0.1
 */
MEMWATCH_MUST_CHECK int memwatch_recording_create(struct memwatch_ctx *ctx, const char *path,
						  const struct memwatch_stream_info *info,
						  const struct memwatch_recording_opts *opts,
						  struct memwatch_recording **ret);

/**
 * memwatch_recording_write - append a record
 * @recording: recording
 * @record: any record; records of unknown types are kept unchanged
 *
 * Returns: 0; -EINVAL, its size is impossible; -ENOMEM; -ENOSPC, -EDQUOT, -EFBIG or -EIO, the
 * collected records could not be written. In this case the file ends with its last whole block and
 * the records stay collected; the call may be repeated when there is room. A record is not taken if
 * the call returns an error. With a queue, the error is that of an earlier record, and nothing
 * that was taken is lost: the thread tries again.
 * Since: 0.1
 */
MEMWATCH_MUST_CHECK int memwatch_recording_write(struct memwatch_recording *recording,
						 const struct memwatch_record_header *record);

/**
 * memwatch_recording_flush - write the collected records as a block now
 * @recording: recording
 * @sync: not 0: fdatasync too
 *
 * For streams that may pause. Blocks with few records compress less. With a queue, the call
 * waits for the thread only if @sync is not 0.
 *
 * Returns: 0 or as memwatch_recording_write().
 * Since: 0.1
 */
int memwatch_recording_flush(struct memwatch_recording *recording, int sync);

/**
 * struct memwatch_recording_stats - statistics of a recording
 * @sz: in: sizeof(struct memwatch_recording_stats)
 * @records: records taken
 * @record_bytes: their size in memory
 * @file_bytes: size of the file; all of it is readable
 * @blocks: blocks of records written
 * @pending: records taken that are not yet written
 * @first_ns: smallest time of a record
 * @last_ns: largest time of a record
 * @lost: records that were not taken because the queue was full
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
	__u64 lost;
};

/**
 * memwatch_recording_get_stats - read the statistics
 * @recording: recording
 * @ret: filled in up to ret->sz
 *
 * Returns: 0 or -EINVAL.
 * Since: 0.1
 */
int memwatch_recording_get_stats(const struct memwatch_recording *recording,
				 struct memwatch_recording_stats *ret);

/**
 * memwatch_recording_close - write the collected records and the index, sync and free
 * @recording: recording or NULL; freed in every case
 *
 * Returns: 0, or the first error: the file is then readable up to its last
 * whole block.
 * Since: 0.1
 */
MEMWATCH_MUST_CHECK int memwatch_recording_close(struct memwatch_recording *recording);

/**
 * memwatch_recording_discard - remove the file and free
 * @recording: recording or NULL; freed
 *
 * The file is not removed if its name belongs to another file by now.
 *
 * Since: 0.1
 */
void memwatch_recording_discard(struct memwatch_recording *recording);

/* ------------------------------------------------------------- reading */

struct memwatch_reader;

/**
 * memwatch_reader_open - open a recording
 * @ctx: context
 * @path: path of the file, which must be a regular file
 * @ret: the reader; caller frees with memwatch_reader_close()
 *
 * Returns: 0; any errno of open(); -ENOMSG, it is not a recording; -EPROTO, its format is
 * newer; -EBADMSG, its description is damaged or incomplete; -ENOMEM.
 * Since: 0.1
 */
MEMWATCH_MUST_CHECK int memwatch_reader_open(struct memwatch_ctx *ctx, const char *path,
					     struct memwatch_reader **ret);

/**
 * memwatch_reader_close - free
 * @reader: reader or NULL
 *
 * Returns: NULL.
 * Since: 0.1
 */
struct memwatch_reader *memwatch_reader_close(struct memwatch_reader *reader);

/**
 * memwatch_reader_get_info - the description of the source
 * @reader: reader
 *
 * Returns: the description, owned by the reader.
 * Since: 0.1
 */
const struct memwatch_stream_info *memwatch_reader_get_info(const struct memwatch_reader *reader);

/**
 * memwatch_reader_next - the next record
 * @reader: reader
 * @ret: the record; valid until the next call with this reader
 *
 * Damaged blocks are counted and skipped, so the end of a damaged file is an end like any other:
 * memwatch_reader_get_stats() says then whether something is missing. A record of an older schema
 * is delivered with the size of this one, and zeros in the members that it lacks. A text in a
 * record need not end with a NUL if the file is hostile: records are delivered as they are in the
 * file, so that they can be copied. memwatch_stream_open_file() ends each text.
 *
 * Returns: 1; 0 at the end; a negative errno of read(); -ENOMEM.
 * Since: 0.1
 */
int memwatch_reader_next(struct memwatch_reader *reader, const struct memwatch_record_header **ret);

/**
 * memwatch_reader_seek - go to a time
 * @reader: reader
 * @time_ns: memwatch_reader_next() continues with the first block that has a record of this
 *	time or later, and skips the earlier records of this block. A time before the first
 *	record goes to the start, one after the last record to the end.
 *
 * The records of assignments before that time are skipped too: a tracker that must know the
 * processes has to be fed from the start.
 *
 * Returns: 0 or a negative errno.
 * Since: 0.1
 */
int memwatch_reader_seek(struct memwatch_reader *reader, __u64 time_ns);

/**
 * struct memwatch_reader_stats - what is in the file
 * @sz: in: sizeof(struct memwatch_reader_stats)
 * @blocks: whole blocks of records
 * @records: number of records in them, according to their headers
 * @file_bytes: size of the file
 * @damaged: damaged blocks that the reader has found up to now
 * @first_ns: smallest time of a record
 * @last_ns: largest time of a record
 * @indexed: 1: the file was closed properly
 * @truncated: 1: the file was not closed properly; what followed its last whole block is lost
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
 * memwatch_reader_get_stats - what is in the file
 * @reader: reader
 * @ret: filled in up to ret->sz; all members but @damaged are known when the file is opened
 *
 * Returns: 0 or -EINVAL.
 * Since: 0.1
 */
int memwatch_reader_get_stats(const struct memwatch_reader *reader,
			      struct memwatch_reader_stats *ret);

#ifdef __cplusplus
}
#endif

#endif /* MEMWATCH_RECORDING_H */
