/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What measures if the module is not loaded.
 */
#ifndef MW_BACKEND_H
#define MW_BACKEND_H

#include <stdbool.h>
#include <unistd.h>

#include "common/root.h"

#define MW_ADDED_BY_MODULE "the cache and the memory bandwidth that each process uses"

/* The kernel describes its types, which measuring without the module needs. */
static inline bool mw_backend_has_btf(const struct mw_cli *cli)
{
	return !mw_root_access(cli, "/sys/kernel/btf/vmlinux", R_OK);
}

#endif
