// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * From records to rows: the same code serves live data and recordings.
 */
#include <errno.h>
#include <inttypes.h>

#include "summary/feed.h"
#include "summary/recording-info.h"
#include "common/library.h"
#include "common/message.h"

int mw_feed_tracker_new(struct memwatch_ctx *ctx, const struct mw_limits *limits,
			struct memwatch_tracker **ret)
{
	MEMWATCH_OPTS(memwatch_tracker_opts, opts, .pending_max = limits->pending,
		      .processes_max = limits->processes);

	return memwatch_tracker_new(ctx, &opts, ret);
}

int mw_feed_summary_new(struct memwatch_ctx *ctx, unsigned int by, uint64_t from_ns, uint64_t to_ns,
			const struct mw_limits *limits, struct memwatch_summary **ret)
{
	MEMWATCH_OPTS(memwatch_summary_opts, opts, .by = by, .from_ns = from_ns, .to_ns = to_ns,
		      .rows_max = limits->rows, .rmids_max = limits->rmids);

	return memwatch_summary_new(ctx, &opts, ret);
}

/* A slot is one period, within what the module permits: a recording can say anything. */
static uint64_t choose_slot(const struct memwatch_stream_info *info)
{
	if (!info->period_ns)
		return MEMWATCH_SLOT_DEFAULT_NS;
	if (info->period_ns < MEMWATCH_PERIOD_MIN_NS)
		return MEMWATCH_PERIOD_MIN_NS;
	return info->period_ns < MEMWATCH_PERIOD_MAX_NS ? info->period_ns : MEMWATCH_PERIOD_MAX_NS;
}

/*
 * How many slots are open. Two hold a sample of a period, and what another CPU sends later. Without
 * a limit, it is the default, also in time: the period may have become longer in mid-session.
 */
static uint32_t choose_window(uint64_t slot_ns, uint64_t lag_ns)
{
	uint64_t least = lag_ns ? 2 : MEMWATCH_SLOT_WINDOW_DEFAULT;
	uint64_t slots = (lag_ns ?: MEMWATCH_SLOT_WINDOW_DEFAULT * MEMWATCH_SLOT_DEFAULT_NS) /
			 slot_ns;

	return (uint32_t)(slots < least ? least : slots);
}

int mw_feed_init(struct mw_feed *feed, struct memwatch_ctx *ctx, struct memwatch_stream *stream,
		 unsigned int by, uint64_t from_ns, uint64_t to_ns, uint64_t lag_ns,
		 const struct mw_limits *limits)
{
	const struct memwatch_stream_info *info = memwatch_stream_get_info(stream);
	uint64_t slot_ns = choose_slot(info);
	MEMWATCH_OPTS(memwatch_slots_opts, slots,
		      .flags = by == MEMWATCH_BY_CPU ? MEMWATCH_SLOTS_PER_CPU : 0,
		      .slot_ns = slot_ns, .window = choose_window(slot_ns, lag_ns),
		      .entries_max = limits->entries, .from_ns = from_ns, .to_ns = to_ns);
	struct memwatch_tracker *tracker = NULL;
	int err;

	if (info->rdt[MEMWATCH_RDT_MBM_TOTAL].status == MEMWATCH_STATUS_ESTIMATED)
		slots.flags |= MEMWATCH_SLOTS_ESTIMATE;
	*feed = (struct mw_feed){
		.ctx = ctx,
		.stream = stream,
		.slot_ns = slot_ns,
		.lag_ns = slots.window * slot_ns,
	};
	err = mw_feed_tracker_new(ctx, limits, &tracker);
	if (!err)
		err = memwatch_slots_new(ctx, tracker, &slots, &feed->slots);
	if (!err)
		err = mw_feed_summary_new(ctx, by, from_ns, to_ns, limits, &feed->summary);
	memwatch_tracker_unref(tracker);
	if (err)
		mw_feed_uninit(feed);
	return err;
}

void mw_feed_uninit(struct mw_feed *feed)
{
	feed->summary = memwatch_summary_unref(feed->summary);
	feed->slots = memwatch_slots_unref(feed->slots);
	feed->stream = memwatch_stream_unref(feed->stream);
}

static int drain_slots(struct mw_feed *feed)
{
	const struct memwatch_slot *slot;
	int rc;

	while ((rc = memwatch_slots_next(feed->slots, &slot)) == 1) {
		int err = memwatch_summary_feed(feed->summary, slot);

		if (err < 0)
			return err;
	}
	return rc;
}

int mw_feed_record(struct mw_feed *feed, const struct memwatch_record_header *record)
{
	int rc = memwatch_slots_feed(feed->slots, record);

	if (!feed->first_ns || record->time_ns < feed->first_ns)
		feed->first_ns = record->time_ns;
	if (record->time_ns > feed->last_ns)
		feed->last_ns = record->time_ns;
	mw_period_note(&feed->period_ns, record);
	if (rc == -EINVAL) /* the library has counted the invalid record */
		return 0;
	return rc > 0 ? drain_slots(feed) : rc;
}

uint64_t mw_feed_closed_ns(const struct mw_feed *feed, uint64_t now_ns)
{
	uint64_t newest_ns = now_ns - now_ns % feed->slot_ns;

	return newest_ns > feed->lag_ns ? newest_ns - feed->lag_ns : 0;
}

int mw_feed_finish(struct mw_feed *feed)
{
	int rc = memwatch_slots_finish(feed->slots);

	return rc < 0 ? rc : drain_slots(feed);
}

uint64_t mw_feed_origin(const struct memwatch_stream_info *info, uint64_t first_ns)
{
	uint64_t start = info->start_monotonic_ns;

	return start && start < first_ns ? start : first_ns;
}

int mw_open_recording(struct memwatch_ctx *ctx, const char *path, struct memwatch_stream **ret)
{
	int err = memwatch_stream_open_file(ctx, path, ret);

	return err ? mw_file_failed(ctx, err, path) : 0;
}

int mw_recording_span(struct memwatch_ctx *ctx, const char *path, uint64_t *first_ns,
		      uint64_t *last_ns)
{
	MEMWATCH_OPTS(memwatch_reader_stats, stats);
	struct memwatch_reader *reader;
	int err = memwatch_reader_open(ctx, path, &reader);

	if (err)
		return err;
	err = memwatch_reader_get_stats(reader, &stats);
	memwatch_reader_close(reader);
	*first_ns = stats.first_ns;
	*last_ns = stats.last_ns;
	return err;
}

int mw_check_damage(const struct mw_cli *cli, struct memwatch_stream *stream, const char *path)
{
	MEMWATCH_OPTS(memwatch_stream_stats, stats);

	if (memwatch_stream_get_stats(stream, &stats) || !stats.truncated)
		return 0;
	if (stats.malformed)
		return mw_error(MW_EXIT_DAMAGED, path, "%" PRIu64 " %s; %s missing in the output",
				(uint64_t)stats.malformed,
				stats.malformed == 1 ? "block is damaged" : "blocks are damaged",
				stats.malformed == 1 ? "its records are" : "their records are");
	mw_warn(cli, "%s is incomplete or damaged; this is the part that could be read", path);
	return 0;
}
