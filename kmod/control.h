/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Starting, stopping and configuring the module as a whole.
 */
#ifndef _MW_CONTROL_H
#define _MW_CONTROL_H

#include <linux/list.h>
#include <linux/sched.h>

#include "lock.h"
#include "tick.h"

/**
 * struct mw_config - the configuration, without the filters
 * @tick: period, idle stop and cpumask
 * @limbo_ns: how long a freed RMID stays in limbo
 * @policy: &enum memwatch_policy
 */
struct mw_config {
	struct mw_tick_config tick;
	u64 limbo_ns;
	u32 policy;
};

/**
 * struct mw_session - an open file
 * @link: entry in mw_session_list
 * @tgid: process that opened it, in the initial pid namespace
 * @comm: name of that process when it opened the file
 * @started: whether the session is started; started sessions keep the module armed
 */
struct mw_session {
	struct list_head link;
	u32 tgid;
	char comm[TASK_COMM_LEN];
	bool started;
};

/* Guarded by mw_control_lock. */
extern struct mw_config mw_config;
extern struct list_head mw_session_list;
extern unsigned int mw_sessions;
extern unsigned int mw_sessions_started;

int mw_control_start(struct mw_session *session);
int mw_control_stop(struct mw_session *session);
void mw_control_apply(void);

#endif /* _MW_CONTROL_H */
