/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The layout of a trace: all allocations and frees of a process, in a file beside its profile.
 * docs/heap-format.md explains it. This header is shared by the writer, libmemwatch-heap.so, and
 * by the reader in libmemwatch, and needs nothing but fixed-width integers.
 *
 * The file is a page with the header and then chunks. A chunk belongs to one stream. A stream is
 * the sequence of its chunks; its events are in the order of time. A thread writes into one stream,
 * and a stream is used by one thread after another. The events of different streams are in no
 * order: the reader merges them.
 *
 * All numbers are little-endian. `used` of a chunk counts the bytes of complete events, and the
 * writer stores it with release semantics behind them, so a file can be read at every instruction
 * of the writer, and after it was killed. The reader must check everything: the file belongs to
 * the profiled user.
 */
#ifndef _MW_HEAP_TRACE_FORMAT_H
#define _MW_HEAP_TRACE_FORMAT_H

#include <stdint.h>

#define MW_TRACE_MAGIC	       "\x89MWTRAC\n" /* 8 bytes, without the terminating 0 */
#define MW_TRACE_VERSION       1u
#define MW_TRACE_SUFFIX	       ".mwtrace"

#define MW_TRACE_CHUNKS_OFFSET 4096u
#define MW_TRACE_CHUNK_BYTES   (64u << 10)
#define MW_TRACE_CHUNK_READY   0x6b4e4843u

/* What the unit of time of a trace comes from: header.clock. */
enum mw_trace_clock {
	MW_TRACE_CLOCK_MONOTONIC = 0, /* ns of CLOCK_MONOTONIC */
	MW_TRACE_CLOCK_CYCLES = 1,    /* a counter of the processor: see struct mw_trace_moment */
};

/* header.state */
enum mw_trace_state {
	MW_TRACE_STATE_ACTIVE = 1,
	MW_TRACE_STATE_STOPPED = 2, /* switched off */
	MW_TRACE_STATE_ENDED = 3,   /* the program called exit() or returned from main() */
	MW_TRACE_STATE_FULL = 4,    /* no room for more: see header.limits */
};

/* Bits of header.limits. */
#define MW_TRACE_LIMIT_NO_SPACE	 0x1u /* the file system is full, or the file is out of reach */
#define MW_TRACE_LIMIT_FILE_SIZE 0x2u /* the file reached the configured maximum */

/*
 * One moment on two clocks. Two of them that are far apart tell how long a unit of time is; the
 * first is in the header, and each chunk has another one.
 */
struct mw_trace_moment {
	uint64_t units; /* of the trace */
	uint64_t ns;	/* CLOCK_MONOTONIC */
};

/* The first page of the file, which is complete when the file has its name. */
struct mw_trace_header {
	char magic[8];
	uint32_t version;
	uint32_t header_bytes; /* sizeof(struct mw_trace_header): fields beyond it are absent */
	uint32_t chunk_bytes;  /* MW_TRACE_CHUNK_BYTES in this version; readers use this value */
	uint32_t clock;	       /* enum mw_trace_clock */

	/* Which process; the same as in its profile. */
	uint32_t pid;
	uint32_t parent_pid;
	uint64_t start_time_ticks;
	uint64_t pid_namespace;
	uint8_t boot_id[16];
	char comm[16];
	uint64_t created_ns;
	uint64_t created_realtime_ns;

	uint32_t began; /* enum mw_heap_began: what was allocated before is not in the trace */
	uint32_t state; /* enum mw_trace_state */
	uint32_t limits;
	uint32_t depth; /* frames of a site, at most */
	uint64_t file_bytes_max;
	uint64_t chunks;       /* handed out so far */
	uint64_t lost_nested;  /* events of signal handlers that interrupted the recorder */
	uint64_t lost_no_room; /* events after the state became FULL, and of too many threads */
	struct mw_trace_moment first;
	struct mw_trace_moment second; /* a short time later */
	struct mw_trace_moment last;   /* when the state became ENDED or STOPPED; 0: not yet */
	uint64_t reserved[16];
};

/* The beginning of a chunk. */
struct mw_trace_chunk {
	uint32_t ready;	   /* MW_TRACE_CHUNK_READY: what follows is complete; stored last */
	uint32_t used;	   /* bytes, this header included; grows */
	uint32_t stream;   /* 0, 1, 2, ... */
	uint32_t sequence; /* 0, 1, 2, ... in its stream */
	uint32_t tid;	   /* thread of the first event */
	uint32_t reserved32;
	uint64_t base;		       /* to which the time of the first event is relative */
	struct mw_trace_moment moment; /* when the chunk was added */
	uint64_t reserved[2];
};

/*
 * EVENTS. An event is a control byte, what its kind has, the time since the event before, and an
 * address:
 *
 *	kind			between the control byte and the time
 *	MALLOC			slot
 *	MALLOC_SIZE		slot, size
 *	MALLOC_SITE		slot, site, size
 *	FREE			slot
 *	FREE_SITE		slot, site
 *	THREAD			tid; the following events are of this thread; no address
 *
 * A slot is one byte: the number of one of 256 places, in which both sides keep the site, the size
 * and the address of the last event that used it; all are 0 at the beginning of a chunk. What an
 * event does not say is as it is in its slot. Site, size and tid are LEB128: seven bits in a byte,
 * the lowest first, the highest bit means that more follow. A site is the index of a stack in the
 * profile of the process.
 *
 * Bits 0 to 2 of the control byte are the kind. Bits 3 and 4 say how many bytes the time has: 1, 2,
 * 4 or 8. Bits 5 to 7 say how many bytes the address has: 0 to 6, which are the distance from the
 * address in the slot, divided by 8, in zigzag code (0, -1, 1, -2, ...); 7 stands for 8 bytes,
 *which are the address itself.
 */
enum mw_trace_kind {
	MW_TRACE_MALLOC = 0,
	MW_TRACE_MALLOC_SIZE = 1,
	MW_TRACE_MALLOC_SITE = 2,
	MW_TRACE_FREE = 3,
	MW_TRACE_FREE_SITE = 4,
	MW_TRACE_THREAD = 5,
};
#define MW_TRACE_KIND_MASK	 7u
#define MW_TRACE_TIME_SHIFT	 3
#define MW_TRACE_TIME_MASK	 3u
#define MW_TRACE_ADDRESS_SHIFT	 5
#define MW_TRACE_ADDRESS_ITSELF	 7u
#define MW_TRACE_ADDRESS_DIVISOR 8
#define MW_TRACE_SLOTS		 256u
/* Control byte, slot, site, size, time and address, all of the largest size. */
#define MW_TRACE_EVENT_BYTES_MAX (1u + 1 + 5 + 10 + 8 + 8)

/* What a slot keeps. */
struct mw_trace_slot {
	uint64_t size;
	uint64_t address;
	uint32_t site;
	uint32_t reserved;
};

#ifdef __cplusplus
#define MW_TRACE_ASSERT(condition) static_assert(condition, #condition)
#else
#define MW_TRACE_ASSERT(condition) _Static_assert(condition, #condition)
#endif
MW_TRACE_ASSERT(sizeof(struct mw_trace_header) <= MW_TRACE_CHUNKS_OFFSET);
MW_TRACE_ASSERT(sizeof(struct mw_trace_chunk) == 64);

#endif
