/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The reader of a file of access samples, see access-format.h. The file may still be written: at
 * its end the reader can go on later.
 */
#ifndef MW_STALE_ACCESS_FILE_H
#define MW_STALE_ACCESS_FILE_H

#include <stdbool.h>

#include <memwatch/ctx.h>

#include "stale/access-format.h"

/**
 * struct mw_access_record - a record
 * @time_ns, @tid: when, and which thread
 * @address: memory that was accessed
 * @ip: the instruction; 0: the kernel
 * @is_exec: the process has executed another program; the other members but the time are 0
 */
struct mw_access_record {
	uint64_t time_ns, address, ip;
	uint32_t tid;
	bool is_exec;
};

/**
 * struct mw_access_file - the reader
 * @fd: the file; owned
 * @pid: the process whose samples are read
 * @header: as it was when it was read last
 * @offset: of the next block
 * @damaged: blocks of which a part could not be decoded
 * @used: there was a block of the process
 * @cut_off: the last block is not complete
 * @broken: behind a damaged head, no further block can be found
 * @other_boot: its times are of another boot than those of the trace, so nothing is read of it
 * @buffer: the current block; owned
 * @at, @end: what of it is left
 * @last: the record before
 */
struct mw_access_file {
	int fd;
	uint32_t pid;
	struct mw_access_file_header header;
	uint64_t offset;
	uint64_t damaged;
	bool used, cut_off, broken, other_boot;
	uint8_t *buffer;
	const uint8_t *at, *end;
	struct mw_access_record last;
};

/*
 * Reads the header of @fd, which the file owns from now on. Returns 0; -ENOMSG, it is no file of
 * accesses; -EPROTO, its format is newer; -ENOMEM; or any errno of read(). The caller calls
 * mw_access_file_uninit() in any case.
 */
int mw_access_file_init(struct mw_access_file *file, struct memwatch_ctx *ctx, int fd,
			uint32_t pid);
void mw_access_file_uninit(struct mw_access_file *file);

/* Reads the header again, whose counts have changed meanwhile. */
void mw_access_file_refresh(struct mw_access_file *file);

/* The next record. Returns 1; 0, there is no more at present; or any errno of read(). */
int mw_access_file_next(struct mw_access_file *file, struct mw_access_record *ret);

#endif /* MW_STALE_ACCESS_FILE_H */
