// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The live stream of the library with the real module. The test uses the public interface only.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <memwatch/stream.h>

#include "../module.h"
#include "../tap.h"

#define CPUS_MAX  1024
#define RMIDS_MAX 65536
#define GAP_MAX	  1000

static struct memwatch_ctx *ctx;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

/* What was counted while a stream was read. */
struct seen {
	uint64_t records, lost, late, forced, unsorted, unknown_owner, samples, ticks;
	uint64_t run_ns[CPUS_MAX], first_ns[CPUS_MAX], last_ns[CPUS_MAX];
	uint64_t online[CPUS_MAX], offline[CPUS_MAX];
	uint64_t allocs, existing, frees, stopped, dump_count, dump_end_at;
	uint64_t newest_ns;
	uint64_t returned_ns;	  /* when CPU 1 was set online, 0 after its next tick */
	uint64_t others[GAP_MAX]; /* ticks of CPU 0 since then */
	uint32_t nr_others;
	uint32_t gaps, gap; /* how often it has come back; most ticks of CPU 0 until then */
	bool ended;
};

/* The largest generation of each RMID that was announced. */
static uint32_t generation[RMIDS_MAX];

static void count_cpu_state(struct seen *s, const struct memwatch_record_cpu *rec)
{
	uint16_t cpu = rec->h.cpu;

	if (rec->state == MEMWATCH_CPU_ONLINE) {
		s->online[cpu]++;
		if (!s->first_ns[cpu])
			s->first_ns[cpu] = rec->h.time_ns;
	}
	s->offline[cpu] += rec->state == MEMWATCH_CPU_OFFLINE;
	if (rec->state == MEMWATCH_CPU_STOPPED) {
		s->stopped++;
		s->last_ns[cpu] = rec->h.time_ns;
	}
}

static void count_sample(struct seen *s, const struct memwatch_record_sample *sample)
{
	s->samples++;
	s->run_ns[sample->h.cpu] += sample->run_ns;
	if (sample->rmid &&
	    (sample->rmid >= RMIDS_MAX || generation[sample->rmid] < sample->generation))
		s->unknown_owner++;
}

/* CPU 1 ticks again. Counted in ticks, because the emulator may stand still at any moment. */
static void end_gap(struct seen *s, uint64_t time_ns)
{
	uint32_t gap = 0;

	for (uint32_t i = 0; i < s->nr_others; i++)
		gap += s->others[i] < time_ns;
	s->gap = gap > s->gap ? gap : s->gap;
	s->gaps++;
	s->returned_ns = s->nr_others = 0;
}

static void count_tick(struct seen *s, const struct memwatch_record_header *h)
{
	s->ticks++;
	if (!s->returned_ns || h->time_ns <= s->returned_ns)
		return;
	if (h->cpu == 0 && s->nr_others < GAP_MAX)
		s->others[s->nr_others++] = h->time_ns;
	if (h->cpu == 1)
		end_gap(s, h->time_ns);
}

static void count_record(struct seen *s, const struct memwatch_record_header *h)
{
	const struct memwatch_record_rmid *rmid = (const void *)h;

	if (h->time_ns < s->newest_ns)
		s->unsorted += !(h->flags & MEMWATCH_RECORD_F_LATE);
	else
		s->newest_ns = h->time_ns;
	if (h->type == MEMWATCH_RECORD_LOST) {
		s->lost += ((const struct memwatch_record_lost *)h)->count;
		return;
	}
	/* The statistics count the records that were delivered, not those of losses. */
	s->late += !!(h->flags & MEMWATCH_RECORD_F_LATE);
	s->forced += !!(h->flags & MEMWATCH_RECORD_F_FORCED);
	s->records++;
	if (h->cpu >= CPUS_MAX)
		return;
	switch (h->type) {
	case MEMWATCH_RECORD_SAMPLE:
		count_sample(s, (const struct memwatch_record_sample *)h);
		break;
	case MEMWATCH_RECORD_TICK:
		count_tick(s, h);
		break;
	case MEMWATCH_RECORD_RMID_ALLOC:
	case MEMWATCH_RECORD_RMID_EXISTING:
		if (rmid->rmid < RMIDS_MAX && rmid->generation > generation[rmid->rmid])
			generation[rmid->rmid] = rmid->generation;
		s->allocs += h->type == MEMWATCH_RECORD_RMID_ALLOC;
		s->existing += h->type == MEMWATCH_RECORD_RMID_EXISTING;
		break;
	case MEMWATCH_RECORD_RMID_FREE:
		s->frees++;
		break;
	case MEMWATCH_RECORD_DUMP_END:
		s->dump_end_at = s->records;
		s->dump_count = ((const struct memwatch_record_dump *)h)->count;
		break;
	case MEMWATCH_RECORD_CPU_STATE:
		count_cpu_state(s, (const struct memwatch_record_cpu *)h);
		break;
	}
}

/* Reads until the time @until, or to the end of the stream if that is 0. */
static int read_stream(struct memwatch_stream *stream, struct seen *s, uint64_t until)
{
	const struct memwatch_record_header *record;
	int err;

	while (!until || now_ns() < until) {
		err = memwatch_stream_next(stream, &record);
		if (err == 1) {
			count_record(s, record);
		} else if (err == -EAGAIN) {
			err = memwatch_stream_poll(stream, 50);
			if (err < 0 && err != -EINTR)
				return err;
		} else {
			s->ended = !err;
			return err;
		}
	}
	return 0;
}

/* Sum of the failure counters, or the one with the name @what. */
static uint64_t count_failures(struct memwatch_stream *stream, const char *what)
{
	const char *name;
	uint64_t sum = 0;
	__u64 count;

	for (unsigned int i = 0; memwatch_stream_get_failure(stream, i, &name, &count) > 0; i++) {
		if (count)
			tap_note("%s: %llu", name, count);
		if (!what ? strcmp(name, "slot_split") != 0 : !strcmp(name, what))
			sum += count;
	}
	return sum;
}

static void check_stream(struct memwatch_stream *stream, const struct seen *s, const char *what)
{
	struct memwatch_stream_stats stats = { .sz = sizeof(stats) };

	memwatch_stream_get_stats(stream, &stats);
	tap_eq(stats.produced, s->records + s->lost, "%s: produced = delivered + lost", what);
	tap_eq(stats.malformed, 0, "%s: no record is malformed", what);
	tap_eq(stats.lost, s->lost, "%s: the statistics count what the records of losses say",
	       what);
	tap_eq(stats.delivered, s->records, "%s: the statistics count the delivered records", what);
	tap_ok(s->records, "%s: records are delivered", what);
	tap_eq(s->unsorted, 0, "%s: records are sorted, or flagged late", what);
	tap_eq(stats.late, s->late, "%s: the statistics count the late records", what);
	tap_note("%s: %llu records late, %llu forced", what, stats.late, stats.forced);
	tap_ok(s->ended, "%s: the stream ends", what);
}

/* Forks a process that starts short processes for @ms milliseconds. */
static pid_t start_work(unsigned int ms)
{
	uint64_t end = now_ns() + ms * 1000000ULL;
	pid_t pid = fork();

	if (pid)
		return pid;
	while (now_ns() < end) {
		pid_t child = fork();

		if (!child) {
			uint64_t until = now_ns() + 3000000;

			while (now_ns() < until)
				;
			_exit(0);
		}
		usleep(1000);
		waitpid(child, NULL, 0);
	}
	_exit(0);
}

static struct memwatch_stream *open_live(struct memwatch_live_opts *opts, const char *what)
{
	struct memwatch_stream *stream = NULL;
	int err = memwatch_stream_open_live(ctx, opts, &stream);

	if (!tap_ok(!err, "%s: the stream is opened: %s", what,
		    err ? memwatch_ctx_error(ctx) : "yes"))
		return NULL;
	return stream;
}

static void check_info(const struct memwatch_stream_info *info, __u32 mode, const char *what)
{
	unsigned int wrong = 0;

	tap_note("%s: %u CPUs, %u RMIDs, %s: %s", what, info->nr_cpus, info->nr_rmids,
		 info->backend, info->backend_reason);
	tap_ok(info->nr_cpus, "%s: the info has the number of CPUs", what);
	tap_ok(info->nr_rmids, "%s: the info has the number of RMIDs", what);
	tap_ok(info->period_ns, "%s: the info has the period", what);
	tap_ok(info->backend[0], "%s: the info has the backend", what);
	tap_ok(info->start_monotonic_ns, "%s: the info has the start time", what);
	tap_ok(info->kernel[0], "%s: the info has the kernel", what);
	tap_eq(info->mode, mode, "%s: the info has the mode", what);
	for (int i = 0; i < MEMWATCH_COUNTER_MAX; i++)
		wrong += (info->counter[i].status == MEMWATCH_STATUS_OK) !=
			 !info->counter[i].reason[0];
	for (int i = 0; i < MEMWATCH_RDT_MAX; i++)
		wrong += (info->rdt[i].status == MEMWATCH_STATUS_OK) != !info->rdt[i].reason[0];
	tap_eq(wrong, 0, "%s: everything that is not available has a reason: %s", what,
	       info->counter[0].reason);
}

/* The run_ns of each CPU add up to the time from ONLINE to STOPPED. */
static void check_partition(const struct seen *s, unsigned int nr_cpus, const char *what)
{
	unsigned int cpus = 0, wrong = 0;

	for (int cpu = 0; cpu < CPUS_MAX; cpu++) {
		if (!s->first_ns[cpu])
			continue;
		cpus++;
		wrong += s->run_ns[cpu] != s->last_ns[cpu] - s->first_ns[cpu];
	}
	tap_eq(cpus, nr_cpus, "%s: each CPU sends ONLINE", what);
	tap_eq(s->stopped, cpus, "%s: each CPU sends STOPPED", what);
	tap_eq(s->lost, 0, "%s: no record is lost", what);
	tap_eq(wrong, 0, "%s: the run_ns of each CPU add up to the time from ONLINE to STOPPED",
	       what);
}

static void test_complete(__u32 mode)
{
	const char *what = mode == MEMWATCH_STREAM_SLOT ? "slot" : "switch";
	MEMWATCH_OPTS(memwatch_live_opts, opts, .mode = mode, .ring_pages = 512);
	struct memwatch_stream *stream;
	struct seen s = { 0 };
	pid_t worker;

	memset(generation, 0, sizeof(generation));
	stream = open_live(&opts, what);
	if (!stream)
		return;
	check_info(memwatch_stream_get_info(stream), mode, what);
	worker = start_work(1500);
	read_stream(stream, &s, now_ns() + 1600000000ULL);
	waitpid(worker, NULL, 0);
	tap_ok(!memwatch_stream_stop(stream), "%s: the stream is stopped", what);
	read_stream(stream, &s, 0);
	check_stream(stream, &s, what);
	tap_ok(s.dump_end_at, "%s: the stream contains a dump", what);
	tap_eq(s.dump_count, s.existing, "%s: the dump contains all existing assignments", what);
	tap_ok(s.allocs + s.existing > 2, "%s: there are assignments (%llu existing, %llu new)",
	       what, (unsigned long long)s.existing, (unsigned long long)s.allocs);
	tap_eq(s.unknown_owner, 0, "%s: the owner of each sample is known before it", what);
	check_partition(&s, memwatch_stream_get_info(stream)->nr_cpus, what);
	tap_eq(count_failures(stream, NULL), 0, "%s: no failure is counted", what);
	memwatch_stream_unref(stream);
}

/* What a reader in a process of its own reports. */
struct report {
	uint64_t produced, delivered, lost, records, seen_lost, unsorted;
	bool ended;
};

/* Reads a stream for a while; writes a byte when it is open, and a report at the end. */
static void run_reader(int to)
{
	MEMWATCH_OPTS(memwatch_live_opts, opts, .mode = MEMWATCH_STREAM_SWITCH, .ring_pages = 4);
	struct memwatch_stream_stats stats = { .sz = sizeof(stats) };
	struct memwatch_stream *stream;
	struct report report;
	struct seen s = { 0 };

	if (memwatch_stream_open_live(ctx, &opts, &stream) || write(to, "", 1) != 1)
		_exit(1);
	read_stream(stream, &s, now_ns() + 2500000000ULL);
	memwatch_stream_stop(stream);
	read_stream(stream, &s, 0);
	memwatch_stream_get_stats(stream, &stats);
	report = (struct report){ stats.produced, stats.delivered, stats.lost, s.records,
				  s.lost,	  s.unsorted,	   s.ended };
	memwatch_stream_unref(stream);
	_exit(write(to, &report, sizeof(report)) != sizeof(report));
}

static void test_stopped_reader(void)
{
	struct report report = { 0 };
	int pipes[2], status = 0;
	pid_t reader, worker;
	char ready;

	if (pipe(pipes))
		return;
	reader = fork();
	if (!reader)
		run_reader(pipes[1]);
	close(pipes[1]);
	tap_eq(read(pipes[0], &ready, 1), 1, "stopped reader: the stream is opened");
	worker = start_work(2000);
	usleep(300000);
	kill(reader, SIGSTOP);
	usleep(1000000);
	kill(reader, SIGCONT);
	waitpid(reader, &status, 0);
	waitpid(worker, NULL, 0);
	tap_eq(status, 0, "stopped reader: it succeeds");
	tap_eq(read(pipes[0], &report, sizeof(report)), sizeof(report),
	       "stopped reader: it writes its report");
	tap_eq(report.produced, report.records + report.seen_lost,
	       "stopped reader: produced = delivered + lost");
	tap_ok(report.seen_lost, "stopped reader: records are lost (%llu of %llu)",
	       (unsigned long long)report.seen_lost, (unsigned long long)report.produced);
	tap_eq(report.lost, report.seen_lost,
	       "stopped reader: the statistics count what the records of losses say");
	tap_eq(report.unsorted, 0, "stopped reader: records are sorted, or flagged late");
	tap_ok(report.ended, "stopped reader: the stream ends");
	close(pipes[0]);
}

static const char cpu1_online[] = "/sys/devices/system/cpu/cpu1/online";

/* Sets CPU 1 online ("1") or offline ("0"). */
static bool set_cpu1_online(const char *online)
{
	int fd = open(cpu1_online, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && pwrite(fd, online, 1, 0) == 1;

	if (fd >= 0)
		close(fd);
	return ok;
}

static void test_hotplug(void)
{
	MEMWATCH_OPTS(memwatch_live_opts, opts, .ring_pages = 512);
	struct memwatch_stream *stream;
	struct seen s = { 0 };
	bool ok = true;
	pid_t worker;

	if (access(cpu1_online, W_OK)) {
		tap_skip("hotplug", "CPU 1 cannot be taken offline");
		return;
	}
	if (!module_may_disrupt()) {
		tap_skip("hotplug", MODULE_DISRUPTIVE);
		return;
	}
	memset(generation, 0, sizeof(generation));
	stream = open_live(&opts, "hotplug");
	if (!stream)
		return;
	worker = start_work(3000);
	for (int i = 0; i < 3; i++) {
		read_stream(stream, &s, now_ns() + 300000000);
		ok &= set_cpu1_online("0");
		/* the third time, it is online again before the library notices */
		if (i < 2)
			read_stream(stream, &s, now_ns() + 300000000);
		ok &= set_cpu1_online("1");
		s.returned_ns = now_ns();
	}
	read_stream(stream, &s, now_ns() + 500000000);
	waitpid(worker, NULL, 0);
	tap_ok(count_failures(stream, "output_held"),
	       "hotplug: records of a CPU without a ring wait until it has one");
	memwatch_stream_stop(stream);
	read_stream(stream, &s, 0);
	tap_ok(ok, "hotplug: CPU 1 is set offline and online three times");
	check_stream(stream, &s, "hotplug");
	tap_eq(s.offline[1], 3, "hotplug: CPU 1 sends OFFLINE each time");
	/* at the start of the stream, and each time that it comes back */
	tap_eq(s.online[1], 4, "hotplug: CPU 1 sends ONLINE each time");
	tap_eq(s.lost, 0, "hotplug: no record is lost");
	tap_ok(s.stopped >= 2, "hotplug: at least two CPUs send STOPPED");
	tap_ok(s.last_ns[1], "hotplug: CPU 1 sends STOPPED after it was offline");
	/* The library checks every 10 ms. */
	tap_ok(s.gaps && s.gap < 50,
	       "hotplug: CPU 1 ticks within 50 ticks of CPU 0 after it is online again (%u)",
	       s.gap);
	memwatch_stream_unref(stream);
}

static void test_two_streams(void)
{
	MEMWATCH_OPTS(memwatch_live_opts, opts, .ring_pages = 512);
	struct memwatch_stream *one, *two;
	struct seen s = { 0 }, t = { 0 };
	pid_t worker;

	memset(generation, 0, sizeof(generation));
	one = open_live(&opts, "first of two");
	worker = start_work(1500);
	if (!one)
		return;
	read_stream(one, &s, now_ns() + 300000000);
	two = open_live(&opts, "second of two");
	if (!two)
		return;
	for (int i = 0; i < 30; i++) {
		read_stream(one, &s, now_ns() + 10000000);
		read_stream(two, &t, now_ns() + 10000000);
	}
	memwatch_stream_stop(one);
	read_stream(one, &s, 0);
	check_stream(one, &s, "first of two");
	tap_eq(count_failures(one, NULL), 0, "first of two: no failure is counted");
	memwatch_stream_unref(one);
	read_stream(two, &t, now_ns() + 300000000);
	memwatch_stream_stop(two);
	read_stream(two, &t, 0);
	check_stream(two, &t, "second of two");
	tap_eq(count_failures(two, NULL), 0, "second of two: no failure is counted");
	tap_eq(t.existing, t.dump_count, "second of two: the dump contains all assignments");
	tap_ok(t.existing, "second of two: there are assignments");
	memwatch_stream_unref(two);
	waitpid(worker, NULL, 0);
}

/* Runs @check in a child process; its result must be 0. */
static void check_in_child(int (*check)(void), const char *title)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid)
		_exit(check());
	waitpid(pid, &status, 0);
	tap_eq(status, 0, "%s", title);
}

static int open_with_few_files(void)
{
	struct memwatch_stream *stream = NULL;
	struct rlimit few = { 8, 8 };
	int err;

	setrlimit(RLIMIT_NOFILE, &few);
	err = memwatch_stream_open_live(ctx, NULL, &stream);
	tap_note("with 8 files: error %d: %s", err, memwatch_ctx_error(ctx));
	return err != -EMFILE;
}

static int open_as_nobody(void)
{
	struct memwatch_stream *stream = NULL;
	int err;

	if (setgid(65534) || setuid(65534))
		return 2;
	err = memwatch_stream_open_live(ctx, NULL, &stream);
	tap_note("as nobody: error %d: %s", err, memwatch_ctx_error(ctx));
	return err != -EACCES && err != -EPERM;
}

static void test_refused_streams(void)
{
	MEMWATCH_OPTS(memwatch_live_opts, opts, .ring_pages = 3);
	struct memwatch_stream *stream = NULL;
	int err;

	err = memwatch_stream_open_live(ctx, &opts, &stream);
	tap_ok(err == -EINVAL && !stream, "rings of 3 pages are refused: %s",
	       memwatch_ctx_error(ctx));
	opts.ring_pages = 0;
	opts.flags = 1U << 30;
	err = memwatch_stream_open_live(ctx, &opts, &stream);
	tap_ok(err == -EINVAL && !stream, "an unknown flag is refused: %s",
	       memwatch_ctx_error(ctx));
	opts.flags = 0;
	check_in_child(open_with_few_files, "with too few files, the stream is not opened");
	check_in_child(open_as_nobody, "the user nobody may not open a stream");
	err = 0;
	for (int i = 0; i < 20 && !err; i++) {
		err = memwatch_stream_open_live(ctx, &opts, &stream);
		if (!err)
			memwatch_stream_unref(stream);
	}
	tap_eq(err, 0, "a stream is opened and closed 20 times");
}

#include "live-counters.h"

static void skip_without_module(void)
{
	const char *obstacle = module_obstacle();

	if (obstacle)
		tap_skip_all(obstacle);
}

static void test_streams(void)
{
	test_complete(MEMWATCH_STREAM_SLOT);
	test_complete(MEMWATCH_STREAM_SWITCH);
	test_stopped_reader();
	test_two_streams();
	test_hotplug();
	test_refused_streams();
}

/* With the argument "counters": only the test that needs a machine with hardware counters. */
int main(int argc, char **argv)
{
	MEMWATCH_OPTS(memwatch_live_opts, module_only, .backend = MEMWATCH_LIVE_MODULE);
	bool counters = argc > 1 && !strcmp(argv[1], "counters");
	struct memwatch_stream *stream = NULL;
	int err;

	tap_start();
	skip_without_module();
	if (memwatch_ctx_new(NULL, &ctx))
		return 1;
	err = memwatch_stream_open_live(ctx, &module_only, &stream);
	tap_ok(err == -ENOENT && !stream, "without the module, no stream is opened: %s",
	       memwatch_ctx_error(ctx));
	if (!tap_ok(!module_load(), "the module is loaded"))
		return tap_done();
	if (counters)
		test_counters_of_idle_cpu();
	else
		test_streams();
	memwatch_ctx_unref(ctx);
	tap_ok(module_unload(), "the module can be unloaded after the streams are closed");
	return tap_done();
}
