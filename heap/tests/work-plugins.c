// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A program in C that loads plugins which bring C++ with them.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "heap/tests/work.h"

/* Where a library that is unloaded has been, nothing can be called any more. */
static void library_close(void *library, const void *function)
{
	uintptr_t code = (uintptr_t)function & ~(uintptr_t)4095;

	dlclose(library);
	mmap((void *)code, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
	     0);
}

/*
 * plugins [strictly|unload] LIBRARY...: loads each of them, and lets it check what it relies on.
 * Returns the number of the first one that fails.
 */
int work_plugins(char **argv)
{
	int strictly = *argv && !strcmp(*argv, "strictly"),
	    unload = *argv && !strcmp(*argv, "unload");

	alarm(30);
	for (int i = strictly || unload; argv[i]; i++) {
		void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
		int (*check)(int) = library ? (int (*)(int))dlsym(library, "plugin_check") : NULL;

		if (!check)
			fprintf(stderr, "%s\n", dlerror());
		if (!check || check(strictly))
			return i + 1;
		if (unload)
			library_close(library, dlsym(library, "_Znwm"));
	}
	return 0;
}
