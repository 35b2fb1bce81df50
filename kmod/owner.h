/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Which process owns which RMID, and which processes wait for one.
 */
#ifndef _MW_OWNER_H
#define _MW_OWNER_H

#include <linux/memwatch.h>

#include "process.h"
#include "record.h"
#include "rmid.h"

/* A process that has not run for this long sleeps; policy "fair" lets any user take its RMID. */
#define MW_ASLEEP_JIFFIES (10 * HZ)

/* Promotion pauses after this many records, because they are sent with interrupts off. */
#define MW_PROMOTE_RECORDS 16

/**
 * struct mw_owner_stats - counters for /proc/memwatch/status
 * @state: processes by &enum mw_process_state
 * @promotions: waiting processes that were given an RMID
 * @revocations: RMIDs that the policy took away
 * @exhausted: processes that found no free RMID when they were forked
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
 * @nr: number of entries in @owner
 * @reason: &enum memwatch_reason
 * @owner: generation << 32 | RMID of each
 */
struct mw_retire {
	u32 nr;
	u32 reason;
	u64 owner[MW_RETIRE_BATCH];
};

/* Guarded by mw_lock. */
extern struct mw_rmid_pool mw_pool;
extern struct mw_owner_stats mw_owner_stats;
extern struct list_head mw_waiters;
extern u32 mw_owner_policy; /* &enum memwatch_policy */

static inline u32 mw_owner_rmid(u64 owner)
{
	return (u32)owner;
}

static inline u32 mw_owner_generation(u64 owner)
{
	return owner >> 32;
}

/*
 * Has @rmid, which is not 0, an owner? Without mw_lock; the RMID may change hands at this
 * moment.
 */
static inline bool mw_owner_exists(u32 rmid)
{
	return READ_ONCE(mw_pool.entry[rmid].next) == MW_RMID_IN_USE;
}

int mw_owner_init(u32 nr_rmids, u32 first_rmid, u64 limbo_ns);
void mw_owner_uninit(void);
size_t mw_owner_memory(void);

void mw_owner_on_alloc(u32 (*report)(u32 rmid, u32 generation, u64 now));

/* The life of a process. Caller holds mw_lock. */
void mw_owner_birth(struct mw_process *p, struct task_struct *leader, u32 reason);
void mw_owner_death(struct mw_process *p);
bool mw_owner_renew(struct mw_process *p, struct task_struct *leader, const char *comm, u32 reason);
void mw_owner_exclude(struct mw_process *p);
struct mw_process *mw_owner_next_excluded(void);

/* From the switch hook and the tick, without mw_lock. */
void mw_owner_note_run(struct mw_process *p);

/* For the policy. Caller holds mw_lock. */
bool mw_owner_has_waiters(void);
bool mw_owner_can_promote(void);
u32 mw_owner_free(void);
u32 mw_owner_fair_limit(u32 free);
void mw_owner_kick_policy(void);
u32 mw_owner_promote(void);
void mw_owner_retire(struct mw_process *p, struct mw_retire *batch);
void mw_owner_retired(const struct mw_retire *batch);

void mw_owner_stop(void);
void mw_owner_dump(struct memwatch_dump *dump);

#endif /* _MW_OWNER_H */
