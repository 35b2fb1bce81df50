/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * libbpf prints to stderr by default, and its print function is one per process. The
 * library replaces it only while it is inside libbpf; the messages go to the log of the
 * context.
 */
#ifndef MW_LOADER_LOG_H
#define MW_LOADER_LOG_H

#include "base/context.h"

/*
 * Sends the messages that libbpf prints in this thread to the log of @ctx, until
 * mw_bpf_log_end(). Several threads may be between the two at a time: the last one that leaves
 * restores the print function of the application.
 */
void mw_bpf_log_begin(struct memwatch_ctx *ctx);
void mw_bpf_log_end(void);

#endif /* MW_LOADER_LOG_H */
