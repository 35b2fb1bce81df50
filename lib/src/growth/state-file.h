/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The state file: keeps the states and histories of all processes across a restart of the
 * monitor.
 */
#ifndef MW_STATE_FILE_H
#define MW_STATE_FILE_H

#include "loader/growth.h"

/* Replaces the file by renaming, so it is complete or absent. Returns 0 or an error. */
int mw_state_file_save(struct memwatch_ctx *ctx, struct mw_bpf_growth *growth, const char *path);

/* Returns the number of processes, -ESTALE for another boot or version, or an error. */
int mw_state_file_load(struct memwatch_ctx *ctx, struct mw_bpf_growth *growth, const char *path);

#endif /* MW_STATE_FILE_H */
