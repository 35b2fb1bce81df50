/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Tracking of processes and threads: what the hooks on fork, execve, rename and
 * the last context switch do, and the scan for what existed before them.
 */
#ifndef _MW_TRACK_H
#define _MW_TRACK_H

#include <linux/sched.h>

#include "owner.h"

int mw_track_arm(void);
void mw_track_disarm(void);
void mw_track_enable(bool on);
int mw_track_scan(void);
bool mw_track_review(u32 bucket, struct mw_retire *batch);
bool mw_track_expel(struct mw_retire *batch);
void mw_track_refill(void);
size_t mw_track_memory(void);
u64 mw_track_missed(void);

/* Called by hooks. */
void mw_track_fork(struct task_struct *child);
void mw_track_exec(struct task_struct *task);
void mw_track_rename(struct task_struct *task, const char *comm);
void mw_track_adopt(struct task_struct *task);
void mw_track_exit(const struct task_struct *task);

#endif /* _MW_TRACK_H */
