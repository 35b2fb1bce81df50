// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The limits of the tables.
 */
#include <unistd.h>

#include "common/message.h"
#include "summary/limits.h"

/*
 * Bytes of an element with its places in hash indexes. Arrays and indexes double when they are
 * full, so up to half of them is unused. A row has cells and texts besides its sums.
 */
#define PROCESS_BYTES 320
#define PENDING_BYTES 320
#define ENTRY_BYTES   544
#define RMID_BYTES    256
#define ROW_BYTES     5120

/* More than these are not needed, or would cost time rather than memory. */
#define PROCESSES_MAX 262144
#define PENDING_MAX   65536
#define ENTRIES_MAX   262144
#define RMIDS_MAX     2097152
#define ROWS_MAX      1048576

static uint32_t share(uint64_t bytes, uint64_t element_bytes, uint32_t max)
{
	uint64_t count = bytes / element_bytes;

	return count < max ? (uint32_t)count : max;
}

int mw_limits_init(struct mw_limits *limits, uint64_t bytes, const char *where)
{
	if (bytes && bytes < MW_LIMITS_MIN_BYTES)
		return mw_error(MW_EXIT_USAGE, where, "--max-memory is less than 16M");
	if (!bytes)
		bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) / 4 * (uint64_t)sysconf(_SC_PAGESIZE);
	if (bytes < MW_LIMITS_MIN_BYTES)
		bytes = MW_LIMITS_MIN_BYTES;
	*limits = (struct mw_limits){
		.processes = share(bytes / 8, PROCESS_BYTES, PROCESSES_MAX),
		.pending = share(bytes / 16, PENDING_BYTES, PENDING_MAX),
		.entries = share(bytes / 8, ENTRY_BYTES, ENTRIES_MAX),
		.rmids = share(bytes / 16, RMID_BYTES, RMIDS_MAX),
		.rows = share(bytes / 2, ROW_BYTES, ROWS_MAX),
	};
	return 0;
}
