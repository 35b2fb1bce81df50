// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Programs in C that load libraries of C++: nothing in the program itself defines the operators.
 */
#include "heap/tests/kit.h"

static const char *plugin(const char *name)
{
	static char paths[4][PATH_MAX];
	static unsigned int next;
	char *path = paths[next++ % 4];

	snprintf(path, PATH_MAX, "%.4000s/%s", kit.build, name);
	return path;
}

/* @first may be NULL. */
static void check_plugins(const char *how, const char *first, const char *second, const char *what)
{
	const char *argv[6] = { kit.work, "plugins" };
	struct kit_run run;
	int n = 2;

	if (how)
		argv[n++] = how;
	if (first)
		argv[n++] = plugin(first);
	argv[n] = plugin(second);
	kit_empty();
	kit_run(&run, NULL, "MEMWATCH_HEAP_RATE=1000", argv);
	tap_ok(kit_exited(&run) && kit_profiles() == 1, "a program in C loads %s (status %#x)",
	       what, (unsigned int)run.status);
	kit_free(&run);
}

static void check_static(void)
{
	check_plugins("strictly", NULL, "plugin-static.so", "a plugin with its own libstdc++");
	check_plugins("strictly", "plugin-static.so", "plugin-shared.so",
		      "a plugin with the libstdc++ of the system after one with its own");
	check_plugins("strictly", "plugin-shared.so", "plugin-static.so",
		      "a plugin with its own libstdc++ after one with that of the system");
	check_plugins("strictly", NULL, "plugin-hidden.so", "a plugin that hides its libstdc++");
	check_plugins("unload", "plugin-static.so", "plugin-static.so",
		      "a plugin with its own libstdc++, unloads it, and loads it again");
}

/* Without the profiler, the dynamic linker would refuse to load it. */
static void check_bare(void)
{
	struct kit_run run;

	check_plugins(NULL, NULL, "plugin-bare.so", "a plugin without any libstdc++");
	check_plugins(NULL, "plugin-bare.so", "plugin-shared.so",
		      "a plugin with a libstdc++ after one without any");
	kit_run(&run, NULL, NULL,
		KIT_ARGV(kit.work, "plugins", "strictly", plugin("plugin-bare.so")));
	tap_ok(WIFSIGNALED(run.status) && WTERMSIG(run.status) == SIGABRT,
	       "operator new does not return NULL where nothing can throw std::bad_alloc");
	kit_free(&run);
}

int main(int argc, char **argv)
{
	(void)argc;
	kit_init(argv[0]);
	tap_start();
	if (access(plugin("plugin-static.so"), R_OK))
		tap_skip("a program in C loads a plugin with its own libstdc++",
			 "libstdc++ is not installed as a static library");
	else
		check_static();
	check_plugins("strictly", NULL, "plugin-renamed.so", "a plugin with a renamed libstdc++");
	check_plugins("unload", "plugin-own.so", "plugin-own.so",
		      "a plugin with operators of its own, unloads it, and loads it again");
	check_bare();
	check_plugins(NULL, NULL, "plugin-wait.so",
		      "a plugin whose constructor waits for a thread that calls operator new");
	check_plugins(NULL, NULL, "plugin-wait-privileges.so",
		      "a plugin whose constructor waits for a thread that calls seteuid()");
	return tap_done();
}
