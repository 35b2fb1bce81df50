/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Tests of the stream without the module when nobody reads it for a while. Included by
 * test_scheduler.c.
 */
#ifndef _MW_SELFTESTS_BPF_SCHEDULER_LOSSES_H
#define _MW_SELFTESTS_BPF_SCHEDULER_LOSSES_H

/* A sample for each switch, small rings, and nobody who reads them. */
static void test_losses(uint32_t lives)
{
	struct memwatch_stream *stream = open_stream(MEMWATCH_STREAM_SWITCH, 4, "losses");
	struct seen s = { 0 };
	struct storm *storm;
	pid_t pid;

	if (!stream)
		return;
	storm = storm_start(lives, SEED_DEFAULT, &pid);
	if (!storm)
		return;
	waitpid(pid, NULL, 0);
	memwatch_stream_stop(stream);
	tap_eq(read_stream(stream, &s, NULL), 0, "losses: the stream ends");
	tap_ok(s.lost > 1000, "losses: small rings lose records (%llu)",
	       (unsigned long long)s.lost);
	check_counts(stream, &s, "losses");
	memwatch_stream_unref(stream);
}

/* Reads a stream for @seconds. */
static void read_for(struct memwatch_stream *stream, struct seen *s, double seconds)
{
	uint64_t end = storm_clock(CLOCK_MONOTONIC) + (uint64_t)(seconds * 1e9);

	while (storm_clock(CLOCK_MONOTONIC) < end && read_record(stream, s) == 1)
		;
}

/* What is missing of the time of the CPUs, in millionths. */
static uint64_t missing_ppm(void)
{
	uint64_t run = 0, time = 0;

	for (uint32_t i = 0; i < CPUS_MAX; i++) {
		run += cpus[i].run_ns;
		time += cpus[i].stopped_ns - cpus[i].online_ns;
	}
	return time > run ? (time - run) * 1000000 / time : 0;
}

static void rename_self(int number)
{
	(void)number;
	prctl(PR_SET_NAME, "renamed");
}

/*
 * A process that runs until it is killed; on @cpu, or anywhere if that is negative. It changes its
 * name when it gets SIGUSR1.
 */
static pid_t start_spinner(int cpu)
{
	cpu_set_t set;
	pid_t pid;

	/* Here, so that the child is never without it. */
	signal(SIGUSR1, rename_self);
	pid = fork();
	if (pid)
		return pid;
	CPU_ZERO(&set);
	CPU_SET((unsigned int)cpu, &set);
	if (cpu >= 0)
		sched_setaffinity(0, sizeof(set), &set);
	for (;;)
		;
}

static void end_spinner(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* The records that introduce process @pid. */
static void count_introductions(pid_t pid, uint32_t *allocs, uint32_t *existing)
{
	*allocs = *existing = 0;
	for (uint32_t i = 0; i < IDENTITIES; i++) {
		if (identities[i].tgid != (uint32_t)pid)
			continue;
		*allocs += identities[i].allocs;
		*existing += identities[i].existing;
	}
}

static uint32_t count_names(pid_t pid)
{
	uint32_t names = 0;

	for (uint32_t i = 0; i < IDENTITIES; i++)
		names += identities[i].tgid == (uint32_t)pid ? identities[i].execs : 0;
	return names;
}

/* How many records found no room in a ring. */
static uint64_t count_full(struct memwatch_stream *stream)
{
	const char *name;
	__u64 count;

	for (unsigned int i = 0; memwatch_stream_get_failure(stream, i, &name, &count) > 0; i++)
		if (!strcmp(name, "output_ring_full"))
			return count;
	return 0;
}

/*
 * Waits until the rings are full. A ring has room for some 100 ticks, and each tick that finds none
 * counts up to twice. A virtual CPU may stand still for longer than the pause.
 */
static void fill_rings(struct memwatch_stream *stream, int online)
{
	uint64_t end = storm_clock(CLOCK_MONOTONIC) + 30000000000ULL;
	uint64_t enough = count_full(stream) + 500 * (uint64_t)online;

	usleep(500000);
	while (count_full(stream) < enough && storm_clock(CLOCK_MONOTONIC) < end)
		usleep(10000);
}

/*
 * A process that begins while nobody reads, and goes on when somebody does. All CPUs are busy, so
 * that all rings are full.
 */
static void test_stalled_reader(void)
{
	struct memwatch_stream *stream = open_stream(MEMWATCH_STREAM_SLOT, 4, "stalled reader");
	int online = (int)sysconf(_SC_NPROCESSORS_ONLN), cpu;
	uint32_t allocs = 0, existing = 0, names;
	pid_t spinners[CPUS_MAX], pid;
	struct seen s = { 0 };

	if (!stream)
		return;
	for (cpu = 0; cpu < online && cpu < CPUS_MAX; cpu++)
		spinners[cpu] = start_spinner(cpu);
	read_for(stream, &s, 0.2);
	fill_rings(stream, online);
	pid = start_spinner(-1);
	kill(spinners[0], SIGUSR1);
	fill_rings(stream, online);
	/* On a slow machine it takes seconds until there is room for new records. */
	for (int i = 0; i < 60 && (!existing || !count_names(spinners[0])); i++) {
		read_for(stream, &s, 0.5);
		count_introductions(pid, &allocs, &existing);
	}
	end_spinner(pid);
	names = count_names(spinners[0]);
	while (cpu > 0)
		end_spinner(spinners[--cpu]);
	memwatch_stream_stop(stream);
	tap_eq(read_stream(stream, &s, NULL), 0, "stalled reader: the stream ends");
	count_introductions(pid, &allocs, &existing);
	tap_ok(s.lost > 100, "stalled reader: records are lost (%llu)", (unsigned long long)s.lost);
	tap_ok(!allocs && existing == 1,
	       "stalled reader: a process that began meanwhile is introduced (%u, %u)", allocs,
	       existing);
	tap_eq(names, 1, "stalled reader: the name that a process took meanwhile is sent once");
	tap_ok(missing_ppm() < 20000,
	       "stalled reader: the time of the CPUs is complete all the same (%llu ppm missing)",
	       (unsigned long long)missing_ppm());
	memwatch_stream_unref(stream);
}

#endif /* _MW_SELFTESTS_BPF_SCHEDULER_LOSSES_H */
