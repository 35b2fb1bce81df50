// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The programs of the tests that fork: how, when, and from where.
 */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "heap/tests/work.h"

/*
 * fork HOW BYTES: a child that allocates; prints "CHILD-PID". How: fork, thread, other, vfork, raw,
 * vm.
 */
static int child_main(void *argument)
{
	work_allocate((size_t)(uintptr_t)argument);
	_exit(0);
}

static pid_t fork_allocating(uint64_t bytes)
{
	pid_t child = fork();

	if (!child)
		child_main((void *)(uintptr_t)bytes);
	return child;
}

static void *fork_thread(void *argument)
{
	return (void *)(intptr_t)fork_allocating((uintptr_t)argument);
}

static pid_t fork_in_thread(uint64_t bytes)
{
	void *child = (void *)-1;
	pthread_t thread;

	if (!pthread_create(&thread, NULL, fork_thread, (void *)(uintptr_t)bytes))
		pthread_join(thread, &child);
	return (pid_t)(intptr_t)child;
}

static pthread_barrier_t other_has_allocated;

static void *allocating_thread(void *argument)
{
	work_allocate((uintptr_t)argument);
	pthread_barrier_wait(&other_has_allocated);
	pause();
	return NULL;
}

static void *ending_thread(void *argument)
{
	return argument;
}

/*
 * In the child, another thread than the one that forked allocates first, and lives on. To create it
 * takes no allocation, because the C library has kept the stack of a thread from before the fork.
 */
static pid_t fork_other_first(uint64_t bytes)
{
	pthread_t thread;
	pid_t child;

	if (pthread_create(&thread, NULL, ending_thread, NULL))
		return -1;
	pthread_join(thread, NULL);
	pthread_barrier_init(&other_has_allocated, NULL, 2);
	child = fork();
	if (!child) {
		if (pthread_create(&thread, NULL, allocating_thread,
				   (void *)(uintptr_t)(bytes / 2)))
			_exit(1);
		pthread_barrier_wait(&other_has_allocated);
		child_main((void *)(uintptr_t)(bytes / 2));
	}
	return child;
}

int work_fork(char **argv)
{
	uint64_t bytes = work_number(argv, 1, 1000000);
	static char stack[1 << 18];
	pid_t child = -1;

	work_allocate(bytes);
	if (!strcmp(argv[0], "fork"))
		child = fork_allocating(bytes);
	else if (!strcmp(argv[0], "thread"))
		child = fork_in_thread(bytes);
	else if (!strcmp(argv[0], "other"))
		child = fork_other_first(bytes);
	else if (!strcmp(argv[0], "vfork"))
		child = vfork();
	else if (!strcmp(argv[0], "raw"))
		child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	else if (!strcmp(argv[0], "vm"))
		child = clone(child_main, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD,
			      (void *)(uintptr_t)bytes);
	if (!child)
		child_main((void *)(uintptr_t)bytes);
	waitpid(child, NULL, 0);
	work_allocate(bytes);
	printf("%d\n", (int)child);
	fflush(stdout);
	_exit(child < 0);
}

/* storm COUNT: children that exec() at once, children that allocate, from several threads. */
static void *storm_thread(void *argument)
{
	for (uintptr_t i = 0; i < (uintptr_t)argument; i++) {
		pid_t child = fork();

		if (!child) {
			work_allocate(i % 2 ? 100000 : 0);
			_exit(7);
		}
		work_allocate(50000);
		waitpid(child, NULL, 0);
	}
	return NULL;
}

int work_storm(char **argv)
{
	pthread_t threads[4];

	for (int n = 0; n < 4; n++)
		pthread_create(&threads[n], NULL, storm_thread,
			       (void *)(uintptr_t)work_number(argv, 0, 50));
	for (int n = 0; n < 4; n++)
		pthread_join(threads[n], NULL);
	puts("done");
	return 0;
}

static volatile uint64_t fork_count, fork_failures;
static volatile bool fork_is_child;

/* Every child returns from the handler, into whatever was interrupted, and goes on for a while. */
static void forking_handler(int number)
{
	int status;
	pid_t child;

	(void)number;
	/* The second form calls no handlers of pthread_atfork(). */
	child = fork_count % 2 ? _Fork() : fork();
	if (!child) {
		fork_is_child = true;
		return;
	}
	fork_count++;
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		fork_failures++;
}

static timer_t sigfork_timer;

/* The next signal comes some time after this one has been dealt with. */
static void timer_handler(int number)
{
	static const struct itimerspec timing = { { 0, 0 }, { 0, 1000000 } };

	forking_handler(number);
	if (!fork_is_child)
		timer_settime(sigfork_timer, 0, &timing, NULL);
}

/* sigfork COUNT: forks in a signal handler while it allocates; prints forks and failures. */
int work_sigfork(char **argv)
{
	struct itimerspec timing = { { 0, 0 }, { 0, 1000000 } };
	struct sigaction action = { .sa_handler = timer_handler, .sa_flags = SA_RESTART };
	void *volatile slots[64] = { NULL };
	uint64_t left = 1000;

	sigaction(SIGALRM, &action, NULL);
	if (timer_create(CLOCK_MONOTONIC, NULL, &sigfork_timer) ||
	    timer_settime(sigfork_timer, 0, &timing, NULL))
		return 1;
	for (uint64_t i = 0; fork_is_child || fork_count < work_number(argv, 0, 100); i++) {
		free(slots[i % 64]);
		slots[i % 64] = malloc(i % 3000);
		if (fork_is_child && !left--)
			_exit(0);
	}
	timing = (struct itimerspec){ 0 };
	timer_settime(sigfork_timer, 0, &timing, NULL);
	printf("%" PRIu64 " %" PRIu64 "\n", fork_count, fork_failures);
	return 0;
}

#ifdef __x86_64__
#define STEP_FLAG 0x100ull /* of the flags register: a trap after each instruction */

static volatile uint64_t step_count, step_target;

/* Forks after instruction step_target, and lets both processes go on without traps. */
static void step_handler(int number, siginfo_t *info, void *argument)
{
	ucontext_t *context = argument;

	(void)info;
	if (step_count++ < step_target)
		return;
	/* Where no other signal handler can run, this one must not fork either. */
	if (sigismember(&context->uc_sigmask, SIGALRM))
		return;
	context->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)STEP_FLAG;
	forking_handler(number);
}

static void steps_begin(void)
{
	__asm__ volatile("pushf\n\torq %0, (%%rsp)\n\tpopf" : : "i"(STEP_FLAG) : "memory", "cc");
}

static void steps_end(void)
{
	__asm__ volatile("pushf\n\tandq %0, (%%rsp)\n\tpopf"
			 :
			 : "i"(~(int)STEP_FLAG)
			 : "memory", "cc");
}

/* What is interrupted: all that the profiler does for an object. */
static void step_victim(void)
{
	void *volatile memory;

	steps_begin();
	memory = malloc(100);
	memory = realloc(memory, 20000);
	free(memory);
	steps_end();
}

/*
 * stepfork STRIDE: forks in a signal handler after each STRIDE-th instruction of the profiler,
 * until all of them were met. Prints forks and failures.
 */
int work_stepfork(char **argv)
{
	struct sigaction action = { .sa_sigaction = step_handler, .sa_flags = SA_SIGINFO };
	uint64_t stride = work_number(argv, 0, 1), forks = 0;

	sigaction(SIGTRAP, &action, NULL);
	step_target = UINT64_MAX;
	step_victim();
	for (step_target = 0;; step_target += stride, forks++) {
		step_count = 0;
		step_victim();
		if (fork_is_child) {
			work_allocate(100000);
			_exit(0);
		}
		if (fork_count == forks)
			break;
	}
	printf("%" PRIu64 " %" PRIu64 "\n", fork_count, fork_failures);
	return 0;
}
#else
int work_stepfork(char **argv)
{
	(void)argv;
	return WORK_UNSUPPORTED;
}
#endif
