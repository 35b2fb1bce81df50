// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * "growth watch": monitors the processes of this machine, reports notices and alerts, and
 * shows a table of the processes that are most likely to leak.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmds/growth/growth.h"
#include "cmds/growth/watch-table.h"
#include "common/clock.h"
#include "growth/alert.h"
#include "growth/group.h"
#include "growth/hooks.h"
#include "growth/monitor.h"
#include "growth/suspects.h"
#include "growth/trace.h"
#include "growth/verdict.h"
#include "output/human.h"
#include "common/interrupt.h"
#include "common/message.h"
#include "common/out-file.h"
#include "text/escape.h"

/* How often the state file is written. */
#define SAVE_NS 60000000000ULL

struct watch_config {
	struct mw_monitor_config monitor;
	uint64_t rows;
	const char *exec;
	const char *state;
	const char *snapshots;
	const char *trace;
	int exec_on;
	bool alerts, notices, force;
};

static const struct watch_config watch_defaults = { .monitor = MW_MONITOR_DEFAULTS };

enum { EXEC_ON_ALERT, EXEC_ON_NOTICE };
static const char *const exec_on_names[] = { "alert", "notice", NULL };

#define MEMBER(member) offsetof(struct watch_config, member)

static const struct mw_option watch_options[] = {
	MW_MONITOR_OPTIONS(struct watch_config, "rounds"),
	{ "alerts", 'a', MW_OPTION_FLAG, MEMBER(alerts), NULL, "print alerts only, no table",
	  NULL },
	{ "notices", 0, MW_OPTION_FLAG, MEMBER(notices), NULL,
	  "print notices and alerts only, no table", NULL },
	{ "rows", 'n', MW_OPTION_COUNT, MEMBER(rows), "N",
	  "number of rows of the table; default: 10", NULL },
	{ "exec", 'x', MW_OPTION_STRING, MEMBER(exec), "COMMAND",
	  "run COMMAND in a shell for alerts, with MEMWATCH_* variables", NULL },
	{ "exec-on", 0, MW_OPTION_CHOICE, MEMBER(exec_on), "WHAT",
	  "what --exec is for: alert (the default), or notice: both", exec_on_names },
	{ "state", 's', MW_OPTION_FILE, MEMBER(state), "FILE",
	  "save the histories to FILE, and load them from it at the start", NULL },
	{ "snapshots", 0, MW_OPTION_FILE, MEMBER(snapshots), "DIR",
	  "copy the heap profile of a process to DIR when an alert is raised", NULL },
	{ "trace", 0, MW_OPTION_FILE, MEMBER(trace), "FILE",
	  "also write a trace, as growth record does; FILE must not exist yet", NULL },
	{ "force", 'f', MW_OPTION_FLAG, MEMBER(force), NULL, "replace FILE of --trace if it exists",
	  NULL },
	{ "max-processes", 0, MW_OPTION_COUNT, MEMBER(monitor.max), "N",
	  "number of processes to keep state for; default: 10000", NULL },
	{ "no-events", 0, MW_OPTION_FLAG, MEMBER(monitor.no_events), NULL,
	  "rounds only, no BPF program at the tracepoint kmem:rss_stat", NULL },
	MW_MONITOR_TOUCH_OPTIONS(struct watch_config),
	{ "no-where", 0, MW_OPTION_FLAG, MEMBER(monitor.no_where), NULL,
	  "do not find out where growing processes take their memory", NULL },
	{ 0 },
};

/* A notice or an alert, or the end of one, as it is reported. */
struct notice {
	struct mw_hook_event event;
	struct memwatch_growth_row row;
	const char *hook;	    /* what happens to the command of --exec; NULL: there is none */
	struct mw_suspect *suspect; /* the search in its profile or stacks; NULL: there is none */
};

struct watcher {
	const struct mw_cli *cli;
	const struct watch_config *config;
	struct mw_monitor monitor;
	struct mw_hooks hooks;
	struct mw_suspects suspects;
	struct notice waiting[MW_SUSPECTS_MAX]; /* by place in @suspects; @suspect is NULL: free */
	uint64_t saved_ns;			/* when the state file was written */
	struct mw_out_file trace; /* of --trace; its stream is NULL if there is none */
	uint64_t traced;	  /* samples in it */
	bool full;		  /* processes wait for room, and the output says so */
};

/* @group is NULL if it is about a process. */
static void print_notice_json(const struct watcher *w, const struct notice *n,
			      const struct memwatch_growth_group *group)
{
	struct mw_json json = { .out = stdout, .flat = { true } };
	uint64_t start_ns = w->monitor.start_ns;

	mw_json_row(&json, NULL);
	mw_json_uint(&json, "schema", 1);
	mw_alert_json_members(&n->event.record, start_ns, n->event.sentence, &json);
	if (n->hook)
		mw_json_string(&json, "hook", n->hook);
	if (group) {
		mw_group_json_members(group, &n->row, start_ns, &json);
	} else {
		mw_suspect_json(n->suspect, &json);
		mw_verdict_json_members(&n->row, start_ns, &json);
	}
	mw_json_object_end(&json);
	putchar('\n');
	fflush(stdout);
}

static void print_notice_line(const struct notice *n)
{
	const struct memwatch_record_growth *record = &n->event.record;
	bool alert = record->what == MEMWATCH_GROWTH_ALERTED;
	bool notice = record->what == MEMWATCH_GROWTH_NOTICED ||
		      record->what == MEMWATCH_GROWTH_TOUCHED;

	printf("%s%s%s ",
	       mw_colour(stdout, alert	  ? MW_RED
				 : notice ? MW_YELLOW
					  : MW_GREEN),
	       alert ? "ALERT" : n->event.name, mw_colour(stdout, MW_PLAIN));
	mw_escape_line(stdout, "%s", n->event.sentence);
	fflush(stdout);
}

static bool is_of_alert(const struct notice *n)
{
	return n->event.record.what == MEMWATCH_GROWTH_ALERTED ||
	       n->event.record.what == MEMWATCH_GROWTH_CLEARED;
}

/* Starts the command of --exec if it is for this. Returns what happened to it, or NULL. */
static const char *start_hook(struct watcher *w, const struct notice *n)
{
	if (!w->config->exec || (!is_of_alert(n) && w->config->exec_on != EXEC_ON_NOTICE))
		return NULL;
	return mw_hook_state_name(mw_hooks_add(&w->hooks, &n->event));
}

/* The lines of notices would only push the table away, which shows the same. */
static void print_notice(struct watcher *w, struct notice *n)
{
	n->hook = start_hook(w, n);
	if (w->cli->format == MW_FORMAT_JSON)
		print_notice_json(w, n, NULL);
	else if (is_of_alert(n) || w->config->notices)
		print_notice_line(n);
}

/* Prints an event that has waited for its search. */
static void end_waiting(struct watcher *w, struct notice *n)
{
	if (n->suspect->found)
		mw_suspect_append(n->suspect, n->event.sentence, sizeof(n->event.sentence));
	print_notice(w, n);
	mw_suspect_end(n->suspect);
	n->suspect = NULL;
}

static void report_waiting(struct watcher *w, uint64_t now_ns)
{
	for (size_t i = 0; i < MW_SUSPECTS_MAX; i++)
		if (w->waiting[i].suspect && mw_suspect_is_done(w->waiting[i].suspect, now_ns))
			end_waiting(w, &w->waiting[i]);
}

static bool has_waiting(const struct watcher *w)
{
	for (size_t i = 0; i < MW_SUSPECTS_MAX; i++)
		if (w->waiting[i].suspect)
			return true;
	return false;
}

/* Before the monitor ends, alerts get the time that they would have had. */
static void finish_waiting(struct watcher *w)
{
	while (has_waiting(w)) {
		report_waiting(w, mw_clock_ns(CLOCK_MONOTONIC));
		poll(NULL, 0, 20);
	}
}

/* Lets an event wait for a search, if there is something to search in. Returns whether it does. */
static bool let_wait(struct watcher *w, const struct notice *n)
{
	struct mw_suspect *suspect = mw_suspects_add(&w->suspects, w->monitor.watch,
						     &n->event.record, n->row.since_ns);
	struct notice *waiting;

	if (!suspect)
		return false;
	waiting = &w->waiting[suspect - w->suspects.list];
	*waiting = *n;
	waiting->suspect = suspect;
	return true;
}

/* The end of an alert comes after the alert. */
static void report_waiting_of(struct watcher *w, const struct memwatch_record_growth *record)
{
	for (size_t i = 0; i < MW_SUSPECTS_MAX; i++)
		if (w->waiting[i].suspect && w->waiting[i].row.tgid == record->tgid)
			end_waiting(w, &w->waiting[i]);
}

static void report_growth(struct watcher *w, const struct memwatch_record_growth *record)
{
	bool searched = record->what == MEMWATCH_GROWTH_ALERTED ||
			record->what == MEMWATCH_GROWTH_TOUCHED;
	struct notice n = {
		.event = { .name = mw_alert_name(record), .record = *record },
	};
	__u64 cgroup;

	if (!n.event.name)
		return;
	mw_alert_find(w->monitor.watch, record, w->monitor.start_ns, &n.row, &cgroup);
	if (!mw_monitor_selects(&w->monitor, record->tgid, cgroup))
		return;
	report_waiting_of(w, record);
	mw_alert_sentence(record, &n.row, n.event.sentence, sizeof(n.event.sentence));
	if (!searched || !let_wait(w, &n))
		print_notice(w, &n);
}

/* Reports what is new about cgroups and the machine. */
static void report_groups(struct watcher *w)
{
	MEMWATCH_OPTS(memwatch_growth_group, group);
	struct notice n = { .row = { .sz = sizeof(n.row) } };
	struct memwatch_record_growth *record = &n.event.record;

	while (memwatch_watch_next_group(w->monitor.watch, record, &group, &n.row) == 1) {
		if (!mw_monitor_selects_group(&w->monitor, group.path))
			continue;
		n.event.name = mw_alert_name(record);
		snprintf(n.event.cgroup, sizeof(n.event.cgroup), "%s", group.path);
		mw_group_event_sentence(record, &group, &n.row, n.event.sentence,
					sizeof(n.event.sentence));
		n.hook = start_hook(w, &n);
		if (w->cli->format == MW_FORMAT_JSON)
			print_notice_json(w, &n, &group);
		else if (is_of_alert(&n) || w->config->notices)
			print_notice_line(&n);
	}
}

static void save_state(struct watcher *w, uint64_t now_ns)
{
	MEMWATCH_OPTS(memwatch_watch_stats, stats);

	/* Before the first round it is not known which of the loaded processes still run. */
	if (!w->config->state || memwatch_watch_get_stats(w->monitor.watch, &stats) ||
	    !stats.rounds)
		return;
	w->saved_ns = now_ns;
	if (memwatch_watch_save(w->monitor.watch, w->config->state))
		mw_warn(w->cli, "%s", memwatch_ctx_error(w->monitor.ctx));
}

/* Returns 0, or an exit code if saving would replace what is not a state file. */
static int load_state(struct watcher *w)
{
	int n;

	if (!w->config->state)
		return 0;
	n = memwatch_watch_load(w->monitor.watch, w->config->state);
	switch (n) {
	case -ENOENT:
		return 0;
	case -ENOMSG:
	case -EISDIR:
	case -EINVAL:
		mw_error(MW_EXIT_FAILED, "growth watch", "%s", memwatch_ctx_error(w->monitor.ctx));
		mw_hint("remove it, or name another file with --state");
		return MW_EXIT_FAILED;
	}
	if (n >= 0)
		mw_note(w->cli, "%s: loaded %d histories", w->config->state, n);
	else
		mw_warn(w->cli, "%s; starting without histories",
			memwatch_ctx_error(w->monitor.ctx));
	return 0;
}

static void report_loss(const struct watcher *w, const struct memwatch_record_lost *record)
{
	mw_warn(w->cli, "%" PRIu64 " records of CPU %u were lost; they may have contained alerts",
		(uint64_t)record->count, record->h.cpu);
}

/* Returns an exit code. */
static int report_records(struct watcher *w)
{
	const struct memwatch_record_header *record;
	int err;

	while ((err = memwatch_watch_next(w->monitor.watch, &record)) == 1) {
		if (record->type == MEMWATCH_RECORD_GROWTH)
			report_growth(w, (const struct memwatch_record_growth *)record);
		else
			report_loss(w, (const struct memwatch_record_lost *)record);
	}
	return err ? mw_monitor_failed(w->monitor.ctx, err, "growth watch") : 0;
}

/* Reports when processes begin to wait for room, and when none waits any more. */
static void report_room(struct watcher *w)
{
	MEMWATCH_OPTS(memwatch_watch_stats, stats);
	struct mw_json json = { .out = stdout, .flat = { true } };

	if (w->cli->format != MW_FORMAT_JSON ||
	    memwatch_watch_get_stats(w->monitor.watch, &stats) || !stats.unwatched == !w->full)
		return;
	w->full = stats.unwatched;
	mw_json_row(&json, NULL);
	mw_json_uint(&json, "schema", 1);
	mw_json_string(&json, "event", w->full ? "full" : "room");
	mw_json_uint(&json, "time_ns", w->monitor.now_ns);
	mw_json_uint(&json, "processes_unwatched", stats.unwatched);
	mw_json_object_end(&json);
	putchar('\n');
	fflush(stdout);
}

/*
 * Writes a round to the trace of --trace. A full disk must not end the alerts, so an error ends
 * only the trace. Returns an exit code.
 */
static int write_trace(struct watcher *w)
{
	int err;

	if (!w->trace.stream)
		return 0;
	err = mw_trace_write_round(&w->monitor, w->trace.stream, &w->traced);
	if (!err)
		return 0;
	mw_error(MW_EXIT_FAILED, w->trace.path, "%s; the monitor goes on without a trace",
		 strerror(-err));
	mw_out_file_abandon(&w->trace);
	return MW_EXIT_FAILED;
}

/* Returns an exit code. */
static int watch_processes(struct watcher *w)
{
	bool table = w->cli->format == MW_FORMAT_TABLE && !w->config->alerts && !w->config->notices;
	int bits, rc = 0, trace_rc = 0;

	while (!rc && mw_monitor_goes_on(&w->monitor)) {
		bits = mw_monitor_wait(&w->monitor);
		if (bits < 0)
			return mw_monitor_failed(w->monitor.ctx, bits, "growth watch");
		if (bits & MEMWATCH_WATCH_ROUND) {
			report_room(w);
			trace_rc = write_trace(w) ?: trace_rc;
		}
		if (bits & MEMWATCH_WATCH_GROUP)
			report_groups(w);
		if (bits & MEMWATCH_WATCH_ROUND && table)
			rc = mw_watch_table_print(&w->monitor, w->config->rows, w->config->exec);
		if (!rc && bits & MEMWATCH_WATCH_EVENT)
			rc = report_records(w);
		if (w->monitor.now_ns - w->saved_ns > SAVE_NS)
			save_state(w, w->monitor.now_ns);
		report_waiting(w, w->monitor.now_ns);
		mw_hooks_poll(&w->hooks);
	}
	return rc ?: trace_rc;
}

static int open_trace(struct watcher *w)
{
	int err, rc;

	if (!w->config->trace)
		return 0;
	rc = mw_out_file_open(&w->trace, w->monitor.ctx, w->config->trace, w->config->force);
	if (rc)
		return rc;
	err = mw_trace_write_header(w->trace.stream);
	if (err) {
		rc = mw_error_errno(err, w->config->trace);
		mw_out_file_abandon(&w->trace);
	}
	return rc;
}

static int close_trace(struct watcher *w)
{
	return w->trace.stream ? mw_out_file_close(&w->trace) : 0;
}

/* Returns 0, or MW_EXIT_USAGE after an error message. */
static int check_watch_config(const struct watch_config *c)
{
	if (!c->trace)
		return 0;
	if (mw_out_file_is_stdout(c->trace))
		return mw_error(MW_EXIT_USAGE, "growth watch",
				"--trace must be a file: other things are written to standard "
				"output");
	if (c->state && mw_out_file_is(c->trace, c->state))
		return mw_error(MW_EXIT_USAGE, "growth watch",
				"--trace: %s is the file of --state itself", c->trace);
	return 0;
}

/* A snapshot that cannot be written would be noticed when it is needed. Returns an exit code. */
static int check_snapshots(const char *directory)
{
	struct stat st;

	if (!directory)
		return 0;
	if (stat(directory, &st))
		return mw_error_errno(-errno, directory);
	if (!S_ISDIR(st.st_mode))
		return mw_error_errno(-ENOTDIR, directory);
	if (faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS))
		return mw_error(MW_EXIT_FAILED, directory, "%s", strerror(errno));
	return 0;
}

static const char *const watch_usage[] = {
	"growth watch [--alerts] [--exec COMMAND] [--state FILE] [--snapshots DIR]",
	"             [--trace FILE] [--no-touch] [--pid PID] [--cgroup PATH]",
	"",
	"Monitors the memory of all processes. A notice says that a process grows; an alert,",
	"that somebody should act: a limit is near, there was never so much in a week, or the",
	"process does not use what it gains. With --format json, it prints one object on a line",
	"for each notice and each alert, and for their ends. If a process of an alert has a heap",
	"profile, see memwatchctl-heap(8), the alert names the call stack that holds the growth.",
	NULL,
};

static int watch_run(const struct mw_cli *cli, void *config, int argc, char **argv)
{
	struct watcher w = { .cli = cli, .config = config };
	int rc;

	(void)argc;
	(void)argv;
	w.hooks = (struct mw_hooks){ .cli = cli, .command = w.config->exec };
	rc = check_watch_config(w.config) ?: check_snapshots(w.config->snapshots);
	if (rc)
		return rc;
	rc = mw_monitor_init(&w.monitor, cli, &w.config->monitor, "growth watch");
	if (!rc) {
		w.suspects = (struct mw_suspects){ .cli = cli,
						   .ctx = w.monitor.ctx,
						   .directory = w.config->snapshots };
		w.saved_ns = w.monitor.start_ns;
		rc = load_state(&w) ?: open_trace(&w);
	}
	if (!rc) {
		mw_interrupt_init();
		rc = watch_processes(&w);
		finish_waiting(&w);
		save_state(&w, mw_clock_ns(CLOCK_MONOTONIC));
		mw_hooks_finish(&w.hooks);
		if (cli->verbose)
			mw_watch_cost_print(&w.monitor, w.config->exec, stderr);
	}
	rc = close_trace(&w) ?: rc;
	mw_monitor_uninit(&w.monitor);
	return rc;
}

const struct mw_cmd mw_cmd_growth_watch = {
	.name = "watch",
	.summary = "report processes of this machine that leak, as it happens",
	.usage = watch_usage,
	.options = watch_options,
	.run = watch_run,
	.flags = MW_CMD_JSON,
	.defaults = &watch_defaults,
	.config_size = sizeof(struct watch_config),
};
