// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The table of the functions of elfutils. libdw brings libelf along.
 */
#include "heap/elfutils.h"

#define LIBDW_SONAME "libdw.so.1"

MW_LIBRARY_NOTE("symbols", "Functions and lines of heap profiles", LIBDW_SONAME);

struct mw_elfutils mw_elfutils;

static const char *const names[] = { MW_LIBRARY_NAMES(MW_ELFUTILS_CALLS) };

static struct mw_library libdw = {
	.soname = LIBDW_SONAME,
	.package = "the package libdw1",
	.names = names,
	.table = (void **)(void *)&mw_elfutils,
	.count = sizeof(names) / sizeof(names[0]),
};

int mw_elfutils_load(struct memwatch_ctx *ctx)
{
	return mw_library_load(ctx, &libdw, "finding symbols");
}
