// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The first session that starts arms the module, and the last one that stops
 * disarms it. While it is not armed, no probe and no timer is registered.
 */
#include <linux/errno.h>

#include "conflict.h"
#include "control.h"
#include "fail.h"
#include "hooks.h"
#include "owner.h"
#include "policy.h"
#include "rdt-session.h"
#include "track.h"

struct mw_config mw_config;
LIST_HEAD(mw_session_list);
unsigned int mw_sessions;
unsigned int mw_sessions_started;

/*
 * Undo control_arm() from mw_track_enable() on, as far as it came. Tracking
 * stops first, so that no RMID is given out any more; then the CPUs stop, so
 * that none runs with an RMID; then all RMIDs are freed. The probes are removed
 * last, because they keep the tables up to date until then.
 */
static void control_disarm(void)
{
	mw_track_enable(false);
	mw_conflict_disarm();
	mw_policy_disarm();
	mw_tick_disarm();
	mw_owner_stop();
	mw_hooks_unregister();
	mw_track_disarm();
	mw_rdt_session_disarm();
}

static int control_arm(void)
{
	int err;

	err = mw_rdt_session_arm();
	if (err)
		return err;
	err = mw_track_arm();
	if (err)
		goto err_rdt;
	err = mw_policy_arm();
	if (err)
		goto err_process;

	mw_track_enable(true);
	err = mw_hooks_register();
	if (!err)
		err = mw_fail(MW_FAIL_SCAN) ? -ENOMEM : mw_track_scan();
	/* Each CPU, when it starts, is charged to a process that the scan has found. */
	if (!err)
		err = mw_tick_arm();
	if (!err && mw_fail(MW_FAIL_STARTED))
		err = -ENOMEM;
	if (err)
		control_disarm();
	else
		mw_conflict_arm();
	return err;

err_process:
	mw_track_disarm();
err_rdt:
	mw_rdt_session_disarm();
	return err;
}

/* ------------------------------------------------------------- sessions */

int mw_control_start(struct mw_session *session)
{
	int err;

	lockdep_assert_held(&mw_control_lock);
	if (session->started)
		return -EALREADY;
	err = mw_sessions_started ? 0 : control_arm();
	if (err)
		return err;
	session->started = true;
	mw_sessions_started++;
	return 0;
}

int mw_control_stop(struct mw_session *session)
{
	lockdep_assert_held(&mw_control_lock);
	if (!session->started)
		return -EALREADY;
	session->started = false;
	if (!--mw_sessions_started)
		control_disarm();
	return 0;
}

/* Apply mw_config after it was changed. */
void mw_control_apply(void)
{
	lockdep_assert_held(&mw_control_lock);
	mw_tick_configure(&mw_config.tick);
	mw_policy_configure(mw_config.policy, mw_config.limbo_ns);
}
