// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The profiler works over other allocators, which define the operators of C++ themselves, and
 * gives the same result over each of them.
 */
#include "heap/tests/kit.h"

static const struct allocator {
	const char *name;
	const char *library;
	const char *argument; /* of the C++ program */
	enum mw_heap_allocator kind;
} allocators[] = {
	{ "glibc", NULL, NULL, MW_HEAP_ALLOCATOR_GLIBC },
	{ "jemalloc", KIT_LIBRARIES "libjemalloc.so.2", NULL, MW_HEAP_ALLOCATOR_JEMALLOC },
	{ "tcmalloc", KIT_LIBRARIES "libtcmalloc_minimal.so.4", NULL, MW_HEAP_ALLOCATOR_TCMALLOC },
	{ "mimalloc", KIT_LIBRARIES "libmimalloc.so.2", "no-throw", MW_HEAP_ALLOCATOR_MIMALLOC },
};

#define OBJECT_BYTES 1024 /* of the objects in work-cxx.cc */
#define HEADER_BYTES 16	  /* what operators.cc puts in front of them */

/* Live bytes of what the program itself allocated, at a rate of 1. */
static uint64_t program_live(const struct profile *profile)
{
	struct mw_heap_sample sample;
	uint64_t bytes = 0;

	for (uint64_t slot = 0; slot < profile_slots(profile); slot++)
		if (profile_sample(profile, slot, &sample) &&
		    (sample.size == OBJECT_BYTES || sample.size == OBJECT_BYTES + HEADER_BYTES))
			bytes += OBJECT_BYTES;
	return bytes;
}

static void check_exact(const struct allocator *allocator)
{
	char program[PATH_MAX];
	struct profile profile;
	struct kit_run run;
	unsigned long truth = 0;
	int thrown = 0;

	kit_empty();
	snprintf(program, sizeof(program), "%.4000s/work-cxx", kit.build);
	kit_run(&run, allocator->library, "MEMWATCH_HEAP_RATE=1",
		KIT_ARGV(program, allocator->argument));
	sscanf(run.text, "%lu %d", &truth, &thrown);
	if (!tap_ok(kit_exited(&run) && thrown && kit_open(&profile, run.pid),
		    "%s: a C++ program leaves a profile", allocator->name))
		return;
	tap_eq(program_live(&profile), truth, "%s: each form of new and delete is counted once",
	       allocator->name);
	tap_eq(profile.header->allocator, allocator->kind, "%s: the profile names the allocator",
	       allocator->name);
	tap_eq(profile.header->counters.unseen_frees, 0, "%s: every free is seen", allocator->name);
	tap_ok(profile.header->unwinder.stacks_complete == profile.header->unwinder.stacks,
	       "%s: every stack is complete", allocator->name);
	profile_close(&profile);
	kit_free(&run);
}

/* Programs that do not use all operators of libstdc++, or not over the C library. */
static void check_own(const char *name, const char *what)
{
	char program[PATH_MAX];
	struct profile profile;
	unsigned long truth = 0;
	struct kit_run run;
	int thrown = 0;

	kit_empty();
	snprintf(program, sizeof(program), "%.4000s/%s", kit.build, name);
	kit_run(&run, NULL, "MEMWATCH_HEAP_RATE=1", KIT_ARGV(program));
	sscanf(run.text, "%lu %d", &truth, &thrown);
	if (tap_ok(kit_exited(&run) && thrown && kit_open(&profile, run.pid),
		   "a C++ program with %s leaves a profile", what)) {
		/* The objects of an allocator in the program do not come through the profiler. */
		tap_eq(program_live(&profile), strstr(name, "pool") ? 0 : truth,
		       "the profile of a C++ program with %s has what it should have", what);
		tap_eq(profile.header->counters.unseen_frees, 0,
		       "every free of a C++ program with %s is seen", what);
		profile_close(&profile);
	}
	kit_free(&run);
}

/* The program defines malloc() and realloc(), and not reallocarray(), which the profiler has. */
static void check_reallocarray(void)
{
	char program[PATH_MAX];
	struct kit_run run;

	kit_empty();
	snprintf(program, sizeof(program), "%.4000s/work-cxx-pool", kit.build);
	kit_run(&run, NULL, "MEMWATCH_HEAP_RATE=1", KIT_ARGV(program, "reallocarray"));
	tap_ok(kit_exited(&run),
	       "reallocarray() calls realloc() of a program with an allocator of its own");
	kit_free(&run);
}

/* The operators of a library that has been unloaded. */
static void check_unloaded(void)
{
	char plugin[PATH_MAX];
	struct kit_run run;

	kit_empty();
	snprintf(plugin, sizeof(plugin), "%.4000s/plugin-cxx.so", kit.build);
	kit_run(&run, NULL, "MEMWATCH_HEAP_RATE=1", KIT_ARGV(kit.work, "operators", plugin));
	tap_ok(kit_exited(&run), "a library with operators is unloaded, and loaded again");
	kit_free(&run);
}

/* With one seed, the same allocations of a C program are sampled, whatever is below. */
static void check_same(const struct allocator *allocator, uint64_t *expected)
{
	struct profile profile;
	struct kit_run run;

	kit_empty();
	kit_run(&run, allocator->library, "MEMWATCH_HEAP_RATE=10000 MEMWATCH_HEAP_SEED=7",
		KIT_ARGV(kit.work, "fill", "5000000"));
	if (tap_ok(kit_exited(&run) && kit_open(&profile, run.pid),
		   "%s: a C program leaves a profile", allocator->name)) {
		if (!*expected)
			*expected = profile_live(&profile).samples;
		tap_ok(llabs((long long)(profile_live(&profile).samples - *expected)) < 100,
		       "%s: it has as many samples as over glibc (%lu, %lu)", allocator->name,
		       (unsigned long)profile_live(&profile).samples, (unsigned long)*expected);
		profile_close(&profile);
	}
	kit_free(&run);
}

int main(int argc, char **argv)
{
	uint64_t expected = 0;

	(void)argc;
	kit_init(argv[0]);
	tap_start();
	for (size_t i = 0; i < sizeof(allocators) / sizeof(allocators[0]); i++) {
		const struct allocator *allocator = &allocators[i];

		if (allocator->library && access(allocator->library, R_OK)) {
			tap_skip(allocator->name, "the allocator is not installed");
			continue;
		}
		check_exact(allocator);
		check_same(allocator, &expected);
	}
	check_own("work-cxx-operators", "operators of its own");
	check_own("work-cxx-library", "operators in a library");
	check_own("work-cxx-pool", "an allocator of its own");
	check_reallocarray();
	check_unloaded();
	return tap_done();
}
