// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * growth watch: alerts as they come, on this machine.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmds/growth/growth.h"
#include "common/clock.h"
#include "growth/monitor.h"
#include "growth/registry.h"
#include "growth/verdict.h"
#include "output/human.h"
#include "common/interrupt.h"
#include "common/library.h"
#include "common/message.h"
#include "summary/rows.h"

/* How often histories are written to the state file. */
#define SAVE_NS 60000000000ULL

struct watch_config {
	struct mw_monitor_config monitor;
	uint64_t refresh;
	uint64_t top;
	const char *exec;
	const char *state;
	bool alerts;
};

#define MEMBER(member) offsetof(struct watch_config, member)

static const struct mw_option watch_options[] = {
	MW_MONITOR_OPTIONS(struct watch_config, "rounds"),
	{ "alerts", 'a', MW_OPTION_FLAG, MEMBER(alerts), NULL, "no table, only alerts", NULL },
	{ "rows", 'n', MW_OPTION_UINT, MEMBER(top), "N", "rows of the table, 10 if not given",
	  NULL },
	{ "exec", 'x', MW_OPTION_STRING, MEMBER(exec), "COMMAND",
	  "run by a shell on each alert, with MEMWATCH_* in its environment", NULL },
	{ "state", 's', MW_OPTION_FILE, MEMBER(state), "FILE",
	  "keep the histories in FILE, and go on from it", NULL },
	{ "max-processes", 0, MW_OPTION_UINT, MEMBER(monitor.max), "N",
	  "processes with state, 10000 if not given", NULL },
	{ "no-events", 0, MW_OPTION_FLAG, MEMBER(monitor.no_events), NULL,
	  "rounds only: nothing is attached to kmem:rss_stat", NULL },
	{ 0 },
};

struct watcher {
	const struct mw_cli *cli;
	const struct watch_config *config;
	struct mw_monitor monitor;
	struct mw_registry_entry entry;
	uint64_t start, saved;
	uint64_t alerts;
};

/* ----------------------------------------------------------------- alerts */

static void set_number(const char *name, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	setenv(name, text, 1);
}

/* Not waited for: a hook that hangs must not stop the watch. */
static void run_hook(const struct watcher *w, const struct memwatch_record_growth *record,
		     const char *event, const char *sentence)
{
	pid_t pid = fork();

	if (pid < 0)
		mw_warn(w->cli, "%s: %s", w->config->exec, strerror(errno));
	if (pid)
		return;
	setenv("MEMWATCH_EVENT", event, 1);
	set_number("MEMWATCH_PID", record->tgid);
	setenv("MEMWATCH_COMM", record->comm, 1);
	setenv("MEMWATCH_REASON", memwatch_growth_reason_name(record->reason), 1);
	set_number("MEMWATCH_CONFIDENCE", record->confidence);
	set_number("MEMWATCH_SLOPE_BYTES_PER_SECOND", record->slope);
	set_number("MEMWATCH_SIGNAL_BYTES", record->signal_bytes);
	if (record->eta_s != UINT32_MAX)
		set_number("MEMWATCH_ETA_SECONDS", record->eta_s);
	setenv("MEMWATCH_SENTENCE", sentence, 1);
	/* What this program set up for itself is not for the hook. */
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	execl("/bin/sh", "sh", "-c", w->config->exec, (char *)NULL);
	_exit(127);
}

/* The row of a process, from a snapshot of now: 1, or 0 if it is gone. */
static int find_row(struct watcher *w, const struct memwatch_record_growth *record,
		    struct memwatch_growth_row *row, __u64 *cgroup)
{
	struct memwatch_growth_sample sample;

	if (memwatch_watch_snapshot(w->monitor.watch) < 0)
		return 0;
	for (unsigned int i = 0; memwatch_watch_sample(w->monitor.watch, i, &sample, cgroup); i++)
		if (sample.tgid == record->tgid && sample.start_time_ns == record->start_time_ns)
			return memwatch_watch_row(w->monitor.watch, i, row) == 1;
	*cgroup = 0;
	return 0;
}

static void print_json(const struct watcher *w, const struct memwatch_record_growth *record,
		       const struct memwatch_growth_row *row, const char *event,
		       const char *sentence)
{
	struct mw_json json = { .out = stdout, .flat = { true } };

	mw_json_row(&json, NULL);
	mw_json_uint(&json, "schema", 1);
	mw_json_string(&json, "event", event);
	mw_json_double(&json, "time_s", (double)(record->h.time_ns - w->start) / 1e9);
	mw_json_uint(&json, "time_ns", record->h.time_ns);
	mw_json_uint(&json, "start_time_ns", record->start_time_ns);
	mw_json_string(&json, "limit", memwatch_watch_limit_name(record->limit));
	mw_json_string(&json, "sentence", sentence);
	mw_verdict_json_members(row, w->start, &json);
	mw_json_object_end(&json);
	putchar('\n');
	fflush(stdout);
}

static void tell(struct watcher *w, const struct memwatch_record_growth *record)
{
	const char *event = record->what == MEMWATCH_GROWTH_ALERTED ? "alert" : "clear";
	MEMWATCH_OPTS(memwatch_growth_row, row);
	char sentence[512];
	__u64 cgroup = 0;

	if (!find_row(w, record, &row, &cgroup)) {
		/* It was too fast for us: what the record says is all there is. */
		row.tgid = record->tgid;
		memcpy(row.comm, record->comm, sizeof(record->comm));
		row.verdict = record->verdict;
		row.reason = record->reason;
		row.confidence = record->confidence;
		row.signal_bytes = record->signal_bytes;
		row.slope = row.alert_slope = record->slope;
		row.first_ns = row.last_ns = row.since_ns = w->start;
		row.first_alert_ns = record->h.time_ns;
		row.room_bytes = MEMWATCH_GROWTH_NONE;
		row.eta_ns = row.eta_low_ns = row.eta_high_ns = row.alert_eta_ns =
			MEMWATCH_GROWTH_NONE;
		if (record->eta_s != UINT32_MAX)
			row.eta_ns = row.alert_eta_ns = record->eta_s * 1000000000ULL;
	}
	if (!mw_monitor_wants(&w->monitor, record->tgid, cgroup))
		return;
	if (record->what == MEMWATCH_GROWTH_ALERTED) {
		w->alerts++;
		mw_verdict_sentence(&row, memwatch_watch_limit_name(record->limit), sentence,
				    sizeof(sentence));
	} else {
		snprintf(sentence, sizeof(sentence), "%s (%u): does not grow any more",
			 record->comm, record->tgid);
	}
	if (w->cli->format == MW_FORMAT_JSON) {
		print_json(w, record, &row, event, sentence);
	} else {
		printf("%s%s%s %s\n", mw_colour(stdout, *event == 'a' ? MW_RED : MW_GREEN),
		       *event == 'a' ? "ALERT" : "clear", mw_colour(stdout, MW_PLAIN), sentence);
		fflush(stdout);
	}
	if (w->config->exec)
		run_hook(w, record, event, sentence);
}

/* ------------------------------------------------------------------ table */

static int by_urgency(const void *a, const void *b)
{
	const struct memwatch_growth_row *p = a, *q = b;

	if (p->verdict != q->verdict)
		return p->verdict > q->verdict ? -1 : 1;
	if (p->confidence != q->confidence)
		return p->confidence > q->confidence ? -1 : 1;
	return (p->slope < q->slope) - (p->slope > q->slope);
}

static void print_cost(struct watcher *w)
{
	MEMWATCH_OPTS(memwatch_watch_stats, stats);
	uint64_t elapsed = mw_clock_ns(CLOCK_MONOTONIC) - w->start;

	/* What the first round took is not yet a share of anything. */
	if (memwatch_watch_stats(w->monitor.watch, &stats) || stats.rounds < 2)
		return;
	printf("%" PRIu64 " rounds, %" PRIu64 " asked for; %.3f %% of a CPU, events %.3f %%%s",
	       (uint64_t)stats.rounds, (uint64_t)stats.pokes,
	       (double)stats.cpu_ns * 100 / (double)elapsed, stats.event_ppm / 1e4,
	       stats.events_attached ? "" : " (not attached)");
	if (stats.full)
		printf("; %" PRIu64 " samples found no room: --max-processes",
		       (uint64_t)stats.full);
	printf("\n");
}

static int print_table(struct watcher *w)
{
	MEMWATCH_OPTS(memwatch_growth_row, row);
	struct memwatch_growth_row *rows;
	struct memwatch_growth_sample sample;
	struct mw_table table;
	size_t nr = 0, top = w->config->top ? w->config->top : 10;
	int n = memwatch_watch_snapshot(w->monitor.watch), rc = 0;
	__u64 cgroup;

	if (n < 0)
		return n;
	rows = calloc((size_t)n + 1, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	for (unsigned int i = 0; memwatch_watch_row(w->monitor.watch, i, &row) == 1; i++) {
		memwatch_watch_sample(w->monitor.watch, i, &sample, &cgroup);
		if (mw_monitor_wants(&w->monitor, row.tgid, cgroup))
			rows[nr++] = row;
	}
	qsort(rows, nr, sizeof(*rows), by_urgency);
	mw_table_init(&table, mw_verdict_columns, MW_VERDICT_COLUMNS);
	for (size_t i = 0; !rc && i < nr && i < top; i++) {
		struct mw_cell *cells = mw_table_row(&table);

		if (cells)
			mw_verdict_fill_cells(&rows[i], w->start, cells);
		else
			rc = -ENOMEM;
	}
	if (!rc) {
		if (isatty(1))
			fputs("\033[H\033[2J", stdout);
		print_cost(w);
		rc = nr ? mw_table_print(&table) : 0;
		fflush(stdout);
	}
	mw_table_uninit(&table);
	free(rows);
	return rc;
}

/* ------------------------------------------------------------------- loop */

static void save(struct watcher *w, uint64_t now)
{
	if (!w->config->state)
		return;
	w->saved = now;
	if (memwatch_watch_save(w->monitor.watch, w->config->state))
		mw_warn(w->cli, "%s", memwatch_ctx_error(w->monitor.ctx));
}

static void restore(struct watcher *w)
{
	int n;

	if (!w->config->state)
		return;
	n = memwatch_watch_load(w->monitor.watch, w->config->state);
	if (n >= 0)
		mw_note(w->cli, "%s: %d histories taken up again", w->config->state, n);
	else if (n != -ENOENT)
		mw_warn(w->cli, "%s; starting anew", memwatch_ctx_error(w->monitor.ctx));
}

static void tell_loss(const struct watcher *w, const struct memwatch_record_lost *record)
{
	mw_warn(w->cli, "%" PRIu64 " records of CPU %u were lost: an alert may be among them",
		(uint64_t)record->count, record->h.cpu);
}

static int take_records(struct watcher *w)
{
	const struct memwatch_record_header *record;
	int err;

	while ((err = memwatch_watch_next(w->monitor.watch, &record)) == 1) {
		if (record->type == MEMWATCH_RECORD_GROWTH)
			tell(w, (const struct memwatch_record_growth *)record);
		else
			tell_loss(w, (const struct memwatch_record_lost *)record);
	}
	return err;
}

static int loop(struct watcher *w)
{
	bool table = w->cli->format == MW_FORMAT_TABLE && !w->config->alerts;
	uint64_t end = mw_monitor_end(&w->config->monitor), now = w->start;
	bool gone = false;
	int bits, err = 0;

	while (!err && !gone && !mw_interrupted() && now < end) {
		gone = mw_monitor_gone(&w->monitor, w->cli);
		bits = memwatch_watch_poll(w->monitor.watch,
					   end - now < 1000000000 ? (int)((end - now) / 1000000) + 1
								  : 1000);
		if (bits == -EINTR)
			bits = 0; /* Ctrl-C, which ends the loop, or the end of a hook */
		if (bits < 0)
			return bits;
		now = mw_clock_ns(CLOCK_MONOTONIC);
		if (bits & MEMWATCH_WATCH_ROUND && table)
			err = print_table(w);
		if (!err && bits & MEMWATCH_WATCH_EVENT)
			err = take_records(w);
		mw_registry_entry_update(&w->entry, w->monitor.watch, now);
		if (now - w->saved > SAVE_NS)
			save(w, now);
		while (w->config->exec && waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
	return err;
}

static const char *const watch_usage[] = {
	"growth watch [--alerts] [--exec COMMAND] [--state FILE] [--pid PID] [--cgroup PATH]",
	"",
	"Watches the memory of all processes and tells which leak, before they are killed.",
	"Needs no module. With --format json, one object a line for each alert and for",
	"each end of one.",
	NULL,
};

static int watch_run(const struct mw_cli *cli, void *config, int argc, char **argv)
{
	struct watcher w = {
		.cli = cli,
		.config = config,
		.entry = { .cli = cli, .command = "growth watch" },
	};
	int err, rc;

	(void)argc;
	(void)argv;
	rc = mw_monitor_init(&w.monitor, cli, &w.config->monitor, "growth watch");
	if (!rc) {
		w.start = w.saved = mw_clock_ns(CLOCK_MONOTONIC);
		restore(&w);
		mw_interrupt_init();
		err = loop(&w);
		if (err)
			rc = mw_monitor_failed(w.monitor.ctx, err, "growth watch");
		mw_registry_entry_remove(&w.entry);
		save(&w, mw_clock_ns(CLOCK_MONOTONIC));
		if (cli->verbose)
			print_cost(&w);
	}
	mw_monitor_uninit(&w.monitor);
	return rc;
}

const struct mw_cmd mw_cmd_growth_watch = {
	.name = "watch",
	.summary = "tell which processes of this machine leak, as it happens",
	.usage = watch_usage,
	.options = watch_options,
	.run = watch_run,
	.flags = MW_CMD_JSON,
	.config_size = sizeof(struct watch_config),
};
