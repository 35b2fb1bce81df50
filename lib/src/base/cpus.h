/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Sets of CPUs, as sysfs writes them: lists such as "0-3,8".
 */
#ifndef MW_BASE_CPUS_H
#define MW_BASE_CPUS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

/* More than any kernel for x86 can be built for (CONFIG_NR_CPUS). */
#define MW_CPUS_MAX 8192

/*
 * Parses a list, which may end with a newline: sets @set[cpu] to 1 or 0 for each of @nr CPUs. CPUs
 * from @nr on are ignored. Returns false, and leaves @set undefined, if it is no list.
 */
bool mw_cpus_parse(struct mw_text list, uint8_t *set, unsigned int nr);

/* The same for the file @path below the context's root. Returns 0 or a negative errno. */
int mw_cpus_read(struct memwatch_ctx *ctx, const char *path, uint8_t *set, unsigned int nr);

/* The same for the CPUs that are online. */
int mw_cpus_online(struct memwatch_ctx *ctx, uint8_t *set, unsigned int nr);

#endif /* MW_BASE_CPUS_H */
