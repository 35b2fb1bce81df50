/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The priority of a thread that must not be late on a busy machine, because what it does not
 * read in time is lost.
 */
#ifndef MW_PRIORITY_H
#define MW_PRIORITY_H

#include <stdbool.h>

enum mw_priority {
	MW_PRIORITY_REAL_TIME = 0,
	MW_PRIORITY_RAISED, /* a higher one of the normal priorities */
	MW_PRIORITY_NORMAL,
};

/*
 * Raises the priority of the calling thread as far as this user may: to the lowest real-time
 * priority, else by a negative nice value. Threads and processes that it starts later have the
 * normal priority.
 */
enum mw_priority mw_priority_raise(void);

/* Gives the calling thread the normal priority. */
void mw_priority_lower(void);

/* "real-time", "raised" or "normal". */
const char *mw_priority_name(enum mw_priority priority);

#endif
