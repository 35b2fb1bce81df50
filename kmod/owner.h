/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Who owns which RMID, who waits for one, and the records that say so.
 */
#ifndef _MW_OWNER_H
#define _MW_OWNER_H

#include <linux/memwatch.h>

#include "track.h"
#include "rmid.h"

/**
 * struct mw_owner - the process that owns an RMID, as records tell it
 * @process: the process, NULL once it is gone
 * @generation: of the RMID
 * @tgid: thread group id in the initial pid namespace
 * @parent_tgid: that of the parent when the RMID was given
 * @uid: real user id in the initial user namespace
 * @last_run: jiffies when a CPU was last charged to it, written by the hook
 *	without a lock; kept only while mw_last_run_key is on
 * @start_time_ns: CLOCK_BOOTTIME start of the process
 * @alloc_time_ns: when the RMID was given
 * @cgroup_id: in the default hierarchy
 * @comm: name of the leader
 *
 * Kept per RMID, not per process: there are few RMIDs and many processes, and
 * when the last thread has gone no task is left to ask. The kernel's own
 * changes of cgroup and uid are picked up at execve() and at each dump.
 */
struct mw_owner {
	struct mw_process *process;
	u32 generation;
	u32 tgid;
	u32 parent_tgid;
	u32 uid;
	u32 last_run;
	u64 start_time_ns;
	u64 alloc_time_ns;
	u64 cgroup_id;
	char comm[MEMWATCH_COMM_LEN];
};

/**
 * struct mw_owner_stats - numbers for status
 * @state: processes by &enum mw_process_state
 * @promotions: waiting processes that were given an RMID
 * @revocations: RMIDs that the policy took away
 * @exhausted: processes that found none at birth
 */
struct mw_owner_stats {
	u32 state[MW_PROCESS_STATES];
	u64 promotions;
	u64 revocations;
	u64 exhausted;
};

#define MW_RETIRE_BATCH 64

/**
 * struct mw_retire - RMIDs that were taken away but may still be in use
 * @nr: how many
 * @reason: &enum memwatch_reason
 * @owner: generation << 32 | RMID of each
 */
struct mw_retire {
	u32 nr;
	u32 reason;
	u64 owner[MW_RETIRE_BATCH];
};

/* All under mw_lock. mw_owners is indexed by RMID. */
extern struct mw_rmid_pool mw_pool;
extern struct mw_owner *mw_owners;
extern struct mw_owner_stats mw_owner_stats;
extern struct list_head mw_waiters;

static inline u32 mw_owner_rmid(u64 owner)
{
	return (u32)owner;
}

static inline u32 mw_owner_generation(u64 owner)
{
	return owner >> 32;
}

int mw_owner_init(u32 nr_rmids, u32 first_rmid, u64 limbo_ns);
void mw_owner_dirt(u32 rmid, s64 bytes);
void mw_owner_forget_dirt(void);
void mw_owner_uninit(void);
size_t mw_owner_memory(void);
u64 mw_stamp(void);

/* The life of a process. Caller holds mw_lock. */
void mw_owner_birth(struct mw_process *p, struct task_struct *leader, u32 reason);
void mw_owner_death(struct mw_process *p);
bool mw_owner_renew(struct mw_process *p, struct task_struct *leader, const char *comm, u32 reason);

/* The policy's part. Caller holds mw_lock. */
u32 mw_owner_promote(u32 most);
void mw_owner_retire(struct mw_process *p, struct mw_retire *batch);
void mw_owner_retired(const struct mw_retire *batch);

void mw_owner_stop(void);
void mw_owner_dump(struct memwatch_dump *dump);

#endif /* _MW_OWNER_H */
