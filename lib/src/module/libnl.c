// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The table of the functions of libnl. libnl-genl-3 brings libnl-3 along.
 */
#include "module/libnl.h"

#define LIBNL_SONAME "libnl-genl-3.so.200"

MW_LIBRARY_NOTE("notices", "Notices of the kernel module", LIBNL_SONAME);

struct mw_libnl mw_libnl;

static const char *const names[] = { MW_LIBRARY_NAMES(MW_LIBNL_CALLS) };

static struct mw_library libnl = {
	.soname = LIBNL_SONAME,
	.package = "the package libnl-genl-3-200",
	.names = names,
	.table = (void **)(void *)&mw_libnl,
	.count = sizeof(names) / sizeof(names[0]),
};

int mw_libnl_load(struct memwatch_ctx *ctx)
{
	return mw_library_load(ctx, &libnl, "reading notices");
}
