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

#include <bpf/libbpf.h>

#include "base/context.h"

/*
 * Sends the messages that libbpf prints in this thread to the log of @ctx. Returns the
 * previous print function, which mw_bpf_log_end() restores.
 */
libbpf_print_fn_t mw_bpf_log_begin(struct memwatch_ctx *ctx);
void mw_bpf_log_end(libbpf_print_fn_t before);

#endif /* MW_LOADER_LOG_H */
