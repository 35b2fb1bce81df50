/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * e03781879a0d ("drop_monitor: Require 'CAP_SYS_ADMIN' when joining "events" group"), 6.7,
 * and stable kernels from 5.10.204 on. Delete when the oldest supported kernel has
 * GENL_MCAST_CAP_SYS_ADMIN, see genl_mcast_flags.c.
 */
#include <net/genetlink.h>

int mw_probe(void);
int mw_probe(void)
{
	struct genl_multicast_group group = { .cap_sys_admin = 1 };

	return group.cap_sys_admin;
}
