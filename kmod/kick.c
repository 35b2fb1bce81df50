// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Kicks, see kick.h.
 */
#include "compat/irq_work.h"
#include "kick.h"
#include "lock.h"

static void kick_run_handler(struct irq_work *work);

static struct irq_work kick_work = IRQ_WORK_INIT_HARD(kick_run_handler);
static void (*kick_handler)(u32 kicks);

/* Guarded by mw_lock. */
static u32 enabled; /* the kicks that are passed on; 0 while no session runs */
static u32 raised;  /* raised since the handler was called */
static u32 pending; /* raised with mw_kick_raise_once(), and not yet dealt with */

void mw_kick_init(void (*handler)(u32 kicks))
{
	kick_handler = handler;
}

/* Pass on @kicks from now on, and forget what was raised before. */
void mw_kick_arm(u32 kicks)
{
	lockdep_assert_held(&mw_lock);
	raised = 0;
	pending = 0;
	WRITE_ONCE(enabled, kicks);
}

/* Change the set of kicks that are passed on. @kicks is not 0. */
void mw_kick_enable(u32 kicks)
{
	lockdep_assert_held(&mw_lock);
	WRITE_ONCE(enabled, kicks);
}

/*
 * Stop passing on kicks, and wait for the handler. Hooks may still raise kicks
 * afterwards, without effect.
 */
void mw_kick_disarm(void)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&mw_lock, flags);
	WRITE_ONCE(enabled, 0);
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	irq_work_sync(&kick_work);
}

bool mw_kick_is_enabled(u32 kick)
{
	return READ_ONCE(enabled) & kick;
}

void mw_kick_raise(u32 kick)
{
	lockdep_assert_held(&mw_lock);
	if (!(enabled & kick))
		return;
	raised |= kick;
	irq_work_queue(&kick_work);
}

/*
 * Raise a kick unless it is pending. It stays pending until the code that does
 * the work calls mw_kick_set_pending().
 */
void mw_kick_raise_once(u32 kick)
{
	lockdep_assert_held(&mw_lock);
	if (pending & kick || !(enabled & kick))
		return;
	pending |= kick;
	mw_kick_raise(kick);
}

void mw_kick_set_pending(u32 kick, bool on)
{
	lockdep_assert_held(&mw_lock);
	if (on)
		pending |= kick;
	else
		pending &= ~kick;
}

/*
 * A kick that was disabled after it was raised is still passed on: it may be
 * pending, and only the work itself ends that.
 */
static void kick_run_handler(struct irq_work *work)
{
	unsigned long flags;
	u32 kicks;

	raw_spin_lock_irqsave(&mw_lock, flags);
	kicks = enabled ? raised : 0;
	raised = 0;
	raw_spin_unlock_irqrestore(&mw_lock, flags);
	if (kicks)
		kick_handler(kicks);
}
