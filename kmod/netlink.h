/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The generic netlink family: who reads notices, and sending them. linux/memwatch.h
 * describes it.
 */
#ifndef _MW_NETLINK_H
#define _MW_NETLINK_H

#include "backlog.h"

int mw_netlink_init(void);
void mw_netlink_uninit(void);

/* Send a notice to everybody who reads. May sleep; calls follow one another. */
void mw_netlink_send(const struct mw_notice *notice);

#endif /* _MW_NETLINK_H */
