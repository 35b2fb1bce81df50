/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The state file: keeps the states and histories of all processes, cgroups and of the machine
 * across a restart of the monitor.
 */
#ifndef MW_STATE_FILE_H
#define MW_STATE_FILE_H

#include <stdio.h>

#include "growth/groups.h"
#include "loader/growth.h"

/*
 * Replaces the file by renaming, so it is complete or absent, and removes what earlier
 * attempts have left behind. Returns 0 or an error.
 */
int mw_state_file_save(struct memwatch_ctx *ctx, struct mw_bpf_growth *growth,
		       const struct mw_groups *groups, const char *path);

/*
 * Of the groups those are loaded that @groups has already. Returns the number of processes, -ESTALE
 * for another boot or version, -EPERM for a file that another user could have written, -EBADMSG if
 * any part is not valid, or another error. After an error nothing was loaded, unless memory ran out
 * (-ENOMEM).
 */
int mw_state_file_load(struct memwatch_ctx *ctx, struct mw_bpf_growth *growth,
		       struct mw_groups *groups, const char *path);

/* Receives one process; @history may be NULL. A value other than 0 ends the reading. */
typedef int (*mw_state_fn)(void *userdata, const struct mw_growth_key *key,
			   const struct mw_growth_process *process,
			   const struct mw_growth_history *history);

/* Receives one class of a group, in the same way. */
typedef int (*mw_state_class_fn)(void *userdata, const struct mw_state_class *class,
				 const char *path, const struct mw_growth_history *history);

/**
 * struct mw_state_reader - who receives the contents of a file
 * @process: is called for each process
 * @class: is called for each class
 * @userdata: for both
 */
struct mw_state_reader {
	mw_state_fn process;
	mw_state_class_fn class;
	void *userdata;
};

/* As mw_state_file_load(), from a stream that can be rewound, for tests and the fuzzer. */
int mw_state_file_read(struct memwatch_ctx *ctx, FILE *file, const char *name,
		       const struct mw_state_reader *reader);

/**
 * struct mw_state_writer - a state file that is being written to a stream
 * @file: the stream, which can be rewound
 * @count: number of processes
 * @sum: checksum of what follows the header
 */
struct mw_state_writer {
	FILE *file;
	uint64_t count;
	uint64_t sum;
};

/*
 * Write a state file to a stream: begin, put each process, begin the classes, put each of as many
 * as were announced, end.
 */
void mw_state_writer_begin(struct mw_state_writer *writer, FILE *file);
void mw_state_writer_put(struct mw_state_writer *writer, const struct mw_growth_key *key,
			 const struct mw_growth_process *process,
			 const struct mw_growth_history *history);
void mw_state_writer_begin_classes(struct mw_state_writer *writer, uint64_t count);
void mw_state_writer_put_class(struct mw_state_writer *writer, const struct mw_state_class *class,
			       const char *path, const struct mw_growth_history *history);
/* Both for all classes of all groups. */
void mw_state_writer_put_groups(struct mw_state_writer *writer, const struct mw_groups *groups);
/* Returns 0 or a negative errno. */
int mw_state_writer_end(struct memwatch_ctx *ctx, struct mw_state_writer *writer);

#endif /* MW_STATE_FILE_H */
