/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Differences between kernels in net/genetlink.h: how a multicast group says that only
 * CAP_SYS_ADMIN may join it. A kernel that knows no way gets no multicast group, because
 * anybody could join it.
 */
#ifndef _MW_COMPAT_GENETLINK_H
#define _MW_COMPAT_GENETLINK_H

#include <net/genetlink.h>
#include <compat/config.h>

#define MW_GENL_GROUPS 1

#if defined(MW_HAVE_GENL_MCAST_FLAGS)
#define MW_GENL_ADMIN_ONLY .flags = GENL_MCAST_CAP_SYS_ADMIN
#elif defined(MW_HAVE_GENL_MCAST_CAP_BIT)
#define MW_GENL_ADMIN_ONLY .cap_sys_admin = 1
#else
#undef MW_GENL_GROUPS
#define MW_GENL_GROUPS	   0
#define MW_GENL_ADMIN_ONLY .name = ""
#endif

#endif /* _MW_COMPAT_GENETLINK_H */
