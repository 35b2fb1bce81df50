// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The growth monitor on a machine that is ours to change: CPUs that go and come
 * back, cgroups of both versions, swap that fills, more processes than there is room
 * for. Needs root and BTF, not the module; for a virtual machine.
 */
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "growth-rig.h"

static void pin(pid_t pid, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (cpu < 0 || i == cpu)
			CPU_SET(i, &set);
	sched_setaffinity(pid, sizeof(set), &set);
}

/* What was told while we looked. */
struct told {
	struct memwatch_record_growth alert; /* the first one of the process */
	uint64_t lost;
};

/* Until there is an alert of @pid or time is up. */
static void listen_to(pid_t pid, int seconds, struct told *told)
{
	const struct memwatch_record_header *header;
	uint64_t end = now() + (uint64_t)seconds * 1000000000;

	while (now() < end && !told->alert.tgid) {
		memwatch_watch_poll(watch, 100);
		while (memwatch_watch_next(watch, &header) == 1) {
			const struct memwatch_record_growth *r = (const void *)header;

			if (header->type == MEMWATCH_RECORD_LOST)
				told->lost += ((const struct memwatch_record_lost *)header)->count;
			else if (r->tgid == (uint32_t)pid && r->what == MEMWATCH_GROWTH_ALERTED)
				told->alert = *r;
		}
	}
}

/* ------------------------------------------------------------------ hotplug */

static int cpu1;

static bool set_cpu1(const char *on)
{
	return pwrite(cpu1, on, 1, 0) == 1;
}

static void burst(struct child *c)
{
	pin(0, 1);
	tell(c->done[1]);
	for (;;) {
		await(c->go[0]);
		/* Not too fast for one who watches from the same CPU. */
		for (int i = 0; i < 8; i++) {
			touch(12 * MIB, MAP_PRIVATE);
			usleep(50000);
		}
		tell(c->done[1]);
	}
}

static struct memwatch_watch_stats counts(void)
{
	MEMWATCH_OPTS(memwatch_watch_stats, stats);

	memwatch_watch_stats(watch, &stats);
	return stats;
}

/* A burst of growth on CPU 1: how many requests for a round have come through. */
static uint64_t requests(uint64_t *lost)
{
	struct child c = start(burst);
	struct memwatch_watch_stats before;

	await(c.done[0]);
	rounds(1);
	before = counts();
	tell(c.go[1]);
	await(c.done[0]);
	rounds(1);
	finish(&c);
	*lost = counts().lost - before.lost;
	return counts().pokes - before.pokes;
}

/* There and back before anybody looks. */
static void test_blink(void)
{
	struct child c = start(burst);
	struct memwatch_watch_stats before = counts(), after;
	struct told told = { 0 };
	uint64_t lost;

	await(c.done[0]);
	set_cpu1("0");
	set_cpu1("1");
	pin(c.pid, 1);
	tell(c.go[1]);
	await(c.done[0]);
	lost = counts().lost - before.lost;
	rounds(1);
	before = counts();
	/* The end of a gap is what comes after it. */
	tell(c.go[1]);
	listen_to(-1, 3, &told);
	after = counts();
	finish(&c);
	tap_ok(lost && told.lost == lost,
	       "what a CPU without a ring says is lost, and told: %llu of %llu",
	       (unsigned long long)told.lost, (unsigned long long)lost);
	tap_ok(after.pokes > before.pokes && after.lost == before.lost,
	       "after it, the CPU is heard again");
}

static void test_hotplug(void)
{
	struct memwatch_watch_stats before;
	struct told told = { 0 };
	uint64_t from, asked, lost;
	struct child c;

	cpu1 = open("/sys/devices/system/cpu/cpu1/online", O_WRONLY | O_CLOEXEC);
	if (cpu1 < 0) {
		tap_skip("a CPU that goes and comes back", "CPU 1 cannot be taken offline");
		return;
	}
	watch = open_watch(0, 500000000);
	asked = requests(&lost);
	tap_ok(asked && !lost, "CPU 1 asks for rounds (%llu)", (unsigned long long)asked);
	if (!set_cpu1("0"))
		tap_note("CPU 1 stays");
	rounds(1);
	before = counts();
	from = now();
	rounds(4);
	from = now() - from;
	tap_ok((counts().cpu_ns - before.cpu_ns) * 3 < from * 2,
	       "while it is gone the monitor waits: it ran %llu of %llu ms",
	       (unsigned long long)(counts().cpu_ns - before.cpu_ns) / 1000000,
	       (unsigned long long)from / 1000000);
	set_cpu1("1");
	rounds(1);
	asked = requests(&lost);
	tap_ok(asked && !lost, "CPU 1 is back, and asks for rounds (%llu, %llu lost)",
	       (unsigned long long)asked, (unsigned long long)lost);
	test_blink();

	c = start(leak_to_limit);
	await(c.done[0]);
	pin(c.pid, 1);
	pin(0, 1); /* an alert is made where the round runs */
	listen_to(c.pid, 60, &told);
	pin(0, -1);
	tap_ok(told.alert.tgid && told.alert.h.cpu == 1,
	       "a leak on the CPU that was gone is told of, by that CPU");
	finish(&c);
	memwatch_watch_unref(watch);

	/* A CPU that has never been there when the monitor starts. */
	set_cpu1("0");
	watch = open_watch(0, 500000000);
	rounds(1);
	set_cpu1("1");
	rounds(1);
	asked = requests(&lost);
	tap_ok(asked && !lost, "so is one that came later (%llu)", (unsigned long long)asked);
	memwatch_watch_unref(watch);
	close(cpu1);
}

/* ------------------------------------------------------------------- limits */

/* What a child leaks, and how it is limited; set before it is started. */
static struct {
	size_t step;	  /* bytes every 0.1 s */
	bool reserve;	  /* address space only */
	rlim_t as, swap;  /* RLIMIT_AS; bytes that are put into swap as they come */
	const char *into; /* cgroup.procs to write to */
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
	tell(c->done[1]);
	/* The start is over when the leak begins. */
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

/* A leak as planned, that must be told of as one towards @limit. */
static void expect_leak(uint32_t limit, const char *what)
{
	struct told told = { 0 };
	struct memwatch_growth_row row = { 0 };
	struct child c;

	watch = open_watch(0, 500000000);
	c = start(leak_as_planned);
	await(c.done[0]);
	listen_to(c.pid, 60, &told);
	find(c.pid, &row, NULL);
	if (!told.alert.tgid)
		tap_note("verdict %u, limit %u, room %llu MiB, slope %llu kB/s", row.verdict,
			 row.limit, (unsigned long long)row.room_bytes >> 20,
			 (unsigned long long)row.slope / 1000);
	tap_ok(told.alert.tgid && told.alert.limit == limit, "%s: told of, limit %u in %u s", what,
	       told.alert.limit, told.alert.eta_s);
	finish(&c);
	memwatch_watch_unref(watch);
}

static void test_cgroup2(void)
{
	static const char top[] = "/sys/fs/cgroup";

	if (access("/sys/fs/cgroup/cgroup.controllers", F_OK)) {
		tap_skip("memory.high, and limits of parents", "no cgroup v2");
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
	expect_leak(MEMWATCH_LIMIT_CGROUP_MAX, "memory.max of the cgroup above");
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
	struct told told = { 0 };
	struct child c;
	int known;

	memset(&plan, 0, sizeof(plan));
	plan.step = 2 * MIB;
	plan.as = 400 * MIB;
	expect_leak(MEMWATCH_LIMIT_AS, "RLIMIT_AS");

	/* Reserved, not used: no leak. */
	plan.as = 0;
	plan.step = 64 * MIB;
	plan.reserve = true;
	watch = open_watch(0, 500000000);
	c = start(leak_as_planned);
	await(c.done[0]);
	listen_to(c.pid, 45, &told);
	known = find(c.pid, &row, NULL);
	tap_ok(known == 1 && !told.alert.tgid && row.verdict != MEMWATCH_GROWTH_LEAK &&
		       row.vsz_bytes > 1024 * MIB,
	       "%llu MiB of address space, reserved only: no alert",
	       (unsigned long long)row.vsz_bytes >> 20);
	finish(&c);
	memwatch_watch_unref(watch);
}

/* Resident it does not grow: what it loses to swap is still held. */
static void test_leak_into_swap(void)
{
	struct memwatch_growth_sample s = { 0 };
	struct memwatch_growth_row row = { 0 };
	struct told told = { 0 };
	struct child c;

	if (!has_swap()) {
		tap_skip("a leak that is swapped out as it grows", "no swap here");
		return;
	}
	memset(&plan, 0, sizeof(plan));
	plan.step = 2 * MIB;
	plan.as = 100 * MIB; /* an emulated machine is slow to swap */
	plan.swap = 1;
	watch = open_watch(0, 500000000);
	c = start(leak_as_planned);
	await(c.done[0]);
	listen_to(c.pid, 90, &told);
	find(c.pid, &row, &s);
	tap_ok(told.alert.tgid && s.swap_bytes > s.anon_bytes,
	       "a leak that is swapped out as it grows is told of: %llu MiB in swap, %llu resident",
	       (unsigned long long)s.swap_bytes >> 20, (unsigned long long)s.anon_bytes >> 20);
	finish(&c);
	memwatch_watch_unref(watch);
}

/* -------------------------------------------------------------------- many */

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
	rounds(1);
	samples = counts().samples;
	full = counts();
	n = memwatch_watch_snapshot(watch);
	tap_note("%d processes", made);
	tap_ok(made > 10000 && n == 10000 && full.full >= (uint64_t)made - 10000,
	       "10000 of %d processes have state, the others are counted: %llu", made,
	       (unsigned long long)full.full);
	rounds(0);
	tap_ok(counts().samples - samples >= 10000 && counts().period_ns <= 60000000000ULL,
	       "a round looks at all of them, %.2f us each; the next one is in %llu ms",
	       (double)counts().cpu_ns / 1e3 / (double)counts().samples,
	       (unsigned long long)counts().period_ns / 1000000);
	exits = counts().exits;
	for (int i = 0; i < made; i++)
		kill(pids[i], SIGKILL);
	for (int i = 0; i < made; i++)
		waitpid(pids[i], NULL, 0);
	tap_ok(memwatch_watch_snapshot(watch) < 1000 && counts().exits - exits > 9000,
	       "those that end make room: %llu did", (unsigned long long)(counts().exits - exits));
	pids[0] = fork();
	if (!pids[0]) {
		pause();
		_exit(0);
	}
	rounds(1);
	known = find(pids[0], &row, NULL);
	tap_ok(known == 1, "a new one is watched");
	kill(pids[0], SIGKILL);
	waitpid(pids[0], NULL, 0);
	memwatch_watch_unref(watch);
}

/* Last, because the hierarchy is another one then. */
static void test_cgroup1(void)
{
	struct memwatch_growth_row row = { 0 };
	struct told told = { 0 };
	struct child c;
	int known;

	write_file("/sys/fs/cgroup/cgroup.subtree_control", "-memory");
	umount2("/sys/fs/cgroup", MNT_DETACH);
	usleep(500000);
	if (mount("none", "/sys/fs/cgroup", "tmpfs", 0, NULL) ||
	    mkdir("/sys/fs/cgroup/memory", 0755) ||
	    mount("none", "/sys/fs/cgroup/memory", "cgroup", 0, "memory")) {
		tap_skip("cgroup v1 is no limit and no obstacle",
			 "no memory controller of cgroup v1");
		return;
	}
	mkdir("/sys/fs/cgroup/memory/one", 0755);
	write_file("/sys/fs/cgroup/memory/one/memory.limit_in_bytes", "200M");
	memset(&plan, 0, sizeof(plan));
	plan.step = 2 * MIB;
	plan.into = "/sys/fs/cgroup/memory/one/cgroup.procs";
	watch = open_watch(0, 500000000);
	c = start(leak_as_planned);
	await(c.done[0]);
	listen_to(c.pid, 18, &told);
	known = find(c.pid, &row, NULL);
	tap_ok(known == 1 && row.limit == MEMWATCH_LIMIT_HOST && row.slope > MIB,
	       "cgroup v1 is no limit and no obstacle: limit %u, %llu kB/s", row.limit,
	       (unsigned long long)row.slope / 1000);
	finish(&c);
	memwatch_watch_unref(watch);
}

int main(void)
{
	start_rig();
	test_hotplug();
	test_cgroup2();
	test_address_space();
	test_leak_into_swap();
	test_many();
	test_cgroup1();
	memwatch_ctx_unref(ctx);
	return tap_done();
}
