/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * libbpf prints to stderr unless told otherwise, for the whole process. It is
 * told only while we are in it, and its words go to the log of the context.
 */
#ifndef MW_BPF_LOG_H
#define MW_BPF_LOG_H

#include <bpf/libbpf.h>

#include "base/context.h"

/* From here on, in this thread; what it returns is for mw_bpf_log_end(). */
libbpf_print_fn_t mw_bpf_log_begin(struct memwatch_ctx *ctx);
void mw_bpf_log_end(libbpf_print_fn_t before);

#endif /* MW_BPF_LOG_H */
