// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Records about RMIDs, see record.h. All of them are sent under mw_lock with an
 * increasing time stamp. So the records of one generation are in order: ALLOC,
 * EXISTING and EXEC, FREE.
 */
#include <linux/cgroup.h>
#include <linux/cred.h>
#include <linux/string.h>

#include "clock.h"
#include "lock.h"
#include "notify.h"
#include "record.h"
#include "trace.h"

struct mw_owner *mw_owners;

/*
 * The time of a record about an RMID. It strictly increases: two records about
 * one RMID may come from two CPUs, whose clocks differ slightly, and readers
 * sort them by time alone.
 */
u64 mw_stamp(void)
{
	static u64 last;
	u64 now = mw_now();

	lockdep_assert_held(&mw_lock);
	if ((s64)(now - last) <= 0)
		now = last + 1;
	last = now;
	return now;
}

/* ------------------------------------------------------------ identity */

static u64 record_read_cgroup(const struct task_struct *task)
{
#ifdef CONFIG_CGROUPS
	/* Not task_dfl_cgroup(): with lockdep it needs symbols that are not exported. */
	return cgroup_id(rcu_dereference_raw(task->cgroups)->dfl_cgrp);
#else
	return 0;
#endif
}

/* The ids that may change during the life of a process without an event. */
void mw_record_set_ids(struct mw_owner *o, struct task_struct *leader)
{
	o->cgroup_id = record_read_cgroup(leader);
	o->uid = __kuid_val(task_uid(leader));
}

/*
 * The name is @comm, or that of @leader if @comm is NULL. It changes only
 * together with a record, so that a dump agrees with the stream. The name is
 * read without task_lock(), which sleeps on PREEMPT_RT. A name that is just
 * being written may come out mixed; the record of the rename corrects it.
 */
void mw_record_set_name(struct mw_owner *o, struct task_struct *leader, const char *comm)
{
	strscpy_pad(o->comm, comm ? comm : leader->comm, MEMWATCH_COMM_LEN);
}

/*
 * The latest names of processes without an RMID. The tracepoint of a rename
 * precedes the change. When a process gets an RMID in between, its leader still
 * has the old name, and no further event will report the new one.
 */
static struct kept_name {
	const struct mw_process *process;
	char comm[MEMWATCH_COMM_LEN];
} kept_names[16];

static struct kept_name *record_find_name(const struct mw_process *p)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(kept_names); i++)
		if (kept_names[i].process == p)
			return &kept_names[i];
	return NULL;
}

/* Keep @comm as the name of @p; NULL: forget it, the leader has the right name. */
void mw_record_keep_name(const struct mw_process *p, const char *comm)
{
	static u32 next;
	struct kept_name *name = record_find_name(p);

	if (!comm) {
		if (name)
			name->process = NULL;
		return;
	}
	if (!name)
		name = &kept_names[next++ % ARRAY_SIZE(kept_names)];
	name->process = p;
	strscpy_pad(name->comm, comm, MEMWATCH_COMM_LEN);
}

const char *mw_record_kept_name(const struct mw_process *p)
{
	const struct kept_name *name = record_find_name(p);

	return name ? name->comm : NULL;
}

/* ------------------------------------------------------------- sending */

static void record_fill_rmid(struct memwatch_record_rmid *rec, u32 type, u32 rmid, u64 now,
			     u32 reason)
{
	const struct mw_owner *o = &mw_owners[rmid];

	*rec = (struct memwatch_record_rmid){
		.h = { .time_ns = now,
		       .type = type,
		       .size = sizeof(*rec),
		       .cpu = raw_smp_processor_id() },
		.rmid = rmid,
		.generation = o->generation,
		.tgid = o->tgid,
		.parent_tgid = o->parent_tgid,
		.start_time_ns = o->start_time_ns,
		.alloc_time_ns = o->alloc_time_ns,
		.cgroup_id = o->cgroup_id,
		.uid = o->uid,
		.reason = reason,
		.unmeasured_ns = o->unmeasured_ns,
	};
	memcpy(rec->comm, o->comm, MEMWATCH_COMM_LEN);
}

void mw_record_alloc(u32 rmid, u64 now, u32 reason)
{
	struct memwatch_record_rmid rec;

	if (!trace_memwatch_rmid_alloc_enabled())
		return;
	record_fill_rmid(&rec, MEMWATCH_RECORD_RMID_ALLOC, rmid, now, reason);
	trace_memwatch_rmid_alloc(&rec);
}

void mw_record_existing(u32 rmid, u64 now)
{
	struct memwatch_record_rmid rec;

	if (!trace_memwatch_rmid_existing_enabled())
		return;
	record_fill_rmid(&rec, MEMWATCH_RECORD_RMID_EXISTING, rmid, now, MEMWATCH_REASON_SCAN);
	trace_memwatch_rmid_existing(&rec);
}

void mw_record_exec(u32 rmid, u64 now, u32 reason)
{
	struct memwatch_record_rmid rec;

	if (!trace_memwatch_rmid_exec_enabled())
		return;
	record_fill_rmid(&rec, MEMWATCH_RECORD_RMID_EXEC, rmid, now, reason);
	trace_memwatch_rmid_exec(&rec);
}

void mw_record_free(u32 rmid, u64 now, u32 reason)
{
	struct memwatch_record_rmid rec;

	if (!trace_memwatch_rmid_free_enabled())
		return;
	record_fill_rmid(&rec, MEMWATCH_RECORD_RMID_FREE, rmid, now, reason);
	trace_memwatch_rmid_free(&rec);
}

/* A process was forked and has found no RMID, for the @count th time; @waiting wait now. */
void mw_record_exhausted(u64 count, u32 waiting)
{
	static u64 last;

	lockdep_assert_held(&mw_lock);
	if (mw_notify_is_due(&last, mw_now()))
		mw_notify(MEMWATCH_NOTICE_EXHAUSTED, count, waiting, NULL);
}

/* One of the two markers of a dump. The caller has set the counts. */
void mw_record_dump(struct memwatch_record_dump *rec, u32 type)
{
	rec->h = (struct memwatch_record_header){
		.time_ns = mw_stamp(),
		.type = type,
		.size = sizeof(*rec),
		.cpu = raw_smp_processor_id(),
	};
	if (type == MEMWATCH_RECORD_DUMP_BEGIN)
		trace_memwatch_dump_begin(rec);
	else
		trace_memwatch_dump_end(rec);
}
