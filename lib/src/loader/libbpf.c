// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The table of the functions of libbpf.
 */
#include "loader/libbpf.h"

#define TEXT(number)	  #number
#define SONAME_OF(number) "libbpf.so." TEXT(number)
#define LIBBPF_SONAME	  SONAME_OF(LIBBPF_MAJOR_VERSION)

MW_LIBRARY_NOTE("bpf", "Live measurement and leak detection", LIBBPF_SONAME);

struct mw_libbpf mw_libbpf;

static const char *const names[] = { MW_LIBRARY_NAMES(MW_LIBBPF_CALLS) };

static struct mw_library libbpf = {
	.soname = LIBBPF_SONAME,
	.package = "the package libbpf1",
	.names = names,
	.table = (void **)(void *)&mw_libbpf,
	.count = sizeof(names) / sizeof(names[0]),
};

int mw_libbpf_load(struct memwatch_ctx *ctx, const char *what)
{
	return mw_library_load(ctx, &libbpf, what);
}
