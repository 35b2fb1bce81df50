/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Writes the file of a recording, block by block. Used by one thread at a time.
 */
#ifndef MW_WRITER_H
#define MW_WRITER_H

#include <stdbool.h>

#include <memwatch/recording.h>

#include "recording/batch.h"

struct mw_writer;

/* All members of @info and @opts are set and valid. */
int mw_writer_create(struct memwatch_ctx *ctx, const char *path,
		     const struct memwatch_stream_info *info,
		     const struct memwatch_recording_opts *opts, struct mw_writer **ret);

/* Failures are told to @ctx from now on: a thread needs a context of its own. */
void mw_writer_set_ctx(struct mw_writer *writer, struct memwatch_ctx *ctx);

/* Capacity of a batch whose records make one block. */
uint32_t mw_writer_batch_bytes(const struct mw_writer *writer);

/*
 * Writes what is left of a batch. On failure, the file ends with its last whole block, and the
 * call may be repeated.
 */
int mw_writer_write(struct mw_writer *writer, struct mw_batch *batch);
int mw_writer_sync(struct mw_writer *writer);

/* Fills in what the writer knows: what it has written. */
void mw_writer_stats(const struct mw_writer *writer, struct memwatch_recording_stats *ret);

/*
 * An index at the end says that the file is complete, so none is written after a failure, or
 * without @complete.
 */
int mw_writer_close(struct mw_writer *writer, bool complete);
void mw_writer_discard(struct mw_writer *writer);

#endif /* MW_WRITER_H */
