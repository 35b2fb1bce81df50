/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The writer of a file of access samples, see access-format.h. It takes items as they come from the
 * rings and keeps a block for each process, in bounded memory.
 */
#ifndef MW_STALE_ACCESS_WRITE_H
#define MW_STALE_ACCESS_WRITE_H

#include <memwatch/ctx.h>

#include "stale/access-format.h"
#include "stale/access-ring.h"

#define MW_ACCESS_WRITER_BLOCKS 64

/* A block that is being filled. */
struct mw_access_open_block {
	uint32_t pid, tid;
	uint32_t bytes; /* 0: it is empty */
	uint64_t time_ns, address, ip;
	uint8_t content[MW_ACCESS_BLOCK_BYTES];
};

/**
 * struct mw_access_writer - the writer
 * @ctx: context, not owned
 * @fd: the file, or -1; owned
 * @header: its header
 * @size: bytes that were written
 * @err: why nothing is written any more, or 0
 * @blocks: one for each process; processes whose numbers are equal modulo their number take turns;
 *	owned
 */
struct mw_access_writer {
	struct memwatch_ctx *ctx;
	int fd;
	struct mw_access_file_header header;
	uint64_t size;
	int err;
	struct mw_access_open_block *blocks;
};

/*
 * Creates accesses.mwaccess in @directory, or accesses-2.mwaccess and so on if there are such
 * files. The caller fills in @writer->header.period, flags and event before the first item. Returns
 * 0, -ENOMEM or any errno of open(); the caller calls mw_access_writer_uninit() in any case.
 */
int mw_access_writer_init(struct mw_access_writer *writer, struct memwatch_ctx *ctx,
			  const char *directory);
void mw_access_writer_uninit(struct mw_access_writer *writer);

/* Takes an item. Those of kinds that the file does not have are ignored. */
void mw_access_writer_add(struct mw_access_writer *writer, const struct mw_access_item *item);

/*
 * Writes all blocks and the header. Returns 0 or any errno of write(); after an error nothing is
 * written any more.
 */
int mw_access_writer_flush(struct mw_access_writer *writer);

#endif /* MW_STALE_ACCESS_WRITE_H */
