/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Epochs: at the end of each, it is found out which watched objects were touched in it.
 */
#ifndef _MW_HEAP_EPOCH_H
#define _MW_HEAP_EPOCH_H

/*
 * Ends the epoch if it is time. Called in each slow path, by a thread that is marked as busy; only
 * this thread waits for it.
 */
void mw_epoch_follow(void);

/* The program ends. The thread is marked as busy. */
void mw_epoch_exit(void);

/* For a new profile. */
void mw_epoch_clear(void);

#endif
