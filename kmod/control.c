// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The first session that starts arms the module, and the last one that stops
 * disarms it. While it is not armed, no hook and no timer is registered.
 *
 * The first session also brings the settings. They stay in force until the last
 * session stops; then the defaults are in force again, even if the session was
 * killed. So no session leaves anything behind for the next one.
 */
#include <linux/capability.h>
#include <linux/errno.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "conflict.h"
#include "control.h"
#include "fail.h"
#include "hooks.h"
#include "limit.h"
#include "owner.h"
#include "policy.h"
#include "rdt-session.h"
#include "stretch.h"
#include "track.h"

/*
 * Arming and changing what runs patch the text of the kernel and interrupt every
 * CPU; a dump sends a record for each RMID in use to every session. Hence the
 * limits. No tool that does its work comes near them.
 */
static struct mw_limit arm_limit = { .interval_ns = NSEC_PER_SEC / 4, .burst = 32 };
static struct mw_limit edit_limit = { .interval_ns = NSEC_PER_SEC / 100, .burst = 100 };
static struct mw_limit dump_limit = { .interval_ns = NSEC_PER_SEC / 4000, .burst = 1000 };

/* A dump without any RMID in use costs something, too. */
#define DUMP_TOKENS_MIN 16

struct mw_settings mw_settings_in_force;
struct mw_settings mw_settings_default;
LIST_HEAD(mw_session_list);
unsigned int mw_sessions;
unsigned int mw_sessions_started;

static int control_check_limit(struct mw_session *session, const struct mw_limit *limit)
{
	session->delay_ns = mw_limit_delay(limit);
	return session->delay_ns ? -EAGAIN : 0;
}

/*
 * Undo control_arm() from mw_track_enable() on, as far as it came. Tracking
 * stops first, so that no RMID is given out any more; then the CPUs stop, so
 * that none runs with an RMID; then all RMIDs are freed. The hooks are removed
 * last, because they keep the tables up to date until then.
 */
static void control_disarm(void)
{
	mw_track_enable(false);
	mw_policy_disarm();
	mw_tick_disarm();
	mw_conflict_disarm();
	mw_stretch_disarm();
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
		err = mw_tick_arm(mw_conflict_raise, mw_stretch_raise, mw_stretch_max_ppm());
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

/* ------------------------------------------------------------- settings */

static void control_apply_config(const struct mw_config *config)
{
	mw_tick_configure(&config->tick);
	mw_policy_configure(config->policy, config->limbo_ns);
}

static void control_put_in_force(const struct mw_settings *settings)
{
	struct mw_settings *now = &mw_settings_in_force;
	bool refilter = memcmp(&now->filters, &settings->filters, sizeof(now->filters));
	bool reconfigure = memcmp(&now->config, &settings->config, sizeof(now->config));

	*now = *settings;
	if (refilter)
		mw_filter_apply(&now->filters);
	if (reconfigure)
		control_apply_config(&now->config);
	if (refilter && mw_sessions_started)
		mw_policy_filters_changed();
}

/* Bring up to date what mw_rdt says while nobody uses it. */
void mw_control_review(void)
{
	lockdep_assert_held(&mw_control_lock);
	if (!mw_sessions_started)
		mw_rdt_session_review();
}

/* Put the defaults in force that the parameters of the module have set. */
void mw_control_init(void)
{
	lockdep_assert_held(&mw_control_lock);
	mw_settings_in_force = mw_settings_default;
	control_apply_config(&mw_settings_default.config);
}

/* The settings that @session sees and changes. */
const struct mw_settings *mw_control_settings(const struct mw_session *session, u32 flags)
{
	lockdep_assert_held(&mw_control_lock);
	if (flags & MEMWATCH_CONFIG_DEFAULT)
		return &mw_settings_default;
	if (mw_sessions_started)
		return &mw_settings_in_force;
	return session->own ?: &mw_settings_default;
}

static bool control_others_run(const struct mw_session *session)
{
	return mw_sessions_started > session->started;
}

/*
 * The settings of a session are its own affair, and any session may change them.
 * What changes the sessions of others, now or later, is for the administrator.
 */
static int control_may_edit(const struct mw_session *session, u32 flags)
{
	u32 others = flags & (MEMWATCH_CONFIG_DEFAULT | MEMWATCH_CONFIG_FORCE);

	if (others == (MEMWATCH_CONFIG_DEFAULT | MEMWATCH_CONFIG_FORCE))
		return -EINVAL;
	if (others)
		return capable(CAP_SYS_ADMIN) ? 0 : -EPERM;
	return control_others_run(session) ? -EBUSY : 0;
}

/* The settings last as long as the session, even while it is not started. */
static int control_keep_own(struct mw_session *session, const struct mw_settings *settings)
{
	if (!session->own)
		session->own = kvmalloc(sizeof(*session->own), GFP_KERNEL);
	if (!session->own)
		return -ENOMEM;
	*session->own = *settings;
	return 0;
}

static int control_store(struct mw_session *session, u32 flags, const struct mw_settings *new)
{
	int err = 0;

	if (flags & MEMWATCH_CONFIG_DEFAULT) {
		mw_settings_default = *new;
		if (!mw_sessions_started)
			control_put_in_force(new);
		return 0;
	}
	if (mw_sessions_started)
		err = control_check_limit(session, &edit_limit);
	if (!err && !control_others_run(session))
		err = control_keep_own(session, new);
	if (err)
		return err;
	if (mw_sessions_started) {
		control_put_in_force(new);
		mw_limit_charge(&edit_limit, 1);
	}
	return 0;
}

/**
 * mw_control_edit - change the settings of a session, or the defaults
 * @session: the session that wants it
 * @flags: MEMWATCH_CONFIG_DEFAULT and MEMWATCH_CONFIG_FORCE count
 * @edit: makes the change
 * @arg: passed to @edit
 *
 * Return: 0; -EBUSY, another session is started; -EPERM; -EAGAIN, see
 * &mw_session.delay_ns; -ENOMEM; -EINVAL, @flags has both; what @edit returns
 */
int mw_control_edit(struct mw_session *session, u32 flags, mw_control_edit_fn edit, const void *arg)
{
	/* Too large for the stack. mw_control_lock guards it. */
	static struct mw_settings new;
	int err;

	lockdep_assert_held(&mw_control_lock);
	err = control_may_edit(session, flags);
	if (err)
		return err;
	new = *mw_control_settings(session, flags);
	err = edit(&new, arg);
	if (err)
		return err;
	new.tgid = session->tgid;
	memcpy(new.comm, session->comm, sizeof(new.comm));
	return control_store(session, flags, &new);
}

/* ------------------------------------------------------------- sessions */

static int control_start_first(struct mw_session *session)
{
	int err = control_check_limit(session, &arm_limit);

	if (err)
		return err;
	mw_limit_charge(&arm_limit, 1);
	if (session->own)
		control_put_in_force(session->own);
	err = control_arm();
	if (err)
		control_put_in_force(&mw_settings_default);
	return err;
}

int mw_control_start(struct mw_session *session)
{
	int err = 0;

	lockdep_assert_held(&mw_control_lock);
	if (session->started)
		return -EALREADY;
	if (!mw_sessions_started)
		err = control_start_first(session);
	else if (session->own)
		err = -EBUSY;
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
	if (!--mw_sessions_started) {
		control_disarm();
		control_put_in_force(&mw_settings_default);
	}
	return 0;
}

int mw_control_dump(struct mw_session *session, struct memwatch_dump *dump)
{
	int err;

	lockdep_assert_held(&mw_control_lock);
	if (!session->started)
		return -ENOTCONN;
	err = control_check_limit(session, &dump_limit);
	if (err)
		return err;
	mw_policy_review();
	mw_owner_dump(dump);
	mw_limit_charge(&dump_limit, max_t(u32, dump->count, DUMP_TOKENS_MIN));
	return 0;
}
