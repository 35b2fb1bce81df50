// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Others who use RDT. Four times a second, during a session that uses it: is
 * resctrl mounted by now, has a CPU come that knows fewer RMIDs than we have
 * given out? Then RDT is over for this session, and the rest goes on.
 */
#include <linux/cpu.h>
#include <linux/fs.h>
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/workqueue.h>

#include "clock.h"
#include "conflict.h"
#include "control.h"
#include "rdt-read.h"
#include "rdt.h"
#include "trace.h"

static void watch(struct work_struct *work);

static DECLARE_DELAYED_WORK(watch_work, watch);
static bool small_cpu;

static unsigned long interval(void)
{
	return nsecs_to_jiffies(MW_CONFLICT_WATCH_NS);
}

/*
 * Is resctrl mounted, in whatever mount name space? It would overwrite our RMID
 * at the next switch, or trust a cache that our write made wrong.
 */
bool mw_conflict_resctrl(void)
{
	struct file_system_type *type = get_fs_type("resctrl");
	bool mounted;

	if (!type)
		return false;
	mounted = !hlist_empty(&type->fs_supers);
	module_put(type->owner);
	return mounted;
}

/* From a hotplug callback: that CPU runs with RMID 0 until RDT has ended. */
void mw_conflict_small_cpu(void)
{
	WRITE_ONCE(small_cpu, true);
}

static void announce(u32 kind)
{
	struct memwatch_record_notice rec = {
		.h = { .time_ns = mw_now(),
		       .type = MEMWATCH_RECORD_NOTICE,
		       .size = sizeof(rec),
		       .cpu = raw_smp_processor_id() },
		.kind = kind,
		.count = 1,
	};

	trace_memwatch_notice(&rec);
}

/* The control mutex may be held by who waits for us to end: try again later. */
static bool end(u32 kind, const char *reason)
{
	if (!mutex_trylock(&mw_control_lock))
		return false;
	mw_rdt_end(reason);
	mw_tick_admit_all();
	mutex_unlock(&mw_control_lock);
	announce(kind);
	return true;
}

/* CPUs without a tick still have to tell what ran on them. */
static void ask_excluded(void)
{
	unsigned int id;

	cpus_read_lock();
	for_each_online_cpu (id)
		if (READ_ONCE(per_cpu(mw_cpu, id).state) == MW_TICK_EXCLUDED)
			smp_call_function_single(id, mw_rdt_read_excluded, NULL, 1);
	cpus_read_unlock();
}

static void watch(struct work_struct *work)
{
	bool ended = false;

	if (READ_ONCE(small_cpu))
		ended = end(MEMWATCH_NOTICE_SMALL_CPU,
			    "a CPU has fewer RMIDs; load the module anew to use those");
	else if (!mw_rdt_is_forced() && mw_conflict_resctrl())
		ended = end(MEMWATCH_NOTICE_RESCTRL, "resctrl was mounted and uses RDT");
	else
		ask_excluded();
	if (!ended)
		schedule_delayed_work(&watch_work, interval());
}

void mw_conflict_arm(void)
{
	if (mw_rdt.format.events)
		schedule_delayed_work(&watch_work, interval());
}

void mw_conflict_disarm(void)
{
	cancel_delayed_work_sync(&watch_work);
	/* One that still starts would have to be seen by the next session. */
	WRITE_ONCE(small_cpu, false);
}
