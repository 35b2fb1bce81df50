// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Traces of programs that know what they do: no event is lost, none is invented, and their times
 * are in the right order across threads.
 */
#include <errno.h>
#include <sched.h>
#include <sys/mount.h>

#include "heap/tests/steps.h"
#include "heap/tests/trace-kit.h"

#define OBJECTS_MAX 100000

struct object {
	uint64_t address, size;
};

/* Of structures that begin with an address. */
static int compare_addresses(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return *left < *right ? -1 : *left > *right;
}

static size_t parse_objects(const char *text, struct object *objects)
{
	size_t count = 0;
	int used;

	while (count < OBJECTS_MAX && sscanf(text, "%lx %lu\n%n", &objects[count].address,
					     &objects[count].size, &used) == 2) {
		text += used;
		count++;
	}
	return count;
}

/* The live objects that the program itself has allocated, and not the C library. */
static size_t list_live(const struct profile *profile, const struct trace_balance *balance,
			struct object *objects)
{
	size_t count = 0;

	for (size_t i = 0; i < balance->live_count && count < OBJECTS_MAX; i++) {
		const struct mw_heap_stack *stack = profile_stack(profile, balance->live[i].site);
		uint32_t module = mw_heap_frame_module(profile_frames(profile, stack)[0]);

		if (profile_module(profile, module)->flags & MW_HEAP_MODULE_EXE)
			objects[count++] = (struct object){ balance->live[i].address,
							    balance->live[i].size };
	}
	return count;
}

/* @sizes: the program says the sizes, too. */
static void check_exact(const char *what, const char *settings, const char *const *argv, bool sizes)
{
	static struct object told[OBJECTS_MAX], seen[OBJECTS_MAX];
	struct trace_balance balance;
	size_t told_count, same = 0;
	struct profile profile;
	struct trace trace;
	struct kit_run run;

	if (!play(&run, settings, argv, &trace, &balance, what) || !kit_open(&profile, run.pid))
		return;
	check_balance(&trace, &balance, what);
	told_count = parse_objects(run.text, told);
	tap_eq(list_live(&profile, &balance, seen), told_count,
	       "%s: as many objects live as the program says", what);
	qsort(told, told_count, sizeof(*told), compare_addresses);
	qsort(seen, told_count, sizeof(*seen), compare_addresses);
	for (size_t i = 0; i < told_count; i++)
		same += told[i].address == seen[i].address &&
			(!sizes || told[i].size == seen[i].size);
	tap_ok(told_count && same == told_count, "%s: they are the same objects", what);
	tap_eq(profile.header->counters.unseen_frees, 0, "%s: the samples are right, too", what);
	profile_close(&profile);
	end_play(&run, &trace, &balance);
}

struct sited {
	uint64_t address, function, caller, path;
};

static uint64_t frame_in_memory(const struct profile *profile, uint64_t frame)
{
	uint32_t module = mw_heap_frame_module(frame);

	return mw_heap_frame_address(frame) + (module ? profile_module(profile, module)->bias : 0);
}

/*
 * Is @site a stack of that function, called from there, on that path, of which the innermost @turns
 * calls are seen? A frame is in the call, not after it. @turn: the frames of the two calls that
 * make a path, which the first object tells.
 */
static bool is_site(const struct profile *profile, uint32_t site, const struct sited *object,
		    unsigned int turns, uint64_t *turn)
{
	const struct mw_heap_stack *stack = profile_stack(profile, site);
	const uint64_t *frames = profile_frames(profile, stack);
	uint64_t top = frame_in_memory(profile, frames[0]);

	for (unsigned int i = 0; stack->depth >= turns + 2 && i < turns; i++) {
		uint64_t *frame = &turn[object->path >> i & 1];

		*frame = *frame ? *frame : frames[i + 2];
		if (frames[i + 2] != *frame)
			return false;
	}
	return stack->depth >= turns + 2 && turn[0] != turn[1] && top > object->function &&
	       top < object->function + 200 &&
	       frame_in_memory(profile, frames[1]) == object->caller - 1;
}

/*
 * Each object has the site that allocated it, and not one of an object that was there before.
 * @turns: how many of the program's eight turns a site has.
 */
static void check_sites(const char *settings, unsigned int turns, const char *what)
{
	static struct sited objects[OBJECTS_MAX];
	struct trace_balance balance;
	size_t count = 0, right = 0;
	struct profile profile;
	struct trace trace;
	struct kit_run run;
	uint64_t turn[2] = { 0 };
	const char *text;
	int used;

	if (!play(&run, settings, KIT_ARGV(kit.work, "sites"), &trace, &balance, what) ||
	    !kit_open(&profile, run.pid))
		return;
	check_balance(&trace, &balance, what);
	text = run.text;
	while (count < OBJECTS_MAX && sscanf(text, "%lx %lx %lx %lx\n%n", &objects[count].address,
					     &objects[count].function, &objects[count].caller,
					     &objects[count].path, &used) == 4) {
		text += used;
		count++;
	}
	qsort(objects, count, sizeof(*objects), compare_addresses);
	for (size_t i = 0; i < balance.live_count; i++) {
		const struct sited *object = bsearch(&balance.live[i].address, objects, count,
						     sizeof(*objects), compare_addresses);

		right += object && is_site(&profile, balance.live[i].site, object, turns, turn);
	}
	tap_ok(count > 1900, "%s: the program says where its objects are from (%zu)", what, count);
	tap_eq(right, count, "%s: the trace has these stacks for all of them", what);
	profile_close(&profile);
	end_play(&run, &trace, &balance);
}

static void check_threads(void)
{
	const char *what = "128 threads that come and go";
	uint32_t streams, threads = 0, tid = 0;
	struct trace_balance balance;
	struct trace trace;
	struct kit_run run;

	if (!play(&run, "MEMWATCH_HEAP_TRACE=1", KIT_ARGV(kit.work, "threads", "16", "8"), &trace,
		  &balance, what))
		return;
	check_balance(&trace, &balance, what);
	tap_ok(balance.allocations >= 128 * 20000, "%s: all their allocations are there (%lu)",
	       what, (unsigned long)balance.allocations);
	for (size_t i = 0; i < trace.count; i++) {
		threads += trace.events[i].tid > tid;
		if (trace.events[i].tid > tid)
			tid = trace.events[i].tid;
	}
	streams = trace_streams(&trace);
	tap_ok(streams < 64, "%s: streams are used again (%u)", what, streams);
	tap_ok(threads > 20, "%s: events say which thread it was (%u)", what, threads);
	tap_ok(trace.used <= 8 * trace.count, "%s: an event takes at most 8 bytes (%.2f)", what,
	       (double)trace.used / (double)trace.count);
	end_play(&run, &trace, &balance);
}

static void check_signals(void)
{
	const char *what = "ten thousand signals a second";
	struct trace_balance balance;
	struct trace trace;
	struct kit_run run;

	if (!play(&run, "MEMWATCH_HEAP_TRACE=1", KIT_ARGV(kit.work, "signals"), &trace, &balance,
		  what))
		return;
	check_balance(&trace, &balance, what);
	end_play(&run, &trace, &balance);
}

/* The same program without a trace allocates as often: its own countdown says so. */
static void check_stress(void)
{
	const char *what = "everything at once";
	struct trace_balance balance;
	char plugin[PATH_MAX];
	struct trace trace;
	struct kit_run run;

	snprintf(plugin, sizeof(plugin), "%.4000s/plugin.so", kit.build);
	if (!play(&run,
		  "MEMWATCH_HEAP_TRACE=1 MEMWATCH_HEAP_RATE=5000 MEMWATCH_HEAP_MMAP=1 "
		  "MEMWATCH_HEAP_MAX=16M",
		  KIT_ARGV(kit.work, "stress", plugin, "32", "3"), &trace, &balance, what))
		return;
	check_balance(&trace, &balance, what);
	tap_ok(balance.live_count < 3000, "%s: all that the program frees is freed (%lu left)",
	       what, (unsigned long)balance.live_count);
	end_play(&run, &trace, &balance);
}

/* A child has its own trace, and its parent's does not change. */
static void check_fork(const char *how)
{
	struct trace_balance balance;
	struct trace trace;
	struct kit_run run;

	if (!play(&run, "MEMWATCH_HEAP_TRACE=1", KIT_ARGV(kit.work, "fork", how, "1000000"), &trace,
		  &balance, how))
		return;
	check_balance(&trace, &balance, how);
	tap_ok(balance.live_count >= 2000 && balance.live_count < 2020,
	       "%s: the parent has its 2000 objects (%lu)", how, (unsigned long)balance.live_count);
	free(balance.live);
	trace_close(&trace);
	if (!tap_ok(open_trace_of(&trace, atoi(run.text)), "%s: the child has a trace", how))
		return;
	trace_balance(&trace, &balance);
	tap_eq(balance.live_count, 1000, "%s: the child has its 1000 objects", how);
	tap_eq(trace.header->began, MW_HEAP_BEGAN_FORK, "%s: it says that it was forked", how);
	end_play(&run, &trace, &balance);
}

/* Forks by a handler that interrupts the recorder anywhere. */
static void check_fork_inside(const char *name, const char *count)
{
	struct trace_balance balance;
	struct trace trace;
	struct kit_run run;

	if (!play(&run, "MEMWATCH_HEAP_TRACE=1", KIT_ARGV(kit.work, name, count), &trace, &balance,
		  name))
		return;
	check_balance(&trace, &balance, name);
	tap_ok(strstr(run.text, " 0\n"), "%s: no child fails", name);
	end_play(&run, &trace, &balance);
}

static void check_kill(void)
{
	const char *what = "kill -9";
	struct trace_balance balance;
	struct steps steps;
	struct trace trace;

	if (!tap_ok(steps_start(&steps, "MEMWATCH_HEAP_TRACE=1") && steps_go(&steps),
		    "%s: the program runs", what))
		return;
	kill(steps.run.pid, SIGKILL);
	steps_end(&steps);
	if (!tap_ok(open_trace(&trace, MW_TRACE_SUFFIX), "%s: there is a trace", what))
		return;
	trace_balance(&trace, &balance);
	check_balance(&trace, &balance, what);
	tap_ok(balance.live_count >= 1000 && balance.live_count < 1020,
	       "%s: everything until then is there (%lu)", what, (unsigned long)balance.live_count);
	tap_eq(trace.header->state, MW_TRACE_STATE_ACTIVE, "%s: it was not ended", what);
	free(balance.live);
	trace_close(&trace);
}

/* A trace that cannot be created is reported, and can be asked for again. */
static void check_failed(void)
{
	const uint32_t again = MW_HEAP_CONTROL_START + MW_HEAP_CONTROL_MASK + 1;
	const char *what = "a trace in a folder that is not there";
	char moved[PATH_MAX + 8];
	struct steps steps;
	struct trace trace;

	snprintf(moved, sizeof(moved), "%s.moved", kit.directory);
	if (!tap_ok(steps_start(&steps, "MEMWATCH_HEAP_DORMANT=1") && steps_go(&steps) &&
			    !rename(kit.directory, moved),
		    "%s: the program runs", what))
		return;
	steps_ask(&steps, MW_HEAP_CONTROL_START, 10000);
	steps_ask_trace(&steps, MW_HEAP_CONTROL_START);
	steps_go(&steps);
	tap_eq(steps.control->state, MW_HEAP_STATE_ACTIVE,
	       "%s: samples, which were asked for just before, are taken", what);
	tap_eq(steps.control->trace_control_seen, MW_HEAP_CONTROL_START,
	       "%s: the request is followed", what);
	tap_eq(steps.control->trace_error, ENOENT, "%s: it says why there is none", what);
	tap_ok(!rename(moved, kit.directory), "%s: the folder is back", what);
	steps_ask_trace(&steps, again);
	steps_go(&steps);
	tap_eq(steps.control->trace_control_seen, again, "%s: the second request is followed",
	       what);
	tap_eq(steps.control->trace_error, 0, "%s: the second request has no error", what);
	steps_end(&steps);
	if (tap_ok(open_trace(&trace, MW_TRACE_SUFFIX), "%s: then it is there", what))
		trace_close(&trace);
}

/* On and off while the program runs; each time there is another file. */
static void check_control(void)
{
	const char *what = "on and off";
	struct trace_balance balance;
	struct steps steps;
	struct trace trace;

	if (!tap_ok(steps_start(&steps, "MEMWATCH_HEAP_RATE=64K MEMWATCH_HEAP_SEED=1") &&
			    steps_go(&steps),
		    "%s: the program runs", what))
		return;
	tap_ok(!open_trace(&trace, MW_TRACE_SUFFIX), "%s: it is off at first", what);
	for (int n = 0; n < 2; n++) {
		steps_ask_trace(&steps, MW_HEAP_CONTROL_START);
		steps_go(&steps);
		steps_ask_trace(&steps, MW_HEAP_CONTROL_STOP);
		steps_go(&steps);
	}
	steps_end(&steps);
	for (int n = 0; n < 2; n++) {
		if (!tap_ok(open_trace(&trace, n ? "-2" MW_TRACE_SUFFIX : MW_TRACE_SUFFIX),
			    "%s: trace %d is there", what, n + 1))
			return;
		trace_balance(&trace, &balance);
		/* The program looks whenever it has allocated 64 KiB on average. */
		tap_ok(balance.live_count > 100 && balance.live_count < 1900,
		       "%s: trace %d has one step (%lu of 1000)", what, n + 1,
		       (unsigned long)balance.live_count);
		tap_eq(trace.header->began, MW_HEAP_BEGAN_LATER, "%s: trace %d began later", what,
		       n + 1);
		tap_eq(trace.header->state, MW_TRACE_STATE_STOPPED, "%s: trace %d is ended", what,
		       n + 1);
		free(balance.live);
		trace_close(&trace);
	}
}

/* What the program's heap has at its end, without the library (NULL) or with it. */
static void heap_read(const char *settings, char *ret, size_t size)
{
	struct kit_run run;

	kit_empty();
	if (settings) {
		kit_run(&run, NULL, settings, KIT_ARGV(kit.work, "heap", "100000"));
	} else {
		if (kit_fork(&run))
			kit_exec_command(KIT_ARGV(kit.work, "heap", "100000"));
		kit_finish(&run);
	}
	snprintf(ret, size, "%s", kit_exited(&run) ? run.text : "it failed");
	kit_free(&run);
}

/* The trace takes nothing from the heap of the program; to load the library takes some bytes. */
static void check_heap(void)
{
	char plain[256], off[256], on[256];
	size_t end[2], arena[2];

	heap_read(NULL, plain, sizeof(plain));
	heap_read("MEMWATCH_HEAP_DORMANT=1", off, sizeof(off));
	heap_read("MEMWATCH_HEAP_TRACE=1", on, sizeof(on));
	tap_str_eq(on, off, "the program's heap is the same with the trace and without it");
	tap_ok(sscanf(plain, "%zu %zu", &end[0], &arena[0]) == 2 && arena[0] > 1000000 &&
		       sscanf(on, "%zu %zu", &end[1], &arena[1]) == 2 && arena[1] == arena[0],
	       "it has as many pages as without the library (%.50s)", strtok(plain, "\n"));
}

/* The trace ends, and the program does not. */
static void check_full(const char *settings, uint32_t limit, const char *what)
{
	struct trace_balance balance;
	struct trace trace;
	struct kit_run run;

	if (!play(&run, settings, KIT_ARGV(kit.work, "threads", "8", "4"), &trace, &balance, what))
		return;
	tap_eq(trace.header->state, MW_TRACE_STATE_FULL, "%s: it says that it is full", what);
	tap_eq(trace.header->limits, limit, "%s: and why", what);
	tap_ok(trace.header->lost_no_room > 100000, "%s: the rest is counted (%lu)", what,
	       (unsigned long)trace.header->lost_no_room);
	tap_ok(trace.count > 1000, "%s: what came before is there (%lu)", what,
	       (unsigned long)trace.count);
	end_play(&run, &trace, &balance);
}

/* Destructors of other libraries run after that of the profiler, which ends the trace. */
static void check_exit(void)
{
	const char *what = "a library that allocates at exit";
	char library[PATH_MAX];
	struct trace_balance balance;
	struct trace trace;
	struct kit_run run;

	snprintf(library, sizeof(library), "%.4000s/plugin-exit.so", kit.build);
	if (!play_behind(&run, library, "MEMWATCH_HEAP_TRACE=1", KIT_ARGV(kit.work, "heap", "10"),
			 &trace, &balance, what))
		return;
	check_balance(&trace, &balance, what);
	tap_eq(trace.header->state, MW_TRACE_STATE_ENDED, "%s: the trace has ended", what);
	tap_ok(trace.count >= 400000, "%s: its events are there (%lu)", what,
	       (unsigned long)trace.count);
	end_play(&run, &trace, &balance);
}

/* A trace that is full records nothing any more, so a request for one begins another. */
static void check_after_full(void)
{
	const char *what = "a request after a full trace";
	struct steps steps;
	struct trace trace;

	if (!tap_ok(steps_start_program(&steps,
					"MEMWATCH_HEAP_TRACE=1 MEMWATCH_HEAP_TRACE_MAX=200K",
					KIT_ARGV(kit.work, "steps", "50000000")) &&
			    steps_go(&steps) && steps_go(&steps),
		    "%s: the program runs", what))
		return;
	steps_ask_trace(&steps, MW_HEAP_CONTROL_START);
	steps_go(&steps);
	tap_eq(steps.control->trace_error, 0, "%s: it has no error", what);
	steps_end(&steps);
	if (tap_ok(open_trace_of(&trace, steps.run.pid), "%s: the first trace is there", what)) {
		tap_eq(trace.header->state, MW_TRACE_STATE_FULL, "%s: the first trace is full",
		       what);
		trace_close(&trace);
	}
	if (tap_ok(open_trace(&trace, "-2" MW_TRACE_SUFFIX), "%s: there is another one", what)) {
		tap_ok(trace.count > 1000, "%s: it has events (%lu)", what,
		       (unsigned long)trace.count);
		trace_close(&trace);
	}
}

static void check_full_disk(void)
{
	if (geteuid() || unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", kit.directory, "tmpfs", 0, "size=3m")) {
		tap_skip("a full disk", "needs root, to mount a small file system");
		return;
	}
	check_full("MEMWATCH_HEAP_TRACE=1", MW_TRACE_LIMIT_NO_SPACE, "a full disk");
	umount(kit.directory);
}

int main(int argc, char **argv)
{
	(void)argc;
	kit_init(argv[0]);
	tap_start();
	check_exact("random operations", "MEMWATCH_HEAP_TRACE=1",
		    KIT_ARGV(kit.work, "exact", "1", "300000"), true);
	check_exact("with samples", "MEMWATCH_HEAP_TRACE=1 MEMWATCH_HEAP_RATE=100",
		    KIT_ARGV(kit.work, "exact", "2"), true);
	check_exact("8 threads that free each other's objects", "MEMWATCH_HEAP_TRACE=1",
		    KIT_ARGV(kit.work, "swap", "8"), false);
	check_sites("MEMWATCH_HEAP_TRACE=1", 2, "24 sites of 4 frames");
	/* A thread remembers 256 stacks, of up to 9 frames. */
	check_sites("MEMWATCH_HEAP_TRACE=1 MEMWATCH_HEAP_TRACE_DEPTH=9", 7,
		    "768 sites of 9 frames");
	check_sites("MEMWATCH_HEAP_TRACE=1 MEMWATCH_HEAP_TRACE_DEPTH=16", 8,
		    "1500 sites of all frames");
	check_threads();
	check_signals();
	check_stress();
	check_fork("fork");
	check_fork("raw");
	check_fork_inside("sigfork", "300");
#ifdef __x86_64__
	check_fork_inside("stepfork", "5");
#endif
	check_kill();
	check_control();
	check_failed();
	check_heap();
	check_full("MEMWATCH_HEAP_TRACE=1 MEMWATCH_HEAP_TRACE_MAX=800K", MW_TRACE_LIMIT_FILE_SIZE,
		   "a small file");
	check_after_full();
	check_exit();
	check_full_disk();
	return tap_done();
}
