/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The command that "record", "heap run" and "stale run" run. It is forked before a recording starts
 * and executed after that, so that the recording holds everything it does.
 */
#ifndef MW_CHILD_H
#define MW_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

/* A zeroed structure means that there is no child. */
struct mw_child {
	pid_t pid;   /* 0: no child */
	int release; /* socket; one byte makes the child execute the command */
	int failure; /* pipe; the child writes its errno if exec fails */
	bool started;
	bool has_signals; /* see mw_child_pass_signals() */
	bool ended;
	int status;    /* from waitpid() */
	char comm[16]; /* name of the process when it ended; "": not known */
};

/* Forks a child, which waits. Returns 0 or -errno; on failure there is no child. */
int mw_child_fork(struct mw_child *child, char **argv);
/*
 * Makes the child execute the command. Returns 0 or -errno, also that of its exec; -EINTR if a
 * signal has asked this program or the child to end.
 */
int mw_child_start(struct mw_child *child);
/* Prints why mw_child_start() has failed. Returns the exit status. */
int mw_child_failed(int err, const char *command);
/* Signals that would end this program are for the child from now on, until it has ended. */
void mw_child_pass_signals(struct mw_child *child);
/* Returns whether the child has ended. Does not block. */
bool mw_child_poll(struct mw_child *child);
/* Blocks until the child has ended. */
void mw_child_wait(struct mw_child *child);
/* Waits for the child and closes the descriptors. A child that was not started exits. */
void mw_child_uninit(struct mw_child *child);
/* "exited with status 3" or "was killed by signal 9 (Killed)". Returns @buf. */
const char *mw_child_status_text(const struct mw_child *child, char *buf, size_t size);

#endif
