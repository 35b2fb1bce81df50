// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Access samples of real processes: page faults, which the kernel records with their addresses
 * without any PMU. This program executes itself, and the child touches pages whose addresses are
 * agreed on, so that each of them must be found. perf must find the same ones.
 *
 * Precise events are not tested here: the machines of this project have none.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/timemath.h"
#include "stale/access.h"

#include "../../selftests/tap.h"

/* ------------------------------------------------------------ the child */

enum { MAIN, THREAD, FORKED, EXECUTED, MANY, REGIONS };

#define PAGES	  100 /* that are touched in a region */
#define ROOM	  500 /* the same in the region MANY */
#define REGION(n) (0x200000000000UL + ((uintptr_t)(n) << 32))

/* Where page @i of a region is touched. */
static uintptr_t address_of(int region, int i)
{
	return REGION(region) + (uintptr_t)i * 4096 + (uintptr_t)i * 40 % 4096;
}

static __attribute__((noinline)) void touch_page(uintptr_t address)
{
	*(volatile char *)address = 1;
}

/* Each region is touched on another CPU, so that there is something in each ring. */
static void pin_region(int region)
{
	static cpu_set_t all;
	cpu_set_t one;
	int left;

	if (!CPU_COUNT(&all) && sched_getaffinity(0, sizeof(all), &all))
		return;
	left = region % CPU_COUNT(&all);
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && !left--)
			CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static void touch_region(int region)
{
	void *base = mmap((void *)REGION(region), ROOM * 4096UL, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (base != (void *)REGION(region))
		_exit(1);
	pin_region(region);
	madvise(base, ROOM * 4096UL, MADV_NOHUGEPAGE);
	for (int i = 0; i < (region == MANY ? ROOM : PAGES); i++)
		touch_page(address_of(region, i));
}

static void touch_forked(void)
{
	pid_t pid = fork();

	if (!pid) {
		touch_region(FORKED);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static void *thread_main(void *unused)
{
	touch_region(THREAD);
	return unused;
}

static void touch_by_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, thread_main, NULL))
		_exit(1);
	pthread_join(thread, NULL);
}

/* Uses 20 ms of the CPU. */
static void spin_cpu(void)
{
	uint64_t end = mw_clock(CLOCK_PROCESS_CPUTIME_ID) + 20000000;

	while (mw_clock(CLOCK_PROCESS_CPUTIME_ID) < end)
		;
}

/* Does what each byte of the standard input says, and writes a byte when it is done. */
static int child_main(char *self)
{
	char *again[] = { self, "executed", NULL }, command;

	while (read(0, &command, 1) == 1) {
		if (command == 'm')
			touch_region(MAIN);
		else if (command == 'M')
			touch_region(MANY);
		else if (command == 't')
			touch_by_thread();
		else if (command == 's')
			spin_cpu();
		else if (command == 'f')
			touch_forked();
		else if (command == 'x')
			execv("/proc/self/exe", again);
		if (write(1, &command, 1) != 1)
			return 1;
	}
	return 0;
}

/* ----------------------------------------------------------- the parent */

static struct memwatch_ctx *ctx;
static char *self;

struct child {
	pid_t pid;
	int in, out; /* its standard input and output */
	int release;
};

static void child_fork(struct child *child)
{
	char *argv[] = { self, "child", NULL }, byte;
	int in[2], out[2], release[2];

	if (pipe(in) || pipe(out) || pipe(release))
		exit(EXIT_FAILURE);
	child->pid = fork();
	if (!child->pid) {
		close(release[1]);
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[1]);
		if (read(release[0], &byte, 1) == 1)
			execv("/proc/self/exe", argv);
		_exit(1);
	}
	close(in[0]);
	close(out[1]);
	close(release[0]);
	child->in = in[1];
	child->out = out[0];
	child->release = release[1];
}

static void child_start(struct child *child)
{
	write(child->release, "r", 1);
	close(child->release);
}

static void child_do(struct child *child, char command)
{
	write(child->in, &command, 1);
	read(child->out, &command, 1);
}

static void child_end(struct child *child)
{
	close(child->in);
	close(child->out);
	waitpid(child->pid, NULL, 0);
}

/* What was found in one region. */
struct found {
	int pages;	   /* touches that were found, each once */
	int others;	   /* addresses in the region that nobody touched, or twice */
	int untimely;	   /* times out of the bracket or not in order */
	int outside;	   /* instructions that are not in touch_page() */
	uint32_t pid, tid; /* of the last one */
	uint64_t last_ns;
	bool seen[ROOM];
};

/* All items, and what they say in the order of time. */
struct results {
	struct mw_access_item *items;
	size_t nr, room;
	struct found found[REGIONS];
	uint64_t begin_ns, exec_ns, code, code_start, code_end, code_offset;
	uint32_t forked_pid, forked_tid, execs, exits;
};

static void found_add(struct results *results, int region, const struct mw_access_item *item)
{
	struct found *found = &results->found[region];
	uint64_t place = item->ip - results->code_start + results->code_offset;
	uintptr_t page = (item->address - REGION(region)) / 4096;

	if (page >= ROOM || address_of(region, (int)page) != item->address || found->seen[page])
		found->others++;
	else
		found->pages += found->seen[page] = true;
	if (item->time_ns < results->begin_ns || item->time_ns > mw_clock(CLOCK_MONOTONIC) ||
	    item->time_ns < (region == EXECUTED ? results->exec_ns : 0))
		found->untimely++;
	if (item->ip < results->code_start || item->ip >= results->code_end ||
	    place - results->code > 512)
		found->outside++;
	found->pid = item->pid;
	found->tid = item->tid;
}

static void results_add(struct results *results, const struct child *child,
			const struct mw_access_item *item)
{
	uint64_t region = (item->address - REGION(0)) >> 32;

	switch (item->kind) {
	case MW_ACCESS_SAMPLE:
		if (item->address >= REGION(0) && region < REGIONS)
			found_add(results, (int)region, item);
		break;
	case MW_ACCESS_FORK:
		if (item->pid == (uint32_t)child->pid)
			results->forked_tid = item->tid;
		else if (item->ppid == (uint32_t)child->pid && !results->forked_pid)
			results->forked_pid = item->pid;
		break;
	case MW_ACCESS_EXIT:
		results->exits++;
		break;
	case MW_ACCESS_EXEC:
		results->execs++;
		results->exec_ns = item->time_ns;
		break;
	case MW_ACCESS_MAP:
		if (!strcmp(item->name, self) && item->prot & PROT_EXEC) {
			results->code_start = item->start;
			results->code_end = item->start + item->length;
			results->code_offset = item->offset;
		}
		break;
	default:
		break;
	}
}

/* Where the code of touch_page() is in the file of this program. */
static uint64_t find_code(void)
{
	uint64_t start, end, offset, code = 0, here = (uintptr_t)touch_page;
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4096];

	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &start, &end, &offset) ==
			    3 &&
		    here >= start && here < end)
			code = here - start + offset;
	if (maps)
		fclose(maps);
	return code;
}

static void drain_rings(struct mw_access *access, struct results *results)
{
	struct mw_access_item item;

	while (mw_access_next(access, &item)) {
		if (mw_array_reserve(results->items, results->room, results->nr + 1))
			exit(EXIT_FAILURE);
		if (item.name)
			item.name = strdup(item.name);
		results->items[results->nr++] = item;
	}
}

static int compare_times(const void *a, const void *b)
{
	const struct mw_access_item *one = a, *two = b;

	return (one->time_ns > two->time_ns) - (one->time_ns < two->time_ns);
}

/* The rings of different CPUs are in no order, and a process may have been on several. */
static void judge_items(struct results *results, const struct child *child)
{
	qsort(results->items, results->nr, sizeof(*results->items), compare_times);
	for (size_t i = 0; i < results->nr; i++) {
		results_add(results, child, &results->items[i]);
		free((char *)results->items[i].name);
	}
	free(results->items);
}

static int open_page_faults(struct child *child, const struct mw_access_opts *opts,
			    struct mw_access_plan *plan, struct mw_access **access)
{
	int err = mw_access_find(ctx, "page-faults", plan);

	child_fork(child);
	if (!err)
		err = mw_access_open(ctx, plan, child->pid, opts, access);
	if (err) {
		tap_note("%s", memwatch_ctx_error(ctx));
		close(child->release);
		child_end(child);
	}
	return err;
}

/* Reads and judges everything that is left. */
static bool wait_for_end(struct mw_access *access, struct results *results,
			 const struct child *child)
{
	for (int i = 0; i < 600 && !mw_access_ended(access); i++) {
		mw_access_wait(access, 100);
		drain_rings(access, results);
	}
	judge_items(results, child);
	return mw_access_ended(access);
}

static void check_region(const struct results *results, int region, const char *who)
{
	const struct found *found = &results->found[region];

	tap_eq(found->pages, PAGES, "each page that %s touched is found", who);
	tap_eq(found->others, 0, "no other access of %s is found", who);
	tap_eq(found->untimely, 0, "the times of %s are those of the clock", who);
	tap_eq(found->outside, 0, "%s: the instruction is the one that touches", who);
}

static void test_processes(void)
{
	static struct results results;
	struct mw_access_opts opts = { 0 };
	struct mw_access_stats stats;
	struct mw_access_plan plan;
	struct mw_access *access;
	struct child child;

	if (open_page_faults(&child, &opts, &plan, &access)) {
		tap_ok(false, "page faults can be opened");
		return;
	}
	results.begin_ns = mw_clock(CLOCK_MONOTONIC);
	results.code = find_code();
	child_start(&child);
	for (const char *command = "mtfx"; *command; command++)
		child_do(&child, *command);
	tap_eq(mw_access_ended(access), 0, "processes that live have not ended");
	child_end(&child);
	tap_ok(wait_for_end(access, &results, &child), "the end of all processes is noticed");
	mw_access_get_stats(access, &stats);
	check_region(&results, MAIN, "the main thread");
	check_region(&results, THREAD, "another thread");
	check_region(&results, FORKED, "a process that was forked");
	check_region(&results, EXECUTED, "the program that was executed later");
	tap_ok(results.found[MAIN].pid == (uint32_t)child.pid &&
		       results.found[MAIN].tid == (uint32_t)child.pid,
	       "accesses of the main thread have its number");
	tap_ok(results.found[THREAD].pid == (uint32_t)child.pid &&
		       results.found[THREAD].tid == results.forked_tid,
	       "accesses of another thread have the number of its fork");
	tap_ok(results.forked_pid && results.found[FORKED].pid == results.forked_pid,
	       "accesses of a process that was forked have the number of its fork");
	tap_eq(results.execs, 2, "each exec is an item");
	tap_ok(results.exits >= 3, "each exit is an item");
	tap_ok(!stats.counts.lost && !stats.counts.malformed && !stats.counts.broken &&
		       !stats.counts.others,
	       "no record of a real ring is lost or malformed");
	tap_eq(stats.rearmed, 0, "no new period is set where there is nothing to vary");
	mw_access_close(access);
	mw_access_plan_uninit(&plan);
}

/*
 * New periods are set while samples arrive. The clock of the CPU stands for a hardware event: it
 * has periods, but no addresses.
 */
static void test_periods(void)
{
	static struct results results;
	struct mw_access_opts opts = { .period = 100000, .seed = 20261125 };
	struct mw_access_plan plan = { .nr = 1 };
	struct mw_access_stats before = { 0 }, stats = { 0 };
	struct mw_access *access;
	struct child child;

	tap_note("seed %" PRIu64, opts.seed);
	plan.event[0] = (struct mw_access_event){ .name = "cpu-clock",
						  .type = PERF_TYPE_SOFTWARE,
						  .config.word[0] = PERF_COUNT_SW_CPU_CLOCK,
						  .step = 1 };
	child_fork(&child);
	if (!tap_ok(!mw_access_open(ctx, &plan, child.pid, &opts, &access), "clocks are opened"))
		return;
	child_start(&child);
	for (int i = 0; i < 500 && (!before.rearmed || stats.rearmed < before.rearmed + 4); i++) {
		child_do(&child, 's');
		drain_rings(access, &results);
		mw_access_get_stats(access, &stats);
		if (!before.rearmed)
			before = stats;
	}
	child_end(&child);
	wait_for_end(access, &results, &child);
	tap_ok(stats.rearmed >= before.rearmed + 4, "new periods are set");
	tap_ok(stats.counts.no_address >= before.counts.no_address + 4 * 16,
	       "an event with a new period goes on");
	tap_eq(stats.counts.samples, 0, "an event without addresses has no samples");
	mw_access_close(access);
}

static void test_loss(void)
{
	static struct results results;
	struct mw_access_opts opts = { .pages = 1 };
	struct mw_access_stats stats, later;
	struct mw_access_plan plan;
	struct mw_access *access;
	struct child child;

	if (open_page_faults(&child, &opts, &plan, &access))
		return;
	child_start(&child);
	child_do(&child, 'M');
	mw_access_get_stats(access, &stats);
	drain_rings(access, &results);
	child_do(&child, 'm');
	child_end(&child);
	wait_for_end(access, &results, &child);
	mw_access_get_stats(access, &later);
	tap_ok(stats.counts.lost > 100, "the kernel says what was lost before the ring says it");
	tap_ok(results.found[MANY].pages < ROOM, "a ring that is full loses samples");
	tap_ok(results.found[MANY].pages + later.counts.lost >= ROOM,
	       "each access is found or counted as lost");
	tap_ok(!later.counts.malformed && !later.counts.broken, "a loss breaks no record");
	mw_access_close(access);
	mw_access_plan_uninit(&plan);
}

static void test_failures(void)
{
	struct mw_access_opts bad_pages = { .pages = 3 };
	struct mw_access_opts bad_period = { .period = MW_ACCESS_PERIOD_MAX + 1 };
	struct mw_access_plan plan;
	struct mw_access *access = NULL;
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	mw_access_find(ctx, "page-faults", &plan);
	tap_eq(mw_access_open(ctx, &plan, pid, NULL, &access), -ESRCH,
	       "a process that has ended cannot be sampled");
	tap_eq(mw_access_open(ctx, &plan, getpid(), &bad_pages, &access), -EINVAL,
	       "a ring of three pages is refused");
	tap_eq(mw_access_open(ctx, &plan, getpid(), &bad_period, &access), -EINVAL,
	       "a period that is too long is refused");
	tap_ok(!access, "what fails leaves nothing behind");
	mw_access_plan_uninit(&plan);
}

/* ----------------------------------------------------------------- perf */

/* Runs the child under perf, and returns what perf script prints. */
static FILE *open_perf_script(const char *data)
{
	char command[8192];

	snprintf(command, sizeof(command),
		 "printf mtfx | perf record -q -N -B -c 1 -d -k CLOCK_MONOTONIC -e page-faults "
		 "-o %s -- %s child >/dev/null 2>&1 && perf script -i %s -F pid,tid,addr,ip "
		 "2>/dev/null",
		 data, self, data);
	return popen(command, "r");
}

static void test_perf(void)
{
	const char *folder = getenv("TMPDIR");
	static struct results results;
	char data[256], line[1024];
	int threads = 0, fd;
	FILE *script;

	snprintf(data, sizeof(data), "%s/access-XXXXXX", folder ? folder : "/var/tmp");
	fd = mkstemp(data);
	if (fd < 0 || system("perf version >/dev/null 2>&1")) {
		tap_skip("perf finds the same accesses", "perf is not installed");
		unlink(data);
		return;
	}
	script = open_perf_script(data);
	while (fgets(line, sizeof(line), script)) {
		struct mw_access_item item = { .kind = MW_ACCESS_SAMPLE };
		uint64_t region;

		if (sscanf(line, "%" SCNu32 "/%" SCNu32 " %" SCNx64 " %" SCNx64, &item.pid,
			   &item.tid, &item.address, &item.ip) != 4)
			continue;
		region = (item.address - REGION(0)) >> 32;
		if (item.address < REGION(0) || region >= REGIONS)
			continue;
		found_add(&results, (int)region, &item);
		threads += item.tid != item.pid;
	}
	pclose(script);
	unlink(data);
	close(fd);
	for (int region = MAIN; region <= EXECUTED; region++)
		tap_ok(results.found[region].pages == PAGES && !results.found[region].others,
		       "perf finds the same accesses in region %d", region);
	tap_eq(threads, PAGES, "perf finds the same accesses of the other thread");
}

/* Whether this user may sample at all. */
static bool is_permitted(void)
{
	struct mw_access_plan plan;
	struct mw_access *access;
	int err = mw_access_find(ctx, "page-faults", &plan);

	if (!err)
		err = mw_access_open(ctx, &plan, getpid(), NULL, &access);
	if (!err)
		mw_access_close(access);
	else
		tap_note("%s", memwatch_ctx_error(ctx));
	return err != -EACCES && err != -EOPNOTSUPP;
}

int main(int argc, char **argv)
{
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (argc > 1 && !strcmp(argv[1], "executed")) {
		touch_region(EXECUTED);
		return write(1, "x", 1) != 1;
	}
	if (argc > 1)
		return child_main(argv[0]);
	path[len > 0 ? len : 0] = 0;
	self = path;
	tap_start();
	if (memwatch_ctx_new(NULL, &ctx))
		return EXIT_FAILURE;
	if (is_permitted()) {
		test_processes();
		test_periods();
		test_loss();
		test_failures();
		test_perf();
	} else {
		tap_skip("accesses of real processes are found", "perf events are not permitted");
	}
	memwatch_ctx_unref(ctx);
	return tap_done();
}
