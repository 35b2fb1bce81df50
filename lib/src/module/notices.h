/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A message of the module's netlink family, for the tests.
 */
#ifndef MW_MODULE_NOTICES_H
#define MW_MODULE_NOTICES_H

#include <linux/netlink.h>

#include <memwatch/notices.h>

/*
 * Reads a message, which lies in @message->nlmsg_len bytes. libnl must be loaded. Returns 1; 0
 * if it is not a notice, or of a kind that lacks attributes; or -EBADMSG.
 */
int mw_notice_parse(struct nlmsghdr *message, struct memwatch_notice_message *ret);

#endif /* MW_MODULE_NOTICES_H */
