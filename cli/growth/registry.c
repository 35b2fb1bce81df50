// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The files of monitors that run. A process id that is used again does not make
 * an old file a new one: the start time of the process is in it.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "growth/registry.h"
#include "common/message.h"
#include "common/root.h"

#define DIRECTORY "/run/memwatch"
#define PREFIX	  "growth."

static const char *const commands[] = { "growth watch", "growth record", "top", "record" };

enum {
	PID,
	COMMAND,
	PROCESSES,
	GROWING,
	UNWATCHED,
	LOST,
	ROUNDS,
	ASKED,
	PERIOD,
	GAP,
	REST,
	STORM,
	CPU,
	EVENT,
	GATE,
	EVENTS,
	REASON,
	RETRY,
	DETACHED,
	AGE,
	NR_COLUMNS,
};

static const struct mw_column columns[NR_COLUMNS] = {
	[PID] = { "pid", "PID", MW_KIND_UINT, 0, 0 },
	[COMMAND] = { "command", "COMMAND", MW_KIND_TEXT, 0, 0 },
	[PROCESSES] = { "processes", "PROCESSES", MW_KIND_UINT, 0, 0 },
	[GROWING] = { "processes_growing", "GROW", MW_KIND_UINT, 0, MW_COLUMN_HIDDEN },
	[UNWATCHED] = { "samples_without_room", "NO ROOM", MW_KIND_UINT, 0, MW_COLUMN_HIDDEN },
	[LOST] = { "records_lost", "LOST", MW_KIND_UINT, 0, MW_COLUMN_HIDDEN },
	[ROUNDS] = { "rounds", "ROUNDS", MW_KIND_UINT, 0, 0 },
	[ASKED] = { "rounds_asked_for", "ASKED FOR", MW_KIND_UINT, 0, MW_COLUMN_HIDDEN },
	[PERIOD] = { "period_ns", "EVERY", MW_KIND_UINT, MW_UNIT_NS, 0 },
	[GAP] = { "gap_ns", "GAP", MW_KIND_UINT, MW_UNIT_NS, MW_COLUMN_HIDDEN },
	[REST] = { "budget_rest_ppm", "BUDGET", MW_KIND_UINT, MW_UNIT_PPM, 0 },
	[STORM] = { "budget_storm_ppm", "IN STORMS", MW_KIND_UINT, MW_UNIT_PPM, 0 },
	[CPU] = { "cpu_ppm", "CPU", MW_KIND_UINT, MW_UNIT_PPM, 0 },
	[EVENT] = { "event_ppm", "EVENTS", MW_KIND_UINT, MW_UNIT_PPM, 0 },
	[GATE] = { "gate_width", "GATE", MW_KIND_UINT, 0, 0 },
	[EVENTS] = { "event_program", "EVENT PROGRAM", MW_KIND_TEXT, 0, 0 },
	[REASON] = { "event_program_reason", "BECAUSE", MW_KIND_TEXT, 0, MW_COLUMN_LAST },
	[RETRY] = { "event_program_retry_ns", "AGAIN IN", MW_KIND_UINT, MW_UNIT_NS,
		    MW_COLUMN_HIDDEN },
	[DETACHED] = { "event_program_detached", "DETACHED", MW_KIND_UINT, 0, MW_COLUMN_HIDDEN },
	[AGE] = { "age_ns", "AGE", MW_KIND_UINT, MW_UNIT_NS, MW_COLUMN_HIDDEN },
};

/* What is in a file. */
struct registry_values {
	uint64_t pid, start_ticks, command, told_ns, rounds, pokes, processes, growing, full, lost;
	uint64_t period_ns, gap_ns, rest_ppm, storm_ppm, cpu_ppm, event_ppm, width;
	uint64_t events_state, events_error, retry_ns, detached;
};

#define FIELD(name)                                                                                \
	{                                                                                          \
#name, offsetof(struct registry_values, name)                                      \
	}

static const struct {
	const char *key;
	size_t offset;
} fields[] = {
	FIELD(pid),	 FIELD(start_ticks),  FIELD(command),	   FIELD(told_ns),
	FIELD(rounds),	 FIELD(pokes),	      FIELD(processes),	   FIELD(growing),
	FIELD(full),	 FIELD(lost),	      FIELD(period_ns),	   FIELD(gap_ns),
	FIELD(rest_ppm), FIELD(storm_ppm),    FIELD(cpu_ppm),	   FIELD(event_ppm),
	FIELD(width),	 FIELD(events_state), FIELD(events_error), FIELD(retry_ns),
	FIELD(detached),
};

#define NR_FIELDS (sizeof(fields) / sizeof(fields[0]))

static uint64_t *field(struct registry_values *e, size_t i)
{
	return (uint64_t *)((char *)e + fields[i].offset);
}

/* ---------------------------------------------------------------- writing */

static const char *own_path(const struct mw_registry_entry *entry, char *buf, size_t size)
{
	char name[64];

	snprintf(name, sizeof(name), DIRECTORY "/" PREFIX "%d", (int)getpid());
	return mw_root_path(entry->cli, name, buf, size);
}

static int write_entry(const struct mw_registry_entry *entry, struct registry_values *e)
{
	char path[PATH_MAX], directory[PATH_MAX], temporary[PATH_MAX + 8];
	FILE *file;
	int err = 0;

	mw_root_path(entry->cli, DIRECTORY, directory, sizeof(directory));
	if (mkdir(directory, 0755) && errno != EEXIST)
		return -errno;
	own_path(entry, path, sizeof(path));
	snprintf(temporary, sizeof(temporary), "%s.new", path);
	file = fopen(temporary, "we");
	if (!file)
		return -errno;
	for (size_t i = 0; i < NR_FIELDS; i++)
		fprintf(file, "%s: %" PRIu64 "\n", fields[i].key, *field(e, i));
	if (fclose(file) || rename(temporary, path))
		err = -errno;
	if (err)
		unlink(temporary);
	return err;
}

static uint64_t command_number(const char *command)
{
	uint64_t i = 0;

	while (i + 1 < sizeof(commands) / sizeof(commands[0]) && strcmp(commands[i], command))
		i++;
	return i;
}

void mw_registry_entry_update(struct mw_registry_entry *entry, struct memwatch_watch *watch,
			      uint64_t now_ns)
{
	MEMWATCH_OPTS(memwatch_watch_stats, s);
	struct mw_cli here = { 0 };
	struct registry_values e = { 0 };
	uint64_t cpu;
	int err;

	if (entry->failed || memwatch_watch_stats(watch, &s) || !s.rounds ||
	    (entry->written_ns && now_ns - entry->written_ns < MW_REGISTRY_UPDATE_NS &&
	     entry->events_state == s.events_state))
		return;
	cpu = mw_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	e.pid = (uint64_t)getpid();
	e.start_ticks = mw_root_start_ticks(&here, e.pid);
	e.command = command_number(entry->command);
	e.told_ns = now_ns;
	e.rounds = s.rounds;
	e.pokes = s.pokes;
	e.processes = s.processes;
	e.growing = s.growing;
	e.full = s.full;
	e.lost = s.lost;
	e.period_ns = s.period_ns;
	e.gap_ns = s.gap_ns;
	e.rest_ppm = s.rest_ppm;
	e.storm_ppm = s.storm_ppm;
	/* All of the process, tables and hooks included; what came before the first round is not.
	 */
	if (entry->written_ns)
		e.cpu_ppm = (cpu - entry->cpu_ns) * 1000000 / (now_ns - entry->written_ns);
	e.event_ppm = s.event_ppm;
	e.width = s.width;
	e.events_state = s.events_state;
	e.events_error = s.events_error;
	e.retry_ns = s.events_retry_ns;
	e.detached = s.over_budget;
	err = write_entry(entry, &e);
	if (err)
		mw_note(entry->cli, DIRECTORY ": %s: status will not know of this monitor",
			strerror(-err));
	entry->failed = err;
	entry->written_ns = now_ns;
	entry->cpu_ns = cpu;
	entry->events_state = s.events_state;
}

void mw_registry_entry_remove(struct mw_registry_entry *entry)
{
	char path[PATH_MAX];

	if (entry->written_ns && !entry->failed)
		unlink(own_path(entry, path, sizeof(path)));
}

/* ---------------------------------------------------------------- reading */

/* Is this the file of a process that is still there? */
static bool read_entry(const struct mw_cli *cli, const char *name, struct registry_values *e)
{
	char path[PATH_MAX], line[128], key[64];
	uint64_t value;
	size_t found = 0;
	FILE *file;

	snprintf(path, sizeof(path), DIRECTORY "/%s", name);
	file = mw_root_open(cli, path);
	memset(e, 0, sizeof(*e));
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%63[a-z_]: %" SCNu64, key, &value) != 2)
			continue;
		for (size_t i = 0; i < NR_FIELDS; i++)
			if (!strcmp(fields[i].key, key)) {
				*field(e, i) = value;
				found++;
			}
	}
	if (file)
		fclose(file);
	return found == NR_FIELDS && e->command < sizeof(commands) / sizeof(commands[0]) &&
	       e->start_ticks && e->start_ticks == mw_root_start_ticks(cli, e->pid);
}

static const char *why(const struct registry_values *e)
{
	switch (e->events_state) {
	case MEMWATCH_EVENTS_UNWANTED:
		return "not wanted";
	case MEMWATCH_EVENTS_OVER_BUDGET:
		return "over its budget, will be tried again";
	case MEMWATCH_EVENTS_IMPOSSIBLE:
		return e->events_error ? strerror((int)e->events_error) : "not possible";
	default:
		return NULL;
	}
}

static void fill(const struct registry_values *e, uint64_t now_ns, struct mw_cell *c)
{
	bool attached = e->events_state == MEMWATCH_EVENTS_ATTACHED;

	for (size_t i = 0; i < NR_COLUMNS; i++)
		c[i] = (struct mw_cell){ 0 };
	c[PID].number = e->pid;
	c[COMMAND].text = commands[e->command];
	c[PROCESSES].number = e->processes;
	c[GROWING].number = e->growing;
	c[UNWATCHED].number = e->full;
	c[LOST].number = e->lost;
	c[ROUNDS].number = e->rounds;
	c[ASKED].number = e->pokes;
	c[PERIOD].number = e->period_ns;
	c[GAP].number = e->gap_ns;
	c[REST].number = e->rest_ppm;
	c[STORM].number = e->storm_ppm;
	c[CPU].number = e->cpu_ppm;
	c[EVENT].number = e->event_ppm;
	c[EVENT].missing = e->events_state == MEMWATCH_EVENTS_UNWANTED ||
			   e->events_state == MEMWATCH_EVENTS_IMPOSSIBLE;
	c[GATE].number = e->width;
	c[EVENTS].text = attached ? "attached" : "detached";
	c[REASON].text = why(e);
	c[REASON].missing = attached;
	c[RETRY].number = e->retry_ns > now_ns ? e->retry_ns - now_ns : 0;
	c[RETRY].missing = !e->retry_ns;
	c[DETACHED].number = e->detached;
	c[AGE].number = now_ns > e->told_ns ? now_ns - e->told_ns : 0;
}

static int is_ours(const struct dirent *entry)
{
	/* not one that is being written */
	return !strncmp(entry->d_name, PREFIX, strlen(PREFIX)) &&
	       !strchr(entry->d_name + strlen(PREFIX), '.');
}

int mw_registry_read(const struct mw_cli *cli, struct mw_table *table)
{
	char directory[PATH_MAX];
	struct dirent **names = NULL;
	uint64_t now = mw_clock_ns(CLOCK_MONOTONIC);
	struct mw_cell *cells;
	struct registry_values entry;
	int err = 0, n;

	mw_table_init(table, columns, NR_COLUMNS);
	n = scandir(mw_root_path(cli, DIRECTORY, directory, sizeof(directory)), &names, is_ours,
		    alphasort);
	for (int i = 0; i < n; i++) {
		if (!err && read_entry(cli, names[i]->d_name, &entry)) {
			cells = mw_table_row(table);
			err = cells ? 0 : -ENOMEM;
			if (cells)
				fill(&entry, now, cells);
		}
		free(names[i]);
	}
	free(names);
	return err;
}
