/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What the commands that read the live stream have in common: how much may wait in a ring, and
 * the priority with which the rings are read.
 */
#ifndef MW_LIVE_H
#define MW_LIVE_H

#include <memwatch/memwatch.h>

#include "common/cmd.h"
#include "common/priority.h"

struct mw_live_config {
	uint64_t ring_bytes; /* of each CPU; 0: default */
	int priority;	     /* 0: as high as permitted; 1: normal */
	int backend;	     /* enum memwatch_live_backend */
};

extern const char *const mw_live_priorities[];
extern const char *const mw_live_backends[];

/*
 * The options for a command whose configuration has the member @member of struct
 * mw_live_config. clang-format would indent the initialisers as blocks.
 */
/* clang-format off */
#define MW_LIVE_OPTIONS(type, member)                                                              \
	{ "ring-size", 0, MW_OPTION_BYTES, offsetof(type, member.ring_bytes), "SIZE",              \
	  "memory for records that were not read yet, per CPU; default: 256K", NULL },             \
	{ "priority", 0, MW_OPTION_CHOICE, offsetof(type, member.priority), "PRIORITY",            \
	  "read with real-time priority, if permitted, or with the normal one",                    \
	  mw_live_priorities },                                                                    \
	{ "backend", 0, MW_OPTION_CHOICE, offsetof(type, member.backend), "BACKEND",               \
	  "measure with the module, or by BPF alone; auto: by BPF if it is not loaded",            \
	  mw_live_backends }
/* clang-format on */

/* Returns 0, or MW_EXIT_USAGE after an error message that begins with @where. */
int mw_live_check(const struct mw_live_config *config, const char *where);

/*
 * Opens the live stream with @opts, to which it adds the options of the user. Says if it measures
 * without the module although the user has not asked for that. Returns 0, or an exit code after an
 * error message that begins with @where.
 */
int mw_live_open(const struct mw_cli *cli, struct memwatch_ctx *ctx,
		 const struct mw_live_config *config, struct memwatch_live_opts *opts,
		 const char *where, struct memwatch_stream **ret);

/*
 * How much of a CPU this thread has used in the last interval. Times in nanoseconds; @begin_ns is 0
 * before it has begun to read.
 */
struct mw_live_share {
	enum mw_priority priority;
	uint64_t begin_ns;
	uint64_t cpu_ns;
};

/* Raises the priority of this thread, unless the user does not want that. */
void mw_live_raise(struct mw_live_share *share, const struct mw_live_config *config,
		   const struct mw_cli *cli);

/*
 * Call this often: a thread that reads with a raised priority and uses more than half of a CPU for
 * a second gets the normal one, so that it takes nothing more from other processes.
 */
void mw_live_limit(struct mw_live_share *share, const struct mw_cli *cli);

#endif
