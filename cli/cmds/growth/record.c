// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * growth record: a trace of this machine, for "growth replay" and other eyes.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "cmds/growth/growth.h"
#include "common/clock.h"
#include "growth/monitor.h"
#include "growth/registry.h"
#include "growth/verdict.h"
#include "common/interrupt.h"
#include "common/library.h"
#include "common/message.h"

struct record_config {
	struct mw_monitor_config monitor;
	const char *output;
	bool force;
};

#define MEMBER(member) offsetof(struct record_config, member)

static const struct mw_option record_options[] = {
	{ "output", 'o', MW_OPTION_FILE, MEMBER(output), "FILE", "the trace; must not exist",
	  NULL },
	{ "force", 'f', MW_OPTION_FLAG, MEMBER(force), NULL, "replace FILE if it exists", NULL },
	MW_MONITOR_OPTIONS(struct record_config, "samples"),
	{ 0 },
};

static void write_comm(FILE *out, const char *comm)
{
	if (!strpbrk(comm, ",\"\r\n")) {
		fputs(comm, out);
		return;
	}
	putc('"', out);
	for (; *comm; comm++) {
		if (*comm == '"')
			putc('"', out);
		/* A line is a sample: a name cannot break it. */
		putc(*comm == '\n' || *comm == '\r' ? '?' : *comm, out);
	}
	putc('"', out);
}

static void write_sample(FILE *out, uint64_t time_ns, const struct memwatch_growth_sample *s)
{
	fprintf(out, "%" PRIu64 ".%03" PRIu64 ",%u,", time_ns / 1000000000,
		time_ns / 1000000 % 1000, s->tgid);
	write_comm(out, s->comm);
	fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",",
		(uint64_t)s->anon_bytes >> 10, (uint64_t)s->file_bytes >> 10,
		(uint64_t)s->shmem_bytes >> 10, (uint64_t)s->swap_bytes >> 10,
		(uint64_t)s->vsz_bytes >> 10);
	if (s->limit_bytes != MEMWATCH_GROWTH_NONE)
		fprintf(out, "%" PRIu64, (uint64_t)s->limit_bytes >> 10);
	putc('\n', out);
}

/* All samples of a round bear its time: no line is before the line before. */
static int write_round(struct mw_monitor *monitor, FILE *out, uint64_t time_ns, uint64_t *samples)
{
	struct memwatch_growth_sample sample;
	__u64 cgroup;
	int n = memwatch_watch_snapshot(monitor->watch);

	if (n < 0)
		return n;
	for (unsigned int i = 0; memwatch_watch_sample(monitor->watch, i, &sample, &cgroup); i++) {
		if (!mw_monitor_wants(monitor, sample.tgid, cgroup))
			continue;
		write_sample(out, time_ns, &sample);
		++*samples;
	}
	return fflush(out) ? -errno : 0;
}

static int run(const struct mw_cli *cli, struct mw_monitor *monitor, const struct record_config *c,
	       FILE *out, uint64_t *samples)
{
	struct mw_registry_entry entry = { .cli = cli, .command = "growth record" };
	uint64_t start = mw_clock_ns(CLOCK_MONOTONIC), end = mw_monitor_end(&c->monitor),
		 now = start;
	const struct memwatch_record_header *record;
	bool gone = false;
	int bits, err = 0;

	fputs("time_s,pid,comm,anon_kb,file_kb,shmem_kb,swap_kb,vsz_kb,limit_kb\n", out);
	while (!err && !gone && !mw_interrupted() && now < end) {
		gone = mw_monitor_gone(monitor, cli);
		bits = memwatch_watch_poll(monitor->watch,
					   end - now < 1000000000 ? (int)((end - now) / 1000000) + 1
								  : 1000);
		if (bits == -EINTR)
			break;
		if (bits < 0) {
			err = bits;
			break;
		}
		now = mw_clock_ns(CLOCK_MONOTONIC);
		mw_registry_entry_update(&entry, monitor->watch, now);
		/* Alerts are not in a trace; replay finds them again. */
		while (bits & MEMWATCH_WATCH_EVENT &&
		       memwatch_watch_next(monitor->watch, &record) == 1)
			;
		if (bits & MEMWATCH_WATCH_ROUND)
			err = write_round(monitor, out, now - start, samples);
	}
	mw_registry_entry_remove(&entry);
	return err;
}

static FILE *open_output(const struct record_config *c)
{
	int fd;

	if (!strcmp(c->output, "-"))
		return fdopen(dup(1), "w");
	fd = open(c->output, O_WRONLY | O_CREAT | O_CLOEXEC | (c->force ? O_TRUNC : O_EXCL), 0644);
	return fd < 0 ? NULL : fdopen(fd, "w");
}

static const char *const record_usage[] = {
	"growth record -o FILE [--interval TIME] [--duration TIME] [--pid PID] [--cgroup PATH]",
	"",
	"Writes a trace of the memory of all processes: CSV, as \"growth replay\" reads it.",
	"\"-\" is standard output. Exit status 4 if no process was of interest.",
	NULL,
};

static int record_run(const struct mw_cli *cli, void *config, int argc, char **argv)
{
	struct record_config *c = config;
	struct mw_monitor monitor;
	uint64_t samples = 0;
	FILE *out;
	int err, rc;

	(void)argc;
	(void)argv;
	if (!c->output)
		return mw_error(MW_EXIT_USAGE, "growth record", "-o FILE is missing");
	/* As many rounds as asked for: a trace with holes on purpose would be none. */
	c->monitor.no_events = true;
	rc = mw_monitor_init(&monitor, cli, &c->monitor, "growth record");
	if (rc) {
		mw_monitor_uninit(&monitor);
		return rc;
	}
	out = open_output(c);
	if (!out) {
		err = errno;
		rc = mw_error(mw_exit_of(-err), c->output, "%s", strerror(err));
		if (err == EEXIST)
			mw_hint("--force replaces it");
		mw_monitor_uninit(&monitor);
		return rc;
	}
	mw_interrupt_init();
	err = run(cli, &monitor, c, out, &samples);
	if (fclose(out) && !err)
		err = -errno;
	if (err)
		rc = mw_error(mw_exit_of(err), c->output, "%s", strerror(-err));
	else if (!samples)
		rc = MW_EXIT_NOTHING;
	mw_monitor_uninit(&monitor);
	return rc;
}

const struct mw_cmd mw_cmd_growth_record = {
	.name = "record",
	.summary = "write a trace of all processes",
	.usage = record_usage,
	.options = record_options,
	.run = record_run,
	.config_size = sizeof(struct record_config),
};
