/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What the commands have in common that run another command with the profiler preloaded.
 */
#ifndef MW_CMDS_HEAP_PRELOAD_H
#define MW_CMDS_HEAP_PRELOAD_H

#include <limits.h>
#include <stdint.h>

#include "common/child.h"
#include "common/cmd.h"

/**
 * struct heap_preload - a command and its environment
 * @what: name of the subcommand for messages, "heap run"
 * @library: the profiler
 * @directory: of the profiles
 * @trace: the command is to have a trace, too
 * @began_ns: when its process was forked, CLOCK_REALTIME
 */
struct heap_preload {
	const struct mw_cli *cli;
	const char *what;
	char library[PATH_MAX];
	char directory[PATH_MAX];
	bool trace;
	uint64_t began_ns;
	struct mw_child child;
};

/*
 * Checks that the profiler can be preloaded into @command, finds the profiler, which is @library
 * unless that is NULL, and creates the directory @output. Returns 0 or an exit code after an error
 * message.
 */
int heap_preload_init(struct heap_preload *preload, const char *command, const char *library,
		      const char *output);

/* The value of an option that was not given, for which the profiler has a default. */
#define HEAP_NOT_GIVEN UINT64_MAX

/*
 * Checks that the profiler would use @value of @option as it is, unless it was not given. @range
 * says what can be used. Returns 0 or an exit code after an error message.
 */
int heap_option_check(const char *option, uint64_t value, uint64_t least, uint64_t most,
		      const char *range);
int heap_rate_check(uint64_t rate);

/*
 * Sets a variable of the command, unless @value is 0 or was not given. Returns 0 or a negative
 * errno.
 */
int heap_preload_number(const char *name, uint64_t value);

/*
 * Forks a process for the command, which waits. Returns 0 or an exit code after an error message.
 */
int heap_preload_fork(struct heap_preload *preload, char **argv);

/* Starts the command in it. Returns 0 or an exit code after an error message. */
int heap_preload_start(struct heap_preload *preload, char **argv);

/*
 * Warns if the command that has ended has no profile, or no trace. Returns its exit code, as env(1)
 * and others have it. If Ctrl-C or Ctrl-\ has ended the command, this process ends by the same
 * signal, so that a shell stops its script.
 */
int heap_preload_end(struct heap_preload *preload);

#endif
