/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Copies of the profile that the library makes itself, at moments that nobody else would hit.
 */
#ifndef _MW_HEAP_SNAPSHOT_H
#define _MW_HEAP_SNAPSHOT_H

/*
 * Takes a snapshot if one is due. Called in each slow path, by a thread that is marked as busy;
 * only this thread waits for the copy.
 */
void mw_snapshot_follow(void);

/* The program ends. The thread is marked as busy. */
void mw_snapshot_exit(void);

/* For a new profile. */
void mw_snapshot_clear(void);

#endif
