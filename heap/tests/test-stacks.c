// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The profiler's stacks are those that libgcc's unwinder finds at the same place, in programs as
 * Debian builds them, without frame pointers. Every malloc() of the program is compared.
 */
#include "heap/tests/kit.h"

#define FRAMES_MAX  256
#define BUCKETS	    65536
#define STACKS_KEPT 65536

/* The stacks of the profile, as addresses of the process. */
struct known_stack {
	struct known_stack *next;
	uint32_t depth;
	uint64_t frames[];
};

static struct known_stack *buckets[BUCKETS];

static struct known_stack **bucket_of(const uint64_t *frames, uint64_t depth)
{
	uint64_t hash = depth;

	for (uint64_t i = 0; i < depth; i++)
		hash = (hash ^ frames[i]) * UINT64_C(0x9e3779b97f4a7c15);
	return &buckets[hash >> 48];
}

static bool stack_known(const uint64_t *frames, uint64_t depth)
{
	const struct known_stack *known = *bucket_of(frames, depth);

	while (known && (known->depth != depth || memcmp(known->frames, frames, depth * 8)))
		known = known->next;
	return known != NULL;
}

static void stacks_load(const struct profile *profile)
{
	for (uint64_t n = 1; n < profile->header->stacks; n++) {
		const struct mw_heap_stack *stack = profile_stack(profile, n);
		struct known_stack *known, **bucket;

		if (!stack || !stack->ready)
			continue;
		known = malloc(sizeof(*known) + stack->depth * 8);
		known->depth = 0;
		for (uint32_t i = 0; i < stack->depth; i++) {
			uint64_t frame = profile_frames(profile, stack)[i];
			uint32_t module = mw_heap_frame_module(frame);

			/* Frames of Python stand between the native ones. */
			if (module == MW_HEAP_FRAME_CODE)
				continue;
			known->frames[known->depth++] =
				mw_heap_frame_address(frame) +
				(module ? profile_module(profile, module)->bias : 0);
		}
		bucket = bucket_of(known->frames, known->depth);
		known->next = *bucket;
		*bucket = known;
	}
}

struct comparison {
	uint64_t compared, wrong, frames;
	uint64_t example[FRAMES_MAX];
	uint64_t example_depth;
};

static void oracle_compare(FILE *file, struct comparison *ret)
{
	uint64_t count, frames[FRAMES_MAX];

	memset(ret, 0, sizeof(*ret));
	while (fread(&count, sizeof(count), 1, file) == 1 && count <= FRAMES_MAX &&
	       fread(frames, sizeof(*frames), count, file) == count) {
		if (!count || count == FRAMES_MAX)
			continue;
		ret->compared++;
		ret->frames += count;
		if (stack_known(frames, count))
			continue;
		if (!ret->wrong++) {
			memcpy(ret->example, frames, sizeof(frames));
			ret->example_depth = count;
		}
	}
}

static void check_program(const char *name, const char *const *argv)
{
	char oracle[PATH_MAX], settings[128];
	FILE *records = tmpfile();
	struct comparison result;
	struct profile profile;
	struct kit_run run;

	kit_empty();
	memset(buckets, 0, sizeof(buckets));
	snprintf(oracle, sizeof(oracle), "%.4000s/oracle.so", kit.build);
	snprintf(settings, sizeof(settings),
		 "MEMWATCH_HEAP_RATE=1 MEMWATCH_HEAP_DEPTH=256 MEMWATCH_HEAP_MAX=200M "
		 "PYTHONMALLOC=malloc HEAP_ORACLE_FD=%d",
		 fileno(records));
	kit_run(&run, oracle, settings, argv);
	if (!tap_ok(kit_exited(&run) && kit_open(&profile, run.pid), "%s leaves a profile", name))
		return;
	stacks_load(&profile);
	rewind(records);
	oracle_compare(records, &result);
	tap_ok(result.compared > 50 && !result.wrong,
	       "%s: %lu stacks with %lu frames are what libgcc finds (%lu differ)", name,
	       (unsigned long)result.compared, (unsigned long)result.frames,
	       (unsigned long)result.wrong);
	for (uint64_t i = 0; result.wrong && i < result.example_depth; i++)
		tap_note("%#lx", (unsigned long)result.example[i]);
	tap_ok(profile.header->unwinder.stacks_complete >=
		       profile.header->unwinder.stacks * 999 / 1000,
	       "%s: %lu of %lu stacks are complete", name,
	       (unsigned long)profile.header->unwinder.stacks_complete,
	       (unsigned long)profile.header->unwinder.stacks);
	profile_close(&profile);
	kit_free(&run);
	fclose(records);
}

static bool program_exists(const char *path, const char *what)
{
	if (!access(path, X_OK))
		return true;
	tap_skip(what, "the program is not installed");
	return false;
}

/* The code of this program is not in the segment that has the ELF header. */
static void check_segments_apart(void)
{
	const struct mw_heap_module *module = NULL;
	char program[PATH_MAX + 16];
	struct profile profile;
	struct kit_run run;
	uint32_t found = 0;

	snprintf(program, sizeof(program), "%s/work-apart", kit.build);
	kit_empty();
	kit_run(&run, NULL, "MEMWATCH_HEAP_RATE=1", KIT_ARGV(program, "exact"));
	if (tap_ok(kit_open(&profile, 0), "a program with segments apart leaves a profile")) {
		for (uint32_t n = 1; n <= profile.header->modules; n++) {
			const struct mw_heap_module *m = profile_module(&profile, n);

			if (!(m->flags & MW_HEAP_MODULE_EXE))
				continue;
			module = m;
			found++;
		}
		tap_eq(found, 1, "it is one module");
		tap_ok(module && module->build_id_bytes, "the module has its build id");
		profile_close(&profile);
	}
	kit_free(&run);
}

int main(int argc, char **argv)
{
	(void)argc;
	kit_init(argv[0]);
	tap_start();
	check_segments_apart();
	if (getenv("HEAP_TEST_RUNNER")) {
		check_program("a test program", KIT_ARGV(kit.work, "exact"));
		return tap_done();
	}
	check_program("ls", KIT_ARGV("/bin/ls", "-lR", "/etc"));
	if (program_exists("/usr/bin/python3", "python3"))
		check_program(
			"python3",
			KIT_ARGV("/usr/bin/python3", "-c",
				 "import json, re\n"
				 "def deep(n): return deep(n - 1) if n else json.loads('[1, 2]')\n"
				 "deep(8); re.compile('(a|b)*c')"));
	if (program_exists("/usr/bin/sqlite3", "sqlite3"))
		check_program("sqlite3",
			      KIT_ARGV("/usr/bin/sqlite3", ":memory:",
				       "create table t (a, b); insert into t values (1, 'x'); "
				       "select a, count(*) from t group by b order by a;"));
	if (program_exists("/usr/bin/git", "git"))
		check_program("git", KIT_ARGV("/usr/bin/git", "help", "-a"));
	if (program_exists("/usr/bin/perl", "perl"))
		check_program("perl",
			      KIT_ARGV("/usr/bin/perl", "-MData::Dumper", "-e",
				       "print Dumper([1, {2 => 3}]), sort { $b cmp $a } qw(a b)"));
	return tap_done();
}
