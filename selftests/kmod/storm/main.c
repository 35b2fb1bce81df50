// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Creates processes that live for a short time, in every way in which Linux lets a process
 * be born, change and die: the input of the identity model checker. It only causes events.
 * The checker judges from the kernel's own trace what they must have led to.
 *
 * The main process starts workers, and is the reaper of their orphans. A worker draws
 * operations from a seeded generator. It ends after a few hundred of them, so that workers
 * give their RMID back, too.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "storm.h"

#define WORKER_OPERATIONS 300

static unsigned int weights[STORM_OPERATIONS_MAX]; /* by index in storm_operations */
static unsigned int weight_sum;
static uint64_t lifetimes_wanted = 10000; /* 0: no limit */
static uint64_t end_ns;			  /* 0: no limit */

/* The index of an operation, each with the probability that its weight gives it. */
static unsigned int operation_draw(void)
{
	unsigned int i, x = storm_random_below(weight_sum);

	for (i = 0; i < storm_nr_operations - 1 && x >= weights[i]; i++)
		x -= weights[i];
	return i;
}

static int storm_is_over(void)
{
	uint64_t lifetimes = __atomic_load_n(&storm_shared->lifetimes, __ATOMIC_RELAXED);

	return __atomic_load_n(&storm_shared->stop, __ATOMIC_RELAXED) ||
	       (lifetimes_wanted && lifetimes >= lifetimes_wanted) ||
	       (end_ns && storm_now_ns() >= end_ns);
}

__attribute__((noreturn)) static void worker_main(uint64_t seed)
{
	unsigned int i, index;

	storm_random_seed(seed);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (i = 0; i < WORKER_OPERATIONS && !storm_is_over(); i++) {
		index = operation_draw();
		storm_operation_run(&storm_operations[index]);
		storm_add(&storm_shared->operations[index], 1);
	}
	storm_change_sleepers_end();
	_exit(0);
}

static void on_signal(int number)
{
	(void)number;
	storm_shared->stop = 1;
}

/* @text: NAME[=WEIGHT],...; operations that it does not name are not drawn. */
static int weights_parse(const char *text)
{
	char *copy = strdup(text), *item, *save = NULL;
	unsigned int i;
	int ret = 0;

	if (!copy)
		return -1;
	memset(weights, 0, sizeof(weights));
	for (item = strtok_r(copy, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
		char *equals = strchr(item, '=');

		if (equals)
			*equals++ = 0;
		for (i = 0; i < storm_nr_operations; i++)
			if (!strcmp(item, storm_operations[i].name))
				break;
		if (i == storm_nr_operations) {
			fprintf(stderr, "storm: there is no operation '%s'; -h lists them\n", item);
			ret = -1;
			break;
		}
		weights[i] = equals ? strtoul(equals, NULL, 0) : 1;
	}
	free(copy);
	return ret;
}

static void print_usage(void)
{
	unsigned int i;

	fprintf(stderr, "usage: storm [-n LIFETIMES] [-d SECONDS] [-c WORKERS] [-s SEED] [-t TINY] "
			"[-m NAME=WEIGHT,...]\noperations:");
	for (i = 0; i < storm_nr_operations; i++)
		fprintf(stderr, " %s=%u", storm_operations[i].name, storm_operations[i].weight);
	fprintf(stderr, "\n");
}

static void print_report(uint64_t elapsed_ns)
{
	unsigned int i;

	printf("storm: lifetimes=%llu threads=%llu execs=%llu failures=%llu errno=%d ms=%llu\n",
	       (unsigned long long)storm_shared->lifetimes,
	       (unsigned long long)storm_shared->threads, (unsigned long long)storm_shared->execs,
	       (unsigned long long)storm_shared->failures, storm_shared->last_errno,
	       (unsigned long long)(elapsed_ns / 1000000));
	printf("storm: operations");
	for (i = 0; i < storm_nr_operations; i++)
		if (storm_shared->operations[i])
			printf(" %s=%llu", storm_operations[i].name,
			       (unsigned long long)storm_shared->operations[i]);
	printf("\n");
}

/* Returns 0 or an exit status. */
static int options_parse(int argc, char **argv, unsigned int *workers, uint64_t *seed)
{
	unsigned int i;
	int option;

	for (i = 0; i < storm_nr_operations; i++)
		weights[i] = storm_operations[i].weight;
	while ((option = getopt(argc, argv, "n:d:c:s:t:m:h")) != -1) {
		switch (option) {
		case 'n':
			lifetimes_wanted = strtoull(optarg, NULL, 0);
			break;
		case 'd':
			end_ns = storm_now_ns() + strtoull(optarg, NULL, 0) * 1000000000ULL;
			break;
		case 'c':
			*workers = strtoul(optarg, NULL, 0);
			break;
		case 's':
			*seed = strtoull(optarg, NULL, 0);
			break;
		case 't':
			storm_tiny = optarg;
			break;
		case 'm':
			if (weights_parse(optarg))
				return 2;
			break;
		default:
			print_usage();
			return 2;
		}
	}
	for (i = 0; i < storm_nr_operations; i++)
		weight_sum += weights[i];
	if (!*workers || !weight_sum || (!lifetimes_wanted && !end_ns)) {
		print_usage();
		return 2;
	}
	return 0;
}

/* Start a worker for each entry of @pid that is 0. */
static void workers_start(pid_t *pid, unsigned int workers, uint64_t seed)
{
	static uint64_t started;
	unsigned int i;

	for (i = 0; i < workers && !storm_is_over(); i++) {
		if (pid[i])
			continue;
		started++;
		pid[i] = fork();
		if (!pid[i])
			worker_main((seed << 32) + started);
		if (pid[i] < 0) {
			storm_count_failure();
			pid[i] = 0;
			break;
		}
		storm_add(&storm_shared->lifetimes, 1);
	}
}

/*
 * Replace each worker that ends, until the storm is over and all children have ended.
 * waitpid() also returns orphans; the pids tell them from workers.
 */
static void workers_supervise(pid_t *pid, unsigned int workers, uint64_t seed)
{
	unsigned int i;
	pid_t dead;

	for (;;) {
		workers_start(pid, workers, seed);
		dead = waitpid(-1, NULL, __WALL);
		if (dead < 0 && errno != EINTR)
			return;
		for (i = 0; dead > 0 && i < workers; i++)
			if (pid[i] == dead)
				pid[i] = 0;
	}
}

int main(int argc, char **argv)
{
	unsigned int workers = 4;
	uint64_t seed = 1, begin;
	pid_t *pid;
	int err;

	err = options_parse(argc, argv, &workers, &seed);
	if (err)
		return err;
	pid = calloc(workers, sizeof(*pid));
	storm_shared = mmap(NULL, sizeof(*storm_shared), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!pid || storm_shared == MAP_FAILED) {
		perror("storm");
		return 1;
	}
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	begin = storm_now_ns();
	workers_supervise(pid, workers, seed);
	free(pid);
	print_report(storm_now_ns() - begin);
	return storm_shared->failures > storm_shared->lifetimes / 100;
}
