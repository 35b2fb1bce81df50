/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Short lives of all kinds, each with the CPU time that the scheduler itself has counted for it.
 */
#ifndef _MW_SELFTESTS_BPF_STORM_H
#define _MW_SELFTESTS_BPF_STORM_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../prng.h"

#define NS_PER_TICK 10000000ULL /* of times in /proc */

enum storm_kind {
	STORM_QUIET,	   /* ends at once */
	STORM_SPIN,	   /* uses the CPU, then ends */
	STORM_SLEEP,	   /* many short sleeps */
	STORM_EXEC,	   /* becomes another program */
	STORM_THREADS,	   /* threads end after their leader */
	STORM_THREAD_EXEC, /* a thread that is not the leader becomes another program */
	STORM_KINDS,
};

static const char *const storm_names[STORM_KINDS] = { "quiet", "spin",	  "sleep",
						      "exec",  "threads", "thread exec" };

/* CPU time, and how often it was interrupted. */
struct storm_used {
	uint64_t ns;
	uint64_t switches;
};

/**
 * struct storm_life - a process that has ended
 * @pid: its process id
 * @kind: &enum storm_kind
 * @start_ticks: field 22 of /proc/PID/stat
 * @cpu_ns: what the scheduler has counted for its leader
 * @switches: how often its leader was switched in
 * @least: of several threads: what they had used when they began to end
 */
struct storm_life {
	uint32_t pid;
	uint32_t kind;
	uint64_t start_ticks;
	uint64_t cpu_ns;
	uint64_t switches;
	struct storm_used least;
};

/**
 * struct storm - shared by the process that makes the lives and the one that reads the stream
 * @done: all lives have ended
 * @count: how many
 * @used: what the threads of one process have used; one element for each process that is open
 * @lives: the lives
 */
struct storm {
	uint32_t done;
	uint32_t count;
	struct storm_used used[64];
	struct storm_life lives[];
};

#define STORM_OPEN 32 /* processes at a time, most of them zombies */

static uint64_t storm_clock(clockid_t clock)
{
	struct timespec ts = { 0 };

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

static void storm_spin(uint64_t ns)
{
	uint64_t end = storm_clock(CLOCK_MONOTONIC) + ns;

	while (storm_clock(CLOCK_MONOTONIC) < end)
		;
}

struct storm_thread {
	uint64_t spin_ns;
	struct storm_used *used;
};

/* Notes what this thread has used, and ends it. */
static void storm_end_thread(struct storm_used *used)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	__sync_fetch_and_add(&used->switches, (uint64_t)(usage.ru_nvcsw + usage.ru_nivcsw + 1));
	__sync_fetch_and_add(&used->ns, storm_clock(CLOCK_THREAD_CPUTIME_ID));
	syscall(SYS_exit, 0);
}

static void *storm_run_thread(void *argument)
{
	struct storm_thread *thread = argument;

	storm_spin(thread->spin_ns);
	storm_end_thread(thread->used);
	return NULL;
}

static void *storm_exec_thread(void *argument)
{
	struct storm_thread *thread = argument;

	storm_spin(thread->spin_ns);
	execl("/bin/true", "true", NULL);
	_exit(1);
}

/* The leader ends first. */
static void storm_start_threads(struct storm_thread *thread)
{
	pthread_t other;

	for (int i = 0; i < 3; i++)
		pthread_create(&other, NULL, storm_run_thread, thread);
	storm_end_thread(thread->used);
}

/* The life of one process. */
static void storm_live(enum storm_kind kind, uint64_t spin_ns, struct storm_used *used)
{
	struct storm_thread thread = { .spin_ns = spin_ns, .used = used };
	pthread_t other;

	switch (kind) {
	case STORM_SPIN:
		storm_spin(spin_ns);
		break;
	case STORM_SLEEP:
		for (int i = 0; i < 10; i++) {
			storm_spin(spin_ns / 20);
			usleep(100);
		}
		break;
	case STORM_EXEC:
		storm_spin(spin_ns);
		execl("/bin/true", "true", NULL);
		break;
	case STORM_THREADS:
		storm_start_threads(&thread);
		break;
	case STORM_THREAD_EXEC:
		pthread_create(&other, NULL, storm_exec_thread, &thread);
		pause();
		break;
	default:
		break;
	}
	_exit(0);
}

/* Field 22 of /proc/PID/stat. The name, which may contain anything, ends with the last ")". */
static uint64_t storm_start_ticks(pid_t pid)
{
	char path[64], text[1024], *at;
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	got = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	close(fd);
	text[got > 0 ? got : 0] = '\0';
	at = strrchr(text, ')');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at + 1, NULL, 10) : 0;
}

/* /proc/PID/schedstat: the time that the scheduler has counted, and how often it ran. */
static uint64_t storm_schedstat(pid_t pid, uint64_t *runs)
{
	char path[64], text[128];
	unsigned long long ran = 0, waited, times = 0;
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	got = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	close(fd);
	text[got > 0 ? got : 0] = '\0';
	sscanf(text, "%llu %llu %llu", &ran, &waited, &times);
	*runs = times;
	return ran;
}

/* Waits until the process is a zombie that has left its CPU, notes what it used, and reaps it. */
static void storm_end(struct storm *storm, struct storm_life *life, const struct storm_used *used)
{
	siginfo_t info;
	uint64_t before;

	waitid(P_PID, life->pid, &info, WEXITED | WNOWAIT);
	/* The parent hears of the end some microseconds before the last switch. */
	life->cpu_ns = storm_schedstat((pid_t)life->pid, &life->switches);
	do {
		before = life->cpu_ns;
		sched_yield();
		life->cpu_ns = storm_schedstat((pid_t)life->pid, &life->switches);
	} while (life->cpu_ns != before);
	life->start_ticks = storm_start_ticks((pid_t)life->pid);
	life->least = *used;
	storm->lives[storm->count++] = *life;
	waitpid((pid_t)life->pid, NULL, 0);
}

/*
 * How long a switch takes here, with a system call on either side: half of the time in which two
 * processes on one CPU answer each other. 0 on failure.
 */
static uint64_t storm_switch_ns(void)
{
	enum { ROUNDS = 4000 };
	int there[2], back[2];
	uint64_t begin_ns;
	cpu_set_t before, one;
	char byte = 0;
	pid_t pid;

	if (pipe(there) || pipe(back) || sched_getaffinity(0, sizeof(before), &before))
		return 0;
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	pid = fork();
	if (!pid) {
		close(there[1]);
		while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1)
			;
		_exit(0);
	}
	close(there[0]);
	begin_ns = storm_clock(CLOCK_MONOTONIC);
	for (int i = 0; i < ROUNDS; i++)
		if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
			break;
	begin_ns = storm_clock(CLOCK_MONOTONIC) - begin_ns;
	close(there[1]);
	close(back[0]);
	close(back[1]);
	waitpid(pid, NULL, 0);
	sched_setaffinity(0, sizeof(before), &before);
	return begin_ns / (2 * ROUNDS);
}

/* Makes @count lives, some of them at the same time. */
static void storm_run(struct storm *storm, uint32_t count, uint64_t seed)
{
	struct storm_life open[STORM_OPEN];
	struct prng random = { seed };
	uint32_t begun = 0, ended = 0;

	while (ended < count) {
		if (begun < count && begun - ended < STORM_OPEN) {
			enum storm_kind kind = (enum storm_kind)prng_below(&random, STORM_KINDS);
			uint64_t spin_ns = prng_below(&random, 1000000);
			struct storm_used *used = &storm->used[begun % STORM_OPEN];
			pid_t pid;

			*used = (struct storm_used){ 0 };
			pid = fork();
			if (!pid)
				storm_live(kind, spin_ns, used);
			if (pid < 0)
				_exit(1);
			open[begun++ % STORM_OPEN] = (struct storm_life){
				.pid = (uint32_t)pid,
				.kind = kind,
			};
			continue;
		}
		storm_end(storm, &open[ended % STORM_OPEN], &storm->used[ended % STORM_OPEN]);
		ended++;
	}
	__atomic_store_n(&storm->done, 1, __ATOMIC_RELEASE);
}

/* Starts @count lives from a child process. Returns NULL on failure. */
static struct storm *storm_start(uint32_t count, uint64_t seed, pid_t *pid)
{
	size_t bytes = sizeof(struct storm) + count * sizeof(struct storm_life);
	struct storm *storm = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
				   -1, 0);

	if (storm == MAP_FAILED)
		return NULL;
	*pid = fork();
	if (*pid < 0)
		return NULL;
	if (*pid)
		return storm;
	storm_run(storm, count, seed);
	_exit(0);
}

/*
 * For how long the host has taken CPUs away, as far as it says. The scheduler does not count this
 * as CPU time. The counter has ticks of 10 ms.
 */
static uint64_t storm_stolen_ns(void)
{
	unsigned long long stolen = 0;
	FILE *file = fopen("/proc/stat", "r");

	if (file) {
		if (fscanf(file, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &stolen) != 1)
			stolen = 0;
		fclose(file);
	}
	return stolen * NS_PER_TICK;
}

/*
 * Whether a host may take CPUs away without saying so: Linux runs under a hypervisor, and not a
 * tick has been counted as stolen since it booted.
 */
static bool storm_steals_silently(void)
{
	char line[4096];
	bool guest = false;
	FILE *file = fopen("/proc/cpuinfo", "r");

	while (file && !guest && fgets(line, sizeof(line), file))
		guest = !strncmp(line, "flags", 5) && strstr(line, " hypervisor");
	if (file)
		fclose(file);
	return guest && !storm_stolen_ns();
}

#endif /* _MW_SELFTESTS_BPF_STORM_H */
