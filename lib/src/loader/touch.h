/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Loads the program that reads the accessed bits of suspects, and runs its visits. Which process
 * is a suspect is decided by lib/src/growth.
 */
#ifndef MW_LOADER_TOUCH_H
#define MW_LOADER_TOUCH_H

#include <stdint.h>

#include <memwatch/ctx.h>

#include "bpf/touch.h"

struct mw_bpf_touch;

/*
 * @max_suspects: how many slots there are. Returns -EOPNOTSUPP if the page tables of this machine
 * cannot be read: it is not an x86-64, or its direct map was not found.
 */
int mw_bpf_touch_open(struct memwatch_ctx *ctx, uint32_t max_suspects, struct mw_bpf_touch **ret);
void mw_bpf_touch_close(struct mw_bpf_touch *touch);

/* Makes @key the suspect of @slot, or changes its @shift. */
int mw_bpf_touch_put(struct mw_bpf_touch *touch, uint32_t slot, const struct mw_growth_key *key,
		     uint32_t shift);
void mw_bpf_touch_delete(struct mw_bpf_touch *touch, const struct mw_growth_key *key);

/* Begins a visit of all suspects. Another one that has not ended is given up. */
int mw_bpf_touch_begin(struct mw_bpf_touch *touch);

/*
 * Reads the pages of the next suspect of the visit. Returns 1 and the slot of the suspect in *@ret;
 * 0 if there is no other one, which ends the visit. A suspect whose process has ended is left out.
 */
int mw_bpf_touch_next(struct mw_bpf_touch *touch, uint32_t *ret);

/*
 * The pages of the suspect of @slot at the last visit, valid until the next call for any slot;
 * NULL if the visit has not found the process, or it exited meanwhile.
 */
const struct mw_touch_suspect *mw_bpf_touch_get(struct mw_bpf_touch *touch, uint32_t slot);

#endif /* MW_LOADER_TOUCH_H */
