/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A descriptor for the event loop of an application: it becomes readable when a ring has
 * records or when a time has come.
 */
#ifndef MW_LOADER_WAKEUP_H
#define MW_LOADER_WAKEUP_H

#include <stdint.h>

/**
 * struct mw_wakeup - the descriptor; nothing is open before mw_wakeup_open()
 * @opened: both descriptors are open
 * @epoll: what the application waits for
 * @timer: in @epoll
 */
struct mw_wakeup {
	int opened;
	int epoll;
	int timer;
};

/*
 * Opens the descriptor if it is not open. @rings is the descriptor of the rings, which stays the
 * caller's. The time has come until mw_wakeup_arm() is called. Returns the descriptor or a
 * negative errno.
 */
int mw_wakeup_open(struct mw_wakeup *wakeup, int rings);
void mw_wakeup_close(struct mw_wakeup *wakeup);

/* Sets the time, on CLOCK_MONOTONIC; does nothing if the descriptor is not open. */
void mw_wakeup_arm(struct mw_wakeup *wakeup, uint64_t time_ns);

#endif /* MW_LOADER_WAKEUP_H */
