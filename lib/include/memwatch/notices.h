/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Notices: what the module wants an operator to be told, such as that RMIDs are exhausted or
 * that resctrl was mounted. They come through netlink, also to members of the group of the
 * module, who may not measure. linux/memwatch.h describes them, their rate, and who may read.
 *
 *	struct memwatch_notices *notices;
 *	MEMWATCH_OPTS(memwatch_notice_message, notice);
 *
 *	if (memwatch_notices_open(ctx, &notices))
 *		...
 *	poll memwatch_notices_fd(notices) for POLLIN, then
 *	while ((rc = memwatch_notices_next(notices, &notice)) == 1)
 *		...
 */
#ifndef MEMWATCH_NOTICES_H
#define MEMWATCH_NOTICES_H

#include <stddef.h>

#include <linux/memwatch.h>
#include <memwatch/ctx.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * struct memwatch_notices - a subscription to notices
 */
struct memwatch_notices;

/**
 * struct memwatch_notice_message - a notice
 * @sz: sizeof(struct memwatch_notice_message)
 * @sequence: number of the notice since the module was loaded
 * @time_ns: when it happened
 * @kind: &enum memwatch_notice; memwatch_notice_name() has its name
 * @cpu: the CPU on which it happened
 * @count: see &enum memwatch_notice
 * @value: see &enum memwatch_notice
 * @suppressed: notices of this kind that the module did not send before this one, because
 *	there were too many
 * @lost: notices of any kind that were sent before this one and not read in time
 * @text: what happened, in words; empty if the other members say it all
 */
struct memwatch_notice_message {
	size_t sz;
	__u64 sequence;
	__u64 time_ns;
	__u32 kind;
	__u32 cpu;
	__u64 count;
	__u64 value;
	__u64 suppressed;
	__u64 lost;
	char text[MEMWATCH_NOTICE_TEXT_LEN];
};

/**
 * memwatch_notices_open - subscribe to notices
 * @ctx: context
 * @ret: the subscription; caller frees with memwatch_notices_unref()
 *
 * Returns: 0; -ENOENT: the module is not loaded; -EPERM: not permitted; -EREMOTE: this
 * process is in a container; -ENOSPC: too many programs have subscribed; -ELIBACC: libnl-3 is
 * not installed; -ENOMEM; another negative errno.
 * Since: 0.1
 */
MEMWATCH_MUST_CHECK int memwatch_notices_open(struct memwatch_ctx *ctx,
					      struct memwatch_notices **ret);

/**
 * memwatch_notices_unref - end a subscription
 * @notices: subscription or NULL
 *
 * Returns: NULL.
 * Since: 0.1
 */
struct memwatch_notices *memwatch_notices_unref(struct memwatch_notices *notices);

/**
 * memwatch_notices_fd - descriptor for event loops
 * @notices: subscription
 *
 * It is readable when memwatch_notices_next() may return something else than 0.
 *
 * Returns: a descriptor that belongs to @notices.
 * Since: 0.1
 */
int memwatch_notices_fd(const struct memwatch_notices *notices);

/**
 * memwatch_notices_next - get the next notice
 * @notices: subscription
 * @ret: filled in up to @ret->sz
 *
 * Never blocks. To be called until it returns 0 whenever the descriptor is readable.
 *
 * Returns: 1; 0: there is none now; -ENODEV: the module was unloaded, and all notices before
 * that have been read; -EINVAL: @ret->sz is not set; another negative errno.
 * Since: 0.1
 */
MEMWATCH_MUST_CHECK int memwatch_notices_next(struct memwatch_notices *notices,
					      struct memwatch_notice_message *ret);

#ifdef __cplusplus
}
#endif

#endif /* MEMWATCH_NOTICES_H */
