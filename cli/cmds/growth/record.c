// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * "growth record": writes the memory use of all processes to a trace, which is CSV.
 */
#include <errno.h>

#include "cmds/growth/growth.h"
#include "growth/monitor.h"
#include "growth/trace.h"
#include "common/interrupt.h"
#include "common/message.h"
#include "common/out-file.h"

struct growth_record_config {
	struct mw_monitor_config monitor;
	const char *output;
	bool force;
};

static const struct growth_record_config growth_record_defaults = {
	.monitor = MW_MONITOR_DEFAULTS,
};

#define MEMBER(member) offsetof(struct growth_record_config, member)

static const struct mw_option growth_record_options[] = {
	{ "output", 'o', MW_OPTION_FILE, MEMBER(output), "FILE",
	  "the trace to write; must not exist yet", NULL },
	{ "force", 'f', MW_OPTION_FLAG, MEMBER(force), NULL, "replace FILE if it exists", NULL },
	MW_MONITOR_OPTIONS(struct growth_record_config, "samples"),
	MW_MONITOR_TOUCH_OPTIONS(struct growth_record_config),
	{ 0 },
};

static int write_trace(struct mw_monitor *monitor, FILE *out, uint64_t *samples)
{
	const struct memwatch_record_header *record;
	int bits, err = mw_trace_write_header(out);

	while (!err && mw_monitor_goes_on(monitor)) {
		bits = mw_monitor_wait(monitor);
		if (bits < 0)
			return bits;
		/* A trace contains no alerts; "growth replay" computes them again. */
		while (bits & MEMWATCH_WATCH_EVENT &&
		       memwatch_watch_next(monitor->watch, &record) == 1)
			;
		if (bits & MEMWATCH_WATCH_ROUND)
			err = mw_trace_write_round(monitor, out, samples);
	}
	return err;
}

static const char *const growth_record_usage[] = {
	"growth record -o FILE [--interval TIME] [--duration TIME] [--pid PID] [--cgroup PATH]",
	"",
	"Writes the memory use of all processes to a trace, a CSV file that \"growth replay\"",
	"reads. With \"-o -\" it is written to standard output. The exit status is 4 if no",
	"process was selected.",
	NULL,
};

static int growth_record_run(const struct mw_cli *cli, void *config, int argc, char **argv)
{
	struct growth_record_config *c = config;
	struct mw_monitor monitor;
	uint64_t samples = 0;
	struct mw_out_file out;
	int err, rc;

	(void)argc;
	(void)argv;
	if (!c->output) {
		mw_error(MW_EXIT_USAGE, "growth record", "--output is missing");
		mw_hint("usage: memwatchctl growth record -o FILE");
		return MW_EXIT_USAGE;
	}
	/* The rounds must come at even intervals, without those that events request. */
	c->monitor.no_events = true;
	/* A trace does not say where memory is taken. */
	c->monitor.no_where = true;
	rc = mw_monitor_init(&monitor, cli, &c->monitor, "growth record");
	if (!rc)
		rc = mw_out_file_open(&out, monitor.ctx, c->output, c->force);
	if (!rc) {
		mw_interrupt_init();
		err = write_trace(&monitor, out.stream, &samples);
		if (err) {
			rc = ferror(out.stream)
				     ? mw_error_errno(err, c->output)
				     : mw_monitor_failed(monitor.ctx, err, "growth record");
			mw_out_file_abandon(&out);
		}
		rc = mw_out_file_close(&out) ?: rc;
		if (!rc && !samples)
			rc = MW_EXIT_NOTHING;
	}
	mw_monitor_uninit(&monitor);
	return rc;
}

const struct mw_cmd mw_cmd_growth_record = {
	.name = "record",
	.summary = "write the memory use of all processes to a trace",
	.usage = growth_record_usage,
	.options = growth_record_options,
	.run = growth_record_run,
	.defaults = &growth_record_defaults,
	.config_size = sizeof(struct growth_record_config),
};
