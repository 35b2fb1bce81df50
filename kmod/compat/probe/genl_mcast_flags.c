/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cd4d7263d58a ("genetlink: Use internal flags for multicast groups"), 6.8, and stable
 * kernels from 6.1.67 on. Delete when the oldest supported kernel is 6.8 or newer.
 */
#include <net/genetlink.h>

int mw_probe(void);
int mw_probe(void)
{
	struct genl_multicast_group group = { .flags = GENL_MCAST_CAP_SYS_ADMIN };

	return group.flags;
}
