// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Watched objects: is it known when they were touched last?
 */
#include "heap/tests/kit.h"

#define SETTINGS "MEMWATCH_HEAP_RATE=1 MEMWATCH_HEAP_EPOCH=20 MEMWATCH_HEAP_ISOLATE="
#define COUNT	 "240"

/* What the program says about its objects, and what the profile says. */
struct compared {
	uint64_t objects;
	uint64_t watched;
	uint64_t parts;
	uint64_t right;	   /* the last access is in the interval of the watch */
	uint64_t too_late; /* an access that there was not */
	uint64_t too_early;
	uint64_t lost, refused;
};

/* Copies the sample at @address that is watched. */
static bool find_watch(const struct profile *profile, uint64_t address, struct mw_heap_watch *ret)
{
	struct mw_heap_sample sample;

	for (uint64_t slot = 0; slot < profile_slots(profile); slot++)
		if (profile_sample(profile, slot, &sample) && sample.address == address)
			return profile_watch(profile, &sample, ret);
	return false;
}

static struct compared compare(const struct profile *profile, char *text)
{
	struct compared compared = { 0 };
	char *line;

	while ((line = strsep(&text, "\n")) && *line) {
		uint64_t address = strtoull(line, &line, 16), size = strtoull(line, &line, 10);
		uint64_t before = strtoull(line, &line, 10), after = strtoull(line, &line, 10);
		struct mw_heap_watch watch;

		(void)size;
		compared.objects++;
		if (!find_watch(profile, address, &watch))
			continue;
		compared.watched++;
		compared.parts += (watch.flags & MW_HEAP_WATCH_PART) != 0;
		if (watch.touched_after_ns > after)
			compared.too_late++;
		else if (watch.touched_ns < before)
			compared.too_early++;
		else
			compared.right++;
	}
	return compared;
}

static struct compared run_and_compare(const char *library, const char *count, const char *how)
{
	struct compared compared = { 0 };
	struct profile profile;
	struct kit_run run;

	kit_empty();
	kit_run(&run, library, SETTINGS "1000", KIT_ARGV(kit.work, "touch", count, how));
	if (WIFEXITED(run.status) && WEXITSTATUS(run.status) == 77) {
		tap_skip(how, "this is not possible on this machine");
	} else if (tap_ok(kit_exited(&run) && kit_open(&profile, run.pid),
			  "%s: a program of known accesses ends as it should", how)) {
		compared = compare(&profile, run.text);
		compared.lost = profile.header->watch_lost;
		compared.refused = profile.header->watch_refused;
		printf("# %s: %lu objects, %lu watched, %lu of them in part; %lu right, "
		       "%lu too late, %lu too early; %lu epochs, %lu us of CPU time; "
		       "%lu refused, %lu lost\n",
		       how, compared.objects, compared.watched, compared.parts, compared.right,
		       compared.too_late, compared.too_early, profile.header->epochs,
		       profile.header->epoch_cpu_ns / 1000, compared.refused, compared.lost);
		profile_close(&profile);
	}
	kit_free(&run);
	return compared;
}

static void check_right(const struct compared *compared, const char *how)
{
	tap_ok(compared->right * 100 >= compared->watched * 99,
	       "%s: the last access is known within one epoch for 99 %%", how);
	tap_eq(compared->too_early, 0, "%s: no access is missed", how);
}

static void check_plain(const char *how)
{
	struct compared compared = run_and_compare(NULL, COUNT, how);

	if (!compared.objects)
		return;
	tap_eq(compared.watched, compared.objects, "%s: all objects are watched", how);
	check_right(&compared, how);
}

/*
 * Pages of an object that are in one mapping with others cannot be told from them: such an object
 * is watched no more.
 */
static void check_join(void)
{
	struct compared compared = run_and_compare(NULL, COUNT, "join");

	tap_ok(compared.lost > 0 && compared.watched + compared.lost == compared.objects,
	       "join: objects whose pages are joined with others are lost (%lu of %lu)",
	       compared.lost, compared.objects);
	tap_ok(compared.watched * 2 > compared.objects, "join: the others are still watched");
	check_right(&compared, "join");
}

/*
 * A forked child, four threads, a storm of signals, write barriers of both kinds. MADV_COLD passes
 * over a page that another thread has just copied, because a child has it, too; such an object
 * seems to be touched for one epoch more, and how many there are depends on how threads run.
 */
static void check_all(void)
{
	struct compared compared = run_and_compare(NULL, "480", "all");

	if (!compared.objects)
		return;
	tap_ok(compared.watched + compared.lost == compared.objects && compared.watched > 0,
	       "all: each object is watched, or counted as lost");
	tap_eq(compared.too_early, 0, "all: no access is missed");
}

/* Only objects that can be freed by any function of the allocator get another place. */
static void check_allocator(const char *library, const char *name, bool blocks)
{
	struct compared compared;

	if (access(library, R_OK)) {
		tap_skip(name, "the allocator is not installed");
		return;
	}
	compared = run_and_compare(library, COUNT, "plain");
	if (blocks)
		tap_eq(compared.watched, compared.objects, "%s: all objects are watched", name);
	else
		tap_eq(compared.watched, compared.parts, "%s: large objects are watched", name);
	tap_ok(compared.parts * 10 == compared.objects, "%s: of a tenth a part is watched", name);
	check_right(&compared, name);
}

/* The sizes that work_many() allocates, each at a place of its own but for one. */
static const struct {
	uint64_t size;
	unsigned int objects; /* of 2000 */
} limit_sites[] = {
	{ 1, 200 },    { 24, 200 },    { 100, 200 },   { 4095, 200 },	{ 4096, 400 },
	{ 5000, 200 }, { 20000, 200 }, { 65536, 200 }, { 300000, 200 },
};
#define LIMIT_SITES (sizeof(limit_sites) / sizeof(limit_sites[0]))

/* What watched objects stand for. */
struct stood_for {
	uint64_t watches;
	double objects;
	double early; /* of those that were allocated in the first half of all bytes */
	double site[LIMIT_SITES];
};

static struct stood_for stood_for(const struct profile *profile)
{
	struct stood_for sum = { 0 };
	struct mw_heap_sample sample;
	struct mw_heap_watch watch;

	for (uint64_t slot = 0; slot < profile_slots(profile); slot++) {
		if (!profile_sample(profile, slot, &sample) ||
		    !profile_watch(profile, &sample, &watch))
			continue;
		sum.watches++;
		sum.objects += exp2(watch.shift);
		if (sample.allocated_before < profile->header->counters.allocated_bytes / 2)
			sum.early += exp2(watch.shift);
		for (size_t i = 0; i < LIMIT_SITES; i++)
			if (sample.size == limit_sites[i].size)
				sum.site[i] += exp2(watch.shift);
	}
	return sum;
}

#define LIMIT_RUNS    20
#define LIMIT_OBJECTS 2000

/* Of N objects, the standard deviation of a run is sqrt(N * 31). */
static void check_sites(const double *site)
{
	for (size_t i = 0; i < LIMIT_SITES; i++)
		tap_ok(fabs(site[i] - limit_sites[i].objects) <
			       4 * sqrt(limit_sites[i].objects * 31.0 / LIMIT_RUNS),
		       "those of %lu bytes stand for all of this size (%.0f of %u)",
		       limit_sites[i].size, site[i], limit_sites[i].objects);
}

/*
 * Each run has other random numbers, the same whenever the test runs, and no epoch ends before the
 * program does. With a final shift of 5, the standard deviation of what the watched objects of a
 * run stand for is sqrt(2000 * 31), that is 249, and 176 for each half of them.
 */
static void check_limit(void)
{
	double sum = 0, early = 0, squares = 0, site[LIMIT_SITES] = { 0 }, deviation;
	uint64_t most = 0, refused = 0;
	struct profile profile;
	struct kit_run run;

	for (int seed = 1; seed <= LIMIT_RUNS; seed++) {
		struct stood_for found = { 0 };
		char settings[160];

		snprintf(settings, sizeof(settings),
			 "MEMWATCH_HEAP_RATE=1 MEMWATCH_HEAP_EPOCH=600000 "
			 "MEMWATCH_HEAP_ISOLATE=100 MEMWATCH_HEAP_SEED=%d",
			 seed);
		kit_empty();
		kit_run(&run, NULL, settings, KIT_ARGV(kit.work, "many", "2000"));
		if (kit_exited(&run) && kit_open(&profile, run.pid)) {
			found = stood_for(&profile);
			most = found.watches > most ? found.watches : most;
			refused += profile.header->watch_refused;
			profile_close(&profile);
		}
		sum += found.objects;
		squares += (found.objects - LIMIT_OBJECTS) * (found.objects - LIMIT_OBJECTS);
		early += found.early;
		for (size_t i = 0; i < LIMIT_SITES; i++)
			site[i] += found.site[i] / LIMIT_RUNS;
		kit_free(&run);
	}
	deviation = sqrt(squares / LIMIT_RUNS);
	tap_ok(most > 40 && most <= 100, "never more than 100 are watched (%lu)", most);
	tap_eq(refused, 0, "none is refused");
	tap_ok(fabs(sum / LIMIT_RUNS - LIMIT_OBJECTS) < 4 * 249 / sqrt(LIMIT_RUNS),
	       "they stand for all objects (%.0f of 2000 on average)", sum / LIMIT_RUNS);
	tap_ok(fabs(early / LIMIT_RUNS - LIMIT_OBJECTS / 2.0) < 4 * 176 / sqrt(LIMIT_RUNS),
	       "those that were thinned for the first half (%.0f of 1000)", early / LIMIT_RUNS);
	tap_ok(deviation > 249 * 0.6 && deviation < 249 * 1.5,
	       "and this scatters as a random choice does (by %.0f)", deviation);
	check_sites(site);
}

/* What the profiler takes for samples and watches is within its 60 MB. */
static void check_small(const char *count, const char *times, uint64_t least)
{
	const char *settings[] = { "MEMWATCH_HEAP_DORMANT=1",
				   "MEMWATCH_HEAP_SEED=7 " SETTINGS "1000" };
	double live = strtod(count, NULL), deviation = 0;
	struct stood_for found = { 0 };
	uint64_t kib[2] = { 0 };
	struct profile profile;
	struct kit_run run;

	for (int i = 0; i < 2; i++) {
		kit_empty();
		kit_run(&run, NULL, settings[i], KIT_ARGV(kit.work, "small", count, times));
		kib[i] = strtoull(run.text, NULL, 10);
		if (kit_exited(&run) && kit_open(&profile, run.pid)) {
			found = stood_for(&profile);
			deviation = sqrt(live * (exp2(profile.header->watch_shift) - 1));
			profile_close(&profile);
		}
		kit_free(&run);
	}
	tap_ok(found.watches >= least, "of %s small objects, %lu are watched", count,
	       found.watches);
	/* The program has a few objects besides. */
	tap_ok(fabs(found.objects - live) < 4 * deviation + 10,
	       "those that are watched of %s small objects stand for all (%.0f)", count,
	       found.objects);
	tap_ok(kib[0] && kib[1] < kib[0] + 60 * 1024,
	       "%s small objects, allocated %s times: the profiler takes %ld KiB, its file "
	       "included",
	       count, times, (long)(kib[1] - kib[0]));
}

/* Nearly as many watches as there can be; then many samples, and as many blocks as there can be. */
static void check_memory(void)
{
	check_small("950", "1", 900);
	/* At most ten a second are chosen for long, so a slow machine halves the number again. */
	check_small("100000", "3", 20);
}

static void check_end(void)
{
	struct profile profile;
	struct kit_run run;

	kit_empty();
	kit_run(&run, NULL, SETTINGS "1000", KIT_ARGV(kit.work, "end", COUNT));
	if (tap_ok(kit_exited(&run) && kit_open(&profile, run.pid),
		   "objects that are moved and freed keep their content")) {
		tap_ok(strtoull(run.text, NULL, 10) <= stood_for(&profile).watches + 2,
		       "what is freed is not marked any more (%s mappings are)",
		       strtok(run.text, "\n"));
		profile_close(&profile);
	}
	kit_free(&run);
}

/*
 * One in 256 objects begins at a page by chance, and has no guard. The free lists of threads count
 * as memory in use, so there are none.
 */
static void check_guards(void)
{
	unsigned long paged = 0, beside = 0;
	long left = -1;
	struct kit_run run;

	kit_empty();
	kit_run(&run, NULL, SETTINGS "200 GLIBC_TUNABLES=glibc.malloc.tcache_count=0",
		KIT_ARGV(kit.work, "guards", "4000"));
	sscanf(run.text, "%lu %lu %ld", &paged, &beside, &left);
	tap_ok(kit_exited(&run) && paged > 400, "objects with pages are among others (%lu)", paged);
	tap_ok(beside * 20 < paged,
	       "what is in front of them is mostly no other object (but for %lu)", beside);
	tap_eq(left, 0, "nothing is left in front of objects that were freed");
	kit_free(&run);
}

static void check_jemalloc(void)
{
	check_allocator(KIT_LIBRARIES "libjemalloc.so.2", "jemalloc", false);
}

static void check_tcmalloc(void)
{
	check_allocator(KIT_LIBRARIES "libtcmalloc_minimal.so.4", "tcmalloc", false);
}

static void check_mimalloc(void)
{
	check_allocator(KIT_LIBRARIES "libmimalloc.so.2", "mimalloc", true);
}

static const struct {
	const char *name;
	void (*run)(void); /* NULL: a program of this name */
} checks[] = {
	{ "plain", NULL },
	{ "fork", NULL },
	{ "threads", NULL },
	{ "storm", NULL },
	{ "protect", NULL },
	{ "follow", NULL },
	{ "jemalloc", check_jemalloc },
	{ "tcmalloc", check_tcmalloc },
	{ "mimalloc", check_mimalloc },
	{ "join", check_join },
	{ "all", check_all },
	{ "limit", check_limit },
	{ "memory", check_memory },
	{ "end", check_end },
	{ "guards", check_guards },
};

/* With an argument: only the check of that name. */
int main(int argc, char **argv)
{
	kit_init(argv[0]);
	tap_start();
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		if (argc > 1 && strcmp(argv[1], checks[i].name))
			continue;
		if (checks[i].run)
			checks[i].run();
		else
			check_plain(checks[i].name);
	}
	return tap_done();
}
