/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The command that "record" runs. It is forked before it may start, so that
 * everything it does is seen.
 */
#ifndef MW_COMMAND_H
#define MW_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

struct mw_command {
	pid_t pid;   /* 0: none */
	int release; /* writing here lets it start */
	int failure; /* reading here says why exec failed */
	bool started;
	bool ended;
	int status; /* of waitpid() */
};

/* Forks; the child waits. 0 or -errno. */
int mw_command_fork(struct mw_command *command, char **argv);
/* Lets it start. 0, or the -errno of its exec. */
int mw_command_start(struct mw_command *command);
/* Has it ended? Does not wait. */
bool mw_command_poll(struct mw_command *command);
/* Waits for it. */
void mw_command_wait(struct mw_command *command);
/* Kills one that was never started; frees. */
void mw_command_uninit(struct mw_command *command);
/* "exited with status 3", "was killed by signal 9 (Killed)". */
const char *mw_command_words(const struct mw_command *command, char *buf, size_t size);

#endif
