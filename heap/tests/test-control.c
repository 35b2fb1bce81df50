// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A profiler that is preloaded and dormant is started and stopped by another process, through
 * the control word in the profile, and by the program itself.
 */
#include "heap/heap-self.h"
#include "heap/tests/kit.h"
#include "heap/tests/steps.h"

static uint64_t samples_of(const struct steps *steps)
{
	return steps->control->counters.samples;
}

static void check_control_word(void)
{
	struct steps steps = { 0 };
	uint64_t before;

	if (!tap_ok(steps_start(&steps, "MEMWATCH_HEAP_DORMANT=1 MEMWATCH_HEAP_SEED=5"),
		    "a dormant program has a profile"))
		return;
	steps_go(&steps);
	tap_eq(steps.control->state, MW_HEAP_STATE_DORMANT, "it is dormant");
	tap_eq(samples_of(&steps), 0, "a dormant program takes no samples");
	tap_ok(steps.profile.bytes <= MW_HEAP_CHUNKS_OFFSET,
	       "a dormant profile has no more than its header");
	steps_ask(&steps, MW_HEAP_CONTROL_START, 10000);
	steps_go(&steps);
	tap_eq(steps.control->state, MW_HEAP_STATE_ACTIVE, "it starts when it is asked to");
	tap_eq(steps.control->control_seen, MW_HEAP_CONTROL_START, "it says that it has seen this");
	tap_eq(steps.control->began, MW_HEAP_BEGAN_LATER,
	       "it says that it did not begin at the start");
	tap_eq(steps.control->rate_bytes, 10000, "it uses the rate that was asked for");
	tap_ok(samples_of(&steps) > 50, "it takes samples (%lu)",
	       (unsigned long)samples_of(&steps));
	steps_ask(&steps, MW_HEAP_CONTROL_STOP, 0);
	steps_go(&steps);
	before = samples_of(&steps);
	steps_go(&steps);
	tap_eq(steps.control->state, MW_HEAP_STATE_STOPPED, "it stops when it is asked to");
	tap_eq(samples_of(&steps), before, "a stopped program takes no samples");
	steps_ask(&steps, MW_HEAP_CONTROL_START, 1000);
	steps_go(&steps);
	tap_ok(samples_of(&steps) > before + 500,
	       "it starts again, with another rate (%lu samples)",
	       (unsigned long)(samples_of(&steps) - before));
	steps_end(&steps);
}

static void check_figures(void)
{
	const struct mw_heap_figures *figures;
	struct steps steps = { 0 };

	if (!tap_ok(steps_start(&steps, "MEMWATCH_HEAP_RATE=1000"),
		    "a program with figures starts"))
		return;
	for (int n = 0; n < 1000 && !steps.control->figures_valid; n++) {
		steps_go(&steps);
		usleep(10000);
	}
	figures = &steps.control->figures[steps.control->figures_valid & 1];
	tap_eq(steps.control->figures_valid, 1,
	       "the figures of the allocator are taken once at first");
	tap_ok(figures->uordblks >= 1000000 && figures->uordblks <= figures->arena,
	       "%lu bytes are in use, of %lu", (unsigned long)figures->uordblks,
	       (unsigned long)figures->arena);
	tap_ok(figures->rss_bytes >= figures->uordblks && figures->time_ns,
	       "the resident set is known with them (%lu bytes)",
	       (unsigned long)figures->rss_bytes);
	/* Four standard deviations of a thousand samples and more. */
	tap_ok(fabs((double)figures->live_bytes / (double)figures->uordblks - 1) < 0.13,
	       "the estimate of live bytes agrees with the allocator's figure (%lu bytes)",
	       (unsigned long)figures->live_bytes);
	steps_end(&steps);
}

#define ARENAS	     64
#define ARENA_CHUNKS 1000
#define FIGURES_NS   UINT64_C(10000000000)
#define HELD_MOST_NS 1000000

/* mallinfo2() holds the lock of one arena after the other; it is called once in 10 s at most. */
static void check_arenas(void)
{
	unsigned long chunks = 0, took = 0;
	const struct mw_heap_figures *figures;
	struct steps steps = { 0 };
	char line[64] = "";

	if (!tap_ok(steps_start_program(&steps, "MEMWATCH_HEAP_RATE=10000",
					KIT_ARGV(kit.work, "arenas", "64", "1000", "100000")) &&
			    read(steps.run.output, line, sizeof(line) - 1) > 0,
		    "a program with %d arenas starts", ARENAS))
		return;
	sscanf(line, "%lu %lu", &chunks, &took);
	tap_ok(chunks >= ARENAS * ARENA_CHUNKS / 2, "the arenas have many free chunks (%lu)",
	       chunks);
	tap_ok(took / ARENAS < HELD_MOST_NS,
	       "mallinfo2() holds the lock of an arena for less than a millisecond (%lu ns each)",
	       took / ARENAS);
	for (int n = 0; n < 1000 && !steps.control->figures_valid; n++) {
		steps_go(&steps);
		usleep(10000);
	}
	for (int n = 0; n < 100; n++) {
		steps_go(&steps);
		usleep(10000);
	}
	figures = &steps.control->figures[steps.control->figures_valid & 1];
	tap_ok(steps.control->figures_valid >= 1 &&
		       figures->time_ns >= steps.control->began_ns +
						   (steps.control->figures_valid - 1) * FIGURES_NS,
	       "the figures are taken at most once in ten seconds (%u times)",
	       steps.control->figures_valid);
	tap_ok(figures->time_ns >= steps.control->began_ns && figures->took_ns,
	       "they say when they were taken, and how long it took (%lu ns)",
	       (unsigned long)figures->took_ns);
	tap_ok(figures->ordblks > 0 && figures->fordblks > 0,
	       "they have the free chunks (%lu with %lu bytes)", (unsigned long)figures->ordblks,
	       (unsigned long)figures->fordblks);
	steps_end(&steps);
}

/* This program itself, preloaded: frees are tracked after a stop. */
static int self_main(void)
{
	struct memwatch_heap_self_stats stats = { .size = sizeof(stats) };
	void *volatile kept[1000];
	uint64_t live;

	if (memwatch_heap_self_stop() || memwatch_heap_self_start(1))
		return 10;
	for (int i = 0; i < 1000; i++)
		kept[i] = malloc(1000);
	if (memwatch_heap_self_stats(&stats) || stats.live_bytes < 1000000)
		return 11;
	live = stats.live_bytes;
	memwatch_heap_self_stop();
	for (int i = 0; i < 1000; i++)
		free(kept[i]);
	if (memwatch_heap_self_stats(&stats) || stats.live_bytes != live - 1000000 || stats.rate)
		return 12;
	for (int i = 0; i < 1000; i++)
		kept[i] = malloc(1000);
	memwatch_heap_self_stats(&stats);
	if (stats.live_bytes != live - 1000000)
		return 13;
	return memwatch_heap_self_snapshot() ? 14 : 0;
}

/* A forked child that asks before it has allocated anything. */
static int self_fork_main(void)
{
	struct memwatch_heap_self_stats stats = { .size = sizeof(stats) };
	void *volatile memory = malloc(1000);
	int status;
	pid_t child;

	if (!memory || memwatch_heap_self_stats(&stats) || !stats.samples)
		return 10;
	child = fork();
	if (!child)
		_exit(memwatch_heap_self_stats(&stats) ? 11 : stats.samples != 0);
	if (waitpid(child, &status, 0) != child)
		return 12;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 13;
}

static void check_self(const char *program, const char *what)
{
	struct kit_run run;

	kit_empty();
	kit_run(&run, NULL, "", KIT_ARGV(program, "self"));
	tap_eq(WIFEXITED(run.status) ? WEXITSTATUS(run.status) : -1, 0,
	       "%s starts and stops its own profile; frees are tracked after the stop", what);
	tap_eq(kit_profiles(), 2, "%s copies its own profile", what);
	kit_free(&run);
}

static void check_self_alone(void)
{
	struct memwatch_heap_self_stats stats = { .size = sizeof(stats) };

	tap_eq(memwatch_heap_self_start(0), -ENOSYS, "without the profiler the functions say so");
	tap_eq(memwatch_heap_self_stats(&stats), -ENOSYS,
	       "without the profiler there are no figures");
}

static void check_self_fork(const char *self)
{
	const char *what = "a forked child that has not allocated yet has figures of its own";
	struct kit_run run;

	if (!kit_forks_clear_memory()) {
		tap_skip(what, "this machine does not clear memory in children");
		return;
	}
	kit_empty();
	kit_run(&run, NULL, "MEMWATCH_HEAP_RATE=1", KIT_ARGV(self, "fork"));
	tap_eq(WIFEXITED(run.status) ? WEXITSTATUS(run.status) : -1, 0, "%s", what);
	kit_free(&run);
}

int main(int argc, char **argv)
{
	char fixed[PATH_MAX];

	if (argc > 1)
		return strcmp(argv[1], "fork") ? self_main() : self_fork_main();
	kit_init(argv[0]);
	tap_start();
	check_control_word();
	check_figures();
	check_arenas();
	check_self_alone();
	check_self(argv[0], "a program");
	snprintf(fixed, sizeof(fixed), "%.4000s/control-fixed", kit.build);
	check_self(fixed, "a program at a fixed address");
	check_self_fork(argv[0]);
	return tap_done();
}
