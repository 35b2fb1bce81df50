/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What the kernel says about the memory of a process: its mappings, what they are for, and which
 * of their pages are resident.
 */
#ifndef MW_HEAP_MEMORY_H
#define MW_HEAP_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include <memwatch/heap-process.h>

enum mw_memory_kind {
	MW_MEMORY_ANONYMOUS, /* private, for any purpose */
	MW_MEMORY_HEAP,	     /* of brk() */
	MW_MEMORY_ARENA,     /* looks like an arena of the C library */
	MW_MEMORY_STACK,
	MW_MEMORY_FILE,
	MW_MEMORY_SHARED, /* without a file: tmpfs, memfd, System V, anonymous */
	MW_MEMORY_KINDS,
};

struct mw_memory_mapping {
	uint64_t start, end;
	uint64_t resident, swapped; /* bytes */
	enum mw_memory_kind kind;
};

/**
 * struct memwatch_heap_memory - the memory of a process at one time
 * @ctx: reference
 * @mappings: sorted by address
 * @time_ns: CLOCK_MONOTONIC of the process
 * @page_table_bytes: memory of the kernel for the page tables
 * @threads: number of threads
 * @pagemap: descriptor of /proc/PID/pagemap, or -1
 */
struct memwatch_heap_memory {
	struct memwatch_ctx *ctx;
	struct mw_memory_mapping *mappings;
	uint32_t nr_mappings, capacity;
	uint64_t time_ns;
	uint64_t page_table_bytes;
	uint64_t page_bytes;
	uint32_t threads;
	int pagemap;
};

/* The mapping that contains @address, or NULL. */
struct mw_memory_mapping *mw_memory_find(const struct memwatch_heap_memory *memory,
					 uint64_t address);

/* The bytes from @start to @end that are resident; all if that is not known. */
uint64_t mw_memory_resident(const struct memwatch_heap_memory *memory, uint64_t start,
			    uint64_t end);

/* The bytes at the end of @mapping behind its last resident page; 0 if that is not known. */
uint64_t mw_memory_untouched_end(const struct memwatch_heap_memory *memory,
				 const struct mw_memory_mapping *mapping);

#endif /* MW_HEAP_MEMORY_H */
