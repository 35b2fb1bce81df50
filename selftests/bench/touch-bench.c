// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What it costs to look at the pages of processes that grow; prints lines for "make bench". Ten
 * suspects have 10 GiB together. In each of them a thread with real-time priority faults in pages
 * and notes how long that took at most, and how long it waited in it: what it took without its own
 * CPU time. A hypervisor that takes the CPU away for 40 ms looks like CPU time, and does so without
 * the monitor as well. The loss of a program, sqlite3 with a database in memory, is what it does
 * less in the quarters of a second in which it was looked at: the two kinds alternate, so that
 * other load on the machine matters little.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <memwatch/watch.h>

#define SUSPECTS  10
#define MIB	  (1UL << 20)
#define SIZE_MIB  1000
#define SECOND	  1000000000ULL
#define QUARTER	  (SECOND / 4)
#define WATCHED_S 60
#define VISITS	  30

static struct memwatch_ctx *ctx;

/* What a suspect shares with this program. */
static struct board {
	bool noticed;
	uint64_t longest_ns;
	uint64_t wait_ns;
} * board;

static uint64_t read_clock(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static uint64_t now_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

static void die(const char *what)
{
	fprintf(stderr, "touch-bench: %s: %s\n", what, ctx ? memwatch_ctx_error(ctx) : "");
	exit(EXIT_FAILURE);
}

static void print_result(const char *name, double value, const char *unit, double budget)
{
	printf("%s %.4g %s %.4g %s\n", name, value, unit, budget, value <= budget ? "ok" : "over");
	fflush(stdout);
}

/* ------------------------------------------------------------ ten suspects */

/* The priority of growth watch. */
static void take_priority(void)
{
	struct sched_param first = { .sched_priority = 1 };

	if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &first))
		die("real-time priority");
}

static void raise_to(uint64_t *longest, uint64_t took)
{
	if (took > __atomic_load_n(longest, __ATOMIC_RELAXED))
		__atomic_store_n(longest, took, __ATOMIC_RELAXED);
}

/*
 * Faults in pages, four at a time. Sleeps for half a budget in between: ten such threads must not
 * use up the time that the kernel leaves to real-time priorities.
 */
static void *fault_pages(void *arg)
{
	struct board *own = arg;

	take_priority();
	for (;;) {
		uint64_t took, ran, begin = now_ns(),
				    begin_cpu = read_clock(CLOCK_THREAD_CPUTIME_ID);
		char *p = mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0);

		for (int i = 0; p != MAP_FAILED && i < 4; i++)
			p[i * 4096] = 1;
		munmap(p, 4 * 4096);
		ran = read_clock(CLOCK_THREAD_CPUTIME_ID) - begin_cpu;
		took = now_ns() - begin;
		raise_to(&own->longest_ns, took);
		raise_to(&own->wait_ns, took > ran ? took - ran : 0);
		usleep(5000);
	}
	return NULL;
}

/* A child that gains 4 MiB/s until it is a suspect, then 1 MiB/s. */
static pid_t start_suspect(struct board *own)
{
	pid_t pid = fork();
	pthread_t thread;
	char *base;

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	base = mmap(NULL, 4096 * MIB, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED || pthread_create(&thread, NULL, fault_pages, own))
		_exit(EXIT_FAILURE);
	for (size_t at = 0; at < 4095; at++) {
		memset(base + at * MIB, 1, MIB);
		if (at > SIZE_MIB)
			usleep(__atomic_load_n(&own->noticed, __ATOMIC_RELAXED) ? 1000000 : 250000);
	}
	pause();
	_exit(EXIT_SUCCESS);
}

static void end_all(pid_t *pids, int count)
{
	for (int i = 0; i < count; i++)
		kill(pids[i], SIGKILL);
	for (int i = 0; i < count; i++)
		waitpid(pids[i], NULL, 0);
}

static struct memwatch_watch *open_watch(void)
{
	MEMWATCH_OPTS(memwatch_watch_opts, opts);
	struct memwatch_watch *watch;

	if (memwatch_watch_open(ctx, &opts, &watch))
		die("watch");
	return watch;
}

static void poll_watch(struct memwatch_watch *watch, int ms, struct memwatch_watch_stats *stats)
{
	const struct memwatch_record_header *record;

	if (memwatch_watch_poll(watch, ms) & MEMWATCH_WATCH_EVENT)
		while (memwatch_watch_next(watch, &record) > 0)
			;
	memwatch_watch_get_stats(watch, stats);
	if (stats->touch_state == MEMWATCH_TOUCH_IMPOSSIBLE)
		die("pages cannot be looked at");
}

static void await_suspects(struct memwatch_watch *watch, uint32_t count,
			   struct memwatch_watch_stats *stats)
{
	uint64_t end = now_ns() + 120 * SECOND;

	do {
		poll_watch(watch, 250, stats);
		if (now_ns() > end)
			die("there was no notice within two minutes");
	} while (stats->touch_suspects < count);
}

/* The longest times since the last call, in ms. */
struct longest {
	double fault, wait;
};

static struct longest take_longest(void)
{
	uint64_t fault = 0, wait = 0;

	for (int i = 0; i < SUSPECTS; i++) {
		raise_to(&fault, __atomic_exchange_n(&board[i].longest_ns, 0, __ATOMIC_RELAXED));
		raise_to(&wait, __atomic_exchange_n(&board[i].wait_ns, 0, __ATOMIC_RELAXED));
	}
	return (struct longest){ (double)fault / 1e6, (double)wait / 1e6 };
}

static void bench_suspects(void)
{
	MEMWATCH_OPTS(memwatch_watch_stats, before);
	MEMWATCH_OPTS(memwatch_watch_stats, after);
	struct memwatch_watch *watch;
	struct longest alone, longest;
	pid_t pids[SUSPECTS];
	uint64_t begin;

	for (int i = 0; i < SUSPECTS; i++)
		pids[i] = start_suspect(&board[i]);
	sleep(15);
	take_longest();
	sleep(WATCHED_S);
	alone = take_longest();
	take_priority();
	watch = open_watch();
	await_suspects(watch, SUSPECTS, &before);
	for (int i = 0; i < SUSPECTS; i++)
		__atomic_store_n(&board[i].noticed, true, __ATOMIC_RELAXED);
	take_longest();
	begin = now_ns();
	while (now_ns() - begin < WATCHED_S * SECOND)
		poll_watch(watch, 1000, &after);
	longest = take_longest();
	fprintf(stderr,
		"ten suspects: %llu visits, %.2f ms each; longest fault %.2f ms, %.2f ms before; "
		"longest wait in one %.2f ms, %.2f ms before\n",
		(unsigned long long)(after.touch_visits - before.touch_visits),
		(double)(after.touch_cpu_ns - before.touch_cpu_ns) / 1e6 /
			(double)(after.touch_visits - before.touch_visits),
		longest.fault, alone.fault, longest.wait, alone.wait);
	print_result("growth_cpu_with_ten_suspects",
		     (double)(after.cpu_ns + after.event_ns - before.cpu_ns - before.event_ns) *
			     100 / (double)(now_ns() - begin),
		     "percent", 1);
	print_result("growth_longest_fault_of_a_suspect", longest.fault, "ms", 10);
	print_result("growth_longest_wait_of_a_suspect", longest.wait, "ms", 10);
	print_result("growth_longest_lock_of_a_suspect", (double)after.touch_stall_ns / 1e6, "ms",
		     10);
	memwatch_watch_unref(watch);
	end_all(pids, SUSPECTS);
}

/* ------------------------------------------------------------------ sqlite */

/* A script for sqlite3: a table that is read all over and grows by some 2 MB/s. */
static void write_script(FILE *f)
{
	fprintf(f,
		"create table t(a integer primary key, b blob);\n"
		"with recursive n(i) as (select 1 union all select i + 1 from n where i < 200000)"
		" insert into t select i, randomblob(200) from n;\n");
	for (int i = 0; i < 4000000; i++)
		fprintf(f,
			"insert into t select null, randomblob(1000);\n"
			"select sum(length(b)) from t where a = abs(random()) %% 200000;\n"
			"select count(b) from t where a between %d and %d + 400;\n",
			(int)(i * 7919LL % 199000), (int)(i * 7919LL % 199000));
}

/* Starts sqlite3 with that script. Returns its output, of which each line is an operation. */
static int start_sqlite(const char *script, pid_t *pid)
{
	int out[2];

	if (pipe(out))
		die("pipe");
	*pid = fork();
	if (!*pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(out[1], STDOUT_FILENO);
		if (!freopen(script, "r", stdin))
			_exit(127);
		execlp("stdbuf", "stdbuf", "-oL", "sqlite3", "-batch", ":memory:", (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	return out[0];
}

struct counter {
	int fd;
	uint64_t lines;
	bool ended;
};

static void *count_lines(void *arg)
{
	struct counter *c = arg;
	char buf[4096];
	ssize_t n;

	while ((n = read(c->fd, buf, sizeof(buf))) > 0) {
		uint64_t lines = 0;

		for (ssize_t i = 0; i < n; i++)
			lines += buf[i] == '\n';
		__atomic_fetch_add(&c->lines, lines, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&c->ended, true, __ATOMIC_RELAXED);
	return NULL;
}

/* Lines and time of the quarters of a second with a visit, and of those without. */
struct kind {
	uint64_t lines, ns;
};

static double rate_of(const struct kind *k)
{
	return (double)k->lines / ((double)k->ns / 1e9);
}

static void count_quarters(struct memwatch_watch *watch, struct counter *counter, struct kind *kind)
{
	MEMWATCH_OPTS(memwatch_watch_stats, stats);
	uint64_t visits, seen = 0;

	await_suspects(watch, 1, &stats);
	visits = stats.touch_visits;
	while (seen < VISITS) {
		uint64_t begin = now_ns(), took;
		uint64_t lines = __atomic_load_n(&counter->lines, __ATOMIC_RELAXED);

		while ((took = now_ns() - begin) < QUARTER)
			poll_watch(watch, (int)((QUARTER - took) / 1000000 + 1), &stats);
		lines = __atomic_load_n(&counter->lines, __ATOMIC_RELAXED) - lines;
		/* A busy machine may let it do nothing for a quarter of a second. */
		if (__atomic_load_n(&counter->ended, __ATOMIC_RELAXED))
			die("sqlite3 has ended");
		kind[stats.touch_visits > visits].lines += lines;
		kind[stats.touch_visits > visits].ns += took;
		seen += stats.touch_visits - visits;
		visits = stats.touch_visits;
	}
}

static void bench_sqlite(void)
{
	const char *script = getenv("SCRIPT");
	FILE *f = script ? fopen(script, "w") : NULL;
	struct kind kind[2] = { 0 };
	struct memwatch_watch *watch;
	struct counter counter = { 0 };
	pthread_t thread;
	pid_t pid;

	if (!f)
		die("script");
	write_script(f);
	fclose(f);
	counter.fd = start_sqlite(script, &pid);
	pthread_create(&thread, NULL, count_lines, &counter);
	sleep(10);
	watch = open_watch();
	count_quarters(watch, &counter, kind);
	memwatch_watch_unref(watch);
	end_all(&pid, 1);
	pthread_join(thread, NULL);
	fprintf(stderr, "sqlite3: %.0f operations/s, %.0f/s in quarters with a visit, n=%d\n",
		rate_of(&kind[0]), rate_of(&kind[1]), VISITS);
	print_result("growth_touch_loss_of_sqlite",
		     100 * (1 - rate_of(&kind[1]) / rate_of(&kind[0])) * (double)kind[1].ns /
			     (double)(kind[0].ns + kind[1].ns),
		     "percent", 1);
}

int main(void)
{
	board = mmap(NULL, SUSPECTS * sizeof(*board), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (board == MAP_FAILED || memwatch_ctx_new(NULL, &ctx))
		return EXIT_FAILURE;
	bench_suspects();
	bench_sqlite();
	memwatch_ctx_unref(ctx);
	return 0;
}
