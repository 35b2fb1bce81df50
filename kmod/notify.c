// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Notices, see notify.h. Those who notify may hold the lock of a run queue, so they only
 * put the notice into the backlog of its kind. An irq_work calls the worker. It sends what
 * the rate allows, and itself again when the rate allows the next one.
 */
#include <linux/jiffies.h>
#include <linux/memwatch.h>
#include <linux/mutex.h>
#include <linux/printk.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/workqueue.h>

#include "backlog.h"
#include "clock.h"
#include "compat/irq_work.h"
#include "fail.h"
#include "lock.h"
#include "netlink.h"
#include "notify.h"
#include "trace.h"

#define NR_KINDS (MEMWATCH_NOTICE_CPU_ONLINE + 1)

static void notify_start_worker(struct irq_work *work);
static void notify_send_due(struct work_struct *unused);

/* Guards the backlogs. The innermost lock of all: nothing is called while it is held. */
static DEFINE_RAW_SPINLOCK(backlogs_lock);
static struct mw_backlog backlogs[NR_KINDS];

static struct irq_work start_work = IRQ_WORK_INIT_HARD(notify_start_worker);
static DECLARE_WORK(send_work, notify_send_due);
static DECLARE_DELAYED_WORK(later_work, notify_send_due);

/* Held by the two works, of which each may run while the other one does. */
static DEFINE_MUTEX(send_mutex);

/* ------------------------------------------------------------- to notify */

/* Interrupts are off. */
static void notify_put(u32 kind, u64 now, u64 count, u64 value, const char *text)
{
	struct mw_notice notice = {
		.time_ns = now,
		.kind = kind,
		.cpu = smp_processor_id(),
		.count = count,
		.value = value,
	};
	bool was_empty;

	if (text)
		strscpy(notice.text, text, sizeof(notice.text));
	raw_spin_lock(&backlogs_lock);
	was_empty = mw_backlog_put(&backlogs[kind], &notice);
	raw_spin_unlock(&backlogs_lock);
	/* If something waited before, the worker is on its way. */
	if (was_empty)
		irq_work_queue(&start_work);
}

void mw_notify(u32 kind, u64 count, u64 value, const char *text)
{
	struct memwatch_record_notice rec = {
		.h = { .type = MEMWATCH_RECORD_NOTICE, .size = sizeof(rec) },
		.kind = kind,
		.count = count,
		.value = value,
	};
	unsigned long flags;

	/* The relay relies on it that a tick does not come between its steps. */
	local_irq_save(flags);
	rec.h.time_ns = mw_now();
	rec.h.cpu = smp_processor_id();
	trace_memwatch_notice(&rec);
	notify_put(kind, rec.h.time_ns, count, value, text);
	local_irq_restore(flags);
}

void mw_notify_readers(u32 kind, u64 count, u64 value)
{
	unsigned long flags;

	local_irq_save(flags);
	notify_put(kind, mw_now(), count, value, NULL);
	local_irq_restore(flags);
}

/* ------------------------------------------------------------ the worker */

static void notify_start_worker(struct irq_work *work)
{
	schedule_work(&send_work);
}

static void notify_send(const struct mw_notice *notice)
{
	if (notice->text[0])
		pr_warn("%s\n", notice->text);
	mw_netlink_send(notice);
}

/* Takes a notice that may be sent now. */
static bool notify_take(u32 kind, struct mw_notice *notice)
{
	unsigned long flags;
	bool taken;

	raw_spin_lock_irqsave(&backlogs_lock, flags);
	taken = mw_backlog_take(&backlogs[kind], mw_now(), notice);
	raw_spin_unlock_irqrestore(&backlogs_lock, flags);
	return taken;
}

/* When the next notice may be sent; MW_BACKLOG_NEVER if none waits. */
static u64 notify_next_due(void)
{
	u64 due = MW_BACKLOG_NEVER;
	unsigned long flags;
	u32 kind;

	raw_spin_lock_irqsave(&backlogs_lock, flags);
	for (kind = 0; kind < NR_KINDS; kind++)
		due = min(due, mw_backlog_due(&backlogs[kind]));
	raw_spin_unlock_irqrestore(&backlogs_lock, flags);
	return due;
}

static void notify_send_due(struct work_struct *unused)
{
	struct mw_notice notice;
	u64 due, now;
	u32 kind;

	mutex_lock(&send_mutex);
	for (kind = 0; kind < NR_KINDS; kind++)
		while (notify_take(kind, &notice))
			notify_send(&notice);
	mutex_unlock(&send_mutex);
	due = notify_next_due();
	now = mw_now();
	if (due != MW_BACKLOG_NEVER)
		schedule_delayed_work(&later_work, due > now ? nsecs_to_jiffies(due - now) + 1 : 0);
}

/* --------------------------------------------------- loading, unloading */

/* For tests: @nr notices, as fast as they come, in the context that permits least. */
static void notify_storm(u32 nr)
{
	unsigned long flags;
	u32 i;

	for (i = 1; i <= nr; i++) {
		raw_spin_lock_irqsave(&mw_lock, flags);
		mw_notify(MEMWATCH_NOTICE_FOREIGN_WRITE, i, nr, NULL);
		raw_spin_unlock_irqrestore(&mw_lock, flags);
	}
}

int __init mw_notify_init(void)
{
	mw_fail_on_storm(notify_storm);
	return mw_netlink_init();
}

void mw_notify_uninit(void)
{
	struct mw_notice notice;
	u32 kind;

	mw_fail_on_storm(NULL);
	irq_work_sync(&start_work);
	cancel_work_sync(&send_work);
	cancel_delayed_work_sync(&later_work);
	for (kind = 0; kind < NR_KINDS; kind++)
		if (mw_backlog_take_all(&backlogs[kind], &notice))
			notify_send(&notice);
	mw_netlink_uninit();
}
