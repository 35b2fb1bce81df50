// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The growth monitor on a machine that is ours to change: CPUs that go and come
 * back. Needs root and BTF, not the module; for a virtual machine.
 */
#include <fcntl.h>
#include <sched.h>

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
	struct told told = {0};
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
	struct told told = {0};
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

int main(void)
{
	struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};

	tap_start();
	if (geteuid())
		tap_skip_all("needs root");
	if (access("/sys/kernel/btf/vmlinux", R_OK))
		tap_skip_all("this kernel has no BTF");
	setrlimit(RLIMIT_MEMLOCK, &unlimited); /* before 5.11 maps are charged to it */
	signal(SIGPIPE, SIG_IGN);
	if (memwatch_ctx_new(NULL, &ctx))
		return EXIT_FAILURE;
	test_hotplug();
	memwatch_ctx_unref(ctx);
	return tap_done();
}
