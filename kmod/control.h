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

#include "filter.h"
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
 * struct mw_settings - what a session can set
 * @config: the configuration
 * @filters: the filters
 * @tgid: the process that made these settings; 0, the parameters of the module
 * @comm: its name
 */
struct mw_settings {
	struct mw_config config;
	struct mw_filters filters;
	u32 tgid;
	char comm[TASK_COMM_LEN];
};

/**
 * struct mw_session - an open file
 * @link: entry in mw_session_list
 * @tgid: process that opened it, in the initial pid namespace
 * @comm: name of that process when it opened the file
 * @started: whether the session is started; started sessions keep the module armed
 * @own: the settings that the session has made; NULL, it uses the defaults
 * @delay_ns: when an operation fails with -EAGAIN: how long its rate limit forbids it
 */
struct mw_session {
	struct list_head link;
	u32 tgid;
	char comm[TASK_COMM_LEN];
	bool started;
	struct mw_settings *own;
	u64 delay_ns;
};

/*
 * Changes @settings as @arg says. Returns 0, or a negative errno and has changed
 * nothing.
 */
typedef int (*mw_control_edit_fn)(struct mw_settings *settings, const void *arg);

/*
 * Guarded by mw_control_lock. While no session is started, the settings in force
 * are the defaults.
 */
extern struct mw_settings mw_settings_in_force;
extern struct mw_settings mw_settings_default;
extern struct list_head mw_session_list;
extern unsigned int mw_sessions;
extern unsigned int mw_sessions_started;

void mw_control_init(void);
void mw_control_review(void);
int mw_control_start(struct mw_session *session);
int mw_control_stop(struct mw_session *session);
int mw_control_dump(struct mw_session *session, struct memwatch_dump *dump);
int mw_control_edit(struct mw_session *session, u32 flags, mw_control_edit_fn edit,
		    const void *arg);
const struct mw_settings *mw_control_settings(const struct mw_session *session, u32 flags);

#endif /* _MW_CONTROL_H */
