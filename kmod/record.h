/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Records about RMIDs: what they tell about the owner of an RMID, and how they
 * are sent. The caller of each function holds mw_lock.
 */
#ifndef _MW_RECORD_H
#define _MW_RECORD_H

#include <linux/memwatch.h>

#include "process.h"

/**
 * enum mw_late - may a CPU run the process of an RMID without having programmed it?
 * @MW_LATE_NOT: no
 * @MW_LATE_NEW: the process got the RMID while it may have run
 * @MW_LATE_NOTED: refresh.c deals with it
 */
enum mw_late {
	MW_LATE_NOT,
	MW_LATE_NEW,
	MW_LATE_NOTED,
};

/**
 * struct mw_owner - the process that owns an RMID, as records describe it
 * @process: the process, NULL once it is gone
 * @generation: generation of the RMID
 * @tgid: thread group id in the initial pid namespace
 * @parent_tgid: thread group id of the parent when the RMID was given
 * @uid: real user id in the initial user namespace
 * @given: jiffies when the RMID was given; long ago if the scan gave it
 * @late: &enum mw_late
 * @start_time_ns: CLOCK_BOOTTIME start of the process
 * @alloc_time_ns: when the RMID was given
 * @unmeasured_ns: for how long the process had run without an RMID
 * @cgroup_id: id of its cgroup in the default hierarchy
 * @comm: name of the leader
 *
 * There is one for each RMID, not for each process: RMIDs are few and processes
 * are many, and when the last thread has gone no task is left to ask. A change
 * of the cgroup or the user id is noticed at execve(), at a change of the name, at each
 * dump, and once a second if there are filters.
 */
struct mw_owner {
	struct mw_process *process;
	u32 generation;
	u32 tgid;
	u32 parent_tgid;
	u32 uid;
	unsigned long given;
	enum mw_late late;
	u64 start_time_ns;
	u64 alloc_time_ns;
	u64 unmeasured_ns;
	u64 cgroup_id;
	char comm[MEMWATCH_COMM_LEN];
};

/* Indexed by RMID. */
extern struct mw_owner *mw_owners;

u64 mw_stamp(void);

void mw_record_set_ids(struct mw_owner *o, struct task_struct *leader);
void mw_record_set_name(struct mw_owner *o, struct task_struct *leader, const char *comm);
void mw_record_keep_name(const struct mw_process *p, const char *comm);
const char *mw_record_kept_name(const struct mw_process *p);

void mw_record_alloc(u32 rmid, u64 now, u32 reason);
void mw_record_existing(u32 rmid, u64 now);
void mw_record_exec(u32 rmid, u64 now, u32 reason);
void mw_record_free(u32 rmid, u64 now, u32 reason);
void mw_record_exhausted(u64 count, u32 waiting);
void mw_record_dump(struct memwatch_record_dump *rec, u32 type);

#endif /* _MW_RECORD_H */
