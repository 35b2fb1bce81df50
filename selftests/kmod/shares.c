/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * shares: reads the text of a trace of memwatch_switch and memwatch_tick from standard
 * input, and prints a line for each thread: its pid, its CPU time in ms, and the percentage
 * of this time in which its CPU was charged to an RMID. A switch says what runs from now on;
 * a tick, what runs.
 *
 * If the trace has memwatch_rmid_alloc too, two times in ms follow, for processes of one
 * thread: for how long it ran without an RMID between the first of these and the last one,
 * as the records say, and as the switches say.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CPUS 64
#define PIDS 4194304

struct cpu {
	unsigned long long since;
	unsigned long rmid;
	unsigned long pid;
};

static struct cpu cpus[CPUS];
static double total[PIDS], measured[PIDS];

/* Of a process: without an RMID up to its last allocation; between its allocations. */
static double before[PIDS], said[PIDS], ran[PIDS];
static char allocated[PIDS];

static unsigned long long number_after(const char *text, const char *key)
{
	const char *found = strstr(text, key);

	return found ? strtoull(found + strlen(key), NULL, 10) : 0;
}

static void read_alloc(const char *event)
{
	unsigned long tgid = number_after(event, " tgid=");
	double now;

	if (tgid >= PIDS)
		return;
	now = total[tgid] - measured[tgid];
	if (allocated[tgid]) {
		said[tgid] += number_after(event, " unmeasured=");
		ran[tgid] += now - before[tgid];
	}
	before[tgid] = now;
	allocated[tgid] = 1;
}

/* "   comm-PID   [CPU] flags time: event: ..."; a comm may hold a '-' or a '['. */
static void read_line(const char *line)
{
	const char *event = strstr(line, ": memwatch_"), *bracket = event, *dash;
	struct cpu *cpu;
	int is_switch;

	while (bracket && bracket > line && *bracket != '[')
		bracket--;
	for (dash = bracket; dash && dash > line && *dash != '-'; dash--)
		;
	if (!event || *bracket != '[' || atoi(bracket + 1) >= CPUS)
		return;
	if (!strncmp(event, ": memwatch_rmid_alloc", 21)) {
		read_alloc(event);
		return;
	}
	cpu = &cpus[atoi(bracket + 1)];
	is_switch = !strncmp(event, ": memwatch_switch", 17);
	if (cpu->since && cpu->pid < PIDS) {
		double spent = number_after(event, "now=") - cpu->since;

		total[cpu->pid] += spent;
		measured[cpu->pid] += cpu->rmid ? spent : 0;
	}
	cpu->since = number_after(event, "now=");
	cpu->rmid = number_after(event, is_switch ? " next_rmid=" : " rmid=");
	cpu->pid = is_switch ? number_after(event, " next_pid=") : strtoul(dash + 1, NULL, 10);
}

int main(void)
{
	static char line[4096];

	while (fgets(line, sizeof(line), stdin))
		read_line(line);
	for (long pid = 0; pid < PIDS; pid++)
		if (total[pid] > 0)
			printf("%ld %.0f %.0f %.0f %.0f\n", pid, total[pid] / 1e6,
			       100 * measured[pid] / total[pid], said[pid] / 1e6, ran[pid] / 1e6);
	return 0;
}
