// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Anonymous memory that a program maps itself is profiled if that is asked for.
 */
#include "heap/tests/kit.h"

#define JEMALLOC KIT_LIBRARIES "libjemalloc.so.2"

/* What is live of mappings, and of everything else. */
static void live_split(const struct profile *profile, struct profile_live *mapped,
		       struct profile_live *others)
{
	struct mw_heap_sample sample;

	memset(mapped, 0, sizeof(*mapped));
	memset(others, 0, sizeof(*others));
	for (uint64_t slot = 0; slot < profile_slots(profile); slot++) {
		double p, size;

		if (!profile_sample(profile, slot, &sample))
			continue;
		p = profile_probability(sample.size, sample.rate);
		size = (double)sample.size;
		if (sample.source == MW_HEAP_SOURCE_MMAP) {
			mapped->samples++;
			mapped->bytes += size / p;
			mapped->bytes_variance += size * size * (1 - p) / p / p;
		} else {
			others->samples++;
			others->bytes += size / p;
		}
	}
}

static bool run_and_open(struct kit_run *run, struct profile *profile, const char *behind,
			 const char *settings, const char *const *argv)
{
	kit_empty();
	kit_run(run, behind, settings, argv);
	return kit_exited(run) && kit_open(profile, run->pid);
}

static void check_exact(void)
{
	struct profile_live mapped, others;
	struct profile profile;
	struct kit_run run;
	unsigned int marked = 0;

	if (!tap_ok(run_and_open(&run, &profile, NULL, "MEMWATCH_HEAP_RATE=1 MEMWATCH_HEAP_MMAP=1",
				 KIT_ARGV(kit.work, "mmap", "500")),
		    "a program that maps memory leaves a profile"))
		return;
	live_split(&profile, &mapped, &others);
	tap_eq(mapped.bytes, strtoull(run.text, NULL, 10),
	       "what is mapped is counted exactly: unmapped in parts, moved, replaced");
	for (uint64_t n = 1; n < profile.header->stacks; n++)
		marked += (profile_stack(&profile, n)->flags & MW_HEAP_STACK_MMAP) != 0;
	tap_ok(marked > 0, "stacks of mappings are marked");
	tap_eq(profile.header->live_bytes, mapped.bytes + others.bytes,
	       "the sum in the header agrees with the samples");
	profile_close(&profile);
	kit_free(&run);
}

static void check_estimate(const char *work, const char *count, const char *what)
{
	struct profile_live mapped, others;
	struct profile profile;
	struct kit_run run;
	double truth;

	if (!tap_ok(run_and_open(
			    &run, &profile, NULL,
			    "MEMWATCH_HEAP_RATE=200K MEMWATCH_HEAP_MMAP=1 MEMWATCH_HEAP_SEED=5",
			    KIT_ARGV(kit.work, work, count)),
		    "%s: the program leaves a profile", what))
		return;
	truth = strtod(run.text, NULL);
	live_split(&profile, &mapped, &others);
	tap_ok(fabs(mapped.bytes - truth) <= 4 * sqrt(mapped.bytes_variance),
	       "%s: the estimate holds: %.0f +- %.0f, truth %.0f", what, mapped.bytes,
	       1.96 * sqrt(mapped.bytes_variance), truth);
	tap_ok(fabs((double)profile.header->live_bytes / (mapped.bytes + others.bytes) - 1) < 0.001,
	       "%s: the sum in the header follows", what);
	profile_close(&profile);
	kit_free(&run);
}

/* Files and reserved addresses are no memory of the program, also if they are moved. */
static void check_remap(void)
{
	struct profile_live mapped, others;
	struct profile profile;
	struct kit_run run;
	double truth;

	if (!tap_ok(run_and_open(
			    &run, &profile, NULL,
			    "MEMWATCH_HEAP_RATE=100K MEMWATCH_HEAP_MMAP=1 MEMWATCH_HEAP_SEED=5",
			    KIT_ARGV(kit.work, "remap", "1000")),
		    "a program that moves mappings of files leaves a profile"))
		return;
	truth = strtod(run.text, NULL);
	live_split(&profile, &mapped, &others);
	tap_eq(mapped.samples, 0,
	       "mappings of files and reserved addresses that move do not count");
	/* Four times the standard deviation of 300 samples. */
	tap_ok(fabs(others.bytes / truth - 1) < 0.23,
	       "what is allocated between them is estimated as ever: %.0f, truth %.0f",
	       others.bytes, truth);
	profile_close(&profile);
	kit_free(&run);
}

/* As many as are followed at a time; the profiler's own limit is MAPPINGS_MAX. */
#define FOLLOWED 4096

static void check_region(const char *count, uint64_t lost, const char *what)
{
	struct profile_live mapped, others;
	struct profile profile;
	struct kit_run run;

	if (!tap_ok(run_and_open(&run, &profile, NULL, "MEMWATCH_HEAP_RATE=1 MEMWATCH_HEAP_MMAP=1",
				 KIT_ARGV(kit.work, "region", count)),
		    "a program that unmaps %s mappings at once leaves a profile", count))
		return;
	live_split(&profile, &mapped, &others);
	tap_eq(mapped.bytes, 0, "%s: nothing stays live", what);
	tap_eq(profile.header->counters.lost_samples, lost, "%s: number of lost samples", what);
	profile_close(&profile);
	kit_free(&run);
}

static void check_off(void)
{
	struct profile_live mapped, others;
	struct profile profile;
	struct kit_run run;

	if (!tap_ok(run_and_open(&run, &profile, NULL, "MEMWATCH_HEAP_RATE=1",
				 KIT_ARGV(kit.work, "mmap", "100")),
		    "a program whose mappings are not profiled leaves a profile"))
		return;
	live_split(&profile, &mapped, &others);
	tap_eq(mapped.samples, 0, "mappings are counted only if that is asked for");
	profile_close(&profile);
	kit_free(&run);
}

/* An allocator maps the memory of the objects that it hands out. */
static void check_allocator(const char *library, const char *name)
{
	struct profile_live mapped, others;
	struct profile profile;
	struct kit_run run;

	if (library && access(library, R_OK)) {
		tap_skip(name, "the allocator is not installed");
		return;
	}
	if (!tap_ok(run_and_open(&run, &profile, library,
				 "MEMWATCH_HEAP_RATE=1 MEMWATCH_HEAP_MMAP=1",
				 KIT_ARGV(kit.work, "fill", "3000000")),
		    "%s: a program leaves a profile", name))
		return;
	live_split(&profile, &mapped, &others);
	tap_ok(others.bytes >= 3000000 && mapped.bytes < 1000000,
	       "%s: what the allocator maps is not counted twice (%.0f bytes of mappings)", name,
	       mapped.bytes);
	profile_close(&profile);
	kit_free(&run);
}

static void check_handler(const char *first, const char *what)
{
	struct profile profile;
	struct kit_run run;

	if (tap_ok(run_and_open(&run, &profile, NULL,
				"MEMWATCH_HEAP_RATE=1000 MEMWATCH_HEAP_MMAP=1 MALLOC_ARENA_MAX=1",
				KIT_ARGV(kit.work, "handler", first)),
		   "a signal handler that interrupts the allocator maps memory: %s", what)) {
		tap_ok(profile.header->figures_valid > 0,
		       "the next allocation asks the allocator for its figures: %s", what);
		profile_close(&profile);
	}
	kit_free(&run);
}

int main(int argc, char **argv)
{
	(void)argc;
	kit_init(argv[0]);
	tap_start();
	check_exact();
	check_estimate("mmap", "3000", "mappings that shrink and grow");
	check_estimate("halves", "3000", "mappings of which other threads unmap a half");
	check_remap();
	check_region("200", 0, "mappings that are unmapped at once");
	check_region("5000", 5000 - FOLLOWED, "more mappings than can be followed");
	check_off();
	check_handler(NULL, "in a thread that has allocated before");
	check_handler("first", "as the first call of a thread");
	check_allocator(NULL, "glibc");
	check_allocator(JEMALLOC, "jemalloc");
	return tap_done();
}
