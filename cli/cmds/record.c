// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * "record": writes the live stream of records to a file.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/array.h"
#include "common/clock.h"
#include "common/child.h"
#include "growth/background.h"
#include "output/human.h"
#include "common/interrupt.h"
#include "output/json.h"
#include "common/library.h"
#include "common/live.h"
#include "common/message.h"
#include "common/out-file.h"
#include "summary/recording-info.h"
#include "text/escape.h"

struct record_config {
	const char *output;
	uint64_t duration;
	int mode;
	uint64_t period;
	bool force;
	bool growth;
	struct mw_live_config live;
};

/* Records that may wait for the disk: about 20 s of a machine with 16 busy CPUs. */
#define QUEUE_BYTES (64ULL << 20)

/* Nobody waits for the records, so the rings are read seldom, unless they fill up. */
#define WAKEUP_NS    50000000ULL

#define MEMBER(name) offsetof(struct record_config, name)

static const char *const modes[] = { "slot", "switch", NULL };

static const struct mw_option record_options[] = {
	{ "output", 'o', MW_OPTION_FILE, MEMBER(output), "FILE",
	  "the recording to write; must not exist yet", NULL },
	{ "duration", 'd', MW_OPTION_DURATION, MEMBER(duration), "TIME",
	  "stop after TIME, such as 10s or 500ms", NULL },
	{ "mode", 'm', MW_OPTION_CHOICE, MEMBER(mode), "MODE",
	  "take a sample for each tick and process, or for each context switch", modes },
	{ "period", 'p', MW_OPTION_DURATION, MEMBER(period), "TIME",
	  "time between ticks, 100us to 1s", NULL },
	{ "growth", 'g', MW_OPTION_FLAG, MEMBER(growth), NULL,
	  "also run a growth monitor, and record its alerts and verdicts", NULL },
	{ "force", 'f', MW_OPTION_FLAG, MEMBER(force), NULL, "replace FILE if it exists", NULL },
	MW_LIVE_OPTIONS(struct record_config, live),
	{ 0 },
};

struct session {
	const struct mw_cli *cli;
	const struct record_config *config;
	struct memwatch_ctx *ctx;
	struct memwatch_stream *stream;
	struct memwatch_recording *recording;
	struct mw_child child;
	struct mw_background_monitor monitor; /* for --growth */
	/* Growth records that are newer than the last record of the stream. */
	struct memwatch_record_growth *growth;
	size_t nr_growth, growth_capacity;
	/* Times are on CLOCK_MONOTONIC. */
	uint64_t begin_ns, end_ns;
	uint64_t shown_ns;   /* when the progress was shown */
	uint64_t written_ns; /* of the last record, or of the last flush */
	uint64_t lost;	     /* number of records */
	uint64_t period_ns;  /* the longest so far */
	bool stopping;	     /* the stream was stopped and is read to its end */
	bool progress;	     /* show it */
	struct mw_live_share share;
};

static void show_progress(struct session *s)
{
	MEMWATCH_OPTS(memwatch_recording_stats, written);
	MEMWATCH_OPTS(memwatch_stream_stats, stats);
	char records[32], bytes[32];
	uint64_t now = mw_clock_ns(CLOCK_MONOTONIC);

	if (!s->progress || now - s->shown_ns < 200000000)
		return;
	s->shown_ns = now;
	memwatch_recording_get_stats(s->recording, &written);
	memwatch_stream_get_stats(s->stream, &stats);
	fprintf(stderr, "\r%7.1f s  %s records  %s  lost %" PRIu64 "  late %" PRIu64 "\033[K",
		(double)(now - s->begin_ns) / 1e9,
		mw_human_uint(written.records, MW_UNIT_COUNT, records, sizeof(records)),
		mw_human_uint(written.file_bytes, MW_UNIT_BYTES, bytes, sizeof(bytes)),
		(uint64_t)(stats.lost + written.lost), (uint64_t)stats.late);
	fflush(stderr);
}

static void clear_progress(const struct session *s)
{
	if (s->progress && s->shown_ns)
		fputs("\r\033[K", stderr);
}

/* Returns whether the recording must end: signal, end of the command, or time over. */
static bool session_is_over(struct session *s)
{
	return mw_interrupted() || mw_child_poll(&s->child) ||
	       (s->config->duration &&
		mw_clock_ns(CLOCK_MONOTONIC) - s->begin_ns >= s->config->duration);
}

static int stop_session(struct session *s)
{
	s->stopping = true;
	s->end_ns = mw_clock_ns(CLOCK_MONOTONIC);
	return memwatch_stream_stop(s->stream);
}

/* Writes the growth records that are older than @time_ns. */
static int write_growth_records(struct session *s, uint64_t time_ns)
{
	size_t i = 0;
	int err = 0;

	while (!err && i < s->nr_growth && s->growth[i].h.time_ns < time_ns)
		err = memwatch_recording_write(s->recording, &s->growth[i++].h);
	s->nr_growth -= i;
	memmove(s->growth, s->growth + i, s->nr_growth * sizeof(*s->growth));
	return err;
}

static int queue_growth_record(void *data, const struct memwatch_record_growth *record)
{
	struct session *s = data;

	if (mw_array_reserve(s->growth, s->growth_capacity, s->nr_growth + 1))
		return -ENOMEM;
	s->growth[s->nr_growth++] = *record;
	return 0;
}

static int write_record(struct session *s, const struct memwatch_record_header *record)
{
	const struct memwatch_record_lost *lost = (const void *)record;
	int err = s->nr_growth ? write_growth_records(s, record->time_ns) : 0;

	if (err)
		return err;
	if (record->type == MEMWATCH_RECORD_LOST)
		s->lost += lost->count;
	mw_period_note(&s->period_ns, record);
	s->written_ns = record->time_ns;
	return memwatch_recording_write(s->recording, record);
}

/* How long to wait for records: at most until the time is over. */
static int poll_timeout_ms(const struct session *s)
{
	uint64_t left, passed = mw_clock_ns(CLOCK_MONOTONIC) - s->begin_ns;

	if (!s->config->duration || passed >= s->config->duration)
		return 100;
	left = (s->config->duration - passed) / 1000000 + 1;
	return left < 100 ? (int)left : 100;
}

/* Writes the pending records to the file if no record has arrived for a second. */
static int flush_if_idle(struct session *s)
{
	MEMWATCH_OPTS(memwatch_recording_stats, stats);
	uint64_t now = mw_clock_ns(CLOCK_MONOTONIC);

	if (now < s->written_ns + 1000000000)
		return 0;
	s->written_ns = now;
	memwatch_recording_get_stats(s->recording, &stats);
	return stats.pending ? memwatch_recording_flush(s->recording, 0) : 0;
}

/* Runs the background monitor, and stops the stream if the recording must end. */
static int run_periodic_work(struct session *s)
{
	int err = 0;

	mw_live_limit(&s->share, s->cli);
	if (s->monitor.watch)
		err = mw_background_monitor_poll(&s->monitor, queue_growth_record, s);
	if (!err && session_is_over(s))
		err = stop_session(s);
	return err;
}

/*
 * Reads the stream to its end. Returns 0 or a negative errno of the stream; an error of the
 * file is returned in *@file_err and ends the loop too.
 */
static int copy_stream(struct session *s, int *file_err)
{
	const struct memwatch_record_header *record;
	unsigned int n = 0;
	int rc;

	*file_err = 0;
	for (;;) {
		if ((n++ & 1023) == 0 && !s->stopping && (rc = run_periodic_work(s)))
			return rc;
		rc = memwatch_stream_next(s->stream, &record);
		if (rc == 1) {
			*file_err = write_record(s, record);
			if (*file_err)
				return 0;
		} else if (rc == -EAGAIN) {
			show_progress(s);
			*file_err = flush_if_idle(s);
			if (*file_err)
				return 0;
			rc = memwatch_stream_poll(s->stream, poll_timeout_ms(s));
			if (rc < 0 && rc != -EINTR)
				return rc;
			n = 0;
		} else {
			return rc;
		}
	}
}

/* Returns 0 or the error of writing the rest. */
static int read_statistics(struct session *s, struct memwatch_recording_stats *written,
			   struct memwatch_stream_stats *stats)
{
	int err;

	written->sz = sizeof(*written);
	stats->sz = sizeof(*stats);
	err = memwatch_recording_flush(s->recording, 1);
	memwatch_recording_get_stats(s->recording, written);
	memwatch_stream_get_stats(s->stream, stats);
	return err;
}

/* Closing writes the index. */
static uint64_t file_size(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : (uint64_t)st.st_size;
}

static void print_summary_json(const struct session *s,
			       const struct memwatch_recording_stats *written,
			       const struct memwatch_stream_stats *stats)
{
	struct mw_json json;

	mw_json_init(&json, stdout);
	mw_json_string(&json, "file", s->config->output);
	mw_json_uint(&json, "duration_ns", s->end_ns - s->begin_ns);
	mw_recording_json(&json, memwatch_stream_get_info(s->stream), written->first_ns,
			  written->last_ns);
	mw_period_json(&json, s->period_ns);
	mw_json_uint(&json, "records", written->records);
	mw_json_uint(&json, "file_bytes", written->file_bytes);
	mw_json_uint(&json, "lost", s->lost + written->lost);
	mw_json_uint(&json, "late", stats->late);
	mw_json_uint(&json, "forced", stats->forced);
	mw_json_uint(&json, "malformed", stats->malformed);
	mw_json_string(&json, "priority", mw_priority_name(s->share.priority));
	if (!s->child.ended)
		mw_json_null(&json, "command_exit_status");
	else
		mw_json_int(&json, "command_exit_status",
			    WIFEXITED(s->child.status) ? WEXITSTATUS(s->child.status)
						       : -WTERMSIG(s->child.status));
	mw_json_finish(&json);
}

static void print_summary(const struct session *s, const struct memwatch_recording_stats *written,
			  const struct memwatch_stream_stats *stats)
{
	char time[32], bytes[32];

	if (s->cli->format == MW_FORMAT_JSON)
		print_summary_json(s, written, stats);
	if (s->cli->quiet)
		return;
	mw_escape_write(stderr, s->config->output, MW_ESCAPE_TERMINAL);
	fprintf(stderr, ": %s, %" PRIu64 " records, %s",
		mw_human_uint(s->end_ns - s->begin_ns, MW_UNIT_NS, time, sizeof(time)),
		(uint64_t)written->records,
		mw_human_uint(written->file_bytes, MW_UNIT_BYTES, bytes, sizeof(bytes)));
	if (written->records)
		fprintf(stderr, " (%.1f bytes per record)",
			(double)written->file_bytes / (double)written->records);
	fprintf(stderr, ", %" PRIu64 " lost, %" PRIu64 " late\n", s->lost + (uint64_t)written->lost,
		(uint64_t)stats->late);
	mw_period_print(stderr, memwatch_stream_get_info(s->stream), s->period_ns);
}

/* What can be done about losses. */
static void hint_at_losses(const struct session *s, const struct memwatch_recording_stats *written)
{
	if (s->cli->quiet)
		return;
	if (s->lost && s->share.priority != MW_PRIORITY_REAL_TIME)
		mw_hint("records were lost because the rings were read too late: real-time "
			"priority "
			"needs root or CAP_SYS_NICE");
	else if (s->lost)
		mw_hint("records were lost because rings were full: use a larger --ring-size");
	if (written->lost)
		mw_hint("records were lost because the disk was too slow");
}

static void print_child_status(const struct session *s, char **argv)
{
	char words[96];

	if (!s->child.started || !s->child.ended || s->cli->quiet)
		return;
	if (s->child.status || s->cli->verbose)
		mw_escape_line(stderr, "%s %s", argv[0],
			       mw_child_status_text(&s->child, words, sizeof(words)));
}

static int report_file_error(const struct session *s, int err,
			     const struct memwatch_recording_stats *written)
{
	mw_error(MW_EXIT_FAILED, s->config->output, "%s", strerror(-err));
	mw_hint("the file contains the %" PRIu64 " records that were written before the error",
		(uint64_t)(written->records - written->pending));
	return MW_EXIT_FAILED;
}

static int run_session(struct session *s)
{
	struct memwatch_recording_stats written;
	struct memwatch_stream_stats stats;
	int err, file_err, flush_err, close_err;

	s->begin_ns = mw_clock_ns(CLOCK_MONOTONIC);
	err = copy_stream(s, &file_err);
	if (!s->stopping)
		stop_session(s);
	clear_progress(s);
	if (!file_err)
		file_err = write_growth_records(s, UINT64_MAX);
	flush_err = read_statistics(s, &written, &stats);
	file_err = file_err ?: flush_err;
	close_err = memwatch_recording_close(s->recording);
	s->recording = NULL;
	if (file_err || close_err)
		return report_file_error(s, file_err ?: close_err, &written);
	written.file_bytes = file_size(s->config->output) ?: written.file_bytes;
	if (err)
		return mw_module_failed(s->ctx, err, "record", NULL);
	if (s->child.pid && !mw_child_poll(&s->child)) {
		mw_note(s->cli, "waiting for the command to end");
		mw_child_wait(&s->child);
	}
	print_summary(s, &written, &stats);
	hint_at_losses(s, &written);
	return MW_EXIT_DONE;
}

static int create_recording(struct session *s)
{
	MEMWATCH_OPTS(memwatch_recording_opts, opts, .queue_bytes = QUEUE_BYTES);
	bool replace;
	int err, rc = mw_out_file_check(s->ctx, s->config->output, s->config->force, &replace);

	if (rc)
		return rc;
	opts.flags = replace ? MEMWATCH_RECORDING_OVERWRITE : 0;
	err = memwatch_recording_create(s->ctx, s->config->output,
					memwatch_stream_get_info(s->stream), &opts, &s->recording);
	return err ? mw_file_failed(s->ctx, err, s->config->output) : 0;
}

static int open_live_stream(struct session *s)
{
	MEMWATCH_OPTS(memwatch_live_opts, opts, .mode = (uint32_t)s->config->mode,
		      .period_ns = s->config->period, .wakeup_ns = WAKEUP_NS);

	mw_live_raise(&s->share, &s->config->live, s->cli);
	return mw_live_open(s->cli, s->ctx, &s->config->live, &opts, "record", &s->stream);
}

static int open_background_monitor(struct session *s)
{
	return s->config->growth ? mw_background_monitor_open(&s->monitor, s->cli, s->ctx, "record")
				 : 0;
}

static int start_child(struct session *s, char **argv)
{
	int err;

	if (!s->child.pid)
		return 0;
	err = mw_child_start(&s->child);
	if (!err)
		return 0;
	/* The command did not run, so the recording is of no use. */
	memwatch_recording_discard(s->recording);
	s->recording = NULL;
	return mw_child_failed(err, argv[0]);
}

static int check_record_config(const struct record_config *c)
{
	if (!c->output) {
		mw_error(MW_EXIT_USAGE, "record", "--output is missing");
		mw_hint("usage: memwatchctl record -o FILE");
		return MW_EXIT_USAGE;
	}
	if (!strcmp(c->output, "-"))
		return mw_error(MW_EXIT_USAGE, "record",
				"--output must be a file: a recording cannot be written to a pipe");
	if (c->period && (c->period < MEMWATCH_PERIOD_MIN_NS || c->period > MEMWATCH_PERIOD_MAX_NS))
		return mw_error(MW_EXIT_USAGE, "record", "--period is not between 100us and 1s");
	return mw_live_check(&c->live, "record");
}

static const char *const record_usage[] = {
	"record -o FILE [--duration TIME] [OPTIONS]",
	"record -o FILE [OPTIONS] [--] COMMAND...",
	"",
	"Records all processes of this machine to FILE, until TIME is over, COMMAND has ended,",
	"or Ctrl-C is pressed. COMMAND is started once the recording runs. Processes other than",
	"COMMAND are recorded too. If the program is killed or the disk is full, FILE can be",
	"read up to its last complete block. The exit status is 0 if the recording is complete,",
	"whatever the exit status of COMMAND, which is printed.",
	NULL,
};

static int record_run(const struct mw_cli *cli, void *config, int argc, char **argv)
{
	mw_cleanup_ctx struct memwatch_ctx *ctx = NULL;
	struct session s = { .cli = cli, .config = config };
	int rc = check_record_config(config) ?: mw_library_new(cli, &ctx);
	bool replace;

	/* Check before anything is started. create_recording() checks again. */
	if (!rc)
		rc = mw_out_file_check(ctx, s.config->output, s.config->force, &replace);
	if (rc)
		return rc;
	s.ctx = ctx;
	s.progress = !cli->quiet && isatty(STDERR_FILENO);
	/* Fork before the rings and the session are open, so that the child has none of them. */
	if (argc && (rc = mw_child_fork(&s.child, argv)))
		return mw_error_errno(rc, argv[0]);
	mw_interrupt_init();
	rc = open_live_stream(&s)
		     ?: open_background_monitor(&s)
		     ?: create_recording(&s) ?: start_child(&s, argv) ?: run_session(&s);
	if (s.recording && memwatch_recording_close(s.recording))
		mw_warn(cli, "%s is incomplete: %s", s.config->output, memwatch_ctx_error(ctx));
	mw_background_monitor_close(&s.monitor);
	free(s.growth);
	memwatch_stream_unref(s.stream);
	mw_child_uninit(&s.child);
	print_child_status(&s, argv);
	return rc;
}

const struct mw_cmd mw_cmd_record = {
	.name = "record",
	.summary = "record all processes to a file, for a time or while a command runs",
	.usage = record_usage,
	.options = record_options,
	.run = record_run,
	.flags = MW_CMD_JSON | MW_CMD_PASS_ARGS,
	.config_size = sizeof(struct record_config),
	.operands_max = -1,
};
