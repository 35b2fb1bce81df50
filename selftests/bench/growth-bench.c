// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Measures the cost of the growth monitor; prints lines for "make bench". What is compared
 * with a budget is the ratio of two measurements that follow each other directly, so that
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
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <memwatch/watch.h>

#define PAIRS	  41
#define FAULTS	  20000
#define PROCESSES 1000
#define REQUESTS  200
#define MIB	  (1UL << 20)

static struct memwatch_ctx *ctx;

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void die(const char *what)
{
	fprintf(stderr, "growth-bench: %s: %s\n", what, ctx ? memwatch_ctx_error(ctx) : "");
	exit(EXIT_FAILURE);
}

static void print_result(const char *name, double value, const char *unit, double budget)
{
	printf("%s %.4g %s %.4g %s\n", name, value, unit, budget, value <= budget ? "ok" : "over");
	fflush(stdout);
}

/* CPU time of one page fault and its share of the unmapping, in nanoseconds. */
static double measure_faults(void)
{
	uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	for (int i = 0; i < 10; i++) {
		char *p = mmap(NULL, FAULTS / 10 * 4096UL, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			die("mmap");
		madvise(p, FAULTS / 10 * 4096UL, MADV_NOHUGEPAGE);
		for (unsigned long at = 0; at < FAULTS / 10 * 4096UL; at += 4096)
			p[at] = 1;
		munmap(p, FAULTS / 10 * 4096UL);
	}
	return (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin) / FAULTS;
}

static int compare_doubles(const void *a, const void *b)
{
	double p = *(const double *)a, q = *(const double *)b;

	return (p > q) - (p < q);
}

static struct memwatch_watch *open_watch(uint32_t flags)
{
	MEMWATCH_OPTS(memwatch_watch_opts, opts, .flags = flags);
	struct memwatch_watch *watch;

	if (memwatch_watch_open(ctx, &opts, &watch))
		die("watch");
	return watch;
}

/* While a record waits, memwatch_watch_poll() returns at once. */
static void poll_and_take(struct memwatch_watch *watch, int timeout_ms)
{
	const struct memwatch_record_header *record;

	if (memwatch_watch_poll(watch, timeout_ms) & MEMWATCH_WATCH_EVENT)
		memwatch_watch_next(watch, &record);
}

/* Polls a monitor in a thread of its own. */
static void *poll_thread(void *arg)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	while (!__atomic_load_n((bool *)(((void **)arg)[1]), __ATOMIC_RELAXED))
		poll_and_take(((void **)arg)[0], 50);
	return NULL;
}

static void bench_faults(void)
{
	double ratios[PAIRS], none[PAIRS], with[PAIRS];

	for (int i = 0; i < PAIRS; i++) {
		struct memwatch_watch *watch;
		bool stop = false;
		void *args[2];
		pthread_t thread;

		measure_faults();
		none[i] = measure_faults();
		watch = open_watch(0);
		args[0] = watch;
		args[1] = &stop;
		pthread_create(&thread, NULL, poll_thread, args);
		measure_faults();
		with[i] = measure_faults();
		__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
		pthread_join(thread, NULL);
		memwatch_watch_unref(watch);
		ratios[i] = with[i] / none[i];
	}
	qsort(ratios, PAIRS, sizeof(double), compare_doubles);
	qsort(none, PAIRS, sizeof(double), compare_doubles);
	qsort(with, PAIRS, sizeof(double), compare_doubles);
	fprintf(stderr,
		"fault: %.0f ns without, %.0f ns with the monitor; n=%d pairs, ratio %.3f..%.3f\n",
		none[PAIRS / 2], with[PAIRS / 2], PAIRS, ratios[PAIRS / 4], ratios[PAIRS * 3 / 4]);
	print_result("growth_fault_ratio", ratios[PAIRS / 2], "ratio", 1.07);
}

static void bench_processes(void)
{
	MEMWATCH_OPTS(memwatch_watch_stats, stats);
	struct memwatch_watch *watch;
	pid_t pids[PROCESSES];
	uint64_t begin;

	for (int i = 0; i < PROCESSES; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			pause();
			_exit(0);
		}
		if (pids[i] < 0)
			die("fork");
	}
	/* Without the event program: rounds that other programs cause must not count. */
	watch = open_watch(MEMWATCH_WATCH_NO_EVENTS);
	begin = clock_ns(CLOCK_MONOTONIC);
	while (clock_ns(CLOCK_MONOTONIC) - begin < 31000000000ULL)
		poll_and_take(watch, 1000);
	memwatch_watch_get_stats(watch, &stats);
	fprintf(stderr, "%llu rounds over %u processes, %.2f us a sample\n",
		(unsigned long long)stats.rounds, stats.processes,
		(double)stats.cpu_ns / 1e3 / (double)stats.samples);
	print_result("growth_cpu_at_1000_processes",
		     (double)stats.cpu_ns * 100 / (double)(clock_ns(CLOCK_MONOTONIC) - begin),
		     "percent", 0.1);
	print_result("growth_state", stats.state_bytes, "bytes", 256);
	print_result("growth_state_of_one_that_grows", stats.state_bytes + stats.history_bytes,
		     "bytes", 1536);
	memwatch_watch_unref(watch);
	for (int i = 0; i < PROCESSES; i++)
		kill(pids[i], SIGKILL);
	for (int i = 0; i < PROCESSES; i++)
		waitpid(pids[i], NULL, 0);
}

/* Starts a child that grows by 12 MiB forty times, frees it all, and begins again. */
static pid_t start_burst(int period_us)
{
	enum { BURSTS = 40 };
	char *held[BURSTS];
	pid_t pid = fork();

	if (pid)
		return pid;
	for (unsigned int i = 0;; i++) {
		char **p = &held[i % BURSTS];

		*p = mmap(NULL, 12 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			  0);
		memset(*p, 1, 12 * MIB);
		/* Memory that is freed at once would be no growth for the next round. */
		for (unsigned int j = 0; i % BURSTS == BURSTS - 1 && j < BURSTS; j++)
			munmap(held[j], 12 * MIB);
		usleep((useconds_t)period_us);
	}
}

static void bench_reaction(void)
{
	MEMWATCH_OPTS(memwatch_watch_stats, stats);
	struct memwatch_watch *watch = open_watch(0);
	pid_t pid = start_burst(100000);
	double took[REQUESTS];
	uint64_t last = 0, end = clock_ns(CLOCK_MONOTONIC) + 60000000000ULL;
	struct sched_param first = { .sched_priority = 1 };
	int n = 0;

	/* With real-time priority, as "growth watch" has it. */
	sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &first);
	while (n < REQUESTS && clock_ns(CLOCK_MONOTONIC) < end) {
		poll_and_take(watch, 1000);
		memwatch_watch_get_stats(watch, &stats);
		if (stats.reaction_ns && stats.reaction_ns != last)
			took[n++] = (double)stats.reaction_ns / 1e6;
		last = stats.reaction_ns;
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	memwatch_watch_unref(watch);
	if (n < 50)
		die("too few requests for rounds");
	qsort(took, (size_t)n, sizeof(double), compare_doubles);
	fprintf(stderr, "reaction: median %.2f ms, n=%d\n", took[n / 2], n);
	print_result("growth_reaction_p99", took[n * 99 / 100], "ms", 10);
}

int main(void)
{
	if (memwatch_ctx_new(NULL, &ctx))
		return EXIT_FAILURE;
	bench_faults();
	bench_processes();
	bench_reaction();
	memwatch_ctx_unref(ctx);
	return 0;
}
