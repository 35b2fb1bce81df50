// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The table of "growth watch".
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cmds/growth/watch-table.h"
#include "common/clock.h"
#include "common/message.h"
#include "growth/group.h"
#include "growth/verdict.h"

static int compare_urgency(const void *a, const void *b)
{
	const struct memwatch_growth_row *p = a, *q = b;

	if (p->verdict != q->verdict)
		return p->verdict > q->verdict ? -1 : 1;
	if (p->confidence != q->confidence)
		return p->confidence > q->confidence ? -1 : 1;
	return (p->slope < q->slope) - (p->slope > q->slope);
}

/* CPU time of the commands of --exec that have ended. */
static double command_cpu_ns(void)
{
	struct rusage usage;

	getrusage(RUSAGE_CHILDREN, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e9 +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e3;
}

void mw_watch_cost_print(struct mw_monitor *monitor, bool commands, FILE *out)
{
	MEMWATCH_OPTS(memwatch_watch_stats, stats);
	uint64_t elapsed = mw_clock_ns(CLOCK_MONOTONIC) - monitor->start_ns;

	/* The first round costs more than the others: a share would be misleading. */
	if (memwatch_watch_get_stats(monitor->watch, &stats) || stats.rounds < 2)
		return;
	fprintf(out, "%" PRIu64 " rounds, %" PRIu64 " requests by events; CPU %.3f %%, ",
		(uint64_t)stats.rounds, (uint64_t)stats.pokes,
		(double)stats.cpu_ns * 100 / (double)elapsed);
	if (stats.event_cost == MEMWATCH_EVENT_COST_UNKNOWN)
		fprintf(out, "event program not measured");
	else
		fprintf(out, "event program %.3f %%", stats.event_ppm / 1e4);
	if (!stats.events_attached)
		fprintf(out, " (not attached)");
	if (commands)
		fprintf(out, ", commands of --exec %.3f %%",
			command_cpu_ns() * 100 / (double)elapsed);
	if (stats.full)
		fprintf(out, "; %" PRIu64 " samples were dropped: increase --max-processes",
			(uint64_t)stats.full);
	fprintf(out, "\n");
}

/*
 * Collects the selected processes, the most urgent first. The caller frees *rows. Returns 0, or an
 * exit code after an error message.
 */
static int collect_growth_rows(struct mw_monitor *monitor, struct memwatch_growth_row **rows,
			       size_t *nr)
{
	MEMWATCH_OPTS(memwatch_growth_row, row);
	MEMWATCH_OPTS(memwatch_growth_sample, sample);
	int n = memwatch_watch_snapshot(monitor->watch);
	__u64 cgroup;

	if (n < 0)
		return mw_monitor_failed(monitor->ctx, n, "growth watch");
	*nr = 0;
	*rows = calloc((size_t)n + 1, sizeof(**rows));
	if (!*rows)
		return mw_error_errno(-ENOMEM, "growth watch");
	for (unsigned int i = 0; memwatch_watch_get_row(monitor->watch, i, &row) == 1; i++) {
		memwatch_watch_get_sample(monitor->watch, i, &sample, &cgroup);
		if (mw_monitor_selects(monitor, row.tgid, cgroup))
			(*rows)[(*nr)++] = row;
	}
	qsort(*rows, *nr, sizeof(**rows), compare_urgency);
	return 0;
}

/* The room for the names of cgroups in the table. */
struct group_rows {
	char name[16][1100];
	struct memwatch_growth_row row[16];
};

/* Adds the cgroups for which there is a notice or an alert. Returns an exit code. */
static int add_group_rows(struct mw_monitor *monitor, struct group_rows *rows,
			  struct mw_table *table)
{
	MEMWATCH_OPTS(memwatch_growth_group, group);
	MEMWATCH_OPTS(memwatch_growth_row, row);
	unsigned int nr = 0;

	for (unsigned int i = 0;
	     nr < 16 && memwatch_watch_get_group(monitor->watch, i, &group, &row) == 1; i++) {
		struct mw_cell *cells;

		if (row.verdict < MEMWATCH_GROWTH_GROWING ||
		    row.first_notice_ns == MEMWATCH_GROWTH_NONE ||
		    !mw_monitor_selects_group(monitor, group.path))
			continue;
		cells = mw_table_row(table);
		if (!cells)
			return mw_error_errno(-ENOMEM, "growth watch");
		rows->row[nr] = row;
		mw_group_name(&group, rows->name[nr], sizeof(rows->name[nr]));
		mw_group_fill_cells(rows->name[nr], &rows->row[nr], monitor->start_ns, cells);
		nr++;
	}
	return 0;
}

int mw_watch_table_print(struct mw_monitor *monitor, uint64_t max_rows, bool commands)
{
	size_t nr, max = max_rows ? max_rows : 10;
	static struct group_rows groups;
	struct memwatch_growth_row *rows;
	struct mw_table table;
	int rc = collect_growth_rows(monitor, &rows, &nr);

	if (rc)
		return rc;
	mw_table_init(&table, mw_verdict_columns, MW_VERDICT_COLUMNS);
	for (size_t i = 0; !rc && i < nr && i < max; i++) {
		struct mw_cell *cells = mw_table_row(&table);

		if (cells)
			mw_verdict_fill_cells(&rows[i], monitor->start_ns, cells);
		else
			rc = mw_error_errno(-ENOMEM, "growth watch");
	}
	if (!rc)
		rc = add_group_rows(monitor, &groups, &table);
	if (!rc) {
		if (isatty(1))
			fputs("\033[H\033[2J", stdout);
		mw_watch_cost_print(monitor, commands, stdout);
		rc = nr ? mw_table_print(&table) : 0;
		fflush(stdout);
	}
	mw_table_uninit(&table);
	free(rows);
	return rc;
}
