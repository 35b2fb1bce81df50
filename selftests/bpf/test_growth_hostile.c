// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The growth monitor among processes and files that work against it: users with more
 * processes than it has room for, processes that exit while it looks, one that does
 * nothing but fault, a state file of processes that never existed; and the monitor with no more
 * capabilities than the documents ask for. Needs root and BTF, not the module.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "growth/state-file.h"
#include "growth-children.h"

/* The user of the next children; 0: that of the test. */
static uid_t planned_uid;

static void become_planned(void)
{
	uid_t uid = planned_uid;

	if (uid && (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid)))
		_exit(1);
}

/* Starts @n sleepers of a user. They end with the test. */
static void start_sleepers(pid_t *pids, int n, uid_t uid)
{
	int ready[2];

	planned_uid = uid;
	if (pipe(ready))
		exit(EXIT_FAILURE);
	for (int i = 0; i < n; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			become_planned();
			send_byte(ready[1]);
			pause();
			_exit(0);
		}
	}
	for (int i = 0; i < n; i++)
		await_byte(ready[0]);
	close(ready[0]);
	close(ready[1]);
}

static void stop_sleepers(const pid_t *pids, int n)
{
	for (int i = 0; i < n; i++)
		kill(pids[i], SIGKILL);
	for (int i = 0; i < n; i++)
		waitpid(pids[i], NULL, 0);
}

/* Leaks 4 MiB/s towards a limit that is far away. */
static void leak_slowly(struct child *c)
{
	become_planned();
	send_byte(c->done[1]);
	for (;;) {
		map_touched(1 * MIB, MAP_PRIVATE);
		usleep(250000);
	}
}

/* Polls until @pid has a state, for at most @seconds. Returns how long it took, or -1. */
static double await_state(pid_t pid, int seconds)
{
	uint64_t start = now_ns(), end = start + (uint64_t)seconds * SECOND;
	struct memwatch_growth_row row;

	while (now_ns() < end) {
		if (memwatch_watch_poll(watch, 100) & MEMWATCH_WATCH_EVENT)
			drain_records();
		if (find_process(pid, &row, NULL))
			return (double)(now_ns() - start) / 1e9;
	}
	return -1;
}

#define ROOM	 256
#define SLEEPERS 500

/* The sleepers of one user are more than there is room for, then a leak begins. */
static void test_room(void)
{
	struct memwatch_watch_stats stats;
	struct memwatch_growth_row row = { 0 };
	pid_t pids[SLEEPERS];
	uint64_t rounds;
	double seconds;
	struct child c;
	int kept = 0;

	start_sleepers(pids, SLEEPERS, 12345);
	watch = open_watch(ROOM, SECOND / 2);
	run_rounds(2);
	stats = read_stats();
	tap_ok(stats.unwatched >= SLEEPERS - ROOM, "processes without room are counted: %u",
	       stats.unwatched);
	tap_ok(stats.quota > 0 && stats.quota <= ROOM, "each user has a share of the room: %u",
	       stats.quota);
	planned_uid = 12346;
	c = start_child(leak_slowly);
	await_byte(c.done[0]);
	rounds = read_stats().rounds;
	seconds = await_state(c.pid, 20);
	rounds = read_stats().rounds - rounds;
	tap_ok(seconds >= 0 && rounds <= 6,
	       "a leak of another user is watched from the next rounds on: after %llu, %.1f s",
	       (unsigned long long)rounds, seconds);
	stop_child(&c);

	planned_uid = 12345;
	c = start_child(leak_slowly);
	await_byte(c.done[0]);
	seconds = await_state(c.pid, 120);
	tap_ok(seconds >= 0, "a leak of the user of the sleepers gets its turn: after %.1f s",
	       seconds);
	for (int i = 0; i < 40; i++, kept += find_process(c.pid, &row, NULL))
		run_rounds_for(2 * SECOND / 5);
	tap_eq(kept, 40, "a process that grows keeps its state while others take turns");
	tap_ok(row.signal_bytes > 4 * MIB, "its growth is seen: %llu MiB",
	       (unsigned long long)row.signal_bytes >> 20);
	tap_ok(read_stats().replaced > 0, "states that gave way are counted: %llu",
	       (unsigned long long)read_stats().replaced);
	stop_child(&c);
	stop_sleepers(pids, SLEEPERS);
	run_rounds(2);
	tap_eq(read_stats().unwatched, 0, "with room for all no process waits any more");
	tap_eq(read_stats().quota, 0, "with room for all there are no shares any more");
	memwatch_watch_unref(watch);
}

#define CHURN 2000

static int compare_ids(const void *a, const void *b)
{
	const uint64_t *p = a, *q = b;

	return (*p > *q) - (*p < *q);
}

/* Takes a snapshot. Returns how many processes are in it more than once. */
static int count_repeated(void)
{
	static uint64_t ids[4 * CHURN];
	MEMWATCH_OPTS(memwatch_growth_sample, s);
	unsigned int n = 0;
	int repeated = 0;

	memwatch_watch_snapshot(watch);
	while (n < 4 * CHURN && memwatch_watch_get_sample(watch, n, &s, NULL) == 1)
		ids[n++] = s.start_time_ns << 20 ^ s.tgid;
	qsort(ids, n, sizeof(*ids), compare_ids);
	for (unsigned int i = 1; i < n; i++)
		repeated += ids[i] == ids[i - 1];
	return repeated;
}

/* An alert about one of thousands of processes does not cost a walk over all of them. */
static void test_find(const pid_t *pids)
{
	MEMWATCH_OPTS(memwatch_growth_row, row);
	MEMWATCH_OPTS(memwatch_growth_sample, s);
	uint64_t from, walk, find;
	__u64 cgroup = 0;
	int found = 0;

	find_process(pids[CHURN - 1], &row, &s);
	from = cpu_ns();
	for (int i = 0; i < 10; i++)
		memwatch_watch_snapshot(watch);
	walk = (cpu_ns() - from) / 10;
	from = cpu_ns();
	for (int i = 0; i < 300; i++)
		found += memwatch_watch_find(watch, s.tgid, s.start_time_ns, &row, &cgroup);
	find = (cpu_ns() - from) / 300;
	tap_eq(found, 300, "a process is found by its id and its start time");
	tap_eq(row.tgid, (uint32_t)pids[CHURN - 1], "the row is that of the process");
	tap_ok(find * 10 < walk, "to find one process takes %llu us, to copy all of them %llu us",
	       (unsigned long long)find / 1000, (unsigned long long)walk / 1000);
	tap_eq(memwatch_watch_find(watch, s.tgid, s.start_time_ns + 1, &row, NULL), 0,
	       "a process with another start time is not found");
}

static void burn_cpu(uint64_t ns)
{
	uint64_t end = cpu_ns() + ns;

	while (cpu_ns() < end)
		;
}

/* CPU time that the caller spends between two rounds: more than a round of an emulated guest. */
#define CALLER_NS SECOND

/* Runs two rounds, and spends CALLER_NS in between. Returns the period afterwards. */
static uint64_t charge_caller(uint32_t flags, uint64_t reported, uint64_t *cost)
{
	MEMWATCH_OPTS(memwatch_watch_opts, opts, .flags = flags, .period_ns = SECOND / 4);
	uint64_t before;

	if (memwatch_watch_open(ctx, &opts, &watch))
		return 0;
	while (!(memwatch_watch_poll(watch, 1000) & MEMWATCH_WATCH_ROUND))
		drain_records();
	before = read_stats().cpu_ns;
	burn_cpu(CALLER_NS);
	memwatch_watch_charge(watch, reported);
	while (!(memwatch_watch_poll(watch, 1000) & MEMWATCH_WATCH_ROUND))
		drain_records();
	*cost = read_stats().cpu_ns - before;
	before = read_stats().period_ns;
	memwatch_watch_unref(watch);
	return before;
}

/* What the caller does with the results is part of the cost. */
static void test_charge(void)
{
	uint64_t cost = 0, period;

	period = charge_caller(MEMWATCH_WATCH_OWN_THREAD, 0, &cost);
	tap_ok(cost >= CALLER_NS, "the CPU time of the caller's thread is charged: %llu ms",
	       (unsigned long long)cost / 1000000);
	tap_ok(period > 20 * SECOND, "it makes the period longer: %llu ms",
	       (unsigned long long)period / 1000000);
	period = charge_caller(0, CALLER_NS, &cost);
	tap_ok(cost >= CALLER_NS, "what the caller reports is charged: %llu ms",
	       (unsigned long long)cost / 1000000);
	charge_caller(0, 0, &cost);
	tap_ok(cost < CALLER_NS, "other work of a shared thread is not charged: %llu ms",
	       (unsigned long long)cost / 1000000);
}

/* Snapshots while thousands of processes exit. */
static void test_churn(void)
{
	static pid_t pids[CHURN];
	int repeated = 0, snapshots = 0;
	pid_t killer;

	start_sleepers(pids, CHURN, 12345);
	watch = open_watch(0, SECOND / 2);
	run_rounds(1);
	test_find(pids);
	killer = fork();
	if (!killer) {
		for (int i = 0; i < CHURN; i++) {
			kill(pids[i], SIGKILL);
			usleep(300);
		}
		_exit(0);
	}
	while (!waitpid(killer, NULL, WNOHANG)) {
		repeated += count_repeated();
		snapshots++;
	}
	stop_sleepers(pids, CHURN);
	tap_ok(snapshots > 3, "snapshots were taken while processes exited: %d", snapshots);
	tap_eq(repeated, 0, "no snapshot has a process twice");
	memwatch_watch_unref(watch);
}

#define INVENTED 9000

/* A valid state file of processes that do not exist. */
static void write_invented(const char *path)
{
	uint64_t now = now_ns();
	struct mw_growth_process process = { .round = 1, .comm = "invented" };
	struct mw_growth_key key = { .start_ns = 1 };
	struct mw_state_writer writer;
	FILE *file = fopen(path, "w+");

	mw_growth_init(&process.growth, now - SECOND, 1000);
	process.growth.verdict = MW_GROWTH_LEAK;
	mw_state_writer_begin(&writer, file);
	for (uint32_t i = 0; i < INVENTED; i++) {
		key.tgid = 100000 + i;
		mw_state_writer_put(&writer, &key, &process, NULL);
	}
	if (mw_state_writer_end(ctx, &writer))
		tap_note("%s", memwatch_ctx_error(ctx));
	fclose(file);
	chmod(path, 0600);
}

static void test_invented(void)
{
	static const char path[] = "growth-invented.state";
	MEMWATCH_OPTS(memwatch_growth_row, row);
	int shown = 0;
	uint64_t cpu;

	write_invented(path);
	watch = open_watch(0, SECOND / 2);
	tap_eq(memwatch_watch_load(watch, path), INVENTED, "a valid state file is loaded");
	tap_eq(memwatch_watch_snapshot(watch), 0, "before the first round nothing of it is shown");
	cpu = read_stats().cpu_ns;
	run_rounds(1);
	cpu = read_stats().cpu_ns - cpu;
	memwatch_watch_snapshot(watch);
	for (unsigned int i = 0; memwatch_watch_get_row(watch, i, &row) == 1; i++)
		shown += !strcmp(row.comm, "invented");
	tap_eq(shown, 0, "processes that do not exist are never shown");
	tap_ok(read_stats().processes < INVENTED / 2, "the first round forgets them: %u are left",
	       read_stats().processes);
	tap_ok(cpu < SECOND, "to forget %d processes takes less than a second of CPU time: %.0f ms",
	       INVENTED, (double)cpu / 1e6);
	chmod(path, 0620);
	memwatch_watch_unref(watch);
	watch = open_watch(0, SECOND / 2);
	tap_eq(memwatch_watch_load(watch, path), -EPERM,
	       "a state file that its group can write is refused");
	memwatch_watch_unref(watch);
	unlink(path);
}

/* Faults as fast as it can. */
static void fault_only(struct child *c)
{
	size_t bytes = 256 * 4096;
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(p, bytes, MADV_NOHUGEPAGE);
	send_byte(c->done[1]);
	for (;;) {
		for (size_t at = 0; at < bytes; at += 4096)
			p[at] = 1;
		madvise(p, bytes, MADV_DONTNEED);
	}
}

/* Maps 64 MiB when the test says so. */
static void grow_once(struct child *c)
{
	send_byte(c->done[1]);
	await_byte(c->go[0]);
	map_touched(64 * MIB, MAP_PRIVATE);
	send_byte(c->done[1]);
	await_byte(c->go[0]);
}

/* Returns the seconds until the growth of @c is seen. */
static double time_growth(struct child *c)
{
	struct memwatch_growth_row row = { 0 };
	uint64_t from, end;

	send_byte(c->go[1]);
	await_byte(c->done[0]);
	from = now_ns();
	end = from + 20 * SECOND;
	while (row.signal_bytes < 60 * MIB && now_ns() < end) {
		if (memwatch_watch_poll(watch, 50) & MEMWATCH_WATCH_EVENT)
			drain_records();
		find_process(c->pid, &row, NULL);
	}
	return (double)(now_ns() - from) / 1e9;
}

/* The run time of the newest event program, which is that of this process, by the kernel. */
static uint64_t kernel_run_time(void)
{
	uint32_t id = 0, size;
	uint64_t ret = 0;

	while (!bpf_prog_get_next_id(id, &id)) {
		struct bpf_prog_info info = { 0 };
		int fd = bpf_prog_get_fd_by_id(id);

		if (fd < 0)
			continue;
		size = sizeof(info);
		if (!bpf_obj_get_info_by_fd(fd, &info, &size) && !strcmp(info.name, "on_rss_stat"))
			ret = info.run_time_ns;
		close(fd);
	}
	return ret;
}

/* Polls until the run time of the event program was measured once more. */
static void await_measurement(struct memwatch_watch_stats *stats)
{
	uint64_t before = stats->event_ns, end = now_ns() + 60 * SECOND;

	do {
		if (memwatch_watch_poll(watch, 200) & MEMWATCH_WATCH_EVENT)
			drain_records();
		*stats = read_stats();
	} while (stats->event_ns == before && now_ns() < end);
}

/*
 * The event program times some of its runs; the kernel times all. It also counts interrupts, and
 * its own reading of the clock, which takes longer than the program.
 */
static bool is_run_time(uint64_t own, uint64_t kernel)
{
	return own > kernel / 10 && own < 2 * kernel;
}

static void test_run_time(void)
{
	MEMWATCH_OPTS(memwatch_watch_opts, opts, .storm_ppm = 1000000);
	struct memwatch_watch_stats from = { 0 }, to = { 0 };
	int statistics = bpf_enable_stats(BPF_STATS_RUN_TIME);
	uint64_t own = 0, kernel = 0;
	struct child loop;

	if (memwatch_watch_open(ctx, &opts, &watch)) {
		tap_ok(false, "the monitor is opened: %s", memwatch_ctx_error(ctx));
		return;
	}
	loop = start_child(fault_only);
	await_byte(loop.done[0]);
	await_measurement(&to);
	/* On a busy machine interrupts can take longer than the program. */
	for (int i = 0; i < 5 && !is_run_time(own, kernel); i++) {
		from = to;
		kernel = kernel_run_time();
		await_measurement(&to);
		kernel = kernel_run_time() - kernel;
		own = to.event_ns - from.event_ns;
	}
	tap_ok(is_run_time(own, kernel),
	       "the run time of the event program is that of the kernel: %.1f ms, kernel %.1f ms",
	       (double)own / 1e6, (double)kernel / 1e6);
	stop_child(&loop);
	memwatch_watch_unref(watch);
	close(statistics);
}

/* While the event program is detached for the faults of one process, others are seen. */
static void test_fault_loop(void)
{
	MEMWATCH_OPTS(memwatch_watch_opts, opts, .storm_ppm = 2000);
	struct memwatch_watch_stats stats = { 0 };
	struct child loop, c;
	uint64_t end, affordable;
	double seconds;

	if (memwatch_watch_open(ctx, &opts, &watch)) {
		tap_ok(false, "the monitor is opened: %s", memwatch_ctx_error(ctx));
		return;
	}
	loop = start_child(fault_only);
	c = start_child(grow_once);
	await_byte(loop.done[0]);
	await_byte(c.done[0]);
	for (end = now_ns() + 30 * SECOND; now_ns() < end;) {
		if (memwatch_watch_poll(watch, 200) & MEMWATCH_WATCH_EVENT)
			drain_records();
		stats = read_stats();
		if (stats.events_state == MEMWATCH_EVENTS_OVER_BUDGET)
			break;
	}
	if (stats.events_state != MEMWATCH_EVENTS_OVER_BUDGET) {
		tap_skip("growth is seen soon beside a fault loop",
			 "the event program was not detached");
	} else {
		seconds = time_growth(&c);
		stats = read_stats();
		/* A quarter of the budget is for rounds, which an emulated CPU makes slow. */
		affordable = stats.cpu_ns / stats.rounds * 4 * 1000000 / stats.storm_ppm;
		tap_ok(stats.period_ns < 5 * SECOND || stats.period_ns < 2 * affordable,
		       "rounds replace the event program: every %llu ms, affordable %llu",
		       (unsigned long long)stats.period_ns / 1000000,
		       (unsigned long long)affordable / 1000000);
		tap_ok(seconds < (double)stats.period_ns / 1e9 + 1,
		       "growth is seen soon beside a fault loop: after %.2f s", seconds);
	}
	stop_child(&loop);
	stop_child(&c);
	memwatch_watch_unref(watch);
}

/* Keeps CAP_BPF and CAP_PERFMON only. Returns whether that worked. */
static bool keep_documented_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	data[1].effective = data[1].permitted = 1U << (CAP_BPF - 32) | 1U << (CAP_PERFMON - 32);
	return !prctl(PR_SET_KEEPCAPS, 1) && !setgroups(0, NULL) &&
	       !setresgid(65534, 65534, 65534) && !setresuid(65534, 65534, 65534) &&
	       !syscall(SYS_capset, &header, data);
}

/* The exit status says how far it came; 0 is success. */
static int watch_unprivileged(void)
{
	MEMWATCH_OPTS(memwatch_watch_stats, stats);
	/* A slow machine takes long to a round that has seen faults. */
	uint64_t end = now_ns() + 60 * SECOND;

	if (!keep_documented_capabilities())
		return 1;
	if (memwatch_watch_open(ctx, NULL, &watch)) {
		tap_note("%s", memwatch_ctx_error(ctx));
		return 2;
	}
	do {
		if (memwatch_watch_poll(watch, 200) & MEMWATCH_WATCH_EVENT)
			drain_records();
		memwatch_watch_get_stats(watch, &stats);
	} while (now_ns() < end &&
		 (stats.event_cost == MEMWATCH_EVENT_COST_UNKNOWN || stats.event_ppm == 0));
	if (!stats.samples || !stats.events_attached)
		return 3;
	if (stats.event_cost != MEMWATCH_EVENT_COST_MEASURED || !stats.event_ppm)
		return 4;
	memwatch_watch_unref(watch);
	return 0;
}

/* Debian sets 3, which its kernels take as "CAP_SYS_ADMIN only". */
static int paranoid_level(void)
{
	FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	int level = 0;

	if (file && fscanf(file, "%d", &level) != 1)
		level = 0;
	if (file)
		fclose(file);
	return level;
}

static void test_capabilities(void)
{
	static const char works[] =
		"the monitor works with CAP_BPF and CAP_PERFMON, and measures the cost";
	struct child loop;
	int status = 0;
	pid_t pid;

	if (paranoid_level() > 2) {
		tap_skip(works, "kernel.perf_event_paranoid is above 2");
		return;
	}
	loop = start_child(fault_only);
	await_byte(loop.done[0]);
	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(watch_unprivileged());
	waitpid(pid, &status, 0);
	tap_eq(status, 0, works);
	stop_child(&loop);
}

int main(void)
{
	start_rig();
	test_invented();
	test_churn();
	test_charge();
	test_capabilities();
	test_run_time();
	test_fault_loop();
	test_room();
	memwatch_ctx_unref(ctx);
	return tap_done();
}
