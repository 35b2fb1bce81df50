/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The way of a record: from the stream through the slots to the summary.
 */
#ifndef MW_FEED_H
#define MW_FEED_H

#include <memwatch/memwatch.h>

#include "common/cmd.h"
#include "summary/limits.h"

/**
 * struct mw_feed - the stream and what is made of it
 * @ctx: the context
 * @stream: the stream
 * @slots: slots as long as the period of its ticks
 * @summary: the sums of the slots that are closed
 * @slot_ns: the length of a slot
 * @lag_ns: the newest records are in open slots, and the summary lacks them for this long
 * @first_ns: the smallest time of the records so far
 * @last_ns: the largest one
 * @period_ns: the longest period of their ticks
 */
struct mw_feed {
	struct memwatch_ctx *ctx;
	struct memwatch_stream *stream;
	struct memwatch_slots *slots;
	struct memwatch_summary *summary;
	uint64_t slot_ns;
	uint64_t lag_ns;
	uint64_t first_ns, last_ns;
	uint64_t period_ns;
};

/*
 * Takes ownership of the stream, also on failure. A time of 0 is no limit. The summary may lack
 * @lag_ns, at most a second, or two slots if they are longer: the more, the less comes late.
 * Returns 0 or a negative errno.
 */
int mw_feed_init(struct mw_feed *feed, struct memwatch_ctx *ctx, struct memwatch_stream *stream,
		 unsigned int by, uint64_t from_ns, uint64_t to_ns, uint64_t lag_ns,
		 const struct mw_limits *limits);
void mw_feed_uninit(struct mw_feed *feed);

/* Feeds one record; slots that it closes are added to the summary. 0 or a negative errno. */
int mw_feed_record(struct mw_feed *feed, const struct memwatch_record_header *record);
/* When the stream has reached @now_ns: the summary has all that is before this time. */
uint64_t mw_feed_closed_ns(const struct mw_feed *feed, uint64_t now_ns);
/* Closes all slots after the last record. 0 or a negative errno. */
int mw_feed_finish(struct mw_feed *feed);

/*
 * The start of a recording, from which --from, --to and all relative times count.
 */
uint64_t mw_feed_origin(const struct memwatch_stream_info *info, uint64_t first_ns);

/* Creates a tracker. Returns 0 or a negative errno. */
int mw_feed_tracker_new(struct memwatch_ctx *ctx, const struct mw_limits *limits,
			struct memwatch_tracker **ret);
/* Creates a summary. A time of 0 is no limit. Returns 0 or a negative errno. */
int mw_feed_summary_new(struct memwatch_ctx *ctx, unsigned int by, uint64_t from_ns, uint64_t to_ns,
			const struct mw_limits *limits, struct memwatch_summary **ret);

/* Opens a recording. On failure prints a message and returns an exit code. */
int mw_open_recording(struct memwatch_ctx *ctx, const char *path, struct memwatch_stream **ret);
/* Finds the first and the last time in a recording. Returns 0 or a negative errno. */
int mw_recording_span(struct memwatch_ctx *ctx, const char *path, uint64_t *first_ns,
		      uint64_t *last_ns);
/*
 * To be called when the stream has been read to its end. Prints a warning if the file was not
 * closed properly, or an error message if blocks in it are damaged. Returns 0 or an exit code.
 */
int mw_check_damage(const struct mw_cli *cli, struct memwatch_stream *stream, const char *path);

#endif
