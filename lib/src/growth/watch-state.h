/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Histories in a file, so that a monitor that is restarted knows the last hours.
 */
#ifndef MW_WATCH_STATE_H
#define MW_WATCH_STATE_H

#include "loader/growth.h"

int mw_watch_state_save(struct memwatch_ctx *ctx, struct mw_bpf_growth *growth, const char *path);
/* How many, or a negative errno. */
int mw_watch_state_load(struct memwatch_ctx *ctx, struct mw_bpf_growth *growth, const char *path);

#endif /* MW_WATCH_STATE_H */
