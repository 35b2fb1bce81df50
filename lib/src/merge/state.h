/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The state of a merge, for merge.c, which finds what is next, merge-out.c, which
 * hands it out, and merge-stats.c, which counts.
 */
#ifndef MW_MERGE_STATE_H
#define MW_MERGE_STATE_H

#include "merge/merge.h"
#include "merge/sort.h"

#define LOST_SLOTS 64

/* The longest frame that a length of 16 bits and a multiple of 8 can tell. */
#define FRAME_MAX 65528

/* How far ahead of handing out a frame is asked for. */
#define FRAMES_AHEAD 6

/* A loss between two records of one ring, waiting for its turn. */
struct mw_gap {
	uint64_t begin_ns;
	uint64_t count;
};

struct mw_source {
	struct mw_ring ring;
	struct mw_merge_entry *pending; /* in order of arrival */
	uint32_t nr_pending;
	uint32_t max_pending;
	bool in_order; /* the pending ones are sorted as they are */
	bool away;     /* the CPU said that it has nothing to say */
	bool detached;
	bool release; /* the tail has to move */
	uint32_t cpu;
	uint32_t state;
	uint64_t scanned;	    /* position: looked at up to here */
	uint64_t limit;		    /* position: written up to here, when last loaded */
	uint64_t tail;		    /* position: used no longer up to here */
	uint64_t released;	    /* position: given back up to here */
	struct mw_frame_start like; /* a frame that was found plain; of size 0: none was */
	uint64_t newest_ns;
	uint64_t last_ns;    /* of the last in order of arrival */
	struct mw_gap open;  /* lost, and no record after it seen yet */
	uint64_t told;	     /* lost, said mw_merge_lost_add() */
	uint64_t told_at;    /* position: what lies before it came before that loss */
	struct mw_gap *gaps; /* LOST_SLOTS of them, from the first loss on */
	uint64_t gaps_used;  /* bit mask */
	uint64_t late;
	uint64_t lost;
	uint64_t malformed;
};

/*
 * What handing out needs of a source: close together, for the frames of a batch
 * come from all of them in turn.
 */
struct mw_outlet {
	const uint8_t *data;
	uint64_t size;
	uint64_t delivered;
	uint64_t produced;
};

/*
 * What the frames of ticks have in common, whatever CPU sent them: samples of one size,
 * however many, and the tick. Learned from a frame in which all records made sense;
 * with sizes of 0, nothing was.
 */
struct mw_shape {
	uint64_t first; /* second word of a header, without the CPU: of all but the last */
	uint64_t last;	/* of the last */
	uint32_t first_size;
	uint32_t last_size;
};

struct mw_merge {
	struct mw_merge_run run; /* of mw_merge_next(): first, it must find it */
	struct mw_merge_opts opts;
	struct mw_source *sources;
	struct mw_outlet *outlets; /* as many */
	uint16_t *by_cpu;	   /* indices of sources, for the order among equals */
	uint32_t nr_sources;
	uint32_t max_sources;

	struct mw_merge_entry *batch;
	struct mw_merge_entry *scratch;
	size_t batch_at;
	size_t batch_count;
	size_t batch_max;
	uint64_t batch_natural_ns; /* records from here on are FORCED */

	uint64_t read_at_ns;
	uint64_t future_ns;    /* a stamp from here on makes no sense */
	uint64_t delivered_ns; /* largest time handed out */
	uint64_t forced;
	uint64_t finish_ns;
	bool finishing;

	struct mw_shape shape;
	uint64_t quantum; /* bytes of a ring that a round looks at */

	/* The run that was handed out last, for statistics while it is given out. */
	uint32_t source;
	const struct memwatch_record_header *first;
	uint64_t produced; /* of the source before it */

	uint64_t record[sizeof(struct memwatch_record_lost) / 8]; /* a loss, made here */
	uint8_t frame[FRAME_MAX] __attribute__((aligned(64)));	  /* a copy, if one is needed */
};

static inline bool mw_source_is_empty(const struct mw_source *source)
{
	return source->scanned == source->limit;
}

static inline bool mw_source_is_full(const struct mw_source *source)
{
	return source->nr_pending >= MW_MERGE_PENDING_MAX;
}

static inline bool mw_source_fills_up(const struct mw_source *source)
{
	return source->limit - source->tail >= source->ring.size / 4 * 3;
}

#endif /* MW_MERGE_STATE_H */
