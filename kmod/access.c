// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Who may read, see access.h.
 */
#include <linux/capability.h>
#include <linux/pid_namespace.h>
#include <linux/sched.h>
#include <linux/user_namespace.h>

#include "access.h"

static kgid_t readers = INVALID_GID;

void mw_access_init(u32 gid)
{
	readers = make_kgid(&init_user_ns, gid);
}

kgid_t mw_access_group(void)
{
	return readers;
}

bool mw_access_may_read(void)
{
	if (current_user_ns() != &init_user_ns || task_active_pid_ns(current) != &init_pid_ns)
		return false;
	return perfmon_capable() || (gid_valid(readers) && in_group_p(readers));
}

bool mw_access_may_read_as(const struct cred *cred)
{
	const struct cred *own = override_creds(cred);
	bool may = mw_access_may_read();

	revert_creds(own);
	return may;
}
