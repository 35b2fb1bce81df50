// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * "growth record": writes the memory use of all processes to a trace, which is CSV.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cmds/growth/growth.h"
#include "growth/monitor.h"
#include "common/interrupt.h"
#include "common/message.h"
#include "common/out-file.h"
#include "output/table.h"

struct growth_record_config {
	struct mw_monitor_config monitor;
	const char *output;
	bool force;
};

#define MEMBER(member) offsetof(struct growth_record_config, member)

static const struct mw_option growth_record_options[] = {
	{ "output", 'o', MW_OPTION_FILE, MEMBER(output), "FILE",
	  "the trace to write; must not exist yet", NULL },
	{ "force", 'f', MW_OPTION_FLAG, MEMBER(force), NULL, "replace FILE if it exists", NULL },
	MW_MONITOR_OPTIONS(struct growth_record_config, "samples"),
	{ "no-touch", 0, MW_OPTION_FLAG, MEMBER(monitor.no_touch), NULL,
	  "do not find out whether growing processes use what they gain", NULL },
	{ 0 },
};

static void write_kb(FILE *out, uint64_t bytes)
{
	fprintf(out, ",%" PRIu64, bytes >> 10);
}

/* What the process does not touch any more; empty fields where that is not known. */
static void write_touch(FILE *out, const struct memwatch_growth_sample *s)
{
	if (!s->gained_bytes) {
		fputs(",,,,,\n", out);
		return;
	}
	write_kb(out, s->gained_bytes);
	write_kb(out, s->cold_bytes);
	write_kb(out, s->cold_low_bytes);
	write_kb(out, s->cold_high_bytes);
	fprintf(out, ",%" PRIu64 "\n", (uint64_t)s->untouched_ns / 1000000000);
}

/* Writes a line up to the column cgroup. */
static void write_sample(FILE *out, uint64_t time_ns, const struct memwatch_growth_sample *s)
{
	fprintf(out, "%" PRIu64 ".%03" PRIu64 ",%u,", time_ns / 1000000000,
		time_ns / 1000000 % 1000, s->tgid);
	mw_text_csv(s->comm, out);
	write_kb(out, s->anon_bytes);
	write_kb(out, s->file_bytes);
	write_kb(out, s->shmem_bytes);
	write_kb(out, s->swap_bytes);
	write_kb(out, s->vsz_bytes);
	putc(',', out);
	if (s->limit_bytes != MEMWATCH_GROWTH_NONE)
		fprintf(out, "%" PRIu64, (uint64_t)s->limit_bytes >> 10);
	putc(',', out);
	if (s->cgroup)
		mw_text_csv(s->cgroup, out);
}

/* Writes the cgroups and the machine. */
static void write_groups(struct mw_monitor *monitor, FILE *out, uint64_t time_ns)
{
	MEMWATCH_OPTS(memwatch_growth_sample, sample);

	for (unsigned int i = 0; memwatch_watch_get_group_sample(monitor->watch, i, &sample) == 1;
	     i++) {
		/* The cgroup is gone, or it was not its turn. */
		if (sample.time_ns + 1000000000 < time_ns + monitor->start_ns ||
		    !mw_monitor_selects_group(monitor, sample.cgroup))
			continue;
		write_sample(out, time_ns, &sample);
		write_kb(out, sample.kernel_bytes);
		write_kb(out, sample.slab_bytes);
		write_kb(out, sample.sock_bytes);
		write_kb(out, sample.pagetables_bytes);
		write_touch(out, &sample);
	}
}

/* All samples of a round get the same time, so the times of a trace never decrease. */
static int write_round(struct mw_monitor *monitor, FILE *out, uint64_t time_ns, uint64_t *samples)
{
	MEMWATCH_OPTS(memwatch_growth_sample, sample);
	char path[4096];
	__u64 cgroup;
	int n = memwatch_watch_snapshot(monitor->watch);

	if (n < 0)
		return n;
	for (unsigned int i = 0;
	     memwatch_watch_get_sample(monitor->watch, i, &sample, &cgroup) == 1; i++) {
		if (!mw_monitor_selects(monitor, sample.tgid, cgroup))
			continue;
		sample.cgroup = NULL;
		if (memwatch_watch_group_of(monitor->watch, sample.tgid, cgroup, path,
					    sizeof(path)) == 1)
			sample.cgroup = path;
		write_sample(out, time_ns, &sample);
		fputs(",,,,", out);
		write_touch(out, &sample);
		++*samples;
	}
	write_groups(monitor, out, time_ns);
	return fflush(out) ? -errno : 0;
}

static int write_trace(struct mw_monitor *monitor, FILE *out, uint64_t *samples)
{
	const struct memwatch_record_header *record;
	int bits, err = 0;

	fputs("time_s,pid,comm,anon_kb,file_kb,shmem_kb,swap_kb,vsz_kb,limit_kb,cgroup,kernel_kb,"
	      "slab_kb,sock_kb,pagetables_kb,gained_kb,cold_kb,cold_low_kb,cold_high_kb,"
	      "untouched_s\n",
	      out);
	while (!err && mw_monitor_goes_on(monitor)) {
		bits = mw_monitor_wait(monitor);
		if (bits < 0)
			return bits;
		/* A trace contains no alerts; "growth replay" computes them again. */
		while (bits & MEMWATCH_WATCH_EVENT &&
		       memwatch_watch_next(monitor->watch, &record) == 1)
			;
		if (bits & MEMWATCH_WATCH_ROUND)
			err = write_round(monitor, out, monitor->now_ns - monitor->start_ns,
					  samples);
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
			rc = mw_error_errno(err, c->output);
			/* One message is enough. */
			clearerr(out.stream);
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
	.config_size = sizeof(struct growth_record_config),
};
