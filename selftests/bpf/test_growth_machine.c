// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The growth monitor on a machine that the test may change: CPUs go offline and come back,
 * there are cgroups of both versions, swap fills, and there are more processes than the
 * monitor can watch. Needs root and BTF, not the module; runs in a virtual machine only.
 */
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "growth-children.h"

/* Pins a process to a CPU, or to all CPUs (-1). */
static void pin_process(pid_t pid, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (cpu < 0 || i == cpu)
			CPU_SET(i, &set);
	sched_setaffinity(pid, sizeof(set), &set);
}

/**
 * struct heard - the records that came while the test listened
 * @alert: the first alert about the process
 * @lost: number of lost records
 */
struct heard {
	struct memwatch_record_growth alert;
	uint64_t lost;
};

/* Listens until there is an alert about @pid, for at most @seconds. */
static void listen_to(pid_t pid, int seconds, struct heard *heard)
{
	const struct memwatch_record_header *header;
	uint64_t end = now_ns() + (uint64_t)seconds * 1000000000;

	while (now_ns() < end && !heard->alert.tgid) {
		memwatch_watch_poll(watch, 100);
		while (memwatch_watch_next(watch, &header) == 1) {
			const struct memwatch_record_growth *r = (const void *)header;

			if (header->type == MEMWATCH_RECORD_LOST)
				heard->lost += ((const struct memwatch_record_lost *)header)->count;
			else if (r->tgid == (uint32_t)pid && r->what == MEMWATCH_GROWTH_ALERTED)
				heard->alert = *r;
		}
	}
}

static int cpu1;

/* Takes CPU 1 offline ("0") or online ("1"). */
static bool set_cpu1(const char *on)
{
	return pwrite(cpu1, on, 1, 0) == 1;
}

/* Pinned to CPU 1, grows by 96 MiB each time that the test goes on. */
static void grow_on_cpu1(struct child *c)
{
	pin_process(0, 1);
	send_byte(c->done[1]);
	for (;;) {
		await_byte(c->go[0]);
		/* Slowly, so that the monitor gets its turn on the same CPU. */
		for (int i = 0; i < 8; i++) {
			map_touched(12 * MIB, MAP_PRIVATE);
			usleep(50000);
		}
		send_byte(c->done[1]);
	}
}

/* Lets a process grow on CPU 1. Returns how many rounds that requested. */
static uint64_t count_requests(uint64_t *lost)
{
	struct child c = start_child(grow_on_cpu1);
	struct memwatch_watch_stats before;

	await_byte(c.done[0]);
	run_rounds(1);
	before = read_stats();
	send_byte(c.go[1]);
	await_byte(c.done[0]);
	run_rounds(1);
	stop_child(&c);
	*lost = read_stats().lost - before.lost;
	return read_stats().pokes - before.pokes;
}

/* CPU 1 goes offline and comes back between two rounds. */
static void test_short_offline(void)
{
	struct child c = start_child(grow_on_cpu1);
	struct memwatch_watch_stats before = read_stats(), after;
	struct heard heard = { 0 };
	uint64_t lost;

	await_byte(c.done[0]);
	set_cpu1("0");
	set_cpu1("1");
	pin_process(c.pid, 1);
	send_byte(c.go[1]);
	await_byte(c.done[0]);
	lost = read_stats().lost - before.lost;
	run_rounds(1);
	before = read_stats();
	/* The record about lost records is sent with the next record of that CPU. */
	send_byte(c.go[1]);
	listen_to(-1, 3, &heard);
	after = read_stats();
	stop_child(&c);
	tap_ok(lost > 0, "a CPU without a ring loses records: %llu", (unsigned long long)lost);
	tap_eq(heard.lost, lost, "the stream says how many records were lost");
	tap_ok(after.pokes > before.pokes, "after its ring is open the CPU requests rounds");
	tap_eq(after.lost, before.lost, "after its ring is open the CPU loses nothing");
}

static void test_hotplug(void)
{
	struct memwatch_watch_stats before;
	struct heard heard = { 0 };
	uint64_t from, asked, lost;
	struct child c;

	cpu1 = open("/sys/devices/system/cpu/cpu1/online", O_WRONLY | O_CLOEXEC);
	if (cpu1 < 0) {
		tap_skip("a CPU goes offline and comes back", "CPU 1 cannot be taken offline");
		return;
	}
	watch = open_watch(0, 500000000);
	asked = count_requests(&lost);
	tap_ok(asked > 0, "growth on CPU 1 requests rounds: %llu", (unsigned long long)asked);
	tap_eq(lost, 0, "CPU 1 loses no records");
	if (!set_cpu1("0"))
		tap_note("CPU 1 cannot be taken offline");
	run_rounds(1);
	before = read_stats();
	from = now_ns();
	run_rounds(4);
	from = now_ns() - from;
	tap_ok((read_stats().cpu_ns - before.cpu_ns) * 3 < from * 2,
	       "the monitor sleeps while CPU 1 is offline: it ran for %llu of %llu ms",
	       (unsigned long long)(read_stats().cpu_ns - before.cpu_ns) / 1000000,
	       (unsigned long long)from / 1000000);
	set_cpu1("1");
	run_rounds(1);
	asked = count_requests(&lost);
	tap_ok(asked > 0, "growth on CPU 1 requests rounds after it came back: %llu",
	       (unsigned long long)asked);
	tap_eq(lost, 0, "CPU 1 loses no records after it came back");
	test_short_offline();

	c = start_child(leak_after_start);
	await_byte(c.done[0]);
	pin_process(c.pid, 1);
	pin_process(0, 1); /* an alert is sent by the CPU that runs the round */
	send_byte(c.go[1]);
	listen_to(c.pid, 60, &heard);
	pin_process(0, -1);
	tap_ok(heard.alert.tgid > 0, "a leak on the CPU that was offline is found");
	tap_eq(heard.alert.h.cpu, 1, "the CPU that was offline sends the alert");
	stop_child(&c);
	memwatch_watch_unref(watch);

	/* CPU 1 is offline when the monitor is opened. */
	set_cpu1("0");
	watch = open_watch(0, 500000000);
	run_rounds(1);
	set_cpu1("1");
	run_rounds(1);
	asked = count_requests(&lost);
	tap_ok(asked > 0, "a CPU that came after the monitor was opened requests rounds: %llu",
	       (unsigned long long)asked);
	tap_eq(lost, 0, "a CPU that came after the monitor was opened loses no records");
	memwatch_watch_unref(watch);
	close(cpu1);
}

/**
 * plan - what the next child leaks and how it is limited
 * @step: bytes every 0.1 s
 * @reserve: address space only
 * @as: RLIMIT_AS, 0: none
 * @swap: 1: the bytes are swapped out as they come
 * @into: cgroup.procs that the child writes itself to, or NULL
 */
static struct {
	size_t step;
	bool reserve;
	rlim_t as, swap;
	const char *into;
} plan;

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		tap_note("%s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
}

static void leak_as_planned(struct child *c)
{
	struct rlimit as = { plan.as, plan.as };

	if (plan.into)
		write_file(plan.into, "0");
	if (plan.as)
		setrlimit(RLIMIT_AS, &as);
	send_byte(c->done[1]);
	/* Leak after the start-up, which is judged more cautiously. */
	sleep(12);
	for (;;) {
		char *p = mmap(NULL, plan.step, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | (plan.reserve ? MAP_NORESERVE : 0), -1,
			       0);

		if (p == MAP_FAILED)
			pause();
		if (!plan.reserve)
			memset(p, 1, plan.step);
		if (plan.swap)
			madvise(p, plan.step, 21 /* MADV_PAGEOUT */);
		usleep(100000);
	}
}

/* Leaks as planned; the alert must name @limit. */
static void expect_leak(uint32_t limit, const char *what)
{
	struct heard heard = { 0 };
	struct memwatch_growth_row row = { 0 };
	struct child c;

	watch = open_watch(0, 500000000);
	c = start_child(leak_as_planned);
	await_byte(c.done[0]);
	listen_to(c.pid, 60, &heard);
	find_process(c.pid, &row, NULL);
	if (!heard.alert.tgid)
		tap_note("verdict %u, limit %u, headroom %llu MiB, slope %llu kB/s", row.verdict,
			 row.limit, (unsigned long long)row.room_bytes >> 20,
			 (unsigned long long)row.slope / 1000);
	tap_ok(heard.alert.tgid > 0, "a leak towards %s is found, %u s before", what,
	       heard.alert.eta_s);
	tap_eq(heard.alert.limit, limit, "the alert names %s", what);
	stop_child(&c);
	memwatch_watch_unref(watch);
}

static void test_cgroup2(void)
{
	static const char top[] = "/sys/fs/cgroup";

	if (access("/sys/fs/cgroup/cgroup.controllers", F_OK)) {
		tap_skip("limits of cgroup v2 are read", "no cgroup v2");
		return;
	}
	write_file("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
	if (mkdir("/sys/fs/cgroup/mwtop", 0755) || mkdir("/sys/fs/cgroup/mwhigh", 0755))
		tap_note("%s: %s", top, strerror(errno));
	write_file("/sys/fs/cgroup/mwtop/cgroup.subtree_control", "+memory");
	mkdir("/sys/fs/cgroup/mwtop/low", 0755);
	mkdir("/sys/fs/cgroup/mwtop/low/est", 0755);
	write_file("/sys/fs/cgroup/mwtop/memory.max", "300M");
	write_file("/sys/fs/cgroup/mwhigh/memory.high", "300M");
	memset(&plan, 0, sizeof(plan));
	plan.step = 2 * MIB;
	plan.into = "/sys/fs/cgroup/mwtop/low/cgroup.procs";
	expect_leak(MEMWATCH_LIMIT_CGROUP_MAX, "memory.max of an ancestor");
	plan.into = "/sys/fs/cgroup/mwhigh/cgroup.procs";
	expect_leak(MEMWATCH_LIMIT_CGROUP_HIGH, "memory.high");
	rmdir("/sys/fs/cgroup/mwtop/low/est");
	rmdir("/sys/fs/cgroup/mwtop/low");
	rmdir("/sys/fs/cgroup/mwtop");
	rmdir("/sys/fs/cgroup/mwhigh");
}

static void test_address_space(void)
{
	struct memwatch_growth_row row = { 0 };
	struct heard heard = { 0 };
	struct child c;
	int known;

	memset(&plan, 0, sizeof(plan));
	/* The alert comes when 92 % are used, and there are two rounds a second. */
	plan.step = MIB;
	plan.as = 400 * MIB;
	expect_leak(MEMWATCH_LIMIT_AS, "RLIMIT_AS");

	/* Address space that is reserved and not used is no leak. */
	plan.as = 0;
	plan.step = 64 * MIB;
	plan.reserve = true;
	watch = open_watch(0, 500000000);
	c = start_child(leak_as_planned);
	await_byte(c.done[0]);
	listen_to(c.pid, 45, &heard);
	known = find_process(c.pid, &row, NULL);
	tap_eq(known, 1, "a process that reserves address space is watched");
	tap_eq(heard.alert.tgid, 0, "reserved address space raises no alert");
	tap_ok(row.verdict != MEMWATCH_GROWTH_LEAK, "reserved address space is no leak");
	tap_ok(row.vsz_bytes > 1024 * MIB, "the process has reserved more than 1 GiB: %llu MiB",
	       (unsigned long long)row.vsz_bytes >> 20);
	stop_child(&c);
	memwatch_watch_unref(watch);
}

/* The resident memory does not grow, but the signal does. */
static void test_leak_into_swap(void)
{
	MEMWATCH_OPTS(memwatch_growth_sample, s);
	struct memwatch_growth_row row = { 0 };
	struct heard heard = { 0 };
	struct child c;

	if (!has_swap()) {
		tap_skip("a leak that is swapped out while it grows is found", "no swap here");
		return;
	}
	memset(&plan, 0, sizeof(plan));
	plan.step = 2 * MIB;
	plan.as = 100 * MIB; /* an emulated machine swaps slowly */
	plan.swap = 1;
	watch = open_watch(0, 500000000);
	c = start_child(leak_as_planned);
	await_byte(c.done[0]);
	listen_to(c.pid, 90, &heard);
	find_process(c.pid, &row, &s);
	tap_ok(heard.alert.tgid > 0, "a leak that is swapped out while it grows is found");
	tap_ok(s.swap_bytes > s.anon_bytes,
	       "most of this leak is in swap: %llu MiB, %llu MiB are resident",
	       (unsigned long long)s.swap_bytes >> 20, (unsigned long long)s.anon_bytes >> 20);
	stop_child(&c);
	memwatch_watch_unref(watch);
}

#define MANY 10500

static void test_many(void)
{
	MEMWATCH_OPTS(memwatch_watch_stats, full);
	static pid_t pids[MANY];
	struct memwatch_growth_row row;
	uint64_t samples, exits;
	int made = 0, n, known;

	watch = open_watch(10000, 5000000000ULL);
	for (pid_t pid = 1; made < MANY && pid > 0; made += pid > 0) {
		pid = fork();
		if (!pid) {
			pause();
			_exit(0);
		}
		pids[made] = pid;
	}
	run_rounds(1);
	samples = read_stats().samples;
	full = read_stats();
	n = memwatch_watch_snapshot(watch);
	tap_note("%d processes", made);
	tap_ok(made > 10000, "more than 10000 processes were made: %d", made);
	tap_eq(n, 10000, "10000 processes have a state");
	tap_ok(full.full >= (uint64_t)made - 10000, "samples of the others are counted: %llu",
	       (unsigned long long)full.full);
	run_rounds(0);
	tap_ok(read_stats().samples - samples >= 10000,
	       "a round samples all processes, in %.2f us each",
	       (double)read_stats().cpu_ns / 1e3 / (double)read_stats().samples);
	tap_ok(read_stats().period_ns <= 60000000000ULL, "the period stays below 60 s: %llu ms",
	       (unsigned long long)read_stats().period_ns / 1000000);
	exits = read_stats().exits;
	for (int i = 0; i < made; i++)
		kill(pids[i], SIGKILL);
	for (int i = 0; i < made; i++)
		waitpid(pids[i], NULL, 0);
	/* A process is freed after an RCU grace period. */
	for (int i = 0; i < 100 && memwatch_watch_snapshot(watch) >= 1000; i++)
		usleep(100000);
	tap_ok(memwatch_watch_snapshot(watch) < 1000,
	       "states of processes that exited are deleted");
	tap_ok(read_stats().exits - exits > 9000, "exits are counted: %llu",
	       (unsigned long long)(read_stats().exits - exits));
	pids[0] = fork();
	if (!pids[0]) {
		pause();
		_exit(0);
	}
	run_rounds(1);
	known = find_process(pids[0], &row, NULL);
	tap_eq(known, 1, "there is a place for a new process again");
	kill(pids[0], SIGKILL);
	waitpid(pids[0], NULL, 0);
	memwatch_watch_unref(watch);
}

/* Alone, because the memory controller stays with version 2 if that ever had a group. */
static void test_cgroup1(void)
{
	struct memwatch_growth_row row = { 0 };
	struct heard heard = { 0 };
	struct child c;
	int known;

	umount2("/sys/fs/cgroup", MNT_DETACH);
	if (mount("none", "/sys/fs/cgroup", "tmpfs", 0, NULL) ||
	    mkdir("/sys/fs/cgroup/memory", 0755) ||
	    mount("none", "/sys/fs/cgroup/memory", "cgroup", 0, "memory")) {
		tap_skip("cgroup v1 does not disturb the monitor",
			 "no memory controller of cgroup v1");
		return;
	}
	mkdir("/sys/fs/cgroup/memory/one", 0755);
	write_file("/sys/fs/cgroup/memory/one/memory.limit_in_bytes", "200M");
	memset(&plan, 0, sizeof(plan));
	plan.step = 2 * MIB;
	plan.into = "/sys/fs/cgroup/memory/one/cgroup.procs";
	watch = open_watch(0, 500000000);
	c = start_child(leak_as_planned);
	await_byte(c.done[0]);
	listen_to(c.pid, 18, &heard);
	known = find_process(c.pid, &row, NULL);
	tap_eq(known, 1, "a process in a group of cgroup v1 is watched");
	tap_eq(row.limit, MEMWATCH_LIMIT_CGROUP_MAX, "limits of cgroup v1 are read");
	tap_ok(row.slope > MIB, "a leak in a group of cgroup v1 has its slope: %llu kB/s",
	       (unsigned long long)row.slope / 1000);
	stop_child(&c);
	memwatch_watch_unref(watch);
}

int main(int argc, char **argv)
{
	start_rig();
	if (argc > 1 && !strcmp(argv[1], "version1")) {
		test_cgroup1();
	} else {
		test_hotplug();
		test_cgroup2();
		test_address_space();
		test_leak_into_swap();
		test_many();
	}
	memwatch_ctx_unref(ctx);
	return tap_done();
}
