/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Histories in a file, so that a monitor that is restarted knows the last hours.
 */
#ifndef MW_STATE_FILE_H
#define MW_STATE_FILE_H

#include "loader/growth.h"

int mw_state_file_save(struct memwatch_ctx *ctx, struct mw_bpf_growth *growth, const char *path);
/* How many, or a negative errno. */
int mw_state_file_load(struct memwatch_ctx *ctx, struct mw_bpf_growth *growth, const char *path);

#endif /* MW_STATE_FILE_H */
