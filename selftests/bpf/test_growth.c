// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The growth programs on a running kernel: they give the same verdicts as the host, bit
 * by bit, and they watch processes that fork, exec, vfork, lose their leader, exit, reuse
 * a process id, are swapped out or leak. Needs root and BTF, not the module. Other
 * programs that run meanwhile do not matter.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <memwatch/watch.h>

#include "../prng.h"
#include "../tap.h"
#include "bpf/growth-maps.h"
#include "growth-children.h"
#include "growth-descriptor.h"
#include "growth-limit.h"
#include "growth.skel.h"

static struct prng prng = { 1 };

/* A random number of random length. */
static uint32_t random_bits(void)
{
	return (uint32_t)(prng_next(&prng) >> prng_below(&prng, 64));
}

/* The next sample of one of six kinds of trace, which together reach all code. */
static void next_sample(struct mw_growth_sample *s, uint32_t kind, uint32_t i)
{
	s->time_ns += kind == 3 ? 60 * MW_GROWTH_SECOND : 5 * MW_GROWTH_SECOND;
	if (!prng_below(&prng, 500))
		s->time_ns += prng_below(&prng, 600 * MW_GROWTH_SECOND);
	switch (kind) {
	case 0: /* a leak towards a limit */
		s->anon = 25600 + 20 * i;
		s->headroom = mw_growth_sub_sat(60000, 20 * i);
		break;
	case 1: /* a leak below a sawtooth */
		s->anon = 25600 + 40 * i + i % 7 * 2000;
		s->headroom = mw_growth_sub_sat(125600, s->anon);
		break;
	case 2: /* noise */
		s->anon = 25600 + (uint32_t)prng_below(&prng, 2000);
		s->shmem = (uint32_t)prng_below(&prng, 50);
		break;
	case 3: /* slow growth for days */
		s->anon = 65536 + 7 * i;
		s->swap = i;
		break;
	case 4: /* random numbers */
		s->anon = random_bits();
		s->swap = random_bits();
		s->file = (uint32_t)prng_next(&prng);
		s->vsz = (uint32_t)prng_next(&prng);
		s->headroom = random_bits();
		break;
	default: /* fast growth that is given back, repeatedly */
		s->anon = 10000 + i % 300 * 900;
		s->headroom = 400000;
		break;
	}
}

/* What on_test does, on the host. */
static void feed_host(struct mw_growth_test *t)
{
	if (!t->started)
		mw_growth_init(&t->growth, t->sample.time_ns, mw_growth_signal(&t->sample));
	t->started = 1;
	t->event = mw_growth_feed(&t->growth, t->has_history ? &t->history : NULL, &t->sample);
	if (!t->has_history && t->growth.flags & MW_GROWTH_F_HISTORY) {
		mw_growth_history_init(&t->history, &t->growth);
		t->has_history = 1;
	}
}

/* Feeds the sample of @t to the program. Returns 0 or an error. */
static int feed_kernel(struct growth_bpf *skel, struct mw_growth_test *t)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	int prog = bpf_program__fd(skel->progs.on_test), map = bpf_map__fd(skel->maps.test);
	uint32_t zero = 0;

	return bpf_map_update_elem(map, &zero, t, BPF_ANY) || bpf_prog_test_run_opts(prog, &opts) ||
	       bpf_map_lookup_elem(map, &zero, t);
}

static void test_identical(void)
{
	struct mw_growth_test kernel, host;
	unsigned int different = 0, alerts = 0, notices = 0, heights = 0, fed = 0;
	struct growth_bpf *skel = growth_bpf__open();

	if (!skel || growth_bpf__load(skel)) {
		tap_ok(false, "the programs are loaded");
		return;
	}
	for (uint32_t kind = 0; kind < 6; kind++) {
		memset(&kernel, 0, sizeof(kernel));
		kernel.sample.time_ns = prng_below(&prng, 1000 * MW_GROWTH_SECOND);
		kernel.sample.headroom = MW_GROWTH_NO_LIMIT;
		for (uint32_t i = 0; i < 3000 && !different; i++) {
			next_sample(&kernel.sample, kind, i);
			host = kernel;
			if (feed_kernel(skel, &kernel)) {
				tap_ok(false, "the test program runs: %s", strerror(errno));
				goto out;
			}
			feed_host(&host);
			different += memcmp(&host.growth, &kernel.growth, sizeof(host.growth)) ||
				     memcmp(&host.history, &kernel.history, sizeof(host.history)) ||
				     host.event != kernel.event;
			alerts += !!(kernel.event & MW_GROWTH_EVENT_ALERT);
			notices += !!(kernel.event & MW_GROWTH_EVENT_NOTICE);
			heights += kernel.growth.reason == MW_GROWTH_HEIGHT;
			fed++;
			if (different)
				tap_note("kind %u, sample %u", kind, i);
		}
	}
	tap_eq(different, 0, "kernel and host agree bit by bit");
	tap_eq(fed, 18000, "kernel and host were compared on all samples");
	tap_ok(alerts >= 3, "the samples raise at least 3 alerts: %u", alerts);
	tap_ok(heights > 0, "one of the alerts is by the rule height");
	tap_ok(notices >= 6, "the samples raise at least 6 notices: %u", notices);
out:
	growth_bpf__destroy(skel);
}

static void test_counters(void)
{
	struct child c = start_child(hold_memory);
	MEMWATCH_OPTS(memwatch_growth_sample, s);
	struct memwatch_growth_row row;
	int count;

	await_byte(c.done[0]);
	run_rounds(1);
	count = find_process(c.pid, &row, &s);
	tap_eq(count, 1, "a process has one state");
	tap_ok(is_near_kb(s.anon_bytes, read_proc_kb(c.pid, "RssAnon:")),
	       "anonymous memory is that of /proc: %llu MiB",
	       (unsigned long long)(s.anon_bytes / MIB));
	tap_ok(is_near_kb(s.shmem_bytes, read_proc_kb(c.pid, "RssShmem:")),
	       "shared memory is that of /proc: %llu MiB",
	       (unsigned long long)(s.shmem_bytes / MIB));
	tap_ok(is_near_kb(s.vsz_bytes, read_proc_kb(c.pid, "VmSize:")),
	       "address space is that of /proc");
	tap_ok(s.anon_bytes >= 62 * MIB, "64 MiB of anonymous memory are counted");
	tap_ok(s.shmem_bytes >= 30 * MIB, "32 MiB of shared memory are counted");
	stop_child(&c);
}

/* A child that main() starts before it opens the monitor. */
static struct child early;

static void test_early(void)
{
	struct memwatch_growth_row row;

	run_rounds(1);
	tap_eq(find_process(early.pid, &row, NULL), 1,
	       "a process that is older than the monitor is watched");
	stop_child(&early);
}

static void test_fork(void)
{
	struct child c = start_child(fork_larger_child);
	MEMWATCH_OPTS(memwatch_growth_sample, parent);
	MEMWATCH_OPTS(memwatch_growth_sample, child);
	struct memwatch_growth_row row;
	pid_t pid;

	await_byte(c.done[0]);
	pid = find_child_of(c.pid);
	run_rounds(1);
	tap_eq(find_process(c.pid, &row, &parent), 1, "a process that forked is watched");
	tap_ok(pid > 0, "its child runs");
	tap_eq(find_process(pid, &row, &child), 1, "a child that did not exec is watched");
	tap_ok(child.anon_bytes > parent.anon_bytes + 6 * MIB,
	       "a child that did not exec has a state of its own");
	if (pid)
		kill(pid, SIGKILL);
	stop_child(&c);
}

static void test_exec(void)
{
	MEMWATCH_OPTS(memwatch_watch_stats, before);
	MEMWATCH_OPTS(memwatch_watch_stats, after);
	struct child c = start_child(hold_then_exec);
	struct memwatch_growth_row row, old;

	await_byte(c.done[0]);
	run_rounds(2);
	send_byte(c.go[1]);
	tap_ok(wait_for_event(c.pid, MEMWATCH_GROWTH_NOTICED), "a process that grows has a notice");
	find_process(c.pid, &old, NULL);
	memwatch_watch_get_stats(watch, &before);
	send_byte(c.go[1]);
	tap_ok(wait_for_event(c.pid, MEMWATCH_GROWTH_SETTLED),
	       "the end of a notice is told when a process calls exec");
	run_rounds(2);
	memwatch_watch_get_stats(watch, &after);
	tap_eq(find_process(c.pid, &row, NULL), 1, "a process that called exec has one state");
	tap_ok(row.first_ns > old.first_ns, "an exec begins a new state");
	tap_eq(row.start_time_ns, old.start_time_ns, "an exec keeps the start time");
	tap_ok(row.signal_bytes < 40 * MIB, "after an exec the memory is that of the new program");
	tap_ok(after.execs > before.execs, "an exec is counted");
	tap_str_eq(row.comm, "exe", "after an exec the name is that of the new program");
	stop_child(&c);
}

static void test_threads(void)
{
	MEMWATCH_OPTS(memwatch_watch_stats, before);
	MEMWATCH_OPTS(memwatch_watch_stats, after);
	struct child c = start_child(lose_leader);
	struct memwatch_growth_row row = { 0 };
	uint64_t last;

	await_byte(c.done[0]);
	usleep(100000);
	run_rounds(2);
	tap_eq(find_process(c.pid, &row, NULL), 1, "a process keeps its state when threads exit");
	tap_ok(row.signal_bytes >= 46 * MIB, "threads that exit do not change the memory");
	last = row.last_ns;
	run_rounds(2);
	tap_eq(find_process(c.pid, &row, NULL), 1, "a process without a leader keeps its state");
	tap_ok(row.last_ns > last, "a process without a leader is still sampled");
	tap_ok(row.signal_bytes >= 46 * MIB, "a process without a leader keeps its memory");
	memwatch_watch_get_stats(watch, &before);
	send_byte(c.go[1]);
	waitpid(c.pid, NULL, 0);
	memwatch_watch_get_stats(watch, &after);
	tap_eq(find_process(c.pid, &row, NULL), 0,
	       "the exit of the last thread deletes the state before the next round");
	tap_ok(after.exits > before.exits, "the exit of the last thread is counted");
	close(c.go[1]);
	close(c.done[0]);
}

static void test_vfork(void)
{
	struct child c = start_child(vfork_child);
	struct memwatch_growth_row row = { 0 };
	pid_t pid;

	await_byte(c.done[0]);
	pid = find_child_of(c.pid);
	run_rounds(2);
	tap_ok(pid > 0, "a vforked child runs");
	tap_eq(find_process(pid, &row, NULL), 0, "a vforked child has no state");
	tap_eq(find_process(c.pid, &row, NULL), 1, "the parent of a vforked child has a state");
	tap_ok(row.signal_bytes >= 38 * MIB, "the shared memory counts for the parent of a vfork");
	send_byte(c.go[1]);
	stop_child(&c);
}

struct clone_args_v1 {
	uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid,
		set_tid_size;
};

static void test_pid_reuse(void)
{
	struct clone_args_v1 args = { .exit_signal = SIGCHLD, .set_tid_size = 1 };
	struct child c = start_child(hold_memory);
	struct memwatch_growth_row old = { 0 }, row = { 0 };
	pid_t wanted = c.pid, pid;

	await_byte(c.done[0]);
	run_rounds(1);
	find_process(wanted, &old, NULL);
	stop_child(&c);
	usleep(20000); /* so that the start times differ */
	args.set_tid = (uint64_t)(uintptr_t)&wanted;
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (!pid) {
		pause();
		_exit(0);
	}
	if (pid < 0) {
		tap_skip("a process id that is reused is another process",
			 "clone3 cannot choose a process id here");
		return;
	}
	run_rounds(1);
	tap_eq(pid, wanted, "a process id is reused");
	tap_eq(find_process(pid, &row, NULL), 1, "a process with a reused id has one state");
	tap_ok(row.start_time_ns > old.start_time_ns, "a process with a reused id is another one");
	tap_ok(row.first_ns > old.last_ns, "a process with a reused id begins a new state");
	tap_ok(row.signal_bytes < 40 * MIB, "a process with a reused id has its own memory");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void test_swap(void)
{
	MEMWATCH_OPTS(memwatch_growth_sample, s);
	struct memwatch_growth_row before = { 0 }, after = { 0 };
	struct child c;

	if (!has_swap()) {
		tap_skip("memory in swap is part of the signal", "no swap here");
		return;
	}
	c = start_child(swap_out);
	await_byte(c.done[0]);
	run_rounds(1);
	find_process(c.pid, &before, NULL);
	send_byte(c.go[1]);
	await_byte(c.done[0]);
	run_rounds(1);
	find_process(c.pid, &after, &s);
	tap_ok(s.swap_bytes > 32 * MIB, "memory in swap is counted: %llu MiB",
	       (unsigned long long)(s.swap_bytes / MIB));
	tap_ok(after.signal_bytes + 4 * MIB > before.signal_bytes,
	       "memory in swap is part of the signal");
	stop_child(&c);
}

/* The period is so long that each round is one that was requested. */
static void test_request(void)
{
	MEMWATCH_OPTS(memwatch_watch_stats, stats);
	int reacted = 0, soon = 0;
	uint64_t pokes, rounds;
	struct child c;

	memwatch_watch_get_stats(watch, &stats);
	if (!stats.events_attached) {
		tap_skip("fast growth requests a round", "the event program is not attached");
		return;
	}
	memwatch_watch_unref(watch);
	watch = open_watch(0, 60 * SECOND);
	c = start_child(grow_in_steps);
	run_rounds(0);
	for (int i = 0; i < 20; i++) {
		uint64_t end = now_ns() + 10 * SECOND;

		stats = read_stats();
		pokes = stats.pokes;
		rounds = stats.rounds;
		/* Growth that begins and ends within the gap requests no round. */
		usleep((useconds_t)(stats.gap_ns / 1000));
		send_byte(c.go[1]);
		while ((stats.pokes == pokes || stats.rounds == rounds) && now_ns() < end) {
			if (memwatch_watch_poll(watch, 500) & MEMWATCH_WATCH_EVENT)
				drain_records();
			stats = read_stats();
		}
		reacted += stats.pokes > pokes && stats.rounds > rounds;
		soon += stats.reaction_ns < 200000000;
		await_byte(c.done[0]);
	}
	tap_ok(reacted >= 15, "fast growth makes the monitor run a round: %d of 20 times", reacted);
	/* One that is not woken by the request finds it after 500 ms. */
	tap_ok(soon > 10, "most requested rounds end within 200 ms: %d of 20", soon);
	stop_child(&c);
	memwatch_watch_unref(watch);
	watch = open_watch(0, 300000000);
}

/* The entry of a CPU says for it alone which growth the event program does not look at again. */
static void test_filters(void)
{
	struct bpf_map_info info;
	__u32 id = 0, size, entries = 0;

	while (!bpf_map_get_next_id(id, &id)) {
		int fd = bpf_map_get_fd_by_id(id);

		size = sizeof(info);
		memset(&info, 0, sizeof(info));
		if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &size) &&
		    !strcmp(info.name, "filters"))
			entries = info.max_entries;
		close(fd);
	}
	tap_eq(entries, (uint32_t)libbpf_num_possible_cpus(),
	       "each possible CPU has a filter of its own");
}

/* Reads the verdict on the anonymous memory of the machine. */
static void find_machine(struct memwatch_growth_row *row)
{
	MEMWATCH_OPTS(memwatch_growth_group, group);

	row->sz = sizeof(*row);
	for (unsigned int i = 0; memwatch_watch_get_group(watch, i, &group, row) == 1; i++)
		if (!strcmp(group.path, "/") && group.kind == MEMWATCH_CLASS_ANON)
			return;
}

static void test_restart(void)
{
	char path[] = "growth-state-XXXXXX";
	struct memwatch_growth_row before = { 0 }, after = { 0 };
	struct memwatch_growth_row machine = { 0 }, machine_after = { 0 };
	struct child c = start_child(hold_memory);
	int fd = mkstemp(path), n;

	await_byte(c.done[0]);
	run_rounds(3);
	find_process(c.pid, &before, NULL);
	find_machine(&machine);
	tap_eq(memwatch_watch_save(watch, path), 0, "the state file is written");
	memwatch_watch_unref(watch);
	watch = open_watch(0, 300000000);
	n = memwatch_watch_load(watch, path);
	run_rounds(2);
	find_process(c.pid, &after, NULL);
	tap_ok(n > 0, "a new monitor reads %d states from the file", n);
	tap_eq(after.first_ns, before.first_ns, "a state continues in the new monitor");
	tap_ok(after.last_ns > before.last_ns, "the new monitor samples the process");
	/* The machine is visited less often than processes. */
	run_rounds(4);
	find_machine(&machine_after);
	tap_ok(machine.first_ns && machine_after.first_ns == machine.first_ns,
	       "the state of the machine continues too");
	tap_ok(machine_after.last_ns > machine.last_ns, "the new monitor samples the machine");
	memwatch_watch_unref(watch);
	watch = open_watch(0, 300000000);
	if (truncate(path, 100))
		tap_note("truncate: %s", strerror(errno));
	n = memwatch_watch_load(watch, path);
	tap_eq(n, -EBADMSG, "half a state file is refused");
	tap_ok(strstr(memwatch_ctx_error(ctx), "damaged") != NULL,
	       "the error says that the file is damaged: %s", memwatch_ctx_error(ctx));
	close(fd);
	unlink(path);
	stop_child(&c);
}

static void test_full(void)
{
	MEMWATCH_OPTS(memwatch_watch_stats, stats);
	struct child c[8];
	int n = 0;

	memwatch_watch_unref(watch);
	watch = open_watch(4, 300000000);
	for (int i = 0; i < 8; i++) {
		c[i] = start_child(wait_for_test);
		await_byte(c[i].done[0]);
	}
	/* On a busy machine some of the four may be processes that have ended meanwhile. */
	for (int i = 0; i < 20 && n < 4; i++) {
		run_rounds(2);
		n = memwatch_watch_snapshot(watch);
	}
	memwatch_watch_get_stats(watch, &stats);
	tap_eq(n, 4, "a monitor for 4 processes has 4 states");
	tap_ok(stats.full >= 8, "samples of further processes are counted: %llu",
	       (unsigned long long)stats.full);
	for (int i = 0; i < 8; i++)
		stop_child(&c[i]);
}

/* Only in a virtual machine, because it sets the clock. */
static void test_clock(void)
{
	struct timespec real;
	struct memwatch_growth_row before = { 0 }, after = { 0 };

	if (!getenv("MEMWATCH_IN_GUEST")) {
		tap_skip("jumps of the real-time clock do not matter",
			 "runs only in a virtual machine: it sets the clock");
		return;
	}
	run_rounds(1);
	find_process(getpid(), &before, NULL);
	clock_gettime(CLOCK_REALTIME, &real);
	real.tv_sec -= 86400;
	clock_settime(CLOCK_REALTIME, &real);
	run_rounds(2);
	real.tv_sec += 2 * 86400;
	clock_settime(CLOCK_REALTIME, &real);
	run_rounds(2);
	find_process(getpid(), &after, NULL);
	real.tv_sec -= 86400;
	clock_settime(CLOCK_REALTIME, &real);
	tap_ok(after.last_ns > before.last_ns, "a process is sampled after the clock was set");
	tap_ok(after.last_ns - before.last_ns < 60000000000ULL,
	       "jumps of the real-time clock do not change the times of samples");
}

/* Opens a monitor in a pid namespace of its own. Returns the error. */
static int open_in_namespace(void)
{
	struct memwatch_watch *other;
	int status = 0;
	pid_t pid;

	pid = fork();
	if (!pid) {
		if (unshare(CLONE_NEWPID))
			_exit(errno);
		pid = fork();
		if (!pid)
			_exit(-memwatch_watch_open(ctx, NULL, &other));
		waitpid(pid, &status, 0);
		_exit(WEXITSTATUS(status));
	}
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static void test_namespace(void)
{
	tap_eq(open_in_namespace(), EREMOTE,
	       "a monitor cannot be opened where processes have other ids");
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--wait")) {
		await_byte(atoi(argv[2]));
		return 0;
	}
	start_rig();
	test_identical();
	early = start_child(wait_for_test);
	await_byte(early.done[0]);
	watch = open_watch(0, 300000000);
	test_early();
	test_counters();
	test_fork();
	test_exec();
	test_threads();
	test_vfork();
	test_pid_reuse();
	test_swap();
	test_request();
	test_descriptor_time();
	test_descriptor_request();
	test_filters();
	test_limit();
	test_known_program();
	test_clock();
	test_restart();
	test_full();
	test_namespace();
	memwatch_watch_unref(watch);
	memwatch_ctx_unref(ctx);
	return tap_done();
}
