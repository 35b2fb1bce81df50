// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Users and the queues of their waiting processes, see user.h.
 */
#include <linux/cred.h>
#include <linux/hash.h>
#include <linux/user_namespace.h>

#include "fail.h"
#include "lock.h"
#include "objcache.h"
#include "user.h"

#define USER_BITS 8

/* Free objects to keep. The ids of a user namespace count as one user, so users are few. */
#define USER_LOW 64

/* Number of users, and of processes of one user, that are looked at under one hold of the lock. */
#define USER_CHOICE 64

/* Guarded by mw_lock. */
static struct mw_user *users[1 << USER_BITS];
static struct mw_objcache user_cache;
static LIST_HEAD(queued_users);
u32 mw_users_active;
u32 mw_users_queued;

/* Stands in for a new user while the object cache is empty. */
static struct mw_user unknown_user = {
	.link = LIST_HEAD_INIT(unknown_user.link),
	.queue = LIST_HEAD_INIT(unknown_user.queue),
};

int mw_user_arm(void)
{
	int err = mw_fail(MW_FAIL_CACHE_USER)
			  ? -ENOMEM
			  : mw_objcache_init(&user_cache, "memwatch_user", sizeof(struct mw_user),
					     offsetof(struct mw_user, next), USER_LOW);

	if (err)
		return err;
	err = mw_objcache_refill(&user_cache, 2 * USER_LOW);
	if (err)
		mw_objcache_uninit(&user_cache);
	return err;
}

/* Called after the last process was removed. */
void mw_user_disarm(void)
{
	mw_objcache_uninit(&user_cache);
}

bool mw_user_wants_refill(void)
{
	return mw_objcache_wants_refill(&user_cache);
}

void mw_user_refill(void)
{
	mw_objcache_refill(&user_cache, 2 * USER_LOW);
}

size_t mw_user_memory(void)
{
	return sizeof(users) + user_cache.nr * sizeof(struct mw_user);
}

/* --------------------------------------------------------------- users */

static u32 user_read_uid(struct task_struct *leader)
{
	const struct cred *cred = __task_cred(leader);
	const struct user_namespace *ns = cred->user_ns;
	kuid_t uid = cred->uid;

	for (; ns != &init_user_ns; ns = ns->parent)
		uid = ns->owner;
	return __kuid_val(uid);
}

static struct mw_user *user_create(u32 uid, struct mw_user **bucket)
{
	struct mw_user *u = mw_objcache_get(&user_cache);

	if (!u)
		return &unknown_user;
	*u = (struct mw_user){ .uid = uid, .next = *bucket };
	INIT_LIST_HEAD(&u->link);
	INIT_LIST_HEAD(&u->queue);
	*bucket = u;
	return u;
}

static void user_join_uid(struct mw_process *p, u32 uid)
{
	struct mw_user **bucket = &users[hash_32(uid, USER_BITS)];
	struct mw_user *u = *bucket;

	while (u && u->uid != uid)
		u = u->next;
	p->user = u ?: user_create(uid, bucket);
	p->user->processes++;
}

void mw_user_join(struct mw_process *p, struct task_struct *leader)
{
	lockdep_assert_held(&mw_lock);
	INIT_LIST_HEAD(&p->queue);
	user_join_uid(p, user_read_uid(leader));
}

/* The caller has made sure that the process has no RMID and is not queued. */
void mw_user_leave(struct mw_process *p)
{
	struct mw_user *u = p->user, **link;

	lockdep_assert_held(&mw_lock);
	p->user = NULL;
	if (--u->processes || u == &unknown_user)
		return;
	link = &users[hash_32(u->uid, USER_BITS)];
	while (*link != u)
		link = &(*link)->next;
	*link = u->next;
	mw_objcache_put(&user_cache, u);
}

/* Moves the process to another user if its user id has changed. */
void mw_user_update(struct mw_process *p, struct task_struct *leader)
{
	bool holds = p->state == MW_PROCESS_MEASURED, queued = mw_user_is_queued(p);
	u32 uid = user_read_uid(leader);

	if (p->user->uid == uid && p->user != &unknown_user)
		return;
	if (holds)
		mw_user_hold(p, false);
	mw_user_unqueue(p);
	mw_user_leave(p);
	user_join_uid(p, uid);
	if (holds)
		mw_user_hold(p, true);
	if (queued)
		mw_user_queue(p);
}

static bool user_is_active(const struct mw_user *u)
{
	return u->held || u->queued;
}

void mw_user_hold(struct mw_process *p, bool on)
{
	struct mw_user *u = p->user;

	lockdep_assert_held(&mw_lock);
	mw_users_active -= user_is_active(u);
	if (on)
		u->held++;
	else
		u->held--;
	mw_users_active += user_is_active(u);
	/* Of users that hold equally many RMIDs, this one is now served last. */
	if (on && !list_empty(&u->link))
		list_move_tail(&u->link, &queued_users);
}

/* -------------------------------------------------------------- queues */

void mw_user_queue(struct mw_process *p)
{
	struct mw_user *u = p->user;

	lockdep_assert_held(&mw_lock);
	mw_users_active += !user_is_active(u);
	if (!u->queued++)
		list_add_tail(&u->link, &queued_users);
	mw_users_queued++;
	list_add_tail(&p->queue, &u->queue);
}

/* Does nothing if the process is not queued. */
void mw_user_unqueue(struct mw_process *p)
{
	struct mw_user *u = p->user;

	lockdep_assert_held(&mw_lock);
	if (!mw_user_is_queued(p))
		return;
	list_del_init(&p->queue);
	mw_users_queued--;
	if (!--u->queued)
		list_del_init(&u->link);
	mw_users_active -= !user_is_active(u);
}

/*
 * The process of @u that gets the next RMID: the first of those that run right now,
 * because the time of an RMID is wasted on a process that does not run; else the
 * first in the queue. Processes that no longer run leave the queue. Sets @eager,
 * unless it is NULL, to the number of processes for which an RMID may be taken from
 * a process that runs.
 */
static struct mw_process *user_look(struct mw_user *u, u32 *eager)
{
	struct mw_process *p, *next, *first = NULL, *fresh = NULL;
	u32 seen = 0, count = 0;

	list_for_each_entry_safe (p, next, &u->queue, queue) {
		/* Another CPU may have stored a later time than this one has read: not long ago. */
		long idle = jiffies - READ_ONCE(p->last_run);

		if (seen++ == USER_CHOICE || (fresh && !eager))
			break;
		if (idle > MW_RUNNING_JIFFIES) {
			mw_user_unqueue(p);
			continue;
		}
		count += idle <= MW_FRESH_JIFFIES;
		if (!first)
			first = p;
		if (!fresh && idle <= 2 * MW_FRESH_JIFFIES)
			fresh = p;
	}
	if (eager)
		*eager = count;
	return fresh ?: first;
}

/**
 * mw_user_choose - the waiting process that gets the next RMID
 * @most: only for a user that holds fewer RMIDs than this
 *
 * Return: a process of the user that holds the fewest RMIDs; NULL if there is none
 */
struct mw_process *mw_user_choose(u32 most)
{
	struct mw_user *u, *next, *best = NULL;
	struct mw_process *p, *chosen = NULL;
	u32 seen = 0;

	lockdep_assert_held(&mw_lock);
	list_for_each_entry_safe (u, next, &queued_users, link) {
		if (seen++ == USER_CHOICE)
			break;
		if (u->held >= most || (best && u->held >= best->held))
			continue;
		p = user_look(u, NULL);
		if (!p)
			continue;
		best = u;
		chosen = p;
	}
	return chosen;
}

/* ----------------------------------------------------- taking RMIDs away */

/* Count once in each pass how many RMIDs @u wants. */
static void user_begin_pass(struct mw_user *u, u32 pass)
{
	if (u->pass == pass)
		return;
	u->pass = pass;
	u->promised = 0;
	user_look(u, &u->wanted);
}

static u32 user_count(const struct mw_user *u)
{
	return u->held + u->promised;
}

/* The user with the fewest RMIDs of those that want more in @pass; NULL if none does. */
struct mw_user *mw_user_poorest(u32 pass)
{
	struct mw_user *u, *next, *best = NULL;
	u32 seen = 0;

	lockdep_assert_held(&mw_lock);
	list_for_each_entry_safe (u, next, &queued_users, link) {
		if (seen++ == USER_CHOICE)
			break;
		user_begin_pass(u, pass);
		if (u->wanted && (!best || user_count(u) < user_count(best)))
			best = u;
	}
	return best;
}

/**
 * mw_user_taker - for whom may an RMID be taken from a process of a user?
 * @from: the user
 * @pass: number of the pass
 * @asleep: whether that process sleeps
 *
 * An RMID may be taken for a user that has fewer RMIDs than @from, counting the
 * promised ones, or for another process of @from. If the process sleeps, it may be
 * taken for any user.
 *
 * Return: the user, NULL if nobody may take it
 */
struct mw_user *mw_user_taker(struct mw_user *from, u32 pass, bool asleep)
{
	struct mw_user *u = mw_user_poorest(pass);

	if (!u)
		return NULL;
	user_begin_pass(from, pass);
	if (asleep || user_count(u) < user_count(from))
		return u;
	return from->wanted ? from : NULL;
}

/*
 * Counts one more RMID as promised to @u. Does nothing and returns false if @u has
 * @most RMIDs already, counting the promised ones.
 */
bool mw_user_promise(struct mw_user *u, u32 most)
{
	if (user_count(u) >= most)
		return false;
	u->promised++;
	u->wanted--;
	return true;
}
