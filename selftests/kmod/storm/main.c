// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A storm of short lives, in every way that Linux lets a process be born, change
 * and die: the input of the identity model checker. It only causes events; what
 * they mean is judged elsewhere, from the kernel's own trace.
 *
 * The main process starts workers and is the reaper of their orphans. A worker
 * draws operations from a seeded generator, and ends after a few hundred of
 * them, so that workers too give their RMID back. Threads are bare clone(2)
 * calls: libpthread would spend more time on its own start than on the life.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STACK_SIZE	  16384
#define MAX_THREADS	  4
#define WORKER_OPERATIONS 300
#define MAX_SLEEPERS	  4

enum operation {
	OP_FORK,
	OP_VFORK,
	OP_SPAWN,
	OP_CLONE_VM,
	OP_CLONE3,
	OP_THREADS,
	OP_DEAD_LEADER,
	OP_EXEC,
	OP_THREAD_EXEC,
	OP_DEAD_LEADER_EXEC,
	OP_ZOMBIE,
	OP_DAEMON,
	OP_AUTOREAP,
	OP_KILL,
	OP_PTRACE,
	OP_SLEEPER,
	OP_SETUID,
	OP_RENAME,
	OP_BURN,
	OP_MAX,
};

static const struct {
	const char *name;
	unsigned int weight;
} operations[OP_MAX] = {
	[OP_FORK] = { "fork", 10 },
	[OP_VFORK] = { "vfork", 40 },
	[OP_SPAWN] = { "spawn", 4 },
	[OP_CLONE_VM] = { "clonevm", 20 },
	[OP_CLONE3] = { "clone3", 8 },
	[OP_THREADS] = { "threads", 5 },
	[OP_DEAD_LEADER] = { "deadleader", 4 },
	[OP_EXEC] = { "exec", 5 },
	[OP_THREAD_EXEC] = { "threadexec", 3 },
	[OP_DEAD_LEADER_EXEC] = { "deadleaderexec", 2 },
	[OP_ZOMBIE] = { "zombie", 4 },
	[OP_DAEMON] = { "daemon", 4 },
	[OP_AUTOREAP] = { "autoreap", 4 },
	[OP_KILL] = { "kill", 4 },
	[OP_PTRACE] = { "ptrace", 2 },
	[OP_SLEEPER] = { "sleeper", 2 },
	[OP_SETUID] = { "setuid", 2 },
	[OP_RENAME] = { "rename", 4 },
	[OP_BURN] = { "burn", 2 },
};

/* Shared by all processes of the storm. */
struct shared {
	uint64_t lifetimes;
	uint64_t threads;
	uint64_t execs;
	uint64_t failures;
	uint64_t count[OP_MAX];
	int last_errno;
	int stop;
};

static struct shared *shared;
static unsigned int weights[OP_MAX];
static unsigned int weight_sum;
static uint64_t target = 10000;
static uint64_t end_ns;
static const char *tiny = "./tiny";
static uint64_t prng;

/* One arena of stacks for each worker; children use copies of it. */
static char stacks[MAX_THREADS + 1][STACK_SIZE] __attribute__((aligned(64)));
static pid_t sleepers[MAX_SLEEPERS];

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* xorshift64*: reproducible, needs no lock. */
static uint64_t draw(void)
{
	prng ^= prng >> 12;
	prng ^= prng << 25;
	prng ^= prng >> 27;
	return prng * 0x2545F4914F6CDD1DULL;
}

static unsigned int below(unsigned int n)
{
	return (draw() >> 32) % n;
}

static void add(uint64_t *counter, uint64_t n)
{
	__atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

static void failed(void)
{
	__atomic_store_n(&shared->last_errno, errno, __ATOMIC_RELAXED);
	add(&shared->failures, 1);
}

static void nap(unsigned int us)
{
	struct timespec ts = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000L };

	nanosleep(&ts, NULL);
}

static void spin(unsigned int us)
{
	uint64_t end = now_ns() + us * 1000ULL;

	while (now_ns() < end)
		;
}

static void reap(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, __WALL) < 0)
		if (errno != EINTR)
			return;
}

/* ------------------------------------------------------- bodies of children */

/* Argument of a thread or a CLONE_VM child, passed as a number. */
enum {
	BODY_EXIT = 0,
	BODY_NAP = 1,
	BODY_SPIN = 2,
	BODY_EXEC = 3,
	BODY_NAP_EXEC = 4,
	BODY_PAUSE = 5,
	BODY_RENAME = 6,
};

static char *const no_arguments[] = { (char *)"tiny", NULL };
static char *const no_environment[] = { NULL };

__attribute__((noreturn)) static void exec_tiny(void)
{
	execve(tiny, no_arguments, no_environment);
	failed();
	_exit(127);
}

/*
 * Runs on a stack of STACK_SIZE without a TLS of its own, next to siblings that
 * do the same: system calls only, and errno belongs to everybody.
 */
static int body(void *argument)
{
	long what = (long)argument;

	switch (what & 7) {
	case BODY_NAP:
		nap(what >> 3);
		break;
	case BODY_SPIN:
		spin(what >> 3);
		break;
	case BODY_NAP_EXEC:
		nap(what >> 3);
		/* fall through */
	case BODY_EXEC:
		exec_tiny();
	case BODY_PAUSE:
		for (;;)
			pause();
	case BODY_RENAME:
		prctl(PR_SET_NAME, "renamed-thread");
		break;
	}
	syscall(SYS_exit, 0);
	return 0;
}

static void *argument(unsigned int what, unsigned int us)
{
	return (void *)(long)(what | us << 3);
}

static int thread(unsigned int slot, void *arg)
{
	int ret = clone(body, stacks[slot] + STACK_SIZE,
			CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
				CLONE_SYSVSEM,
			arg);

	if (ret < 0)
		failed();
	else
		add(&shared->threads, 1);
	return ret;
}

/* A child of its own address space; false in the parent. */
static pid_t child(void)
{
	pid_t pid = fork();

	if (pid > 0)
		add(&shared->lifetimes, 1);
	else if (pid < 0)
		failed();
	return pid;
}

static void child_threads(void)
{
	unsigned int i, n = 1 + below(MAX_THREADS);

	for (i = 0; i < n; i++)
		thread(i, argument(below(2) ? BODY_NAP : BODY_EXIT, below(1500)));
	if (below(2))
		nap(below(2000));
	/* exit_group: whoever still lives is killed. */
	_exit(0);
}

static void child_dead_leader(void)
{
	unsigned int i, n = 1 + below(MAX_THREADS);

	for (i = 0; i < n; i++)
		thread(i, argument(1 + below(2), 100 + below(3000)));
	syscall(SYS_exit, 0);
}

static void child_thread_exec(int dead_leader)
{
	unsigned int i, n = below(3);

	for (i = 1; i <= n; i++)
		thread(i, argument(BODY_PAUSE, 0));
	if (thread(0, argument(dead_leader ? BODY_NAP_EXEC : BODY_EXEC, below(1500))) < 0)
		_exit(1);
	add(&shared->execs, 1);
	if (dead_leader)
		syscall(SYS_exit, 0);
	for (;;)
		pause();
}

static void child_autoreap(void)
{
	unsigned int i, n = 1 + below(4);

	signal(SIGCHLD, SIG_IGN);
	for (i = 0; i < n; i++)
		if (!child())
			_exit(0);
	nap(below(1000));
	_exit(0);
}

static void child_rename(void)
{
	prctl(PR_SET_NAME, below(2) ? "renamed" : "otherwise");
	if (below(2)) {
		thread(0, argument(BODY_RENAME, 0));
		nap(300);
	}
	if (below(2))
		spin(below(300));
	_exit(0);
}

static void child_kill(void)
{
	unsigned int i, n = below(MAX_THREADS);

	for (i = 0; i < n; i++)
		thread(i, argument(below(2) ? BODY_PAUSE : BODY_SPIN, 50000));
	for (;;)
		pause();
}

/* ------------------------------------------------------------- operations */

static void run_ptrace(void)
{
	pid_t pid = child();
	int status;

	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		_exit(0);
	}
	if (pid < 0)
		return;
	if (waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status)) {
		if (below(3))
			ptrace(PTRACE_CONT, pid, NULL, NULL);
		else
			kill(pid, SIGKILL);
		reap(pid);
	}
}

static void run_zombies(void)
{
	pid_t pid[8];
	unsigned int i, n = 2 + below(6);

	for (i = 0; i < n; i++) {
		pid[i] = child();
		if (!pid[i])
			_exit(0);
	}
	nap(below(6000));
	for (i = 0; i < n; i++)
		if (pid[i] > 0)
			reap(pid[i]);
}

static void run_daemon(void)
{
	pid_t pid = child();

	if (!pid) {
		if (!child()) {
			nap(below(4000));
			_exit(0);
		}
		_exit(0);
	}
	if (pid > 0)
		reap(pid);
}

static void run_sleeper(void)
{
	unsigned int slot = below(MAX_SLEEPERS);

	if (sleepers[slot] > 0) {
		kill(sleepers[slot], SIGKILL);
		reap(sleepers[slot]);
	}
	sleepers[slot] = child();
	if (!sleepers[slot]) {
		for (;;)
			nap(20000);
	}
}

static void run_clone3(void)
{
	struct clone_args args = { .exit_signal = SIGCHLD };
	long pid;

	if (below(2))
		args.flags = CLONE_CLEAR_SIGHAND;
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (!pid)
		_exit(0);
	if (pid < 0) {
		failed();
		return;
	}
	add(&shared->lifetimes, 1);
	reap(pid);
}

static void run_clone_vm(void)
{
	/* Not a thread: a process that shares the memory, as LinuxThreads had them. */
	pid_t pid[2];
	unsigned int i, n = 1 + below(2);

	for (i = 0; i < n; i++) {
		pid[i] = clone(body, stacks[i] + STACK_SIZE,
			       CLONE_VM | CLONE_FS | CLONE_FILES | SIGCHLD,
			       argument(below(4) ? BODY_EXIT : BODY_NAP, below(500)));
		if (pid[i] > 0)
			add(&shared->lifetimes, 1);
		else
			failed();
	}
	for (i = 0; i < n; i++)
		if (pid[i] > 0)
			reap(pid[i]);
}

/* The child borrows our stack until it exits or executes: touch nothing else. */
static void run_vfork(volatile int execute)
{
	pid_t pid = vfork();

	if (!pid) {
		if (execute)
			execve(tiny, no_arguments, no_environment);
		_exit(execute ? 127 : 0);
	}
	if (pid < 0) {
		failed();
		return;
	}
	add(&shared->lifetimes, 1);
	if (execute)
		add(&shared->execs, 1);
	reap(pid);
}

static void run_spawn(void)
{
	pid_t pid;

	errno = posix_spawn(&pid, tiny, NULL, NULL, no_arguments, no_environment);
	if (errno) {
		failed();
		return;
	}
	add(&shared->lifetimes, 1);
	add(&shared->execs, 1);
	reap(pid);
}

static void child_of(enum operation op)
{
	switch (op) {
	case OP_FORK:
		_exit(0);
	case OP_THREADS:
		child_threads();
		break;
	case OP_DEAD_LEADER:
		child_dead_leader();
		break;
	case OP_EXEC:
		add(&shared->execs, 1);
		exec_tiny();
	case OP_THREAD_EXEC:
		child_thread_exec(0);
		break;
	case OP_DEAD_LEADER_EXEC:
		child_thread_exec(1);
		break;
	case OP_AUTOREAP:
		child_autoreap();
		break;
	case OP_KILL:
		child_kill();
		break;
	case OP_SETUID:
		if (setuid(1 + below(65000)))
			failed();
		spin(below(200));
		break;
	case OP_RENAME:
		child_rename();
		break;
	case OP_BURN:
		spin(500 + below(8000));
		break;
	default:
		break;
	}
	_exit(0);
}

static void run(enum operation op)
{
	pid_t pid;

	switch (op) {
	case OP_VFORK:
		run_vfork(0);
		return;
	case OP_SPAWN:
		run_spawn();
		return;
	case OP_CLONE_VM:
		run_clone_vm();
		return;
	case OP_CLONE3:
		run_clone3();
		return;
	case OP_ZOMBIE:
		run_zombies();
		return;
	case OP_DAEMON:
		run_daemon();
		return;
	case OP_PTRACE:
		run_ptrace();
		return;
	case OP_SLEEPER:
		run_sleeper();
		return;
	case OP_EXEC:
		if (below(2)) {
			run_vfork(1);
			return;
		}
		break;
	default:
		break;
	}
	pid = child();
	if (!pid)
		child_of(op);
	if (pid < 0)
		return;
	if (op == OP_KILL) {
		nap(below(2000));
		kill(pid, SIGKILL);
	}
	reap(pid);
}

static enum operation choose(void)
{
	unsigned int i, x = below(weight_sum);

	for (i = 0; i < OP_MAX - 1 && x >= weights[i]; i++)
		x -= weights[i];
	return i;
}

static int finished(void)
{
	return __atomic_load_n(&shared->stop, __ATOMIC_RELAXED) ||
	       (target && __atomic_load_n(&shared->lifetimes, __ATOMIC_RELAXED) >= target) ||
	       (end_ns && now_ns() >= end_ns);
}

__attribute__((noreturn)) static void worker(uint64_t seed)
{
	unsigned int i;

	prng = seed | 1;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (i = 0; i < 8; i++)
		draw();
	for (i = 0; i < WORKER_OPERATIONS && !finished(); i++) {
		enum operation op = choose();

		run(op);
		add(&shared->count[op], 1);
	}
	for (i = 0; i < MAX_SLEEPERS; i++) {
		if (sleepers[i] > 0) {
			kill(sleepers[i], SIGKILL);
			reap(sleepers[i]);
		}
	}
	_exit(0);
}

/* ------------------------------------------------------------------- main */

static void on_term(int number)
{
	(void)number;
	shared->stop = 1;
}

static int set_mix(const char *text)
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
		for (i = 0; i < OP_MAX; i++)
			if (!strcmp(item, operations[i].name))
				break;
		if (i == OP_MAX) {
			fprintf(stderr, "storm: no operation is called %s\n", item);
			ret = -1;
			break;
		}
		weights[i] = equals ? strtoul(equals, NULL, 0) : 1;
	}
	free(copy);
	return ret;
}

static void usage(void)
{
	unsigned int i;

	fprintf(stderr, "usage: storm [-n LIFETIMES] [-d SECONDS] [-c WORKERS] [-s SEED] [-t TINY] "
			"[-m NAME=WEIGHT,...]\noperations:");
	for (i = 0; i < OP_MAX; i++)
		fprintf(stderr, " %s=%u", operations[i].name, operations[i].weight);
	fprintf(stderr, "\n");
}

static void report(uint64_t elapsed_ns)
{
	unsigned int i;

	printf("storm: lifetimes=%llu threads=%llu execs=%llu failures=%llu errno=%d ms=%llu\n",
	       (unsigned long long)shared->lifetimes, (unsigned long long)shared->threads,
	       (unsigned long long)shared->execs, (unsigned long long)shared->failures,
	       shared->last_errno, (unsigned long long)(elapsed_ns / 1000000));
	printf("storm: operations");
	for (i = 0; i < OP_MAX; i++)
		if (shared->count[i])
			printf(" %s=%llu", operations[i].name,
			       (unsigned long long)shared->count[i]);
	printf("\n");
}

/* The number of workers and the seed; 0 or an exit status. */
static int parse(int argc, char **argv, unsigned int *workers, uint64_t *seed)
{
	unsigned int i;
	int option;

	for (i = 0; i < OP_MAX; i++)
		weights[i] = operations[i].weight;
	while ((option = getopt(argc, argv, "n:d:c:s:t:m:h")) != -1) {
		switch (option) {
		case 'n':
			target = strtoull(optarg, NULL, 0);
			break;
		case 'd':
			end_ns = now_ns() + strtoull(optarg, NULL, 0) * 1000000000ULL;
			break;
		case 'c':
			*workers = strtoul(optarg, NULL, 0);
			break;
		case 's':
			*seed = strtoull(optarg, NULL, 0);
			break;
		case 't':
			tiny = optarg;
			break;
		case 'm':
			if (set_mix(optarg))
				return 2;
			break;
		default:
			usage();
			return 2;
		}
	}
	for (i = 0; i < OP_MAX; i++)
		weight_sum += weights[i];
	if (!*workers || !weight_sum || (!target && !end_ns)) {
		usage();
		return 2;
	}
	return 0;
}

/* Fill the empty places. */
static void hire(pid_t *pid, unsigned int workers, uint64_t seed)
{
	static uint64_t born;
	unsigned int i;

	for (i = 0; i < workers && !finished(); i++) {
		if (pid[i])
			continue;
		born++;
		pid[i] = fork();
		if (!pid[i])
			worker(seed * 0x9E3779B97F4A7C15ULL + born * 0xBF58476D1CE4E5B9ULL);
		if (pid[i] < 0) {
			failed();
			pid[i] = 0;
			break;
		}
		add(&shared->lifetimes, 1);
	}
}

/*
 * A worker that ends is replaced, until nobody is left. Orphans come back here
 * too, and look the same: too many workers are avoided by knowing their pids.
 */
static void supervise(pid_t *pid, unsigned int workers, uint64_t seed)
{
	unsigned int i;
	pid_t dead;

	for (;;) {
		hire(pid, workers, seed);
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

	err = parse(argc, argv, &workers, &seed);
	if (err)
		return err;
	pid = calloc(workers, sizeof(*pid));
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (!pid || shared == MAP_FAILED) {
		perror("storm");
		return 1;
	}
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	signal(SIGTERM, on_term);
	signal(SIGINT, on_term);
	begin = now_ns();
	supervise(pid, workers, seed);
	free(pid);
	report(now_ns() - begin);
	return shared->failures > shared->lifetimes / 100;
}
