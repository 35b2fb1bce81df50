/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Whether this process is in a container, where the module refuses everything. The error
 * that the kernel returns there depends on the kind of container, so it explains nothing.
 * BPF programs may be loaded there, but see the process ids of the host.
 */
#ifndef MW_BASE_NAMESPACE_H
#define MW_BASE_NAMESPACE_H

#include <stdbool.h>

#include <memwatch/ctx.h>

/* Returns -EREMOTE if @err means "not permitted" and this is a container; otherwise @err. */
int mw_namespace_refine(struct memwatch_ctx *ctx, int err);

/* Are the process ids of the kernel, which BPF programs see, those that this process sees? */
bool mw_namespace_has_all_pids(struct memwatch_ctx *ctx);

#endif /* MW_BASE_NAMESPACE_H */
