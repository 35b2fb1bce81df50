/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The layout of a file of access samples (accesses.mwaccess), which "stale run --accesses" writes
 * beside the traces of the processes. docs/heap-format.md explains it.
 *
 * The file is a header and then blocks. A block has samples of one process. It is written by one
 * call of write(), so a file that is being written, or was cut off, has complete blocks and at its
 * end a part of one. Blocks and samples are in no order of time. All numbers are little-endian. The
 * reader must check everything.
 */
#ifndef MW_STALE_ACCESS_FORMAT_H
#define MW_STALE_ACCESS_FORMAT_H

#include <stdint.h>

#define MW_ACCESS_FILE_MAGIC   "\x89MWACCS\n" /* 8 bytes, without the terminating 0 */
#define MW_ACCESS_FILE_VERSION 1u
#define MW_ACCESS_BLOCK_MAGIC  0x4b4c4241u /* "ABLK" */
#define MW_ACCESS_BLOCK_BYTES  16384u	   /* of the largest block, with its head */
#define MW_ACCESS_EVENT_ROOM   128u

/* Bits of header.flags. */
#define MW_ACCESS_FILE_PAGE_FAULTS 0x1u /* only the first access to each page was sampled */
#define MW_ACCESS_FILE_USER_ONLY   0x2u /* accesses of system calls were not sampled */
#define MW_ACCESS_FILE_ENDED	   0x4u /* the recorder has ended and written all it had */

struct mw_access_file_header {
	char magic[8];
	uint32_t version;
	uint32_t header_bytes; /* sizeof(struct mw_access_file_header); blocks follow */
	uint8_t boot_id[16];
	uint64_t created_ns; /* CLOCK_MONOTONIC, as all times here */
	uint64_t period;     /* mean number of accesses between two samples of a thread */
	uint32_t flags;
	uint32_t reserved32;
	char event[MW_ACCESS_EVENT_ROOM]; /* names of the perf events, ended by 0 */
	/* What follows is written again with the blocks. */
	uint64_t samples;
	uint64_t lost;	    /* records that did not fit into a ring, or that the PMU lost */
	uint64_t throttled; /* how often the kernel stopped sampling for a tick */
	uint64_t reserved[8];
};

/* The beginning of a block. */
struct mw_access_block {
	uint32_t magic;
	uint32_t bytes; /* with this head */
	uint32_t pid;
	uint32_t reserved;
	uint64_t base_ns; /* to which the time of the first record is relative */
};

/*
 * RECORDS. A record is a control byte and numbers in LEB128: seven bits in a byte, the lowest
 * first, the highest bit means that more follow. Differences are in zigzag code (0, -1, 1, -2, ...)
 * and relative to the record before in the block; everything before the first record is 0, but for
 * its time.
 *
 *	bit 0	the thread is another one: its number comes first
 *	bit 1	the process has executed another program: time, and nothing else
 *	bit 2	the kernel has accessed the memory for the thread: there is no instruction
 *
 * Otherwise: the difference of the time in nanoseconds, that of the address, and that of the
 * address of the instruction.
 */
#define MW_ACCESS_RECORD_THREAD 0x1u
#define MW_ACCESS_RECORD_EXEC	0x2u
#define MW_ACCESS_RECORD_KERNEL 0x4u
#define MW_ACCESS_RECORD_KNOWN	0x7u
/* A control byte and four numbers. */
#define MW_ACCESS_RECORD_BYTES_MAX (1u + 4 * 10)

#endif /* MW_STALE_ACCESS_FORMAT_H */
