// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * With a rate of 1 everything is sampled: the profile must be equal to what the program says it
 * allocated, object by object.
 */
#include "heap/tests/kit.h"

struct object {
	uint64_t address, size;
};

static int object_compare(const void *a, const void *b)
{
	const struct object *left = a, *right = b;

	return left->address < right->address ? -1 : left->address > right->address;
}

/* Lines of two numbers, an address and a size. */
static size_t objects_parse(const char *text, struct object *objects, size_t max)
{
	size_t count = 0;
	int used;

	while (count < max && sscanf(text, "%lx %lu\n%n", &objects[count].address,
				     &objects[count].size, &used) == 2) {
		text += used;
		count++;
	}
	qsort(objects, count, sizeof(*objects), object_compare);
	return count;
}

/* True if the program itself called malloc(); the C library has some objects of its own. */
static bool sample_is_program(const struct profile *profile, const struct mw_heap_sample *sample)
{
	const struct mw_heap_stack *stack = profile_stack(profile, sample->stack);
	uint32_t module = stack->depth ? mw_heap_frame_module(profile_frames(profile, stack)[0])
				       : 0;

	return module && profile_module(profile, module)->flags & MW_HEAP_MODULE_EXE;
}

static size_t objects_sampled(const struct profile *profile, struct object *objects, size_t max)
{
	struct mw_heap_sample sample;
	size_t count = 0;

	for (uint64_t slot = 0; slot < profile_slots(profile) && count < max; slot++)
		if (profile_sample(profile, slot, &sample) && sample_is_program(profile, &sample))
			objects[count++] = (struct object){ sample.address, sample.size };
	qsort(objects, count, sizeof(*objects), object_compare);
	return count;
}

#define OBJECTS_MAX 100000

/* How many objects of @told are missing in @seen; @sizes: or have another size. */
static size_t objects_missing(const struct object *told, size_t told_count,
			      const struct object *seen, size_t seen_count, bool sizes)
{
	size_t missing = 0;

	for (size_t i = 0; i < told_count; i++) {
		const struct object *found = bsearch(&told[i], seen, seen_count, sizeof(*seen),
						     object_compare);

		missing += !found || (sizes && found->size != told[i].size);
	}
	return missing;
}

static void check_same(const char *what, const char *const *argv, bool sizes)
{
	static struct object told[OBJECTS_MAX], seen[OBJECTS_MAX];
	struct profile profile;
	struct kit_run run;
	size_t told_count, seen_count;

	kit_empty();
	kit_run(&run, NULL, "MEMWATCH_HEAP_RATE=1", argv);
	told_count = objects_parse(run.text, told, OBJECTS_MAX);
	if (!tap_ok(kit_exited(&run) && told_count && kit_open(&profile, run.pid),
		    "%s: the program ends well and leaves a profile", what))
		return;
	seen_count = objects_sampled(&profile, seen, OBJECTS_MAX);
	tap_eq(objects_missing(told, told_count, seen, seen_count, sizes), 0,
	       "%s: every live object is in the profile", what);
	tap_eq(objects_missing(seen, seen_count, told, told_count, sizes), 0,
	       "%s: every object in the profile is live", what);
	tap_eq(profile.header->live_samples, profile_live(&profile).samples,
	       "%s: the header counts the live samples", what);
	tap_eq(profile.header->counters.samples - profile.header->counters.sampled_frees,
	       profile.header->live_samples, "%s: samples less frees are the live ones", what);
	tap_eq(profile.header->counters.lost_samples + profile.header->counters.unseen_frees, 0,
	       "%s: nothing is lost", what);
	profile_close(&profile);
	kit_free(&run);
}

static void check_threads(void)
{
	struct profile profile;
	struct kit_run run;
	struct profile_live live;

	kit_empty();
	kit_run(&run, NULL, "MEMWATCH_HEAP_RATE=1", KIT_ARGV(kit.work, "threads", "64", "2"));
	if (!tap_ok(kit_exited(&run) && kit_open(&profile, run.pid),
		    "128 threads that free what they allocated leave a profile"))
		return;
	live = profile_live(&profile);
	/* The C library keeps the stacks and the thread-local blocks of a few threads. */
	tap_ok(live.bytes < 2000000, "what is left after the threads is small (%.0f bytes in %lu)",
	       live.bytes, (unsigned long)live.samples);
	tap_ok(profile.header->counters.samples > 128 * 15000,
	       "every allocation of every thread was sampled (%lu)",
	       (unsigned long)profile.header->counters.samples);
	tap_eq(profile.header->counters.lost_samples, 0, "no sample of the threads is lost");
	profile_close(&profile);
	kit_free(&run);
}

int main(int argc, char **argv)
{
	(void)argc;
	kit_init(argv[0]);
	tap_start();
	check_same("random operations, seed 1", KIT_ARGV(kit.work, "exact", "1"), true);
	check_same("random operations, seed 2", KIT_ARGV(kit.work, "exact", "2", "100000"), true);
	check_same("8 threads that free each other's objects", KIT_ARGV(kit.work, "swap", "8"),
		   false);
	check_threads();
	return tap_done();
}
