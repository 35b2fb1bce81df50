// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The registry: one file for each monitor, /run/memwatch/growth.PID.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/message.h"
#include "common/root.h"
#include "growth/registry.h"

#define REGISTRY_DIRECTORY "/run/memwatch"
#define REGISTRY_PREFIX	   "growth."

/* The event_ppm of a monitor that could not measure it. */
#define NOT_MEASURED UINT64_MAX

/* The files contain the index of the command, so the order must not change. */
static const char *const commands[] = { "growth watch", "growth record", "top", "record",
					"events" };

#define NR_COMMANDS (sizeof(commands) / sizeof(commands[0]))

enum {
	PID,
	COMMAND,
	PROCESSES,
	GROWING,
	UNWATCHED,
	LOST,
	ROUNDS,
	REQUESTED,
	INTERVAL,
	GAP,
	BUDGET,
	PEAK_BUDGET,
	CPU,
	EVENT_CPU,
	GATE,
	EVENT_PROGRAM,
	REASON,
	RETRY,
	DETACHED,
	TOUCH,
	SUSPECTS,
	STALL,
	WHERE,
	SAMPLED,
	PERIOD,
	AGE,
	NR_COLUMNS,
	NO_COLUMN,
};

static const struct mw_column registry_columns[NR_COLUMNS] = {
	[PID] = { "pid", "PID", MW_KIND_UINT, 0, 0 },
	[COMMAND] = { "command", "COMMAND", MW_KIND_TEXT, 0, 0 },
	[PROCESSES] = { "processes", "PROCESSES", MW_KIND_UINT, 0, 0 },
	[GROWING] = { "processes_growing", "GROWING", MW_KIND_UINT, 0, MW_COLUMN_HIDDEN },
	[UNWATCHED] = { "samples_without_room", "NO STATE", MW_KIND_UINT, 0, MW_COLUMN_HIDDEN },
	[LOST] = { "records_lost", "LOST", MW_KIND_UINT, 0, MW_COLUMN_HIDDEN },
	[ROUNDS] = { "rounds", "ROUNDS", MW_KIND_UINT, 0, 0 },
	[REQUESTED] = { "rounds_asked_for", "REQUESTED", MW_KIND_UINT, 0, MW_COLUMN_HIDDEN },
	[INTERVAL] = { "period_ns", "INTERVAL", MW_KIND_UINT, MW_UNIT_NS, 0 },
	[GAP] = { "gap_ns", "MIN GAP", MW_KIND_UINT, MW_UNIT_NS, MW_COLUMN_HIDDEN },
	[BUDGET] = { "budget_rest_ppm", "BUDGET", MW_KIND_UINT, MW_UNIT_PPM, 0 },
	[PEAK_BUDGET] = { "budget_storm_ppm", "PEAK BUDGET", MW_KIND_UINT, MW_UNIT_PPM, 0 },
	[CPU] = { "cpu_ppm", "CPU", MW_KIND_UINT, MW_UNIT_PPM, 0 },
	[EVENT_CPU] = { "event_ppm", "EVENT CPU", MW_KIND_UINT, MW_UNIT_PPM, 0 },
	[GATE] = { "gate_width", "GATE", MW_KIND_UINT, 0, 0 },
	[EVENT_PROGRAM] = { "event_program", "EVENT PROGRAM", MW_KIND_TEXT, 0, 0 },
	[REASON] = { "event_program_reason", "REASON", MW_KIND_TEXT, 0, MW_COLUMN_LAST },
	[RETRY] = { "event_program_retry_ns", "RETRY IN", MW_KIND_UINT, MW_UNIT_NS,
		    MW_COLUMN_HIDDEN },
	[DETACHED] = { "event_program_detached", "DETACHED", MW_KIND_UINT, 0, MW_COLUMN_HIDDEN },
	[TOUCH] = { "touch", "TOUCH", MW_KIND_TEXT, 0, MW_COLUMN_HIDDEN },
	[SUSPECTS] = { "touch_suspects", "SUSPECTS", MW_KIND_UINT, 0, MW_COLUMN_HIDDEN },
	[STALL] = { "touch_stall_ns", "LONGEST STALL", MW_KIND_UINT, MW_UNIT_NS, MW_COLUMN_HIDDEN },
	[WHERE] = { "where", "WHERE", MW_KIND_TEXT, 0, MW_COLUMN_HIDDEN },
	[SAMPLED] = { "where_suspects", "SAMPLED", MW_KIND_UINT, 0, MW_COLUMN_HIDDEN },
	[PERIOD] = { "where_period", "FAULTS A SAMPLE", MW_KIND_UINT, 0, MW_COLUMN_HIDDEN },
	[AGE] = { "age_ns", "AGE", MW_KIND_UINT, MW_UNIT_NS, MW_COLUMN_HIDDEN },
};

/* The content of a file. Times are on CLOCK_MONOTONIC. */
struct registry_values {
	uint64_t pid, start_ticks, command, told_ns, rounds, pokes, processes, growing, full, lost;
	uint64_t period_ns, gap_ns, rest_ppm, storm_ppm, cpu_ppm, event_ppm, width;
	uint64_t events_state, events_error, retry_ns, detached;
	uint64_t touch_state, suspects, stall_ns;
	uint64_t where_state, sampled, where_period;
};

/* A line of a file: its key, the value, and the column that shows the value unchanged. */
struct registry_field {
	const char *key;
	size_t offset;
	int column;
};

/* clang-format off */
#define FIELD(name, column) { #name, offsetof(struct registry_values, name), column }
/* clang-format on */

static const struct registry_field fields[] = {
	FIELD(pid, PID),
	FIELD(start_ticks, NO_COLUMN),
	FIELD(command, NO_COLUMN),
	FIELD(told_ns, NO_COLUMN),
	FIELD(rounds, ROUNDS),
	FIELD(pokes, REQUESTED),
	FIELD(processes, PROCESSES),
	FIELD(growing, GROWING),
	FIELD(full, UNWATCHED),
	FIELD(lost, LOST),
	FIELD(period_ns, INTERVAL),
	FIELD(gap_ns, GAP),
	FIELD(rest_ppm, BUDGET),
	FIELD(storm_ppm, PEAK_BUDGET),
	FIELD(cpu_ppm, CPU),
	FIELD(event_ppm, EVENT_CPU),
	FIELD(width, GATE),
	FIELD(events_state, NO_COLUMN),
	FIELD(events_error, NO_COLUMN),
	FIELD(retry_ns, NO_COLUMN),
	FIELD(detached, DETACHED),
	FIELD(touch_state, NO_COLUMN),
	FIELD(suspects, SUSPECTS),
	FIELD(stall_ns, STALL),
	FIELD(where_state, NO_COLUMN),
	FIELD(sampled, SAMPLED),
	FIELD(where_period, PERIOD),
};

#define NR_FIELDS (sizeof(fields) / sizeof(fields[0]))

static uint64_t *field_value(struct registry_values *v, size_t i)
{
	return (uint64_t *)((char *)v + fields[i].offset);
}

static const char *own_path(const struct mw_registry_entry *entry, char *buf, size_t size)
{
	char name[64];

	snprintf(name, sizeof(name), REGISTRY_DIRECTORY "/" REGISTRY_PREFIX "%d", (int)getpid());
	return mw_root_path(entry->cli, name, buf, size);
}

/* A reader never sees half of a file, because it gets its name when it is complete. */
static int write_values(const struct mw_registry_entry *entry, struct memwatch_ctx *ctx,
			struct registry_values *v)
{
	char path[PATH_MAX], directory[PATH_MAX];
	struct memwatch_file *file;
	int err;

	mw_root_path(entry->cli, REGISTRY_DIRECTORY, directory, sizeof(directory));
	if (mkdir(directory, 0755) && errno != EEXIST)
		return -errno;
	err = memwatch_file_create(ctx, own_path(entry, path, sizeof(path)), &file);
	if (err)
		return err;
	for (size_t i = 0; i < NR_FIELDS && !err; i++)
		if (dprintf(memwatch_file_fd(file), "%s: %" PRIu64 "\n", fields[i].key,
			    *field_value(v, i)) < 0)
			err = -errno;
	/* Users who may not watch may see how much the monitors of this machine cost. */
	if (!err && fchmod(memwatch_file_fd(file), 0644))
		err = -errno;
	if (!err)
		err = memwatch_file_commit(file, MEMWATCH_FILE_REPLACE);
	memwatch_file_close(file);
	return err;
}

static uint64_t command_index(const char *command)
{
	uint64_t i = 0;

	while (i + 1 < NR_COMMANDS && strcmp(commands[i], command))
		i++;
	return i;
}

static bool entry_is_due(const struct mw_registry_entry *entry,
			 const struct memwatch_watch_stats *s, uint64_t now_ns)
{
	return !entry->written_ns || now_ns - entry->written_ns >= MW_REGISTRY_UPDATE_NS ||
	       entry->events_state != s->events_state;
}

static void collect_values(const struct mw_registry_entry *entry,
			   const struct memwatch_watch_stats *s, uint64_t now_ns, uint64_t cpu_ns,
			   struct registry_values *v)
{
	/* The start time of this process is in the real /proc, also if --root names another. */
	struct mw_cli here = { 0 };

	*v = (struct registry_values){
		.pid = (uint64_t)getpid(),
		.command = command_index(entry->command),
		.told_ns = now_ns,
		.rounds = s->rounds,
		.pokes = s->pokes,
		.processes = s->processes,
		.growing = s->growing,
		.full = s->full,
		.lost = s->lost,
		.period_ns = s->period_ns,
		.gap_ns = s->gap_ns,
		.rest_ppm = s->rest_ppm,
		.storm_ppm = s->storm_ppm,
		.event_ppm = s->event_cost == MEMWATCH_EVENT_COST_MEASURED ? s->event_ppm
									   : NOT_MEASURED,
		.width = s->width,
		.events_state = s->events_state,
		.events_error = s->events_error,
		.retry_ns = s->events_retry_ns,
		.detached = s->over_budget,
		.touch_state = s->touch_state,
		.suspects = s->touch_suspects,
		.stall_ns = s->touch_stall_ns,
		.where_state = s->where_state,
		.sampled = s->where_suspects,
		.where_period = s->where_period,
	};
	v->start_ticks = mw_root_start_ticks(&here, v->pid);
	/*
	 * The CPU time of the whole process, its output included, since the last update. The
	 * first file has no CPU time, because it would be that of the start of the program,
	 * which takes more than the budget.
	 */
	if (entry->written_ns)
		v->cpu_ppm = (cpu_ns - entry->cpu_ns) * 1000000 / (now_ns - entry->written_ns);
}

/* Returns whether the file is complete. */
static bool read_file(const struct mw_cli *cli, const char *name, struct registry_values *v)
{
	char path[PATH_MAX], line[128], key[64];
	uint64_t value;
	size_t found = 0;
	FILE *file;

	snprintf(path, sizeof(path), REGISTRY_DIRECTORY "/%s", name);
	file = mw_root_open(cli, path);
	memset(v, 0, sizeof(*v));
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%63[a-z_]: %" SCNu64, key, &value) != 2)
			continue;
		for (size_t i = 0; i < NR_FIELDS; i++)
			if (!strcmp(fields[i].key, key)) {
				*field_value(v, i) = value;
				found++;
			}
	}
	if (file)
		fclose(file);
	return found == NR_FIELDS;
}

/* Files that are being written have other names. */
static int is_registry_file(const struct dirent *file)
{
	const char *pid = file->d_name + strlen(REGISTRY_PREFIX);

	return !strncmp(file->d_name, REGISTRY_PREFIX, strlen(REGISTRY_PREFIX)) &&
	       !pid[strspn(pid, "0123456789")];
}

/* As for collect_values(), the processes are those of the real /proc. */
static bool process_has_ended(uint64_t pid, uint64_t start_ticks)
{
	struct mw_cli here = { 0 };
	uint64_t now = mw_root_start_ticks(&here, pid);

	/* /proc may hide the processes of other users. */
	if (!now)
		return !pid || pid > INT_MAX || (kill((pid_t)pid, 0) && errno == ESRCH);
	return start_ticks && now != start_ticks;
}

/* A monitor that is killed, as by a pipe that nobody reads, leaves its file. */
static void remove_stale_files(const struct mw_cli *cli)
{
	char directory[PATH_MAX], path[PATH_MAX + NAME_MAX + 2];
	struct dirent **names = NULL;
	struct registry_values values;
	int n;

	n = scandir(mw_root_path(cli, REGISTRY_DIRECTORY, directory, sizeof(directory)), &names,
		    is_registry_file, NULL);
	for (int i = 0; i < n; i++) {
		const char *name = names[i]->d_name;
		uint64_t pid = strtoull(name + strlen(REGISTRY_PREFIX), NULL, 10);

		read_file(cli, name, &values);
		snprintf(path, sizeof(path), "%s/%s", directory, name);
		if (process_has_ended(pid, values.start_ticks))
			unlink(path);
		free(names[i]);
	}
	free(names);
}

void mw_registry_entry_update(struct mw_registry_entry *entry, struct memwatch_ctx *ctx,
			      struct memwatch_watch *watch, uint64_t now_ns)
{
	MEMWATCH_OPTS(memwatch_watch_stats, s);
	struct registry_values v;
	uint64_t cpu_ns;
	int err;

	if (entry->failed || memwatch_watch_get_stats(watch, &s) || !s.rounds ||
	    !entry_is_due(entry, &s, now_ns))
		return;
	cpu_ns = mw_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	collect_values(entry, &s, now_ns, cpu_ns, &v);
	err = write_values(entry, ctx, &v);
	if (err)
		mw_note(entry->cli, REGISTRY_DIRECTORY ": %s: 'status' will not show this monitor",
			strerror(-err));
	else if (!entry->written_ns)
		remove_stale_files(entry->cli);
	entry->failed = err;
	entry->written_ns = now_ns;
	entry->cpu_ns = cpu_ns;
	entry->events_state = s.events_state;
}

void mw_registry_entry_remove(struct mw_registry_entry *entry)
{
	char path[PATH_MAX];

	if (entry->written_ns && !entry->failed)
		unlink(own_path(entry, path, sizeof(path)));
}

/* Returns whether the file is complete and its process still runs. */
static bool read_values(const struct mw_cli *cli, const char *name, struct registry_values *v)
{
	return read_file(cli, name, v) && v->command < NR_COMMANDS && v->start_ticks &&
	       v->start_ticks == mw_root_start_ticks(cli, v->pid);
}

/* Why the event program is not attached. */
static const char *detached_reason(const struct registry_values *v)
{
	switch (v->events_state) {
	case MEMWATCH_EVENTS_UNWANTED:
		return "not wanted";
	case MEMWATCH_EVENTS_OVER_BUDGET:
		return "over its budget, will be tried again";
	case MEMWATCH_EVENTS_IMPOSSIBLE:
		return v->events_error ? strerror((int)v->events_error) : "not possible";
	default:
		return NULL;
	}
}

/* &enum memwatch_watch_touch or &enum memwatch_watch_where_state, which have the same values. */
static const char *suspects_state_name(uint64_t state)
{
	switch (state) {
	case MEMWATCH_TOUCH_UNWANTED:
		return "unwanted";
	case MEMWATCH_TOUCH_IDLE:
		return "idle";
	case MEMWATCH_TOUCH_ACTIVE:
		return "active";
	default:
		return "unavailable";
	}
}

static void fill_registry_cells(struct registry_values *v, uint64_t now_ns, struct mw_cell *c)
{
	bool attached = v->events_state == MEMWATCH_EVENTS_ATTACHED;

	for (size_t i = 0; i < NR_COLUMNS; i++)
		c[i] = (struct mw_cell){ 0 };
	for (size_t i = 0; i < NR_FIELDS; i++)
		if (fields[i].column != NO_COLUMN)
			c[fields[i].column].number = *field_value(v, i);
	c[COMMAND].text = commands[v->command];
	c[EVENT_CPU].missing = v->event_ppm == NOT_MEASURED ||
			       v->events_state == MEMWATCH_EVENTS_UNWANTED ||
			       v->events_state == MEMWATCH_EVENTS_IMPOSSIBLE;
	c[EVENT_PROGRAM].text = attached ? "attached" : "detached";
	c[REASON].text = detached_reason(v);
	c[REASON].missing = attached;
	c[TOUCH].text = suspects_state_name(v->touch_state);
	c[WHERE].text = suspects_state_name(v->where_state);
	c[RETRY].number = v->retry_ns > now_ns ? v->retry_ns - now_ns : 0;
	c[RETRY].missing = !v->retry_ns;
	c[AGE].number = now_ns > v->told_ns ? now_ns - v->told_ns : 0;
}

int mw_registry_read(const struct mw_cli *cli, struct mw_table *table)
{
	char directory[PATH_MAX];
	struct dirent **names = NULL;
	uint64_t now = mw_clock_ns(CLOCK_MONOTONIC);
	struct registry_values values;
	struct mw_cell *cells;
	int err = 0, n;

	mw_table_init(table, registry_columns, NR_COLUMNS);
	n = scandir(mw_root_path(cli, REGISTRY_DIRECTORY, directory, sizeof(directory)), &names,
		    is_registry_file, alphasort);
	for (int i = 0; i < n; i++) {
		if (!err && read_values(cli, names[i]->d_name, &values)) {
			cells = mw_table_row(table);
			err = cells ? 0 : -ENOMEM;
			if (cells)
				fill_registry_cells(&values, now, cells);
		}
		free(names[i]);
	}
	free(names);
	return err;
}
