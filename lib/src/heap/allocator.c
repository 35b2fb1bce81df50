// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Recognises the functions of allocators.
 */
#include "heap/allocator.h"

#include <stddef.h>
#include <string.h>

static bool has_prefix(const char *text, const char *const *prefixes)
{
	for (; *prefixes; prefixes++)
		if (!strncmp(text, *prefixes, strlen(*prefixes)))
			return true;
	return false;
}

bool mw_allocator_has(const char *function, const char *module)
{
	static const char *const modules[] = { "libjemalloc", "libtcmalloc", "libmimalloc",
					       "libmemwatch-heap", NULL };
	static const char *const names[] = {
		"malloc",	   "calloc",	    "realloc",
		"reallocarray",	   "memalign",	    "posix_memalign",
		"aligned_alloc",   "valloc",	    "pvalloc",
		"mallocx",	   "rallocx",	    "xallocx",
		"__libc_malloc",   "__libc_calloc", "__libc_realloc",
		"__libc_memalign", "__rust_alloc",  "__rdl_alloc",
		"__rust_realloc",  "__rdl_realloc", "__rust_alloc_zeroed",
	};
	static const char *const prefixes[] = {
		"operator new",	  "_Znw",      "_Zna",	     "je_",	   "_rjem_",
		"tc_malloc",	  "tc_calloc", "tc_realloc", "tc_new",	   "tc_memalign",
		"tcmalloc::",	  "mi_malloc", "mi_calloc",  "mi_realloc", "mi_new",
		"alloc::alloc::", NULL,
	};
	const char *slash = strrchr(module, '/');

	if (has_prefix(slash ? slash + 1 : module, modules))
		return true;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(function, names[i]))
			return true;
	return has_prefix(function, prefixes);
}
