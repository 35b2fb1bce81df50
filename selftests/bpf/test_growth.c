// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The growth programs on a running kernel: the same verdicts as on the host, bit
 * by bit; and processes that do what processes do: fork, exec, vfork, lose their
 * leader, end, come back with the same id, swap out, leak. Needs root and BTF,
 * not the module. What other programs do meanwhile does not matter.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <memwatch/watch.h>

#include "../tap.h"
#include "bpf/growth-maps.h"
#include "growth-rig.h"
#include "growth.skel.h"

/* --------------------------------------------------------------- identical */

static uint64_t seed = 88172645463325252ULL;

static uint64_t any(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* A trace that goes through everything: leaks, steps, drops, gaps, limits. */
static void next_sample(struct mw_growth_sample *s, uint32_t kind, uint32_t i)
{
	s->time_ns += kind == 3 ? 20 * MW_GROWTH_SECOND : 5 * MW_GROWTH_SECOND;
	if (any() % 500 == 0)
		s->time_ns += any() % (600 * MW_GROWTH_SECOND);
	switch (kind) {
	case 0: /* leak towards a limit */
		s->anon = 25600 + 20 * i;
		s->headroom = mw_growth_sub_sat(60000, 20 * i);
		break;
	case 1: /* saw, and a leak below it */
		s->anon = 25600 + 40 * i + i % 7 * 2000;
		break;
	case 2: /* noise */
		s->anon = 25600 + (uint32_t)(any() % 2000);
		s->shmem = (uint32_t)(any() % 50);
		break;
	case 3: /* slow, for days */
		s->anon = 65536 + 7 * i;
		s->swap = i;
		break;
	case 4: /* anything at all */
		s->anon = (uint32_t)(any() >> (any() % 64));
		s->swap = (uint32_t)(any() >> (any() % 64));
		s->file = (uint32_t)any();
		s->vsz = (uint32_t)any();
		s->headroom = (uint32_t)(any() >> (any() % 64));
		break;
	default: /* grows fast, is given back, and again */
		s->anon = 10000 + i % 300 * 900;
		s->headroom = 400000;
		break;
	}
}

static void test_identical(void)
{
	struct mw_growth_test kernel, host;
	unsigned int different = 0, alerts = 0, fed = 0;
	struct growth_bpf *skel = growth_bpf__open();
	uint32_t zero = 0;
	int prog, map;

	if (!skel || growth_bpf__load(skel)) {
		tap_ok(false, "the programs are loaded");
		return;
	}
	prog = bpf_program__fd(skel->progs.on_test);
	map = bpf_map__fd(skel->maps.test);
	for (uint32_t kind = 0; kind < 6; kind++) {
		memset(&kernel, 0, sizeof(kernel));
		kernel.sample.time_ns = any() % (1000 * MW_GROWTH_SECOND);
		kernel.sample.headroom = kernel.sample.address_headroom = MW_GROWTH_NO_LIMIT;
		for (uint32_t i = 0; i < 3000 && !different; i++) {
			LIBBPF_OPTS(bpf_test_run_opts, opts);

			next_sample(&kernel.sample, kind, i);
			host = kernel;
			if (bpf_map_update_elem(map, &zero, &kernel, BPF_ANY) ||
			    bpf_prog_test_run_opts(prog, &opts) ||
			    bpf_map_lookup_elem(map, &zero, &kernel)) {
				tap_ok(false, "the test entry runs: %s", strerror(errno));
				goto out;
			}
			if (!host.started)
				mw_growth_init(&host.growth, host.sample.time_ns,
					       mw_growth_signal(&host.sample));
			host.started = 1;
			host.event = mw_growth_feed(&host.growth,
						    host.has_history ? &host.history : NULL,
						    &host.sample);
			if (!host.has_history && host.growth.flags & MW_GROWTH_F_HISTORY) {
				mw_growth_history_init(&host.history, &host.growth);
				host.has_history = 1;
			}
			different += memcmp(&host.growth, &kernel.growth, sizeof(host.growth)) ||
				     memcmp(&host.history, &kernel.history, sizeof(host.history)) ||
				     host.event != kernel.event;
			alerts += kernel.event == MW_GROWTH_EVENT_ALERT;
			fed++;
			if (different)
				tap_note("kind %u, sample %u", kind, i);
		}
	}
	tap_ok(!different && fed == 18000 && alerts >= 4,
	       "kernel and host agree bit by bit on %u samples with %u alerts", fed, alerts);
out:
	growth_bpf__destroy(skel);
}

/* ---------------------------------------------------------------- children */

static void hold_memory(struct child *c)
{
	touch(64 * MIB, MAP_PRIVATE);
	touch(32 * MIB, MAP_SHARED);
	tell(c->done[1]);
	await(c->go[0]);
}

static void test_counters(void)
{
	struct child c = start(hold_memory);
	struct memwatch_growth_sample s = { 0 };
	struct memwatch_growth_row row;
	int count;

	await(c.done[0]);
	rounds(1);
	count = find(c.pid, &row, &s);
	tap_ok(count == 1 && is_near(s.anon_bytes, proc_kb(c.pid, "RssAnon:")) &&
		       is_near(s.shmem_bytes, proc_kb(c.pid, "RssShmem:")) &&
		       is_near(s.vsz_bytes, proc_kb(c.pid, "VmSize:")) &&
		       s.anon_bytes >= 62 * MIB && s.shmem_bytes >= 30 * MIB,
	       "counters are those of /proc: %llu MiB anonymous, %llu shared",
	       (unsigned long long)(s.anon_bytes / MIB), (unsigned long long)(s.shmem_bytes / MIB));
	finish(&c);
}

static void just_wait(struct child *c)
{
	tell(c->done[1]);
	await(c->go[0]);
}

/* It was there before the monitor: main() made it. */
static struct child early;

static void test_early(void)
{
	struct memwatch_growth_row row;

	rounds(1);
	tap_ok(find(early.pid, &row, NULL) == 1, "a process that was there before is watched");
	finish(&early);
}

static void fork_twice(struct child *c)
{
	touch(40 * MIB, MAP_PRIVATE);
	if (!fork()) {
		touch(8 * MIB, MAP_PRIVATE);
		tell(c->done[1]);
		pause();
	}
	await(c->go[0]);
}

static pid_t child_of(pid_t pid)
{
	char path[64];
	int child = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	file = fopen(path, "r");
	if (file && fscanf(file, "%d", &child) != 1)
		child = 0;
	if (file)
		fclose(file);
	return child;
}

static void test_fork(void)
{
	struct child c = start(fork_twice);
	struct memwatch_growth_sample parent = { 0 }, child = { 0 };
	struct memwatch_growth_row row;
	pid_t pid;

	await(c.done[0]);
	pid = child_of(c.pid);
	rounds(1);
	tap_ok(pid && find(c.pid, &row, &parent) == 1 && find(pid, &row, &child) == 1 &&
		       child.anon_bytes > parent.anon_bytes + 6 * MIB,
	       "a fork without an exec is a process of its own");
	if (pid)
		kill(pid, SIGKILL);
	finish(&c);
}

static void then_exec(struct child *c)
{
	char go[16];

	touch(80 * MIB, MAP_PRIVATE);
	tell(c->done[1]);
	await(c->go[0]);
	snprintf(go, sizeof(go), "%d", c->go[0]);
	execl("/proc/self/exe", "growth", "--wait", go, (char *)NULL); /* is called "exe" */
	_exit(1);
}

static void test_exec(void)
{
	MEMWATCH_OPTS(memwatch_watch_stats, before);
	MEMWATCH_OPTS(memwatch_watch_stats, after);
	struct child c = start(then_exec);
	struct memwatch_growth_row row, old;

	await(c.done[0]);
	rounds(2);
	find(c.pid, &old, NULL);
	memwatch_watch_stats(watch, &before);
	tell(c.go[1]);
	usleep(200000);
	rounds(2);
	memwatch_watch_stats(watch, &after);
	tap_ok(find(c.pid, &row, NULL) == 1 && row.first_ns > old.first_ns &&
		       row.start_time_ns == old.start_time_ns && row.signal_bytes < 40 * MIB &&
		       after.execs > before.execs && !strcmp(row.comm, "exe"),
	       "an exec begins a new history, with the new name");
	finish(&c);
}

static int release_fd;

static void *thread_wait(void *arg)
{
	(void)arg;
	await(release_fd);
	_exit(0);
}

static void *thread_end(void *arg)
{
	return arg;
}

static void lose_leader(struct child *c)
{
	pthread_t threads[8], last;

	release_fd = c->go[0];
	touch(48 * MIB, MAP_PRIVATE);
	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, thread_end, NULL);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	pthread_create(&last, NULL, thread_wait, NULL);
	tell(c->done[1]);
	/* The leader alone: no exit_group(). */
	syscall(SYS_exit, 0);
}

static void test_threads(void)
{
	MEMWATCH_OPTS(memwatch_watch_stats, before);
	MEMWATCH_OPTS(memwatch_watch_stats, after);
	struct child c = start(lose_leader);
	struct memwatch_growth_row row = { 0 };
	uint64_t last;

	await(c.done[0]);
	usleep(100000);
	rounds(2);
	tap_ok(find(c.pid, &row, NULL) == 1 && row.signal_bytes >= 46 * MIB,
	       "threads that end take nothing with them");
	last = row.last_ns;
	rounds(2);
	tap_ok(find(c.pid, &row, NULL) == 1 && row.last_ns > last && row.signal_bytes >= 46 * MIB,
	       "a process whose leader is gone goes on being sampled");
	memwatch_watch_stats(watch, &before);
	tell(c.go[1]);
	waitpid(c.pid, NULL, 0);
	memwatch_watch_stats(watch, &after);
	tap_ok(!find(c.pid, &row, NULL) && after.exits > before.exits,
	       "the last thread takes the state with it, without waiting for a round");
	close(c.go[1]);
	close(c.done[0]);
}

static int vfork_child(void *arg)
{
	struct child *c = arg;

	tell(c->done[1]);
	await(c->go[0]);
	_exit(0);
}

static void with_vfork(struct child *c)
{
	static char stack[65536] __attribute__((aligned(16)));

	touch(40 * MIB, MAP_PRIVATE);
	clone(vfork_child, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, c);
	pause();
}

static void test_vfork(void)
{
	struct child c = start(with_vfork);
	struct memwatch_growth_row row = { 0 };
	pid_t pid;

	await(c.done[0]);
	pid = child_of(c.pid);
	rounds(2);
	tap_ok(pid && !find(pid, &row, NULL) && find(c.pid, &row, NULL) == 1 &&
		       row.signal_bytes >= 38 * MIB,
	       "what is vforked is not judged by memory that it borrowed");
	tell(c.go[1]);
	finish(&c);
}

struct clone_args_v1 {
	uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid,
		set_tid_size;
};

static void test_pid_reuse(void)
{
	struct clone_args_v1 args = { .exit_signal = SIGCHLD, .set_tid_size = 1 };
	struct child c = start(hold_memory);
	struct memwatch_growth_row old = { 0 }, row = { 0 };
	pid_t wanted = c.pid, pid;

	await(c.done[0]);
	rounds(1);
	find(wanted, &old, NULL);
	finish(&c);
	usleep(20000); /* start times have a resolution */
	args.set_tid = (uint64_t)(uintptr_t)&wanted;
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (!pid) {
		pause();
		_exit(0);
	}
	if (pid < 0) {
		tap_skip("a process id that is used again is another process",
			 "clone3 cannot choose ids here");
		return;
	}
	rounds(1);
	tap_ok(pid == wanted && find(pid, &row, NULL) == 1 &&
		       row.start_time_ns > old.start_time_ns && row.first_ns > old.last_ns &&
		       row.signal_bytes < 40 * MIB,
	       "a process id that is used again is another process");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* --------------------------------------------------------------------- swap */

static void swap_out(struct child *c)
{
	char *p = touch(64 * MIB, MAP_PRIVATE);

	tell(c->done[1]);
	await(c->go[0]);
	madvise(p, 64 * MIB, 21 /* MADV_PAGEOUT */);
	tell(c->done[1]);
	await(c->go[0]);
}

static void test_swap(void)
{
	struct memwatch_growth_sample s = { 0 };
	struct memwatch_growth_row before = { 0 }, after = { 0 };
	struct child c;

	if (!has_swap()) {
		tap_skip("what is swapped out is still held", "no swap here");
		return;
	}
	c = start(swap_out);
	await(c.done[0]);
	rounds(1);
	find(c.pid, &before, NULL);
	tell(c.go[1]);
	await(c.done[0]);
	rounds(1);
	find(c.pid, &after, &s);
	tap_ok(s.swap_bytes > 32 * MIB && after.signal_bytes + 4 * MIB > before.signal_bytes,
	       "what is swapped out is still held: %llu MiB in swap",
	       (unsigned long long)(s.swap_bytes / MIB));
	finish(&c);
}

/* ------------------------------------------------------------------- leaks */

static void test_limit(void)
{
	const struct memwatch_record_header *header;
	struct memwatch_record_growth alert = { 0 };
	struct child c = start(leak_to_limit);
	uint64_t end = now() + 60000000000ULL, hit = 0;

	await(c.done[0]);
	fcntl(c.done[0], F_SETFL, O_NONBLOCK);
	while (now() < end && !hit) {
		char byte;

		memwatch_watch_poll(watch, 100);
		while (memwatch_watch_next(watch, &header) == 1) {
			const struct memwatch_record_growth *r = (const void *)header;

			if (header->type == MEMWATCH_RECORD_GROWTH && r->tgid == (uint32_t)c.pid &&
			    r->what == MEMWATCH_GROWTH_ALERTED && !alert.tgid)
				alert = *r;
		}
		if (read(c.done[0], &byte, 1) == 1)
			hit = now();
	}
	tap_ok(alert.tgid && hit > alert.h.time_ns + 3000000000ULL &&
		       alert.limit == MEMWATCH_LIMIT_DATA && alert.reason == 1,
	       "a leak of 20 MiB/s is told of %.1f s before RLIMIT_DATA stops it; said were %u s",
	       alert.tgid ? (double)(hit - alert.h.time_ns) / 1e9 : -1.0, alert.eta_s);
	finish(&c);
}

/* From the growth to the round that it asked for. */
static void burst(struct child *c)
{
	for (int i = 0; i < 20; i++) {
		await(c->go[0]);
		touch(24 * MIB, MAP_PRIVATE);
		tell(c->done[1]);
	}
	pause();
}

static void test_poke(void)
{
	MEMWATCH_OPTS(memwatch_watch_stats, stats);
	uint64_t worst = 0, pokes;
	int reacted = 0;
	struct child c;

	memwatch_watch_stats(watch, &stats);
	if (!stats.events_attached) {
		tap_skip("fast growth does not wait for the next round", "events are over budget");
		return;
	}
	pokes = stats.pokes;
	c = start(burst);
	rounds(1);
	for (int i = 0; i < 20; i++) {
		uint64_t end = now() + 10000000000ULL;

		tell(c.go[1]);
		while (stats.pokes == pokes && now() < end) {
			if (memwatch_watch_poll(watch, 500) & MEMWATCH_WATCH_EVENT)
				drain();
			memwatch_watch_stats(watch, &stats);
		}
		rounds(0);
		memwatch_watch_stats(watch, &stats);
		reacted += stats.pokes > pokes;
		worst = stats.reaction_ns > worst ? stats.reaction_ns : worst;
		pokes = stats.pokes;
		await(c.done[0]);
	}
	tap_ok(reacted >= 15 && worst < 200000000ULL,
	       "fast growth does not wait for the next round: %d of 20 asked for one, and got it "
	       "in %.1f ms at most",
	       reacted, (double)worst / 1e6);
	finish(&c);
}

/* ----------------------------------------------------------------- monitor */

static void test_restart(void)
{
	char path[] = "growth-state-XXXXXX";
	struct memwatch_growth_row before = { 0 }, after = { 0 };
	struct child c = start(hold_memory);
	int fd = mkstemp(path), n;

	await(c.done[0]);
	rounds(3);
	find(c.pid, &before, NULL);
	tap_ok(!memwatch_watch_save(watch, path), "the state is saved");
	memwatch_watch_unref(watch);
	watch = open_watch(0, 300000000);
	n = memwatch_watch_load(watch, path);
	rounds(2);
	find(c.pid, &after, NULL);
	tap_ok(n > 0 && after.first_ns == before.first_ns && after.last_ns > before.last_ns,
	       "a monitor that was restarted goes on with %d histories", n);
	memwatch_watch_unref(watch);
	watch = open_watch(0, 300000000);
	if (truncate(path, 100))
		tap_note("truncate: %s", strerror(errno));
	n = memwatch_watch_load(watch, path);
	tap_ok(n == -EBADMSG && strstr(memwatch_ctx_error(ctx), "damaged"),
	       "half a state file is refused: %s", memwatch_ctx_error(ctx));
	close(fd);
	unlink(path);
	finish(&c);
}

static void test_full(void)
{
	MEMWATCH_OPTS(memwatch_watch_stats, stats);
	struct child c[8];
	int n;

	memwatch_watch_unref(watch);
	watch = open_watch(4, 300000000);
	for (int i = 0; i < 8; i++) {
		c[i] = start(just_wait);
		await(c[i].done[0]);
	}
	rounds(2);
	n = memwatch_watch_snapshot(watch);
	memwatch_watch_stats(watch, &stats);
	tap_ok(n == 4 && stats.full >= 8, "a full map holds 4, and counts what it cannot: %llu",
	       (unsigned long long)stats.full);
	for (int i = 0; i < 8; i++)
		finish(&c[i]);
}

/* In a virtual machine only: the time of day of this one is not ours. */
static void test_clock(void)
{
	struct timespec real;
	struct memwatch_growth_row before = { 0 }, after = { 0 };

	if (!getenv("MEMWATCH_TEST_CLOCK")) {
		tap_skip("the time of day may jump", "only where the clock is ours to set");
		return;
	}
	rounds(1);
	find(getpid(), &before, NULL);
	clock_gettime(CLOCK_REALTIME, &real);
	real.tv_sec -= 86400;
	clock_settime(CLOCK_REALTIME, &real);
	rounds(2);
	real.tv_sec += 2 * 86400;
	clock_settime(CLOCK_REALTIME, &real);
	rounds(2);
	find(getpid(), &after, NULL);
	real.tv_sec -= 86400;
	clock_settime(CLOCK_REALTIME, &real);
	tap_ok(after.last_ns > before.last_ns && after.last_ns - before.last_ns < 60000000000ULL,
	       "the time of day may jump");
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--wait")) {
		await(atoi(argv[2]));
		return 0;
	}
	start_rig();
	test_identical();
	early = start(just_wait);
	await(early.done[0]);
	watch = open_watch(0, 300000000);
	test_early();
	test_counters();
	test_fork();
	test_exec();
	test_threads();
	test_vfork();
	test_pid_reuse();
	test_swap();
	test_poke();
	test_limit();
	test_clock();
	test_restart();
	test_full();
	memwatch_watch_unref(watch);
	memwatch_ctx_unref(ctx);
	return tap_done();
}
