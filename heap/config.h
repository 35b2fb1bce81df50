/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The configuration, which comes from environment variables; docs/heap.md describes them.
 */
#ifndef _MW_HEAP_CONFIG_H
#define _MW_HEAP_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "profile-format.h"

#define MW_CONFIG_RATE_DEFAULT	    (UINT64_C(512) << 10)
#define MW_CONFIG_MAX_BYTES_DEFAULT (UINT64_C(60) << 20)
#define MW_CONFIG_MAX_BYTES_LEAST   (UINT64_C(8) << 20)
#define MW_CONFIG_DEPTH_DEFAULT	    128
#define MW_CONFIG_SNAPSHOTS_DEFAULT 100
#define MW_CONFIG_TRACE_MAX_DEFAULT (UINT64_C(16) << 30)
#define MW_CONFIG_EPOCH_LEAST	    10
#define MW_CONFIG_TRACE_DEPTH	    4
#define MW_CONFIG_TRACE_DEPTH_MOST  16

/* Memory of the library that is not in the file: filter, index, caches. */
#define MW_CONFIG_PRIVATE_BYTES (UINT64_C(8) << 20)

/* MEMWATCH_HEAP_SNAPSHOT: when the library copies its profile. */
struct mw_config_snapshots {
	uint64_t bytes;	      /* each time so many have been allocated; 0: never */
	uint64_t interval_ns; /* 0: never */
	bool peak;	      /* at new highest live sizes */
	bool exit;	      /* when the program ends */
	uint32_t max;	      /* not more than these */
};

struct mw_config {
	char directory[MW_HEAP_PATH_MAX]; /* absolute */
	uint64_t rate;			  /* MEMWATCH_HEAP_RATE */
	uint64_t max_bytes;		  /* MEMWATCH_HEAP_MAX */
	uint64_t seed;			  /* MEMWATCH_HEAP_SEED; 0: random */
	uint32_t depth;			  /* MEMWATCH_HEAP_DEPTH */
	uint32_t isolate;		  /* MEMWATCH_HEAP_ISOLATE; 0: nothing is watched */
	uint64_t epoch_ns;		  /* MEMWATCH_HEAP_EPOCH, in ms; 0: see epoch.c */
	struct mw_config_snapshots snapshots;
	uint64_t trace_max;   /* MEMWATCH_HEAP_TRACE_MAX */
	uint32_t trace_depth; /* MEMWATCH_HEAP_TRACE_DEPTH */
	bool trace;	      /* MEMWATCH_HEAP_TRACE=1 */
	bool dormant;	      /* MEMWATCH_HEAP_DORMANT=1 */
	bool fork_stops;      /* MEMWATCH_HEAP_FORK=stop */
	bool mmap;	      /* MEMWATCH_HEAP_MMAP=1 */
	bool log;	      /* MEMWATCH_HEAP_LOG=1 */
	bool python_malloc;   /* PYTHONMALLOC: CPython calls malloc() for each object */
};

extern struct mw_config mw_config __attribute__((visibility("hidden")));

/* Reads the environment. Returns 0, or a negative errno if the directory is unusable. */
int mw_config_read(void);

/* Writes one line to standard error if the user asked for it: "memwatch-heap: WHAT: WHY". */
void mw_config_log(const char *what, int error);

#endif
