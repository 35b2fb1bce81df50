/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * From a stream to a summary: one record at a time through the slots.
 */
#ifndef MW_FEED_H
#define MW_FEED_H

#include <memwatch/memwatch.h>

#include "common/cmd.h"

/* So much is still in open slots: a summary does not know it yet. */
#define MW_FEED_LAG_NS (MEMWATCH_SLOT_WINDOW_DEFAULT * MEMWATCH_SLOT_DEFAULT_NS)

struct mw_feed {
	struct memwatch_ctx *ctx;
	struct memwatch_stream *stream;
	struct memwatch_slots *slots;
	struct memwatch_summary *summary;
	uint64_t first_ns, last_ns; /* of the records seen */
};

/* Takes the stream over, also when it fails. Times 0: no limit. 0 or -errno. */
int mw_feed_init(struct mw_feed *feed, struct memwatch_ctx *ctx, struct memwatch_stream *stream,
		 unsigned int by, uint64_t from_ns, uint64_t to_ns);
void mw_feed_uninit(struct mw_feed *feed);

/* One record; closed slots go into the summary. 0 or -errno. */
int mw_feed_record(struct mw_feed *feed, const struct memwatch_record_header *record);
/* After the last record. 0 or -errno. */
int mw_feed_finish(struct mw_feed *feed);

/*
 * When the recording starts: what the offsets of --from and --to, and all
 * relative times, count from.
 */
uint64_t mw_feed_origin(const struct memwatch_stream_info *info, uint64_t first_ns);

/* Opens a recording; a message and an exit code on failure. */
int mw_open_recording(struct memwatch_ctx *ctx, const char *path, struct memwatch_stream **ret);
/* First and last time in a recording: 0 or -errno. */
int mw_recording_span(struct memwatch_ctx *ctx, const char *path, uint64_t *first_ns,
		      uint64_t *last_ns);
/* Whether the file was closed properly; says what is wrong if not. */
void mw_warn_truncated(const struct mw_cli *cli, struct memwatch_stream *stream, const char *path);

#endif
