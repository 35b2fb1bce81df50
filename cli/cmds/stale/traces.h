/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The traces that "stale run" leaves in a directory.
 */
#ifndef MW_CMDS_STALE_TRACES_H
#define MW_CMDS_STALE_TRACES_H

#include <limits.h>
#include <stdint.h>

#include "common/cmd.h"

/**
 * struct stale_trace - a trace that was chosen
 * @path: of its file
 * @profile: of the profile beside it; it need not exist
 * @others: how many other traces are in the directory
 */
struct stale_trace {
	char path[PATH_MAX];
	char profile[PATH_MAX];
	uint64_t others;
};

/*
 * Chooses a trace: the file @name; or in the directory @name, that of process @pid, or the largest
 * one if that is 0. Returns 0 or an exit code after an error message.
 */
int stale_trace_find(struct stale_trace *trace, const struct mw_cli *cli, const char *name,
		     uint64_t pid);

/* As many files of accesses are looked at. */
#define STALE_ACCESS_FILES 64

/*
 * The path of file @number of accesses beside a trace, counted from 0, which need not exist. @path
 * has PATH_MAX bytes. Returns false if it does not fit.
 */
bool stale_access_path(const struct stale_trace *trace, unsigned int number, char *path);

#endif
