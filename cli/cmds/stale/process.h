/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The process that records a trace, and its end.
 */
#ifndef MW_CMDS_STALE_PROCESS_H
#define MW_CMDS_STALE_PROCESS_H

#include <memwatch/ctx.h>

#include "common/cmd.h"

/*
 * Opens the process that records the trace @fd, so that its end is seen later without any
 * privileges. Returns a pidfd, which the caller closes; -ESRCH, it has ended, or @fd is no trace;
 * -EREMOTE, it is in another pid namespace; or any errno of pidfd_open().
 */
int stale_process_open(const struct mw_cli *cli, struct memwatch_ctx *ctx, int fd);

#endif
