// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * "events": what the module wants an operator to be told, and the alerts of a growth monitor,
 * as they come.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmds/events/event.h"
#include "cmds/events/journal.h"
#include "common/clock.h"
#include "common/interrupt.h"
#include "common/library.h"
#include "common/message.h"
#include "growth/alert.h"
#include "growth/background.h"
#include "growth/group.h"
#include "growth/monitor.h"
#include "growth/verdict.h"
#include "output/json.h"
#include "text/escape.h"

/* How often the growth monitor is asked, and signals are looked at. */
#define POLL_MS 200

struct events_config {
	uint64_t duration; /* ns; 0: no limit */
	uint64_t count;	   /* 0: no limit */
	bool growth;
};

static const struct mw_option events_options[] = {
	{ "count", 'n', MW_OPTION_UINT, offsetof(struct events_config, count), "N",
	  "stop after N events", NULL },
	{ "duration", 'd', MW_OPTION_DURATION, offsetof(struct events_config, duration), "TIME",
	  "stop after TIME; default: run until Ctrl-C", NULL },
	{ "growth", 'g', MW_OPTION_FLAG, offsetof(struct events_config, growth), NULL,
	  "also run a growth monitor, and show its notices and alerts", NULL },
	{ 0 },
};

struct events {
	const struct mw_cli *cli;
	const struct events_config *config;
	struct memwatch_ctx *ctx;
	struct memwatch_notices *notices;
	struct mw_background_monitor monitor;
	uint64_t start_ns;
	uint64_t shown;
	int journal; /* descriptor; -1: events are printed */
};

/* --------------------------------------------------------------- output */

static void print_json_notice(const struct memwatch_notice_message *n, const char *sentence,
			      struct mw_json *json)
{
	mw_json_string(json, "event", memwatch_notice_name(n->kind));
	mw_json_uint(json, "time_ns", n->time_ns);
	mw_json_string(json, "sentence", sentence);
	mw_json_uint(json, "cpu", n->cpu);
	mw_json_uint(json, "count", n->count);
	mw_json_uint(json, "value", n->value);
	mw_json_uint(json, "sequence", n->sequence);
	mw_json_uint(json, "suppressed", n->suppressed);
	mw_json_uint(json, "lost", n->lost);
}

static void print_json(const struct mw_event *event)
{
	struct mw_json json = { .out = stdout, .flat = { true } };

	mw_json_row(&json, NULL);
	mw_json_uint(&json, "schema", 1);
	mw_json_string(&json, "source", event->notice ? "module" : "growth");
	if (event->notice) {
		print_json_notice(event->notice, event->sentence, &json);
	} else {
		mw_alert_json_members(event->alert, event->start_ns, event->sentence, &json);
		if (event->group)
			mw_group_json_members(event->group, &event->row, event->start_ns, &json);
		else
			mw_verdict_json_members(&event->row, event->start_ns, &json);
	}
	mw_json_object_end(&json);
	putchar('\n');
}

/* The time of day, the kind of the event, and the sentence. */
static void print_line(const struct mw_event *event)
{
	uint64_t age_ns = mw_clock_ns(CLOCK_MONOTONIC) - event->time_ns;
	time_t when = (time_t)((mw_clock_ns(CLOCK_REALTIME) - age_ns) / 1000000000);
	struct tm tm;
	char clock[32] = "";

	if (localtime_r(&when, &tm))
		strftime(clock, sizeof(clock), "%F %T", &tm);
	printf("%s  %s%-20s%s  ", clock,
	       mw_colour(stdout, event->priority == MW_EVENT_WARNING ? MW_YELLOW : MW_PLAIN),
	       event->name, mw_colour(stdout, MW_PLAIN));
	mw_escape_line(stdout, "%s", event->sentence);
}

/* Returns 0 or an exit code after an error message. */
static int show_event(struct events *e, const struct mw_event *event)
{
	int err;

	e->shown++;
	if (e->journal >= 0) {
		err = mw_journal_send(e->journal, event);
		return err ? mw_error_errno(err, "events: writing to the journal") : 0;
	}
	if (e->cli->format == MW_FORMAT_JSON)
		print_json(event);
	else
		print_line(event);
	return mw_finish_stdout(MW_EXIT_DONE);
}

/* ----------------------------------------------------------------- input */

static bool events_go_on(const struct events *e)
{
	const struct events_config *c = e->config;

	return !mw_interrupted() && (!c->count || e->shown < c->count) &&
	       (!c->duration || mw_clock_ns(CLOCK_MONOTONIC) - e->start_ns < c->duration);
}

static int read_notices(struct events *e)
{
	MEMWATCH_OPTS(memwatch_notice_message, notice);
	struct mw_event event;
	int rc = 0, err;

	while (!rc && events_go_on(e)) {
		err = memwatch_notices_next(e->notices, &notice);
		if (!err)
			return 0;
		if (err < 0)
			return mw_module_failed(e->ctx, err == -ENODEV ? -ENOENT : err, "events",
						NULL);
		if (notice.lost)
			mw_warn(e->cli, "%" PRIu64 " notices were lost", (uint64_t)notice.lost);
		mw_event_of_notice(&notice, &event);
		rc = show_event(e, &event);
	}
	return rc;
}

/* Returns 0, or an exit code, which is positive and so passes through the monitor. */
static int take_growth(void *data, const struct memwatch_record_growth *record)
{
	struct events *e = data;
	struct mw_event event;

	if (!mw_alert_name(record) || !events_go_on(e))
		return 0;
	mw_event_of_alert(record, e->monitor.watch, e->start_ns, &event);
	return show_event(e, &event);
}

/* What grows in no process. */
static int read_groups(struct events *e)
{
	MEMWATCH_OPTS(memwatch_growth_group, group);
	MEMWATCH_OPTS(memwatch_growth_row, row);
	struct memwatch_record_growth record;
	struct mw_event event;
	int rc = 0;

	while (!rc && events_go_on(e) &&
	       memwatch_watch_next_group(e->monitor.watch, &record, &group, &row) == 1) {
		mw_event_of_group(&record, &group, &row, e->start_ns, &event);
		rc = show_event(e, &event);
	}
	return rc;
}

static int read_growth(struct events *e)
{
	int rc;

	if (!e->monitor.watch)
		return 0;
	rc = mw_background_monitor_poll(&e->monitor, take_growth, e);
	if (rc < 0)
		return mw_monitor_failed(e->ctx, rc, "events --growth");
	return rc ? rc : read_groups(e);
}

/* How long to wait: until the end of --duration at most. */
static int next_wait_ms(const struct events *e)
{
	uint64_t past_ns = mw_clock_ns(CLOCK_MONOTONIC) - e->start_ns, left_ms;

	if (!e->config->duration || e->config->duration < past_ns)
		return POLL_MS;
	left_ms = (e->config->duration - past_ns) / 1000000 + 1;
	return left_ms < POLL_MS ? (int)left_ms : POLL_MS;
}

/* Nobody can read the output any more: ends as a command does that has written something. */
static int end_unread(void)
{
	raise(SIGPIPE);
	return mw_error_errno(-EPIPE, "standard output");
}

static int follow_events(struct events *e)
{
	struct pollfd fds[] = {
		{ .fd = memwatch_notices_fd(e->notices), .events = POLLIN },
		/* Only for errors: its reader, such as "grep -m 1", may have ended. */
		{ .fd = e->journal < 0 ? STDOUT_FILENO : -1 },
	};
	int rc = 0;

	while (!rc && events_go_on(e)) {
		int ready = poll(fds, 2, next_wait_ms(e));

		if (ready < 0 && errno != EINTR)
			return mw_error_errno(-errno, "events");
		if (ready > 0 && fds[1].revents)
			return end_unread();
		rc = read_notices(e);
		if (!rc)
			rc = read_growth(e);
	}
	return rc;
}

static int open_events(struct events *e)
{
	int err, rc = mw_library_new(e->cli, &e->ctx);

	if (rc)
		return rc;
	err = memwatch_notices_open(e->ctx, &e->notices);
	if (err)
		return mw_module_failed(e->ctx, err, "events",
					e->config->growth
						? "'growth watch --notices' shows notices and "
						  "alerts without it"
						: NULL);
	if (e->config->growth)
		rc = mw_background_monitor_open(&e->monitor, e->cli, e->ctx, "events");
	if (!rc && e->cli->format == MW_FORMAT_TABLE && mw_journal_is_stdout()) {
		e->journal = mw_journal_open(e->cli);
		if (e->journal < 0)
			mw_warn(e->cli,
				"the journal cannot be reached, so events have no fields: %s",
				strerror(-e->journal));
	}
	return rc;
}

static const char *const events_usage[] = {
	"events [--count N] [--duration TIME] [--growth]",
	"",
	"Shows what the kernel module wants an operator to be told, as it happens: that RMIDs",
	"are exhausted, that another program uses RDT, that CPUs come and go, and the like.",
	"With --growth, the notices and alerts of a growth monitor are shown, too, about",
	"processes, cgroups and the machine. With --format json, each event is one object on a",
	"line. In a unit of systemd, events go to the journal with fields.",
	NULL,
};

static int events_run(const struct mw_cli *cli, void *config, int argc, char **argv)
{
	struct events e = { .cli = cli, .config = config, .journal = -1 };
	int rc;

	(void)argc;
	(void)argv;
	e.start_ns = mw_clock_ns(CLOCK_MONOTONIC);
	mw_interrupt_init();
	rc = open_events(&e);
	if (!rc)
		rc = follow_events(&e);
	mw_background_monitor_close(&e.monitor);
	memwatch_notices_unref(e.notices);
	if (e.journal >= 0)
		close(e.journal);
	memwatch_ctx_unref(e.ctx);
	return rc;
}

const struct mw_cmd mw_cmd_events = {
	.name = "events",
	.summary = "show what the module and the growth monitor tell operators",
	.usage = events_usage,
	.options = events_options,
	.run = events_run,
	.flags = MW_CMD_JSON,
	.config_size = sizeof(struct events_config),
};
