/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Users, among whom the policy "fair" divides the RMIDs: how many each of them
 * holds, and which of its waiting processes run. A process in a user namespace
 * counts for the user who made the outermost of its namespaces, because inside
 * one a user may have many ids.
 *
 * The caller of each function holds mw_lock, unless a comment says otherwise.
 */
#ifndef _MW_USER_H
#define _MW_USER_H

#include <linux/jiffies.h>
#include <linux/sched.h>

#include "process.h"

/* A process runs if it has run within this time. */
#define MW_RUNNING_JIFFIES HZ
/*
 * It runs right now if it has run within this time. Twice as much once an RMID has
 * been taken away for it, because that takes a grace period of RCU: a few milliseconds,
 * on a busy machine tens of them. If it takes longer, the process counts as paused, and
 * the first one in the queue gets the RMID.
 */
#define MW_FRESH_JIFFIES ((long)msecs_to_jiffies(10))

/**
 * struct mw_user - a user
 * @next: next user in the same bucket; links free objects in the object cache
 * @link: entry in the list of users for which processes are queued
 * @queue: its waiting processes that ran lately, in the order in which they came
 * @uid: user id in the initial user namespace
 * @processes: processes that count for it
 * @held: RMIDs that its processes hold
 * @queued: processes in @queue
 * @wanted: RMIDs that the pass @pass of the policy has yet to find for this user
 * @promised: RMIDs that this pass has found for it
 * @pass: number of the last pass that looked at this user
 */
struct mw_user {
	struct mw_user *next;
	struct list_head link;
	struct list_head queue;
	u32 uid;
	u32 processes;
	u32 held;
	u32 queued;
	u32 wanted;
	u32 promised;
	u32 pass;
};

/* A user that has RMIDs or queued processes is active. */
extern u32 mw_users_active;
/* Processes in all queues. */
extern u32 mw_users_queued;

int mw_user_arm(void);
void mw_user_disarm(void);
bool mw_user_wants_refill(void);
size_t mw_user_memory(void);

/* May sleep; the caller does not hold mw_lock. */
void mw_user_refill(void);

/* @leader: of the process; the caller is in an RCU read-side section. */
void mw_user_join(struct mw_process *p, struct task_struct *leader);
void mw_user_leave(struct mw_process *p);
void mw_user_update(struct mw_process *p, struct task_struct *leader);

/* The process got or lost an RMID. */
void mw_user_hold(struct mw_process *p, bool on);

void mw_user_queue(struct mw_process *p);
void mw_user_unqueue(struct mw_process *p);

/* Who gets the next RMID, and who may take one from whom. */
struct mw_process *mw_user_choose(u32 most);
struct mw_user *mw_user_poorest(u32 pass);
struct mw_user *mw_user_taker(struct mw_user *from, u32 pass, bool asleep);
bool mw_user_promise(struct mw_user *u, u32 most);

static inline bool mw_user_is_queued(const struct mw_process *p)
{
	return !list_empty(&p->queue);
}

#endif /* _MW_USER_H */
