/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Runs programs that leave a trace, and finds and judges it.
 */
#ifndef _MW_HEAP_TESTS_TRACE_KIT_H
#define _MW_HEAP_TESTS_TRACE_KIT_H

#include "heap/tests/kit.h"
#include "heap/tests/trace-read.h"

static inline bool open_trace(struct trace *trace, const char *mark)
{
	DIR *directory = opendir(kit.directory);
	char path[PATH_MAX + 300];
	struct dirent *entry;
	bool found = false;

	while (directory && !found && (entry = readdir(directory))) {
		if (!strstr(entry->d_name, mark))
			continue;
		snprintf(path, sizeof(path), "%s/%s", kit.directory, entry->d_name);
		found = trace_open(trace, path);
	}
	if (directory)
		closedir(directory);
	return found;
}

static inline bool open_trace_of(struct trace *trace, pid_t pid)
{
	char mark[32];

	snprintf(mark, sizeof(mark), ".%d" MW_TRACE_SUFFIX, (int)pid);
	return open_trace(trace, mark);
}

/* Opens the trace of a program that ended well, and plays it. */
static inline bool play_behind(struct kit_run *run, const char *behind, const char *settings,
			       const char *const *argv, struct trace *trace,
			       struct trace_balance *balance, const char *what)
{
	kit_empty();
	kit_run(run, behind, settings, argv);
	if (!tap_ok(kit_exited(run) && open_trace_of(trace, run->pid),
		    "%s: the program ends well and leaves a trace (status %#x)", what, run->status))
		return false;
	trace_balance(trace, balance);
	return true;
}

static inline bool play(struct kit_run *run, const char *settings, const char *const *argv,
			struct trace *trace, struct trace_balance *balance, const char *what)
{
	return play_behind(run, NULL, settings, argv, trace, balance, what);
}

static inline void check_balance(const struct trace *trace, const struct trace_balance *balance,
				 const char *what)
{
	tap_eq(balance->unmatched, 0, "%s: every free ends an object (%lu events)", what,
	       (unsigned long)trace->count);
	tap_eq(balance->twice, 0, "%s: no address is allocated while it lives", what);
	tap_eq(trace->header->lost_nested + trace->header->lost_no_room, 0, "%s: nothing is lost",
	       what);
}

static inline void end_play(struct kit_run *run, struct trace *trace, struct trace_balance *balance)
{
	free(balance->live);
	trace_close(trace);
	kit_free(run);
}

#endif
