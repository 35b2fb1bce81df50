// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Traces, which are CSV.
 */
#include <errno.h>
#include <inttypes.h>

#include "growth/trace.h"
#include "output/table.h"

static void write_kb(FILE *out, uint64_t bytes)
{
	fprintf(out, ",%" PRIu64, bytes >> 10);
}

/* What the process does not touch any more; empty fields where nobody looks. */
static void write_touch(FILE *out, const struct memwatch_growth_sample *s)
{
	if (!s->untouched_ns) {
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

/* An error of an earlier write has left a line that is not complete. */
static int flush_trace(FILE *out)
{
	errno = 0;
	if (!fflush(out) && !ferror(out))
		return 0;
	return errno ? -errno : -EIO;
}

int mw_trace_write_header(FILE *out)
{
	fputs("time_s,pid,comm,anon_kb,file_kb,shmem_kb,swap_kb,vsz_kb,limit_kb,cgroup,kernel_kb,"
	      "slab_kb,sock_kb,pagetables_kb,gained_kb,cold_kb,cold_low_kb,cold_high_kb,"
	      "untouched_s\n",
	      out);
	return flush_trace(out);
}

int mw_trace_write_round(struct mw_monitor *monitor, FILE *out, uint64_t *samples)
{
	uint64_t time_ns = monitor->now_ns - monitor->start_ns;
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
	return flush_trace(out);
}
