// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The live stream of the library, from the module to the consumer, in a lab
 * guest: through the public interface only.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <memwatch/stream.h>

#include "../tap.h"

#define CPUS_MAX  64
#define RMIDS_MAX 65536

static struct memwatch_ctx *ctx;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

/* What a stream was found to be. */
struct seen {
	uint64_t records, lost, late, forced, unsorted, unknown_owner, samples, ticks;
	uint64_t run_ns[CPUS_MAX], first_ns[CPUS_MAX], last_ns[CPUS_MAX];
	uint64_t after_return; /* samples of CPU 1 after its second ONLINE */
	uint64_t online[CPUS_MAX], offline[CPUS_MAX];
	uint64_t allocs, existing, frees, stopped, dump_count, dump_end_at;
	uint64_t newest_ns;
	uint64_t returned_ns, gap_ns; /* CPU 1: when it came back, longest silence after it */
	uint8_t worst_status;
	bool ended;
};

static uint32_t generation[RMIDS_MAX];

static void look_at_cpu(struct seen *s, const struct memwatch_record_cpu *rec)
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

static void look_at(struct seen *s, const struct memwatch_record_header *h)
{
	const struct memwatch_record_sample *sample = (const void *)h;
	const struct memwatch_record_rmid *rmid = (const void *)h;

	s->late += !!(h->flags & MEMWATCH_RECORD_F_LATE);
	s->forced += !!(h->flags & MEMWATCH_RECORD_F_FORCED);
	if (h->time_ns < s->newest_ns)
		s->unsorted += !(h->flags & MEMWATCH_RECORD_F_LATE);
	else
		s->newest_ns = h->time_ns;
	if (h->type == MEMWATCH_RECORD_LOST) {
		s->lost += ((const struct memwatch_record_lost *)h)->count;
		return;
	}
	s->records++;
	if (h->cpu >= CPUS_MAX)
		return;
	switch (h->type) {
	case MEMWATCH_RECORD_SAMPLE:
		s->samples++;
		s->run_ns[h->cpu] += sample->run_ns;
		if (h->cpu == 1 && s->online[1] > 1)
			s->after_return++;
		if (sample->rmid &&
		    (sample->rmid >= RMIDS_MAX || generation[sample->rmid] < sample->generation))
			s->unknown_owner++;
		for (int i = 0; i < MEMWATCH_COUNTER_MAX; i++)
			if (sample->status[i] > s->worst_status)
				s->worst_status = sample->status[i];
		break;
	case MEMWATCH_RECORD_TICK:
		s->ticks++;
		if (h->cpu == 1 && s->returned_ns && h->time_ns > s->returned_ns) {
			if (h->time_ns - s->returned_ns > s->gap_ns)
				s->gap_ns = h->time_ns - s->returned_ns;
			s->returned_ns = 0;
		}
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
		look_at_cpu(s, (const struct memwatch_record_cpu *)h);
		break;
	}
}

/* Reads until @until, or to the end if that is 0. */
static int read_stream(struct memwatch_stream *stream, struct seen *s, uint64_t until)
{
	const struct memwatch_record_header *record;
	int err;

	while (!until || now_ns() < until) {
		err = memwatch_stream_next(stream, &record);
		if (err == 1) {
			look_at(s, record);
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

static uint64_t failures(struct memwatch_stream *stream, const char *what)
{
	const char *name;
	uint64_t sum = 0;
	__u64 count;

	for (unsigned int i = 0; memwatch_stream_failure(stream, i, &name, &count) > 0; i++) {
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

	memwatch_stream_stats(stream, &stats);
	tap_ok(stats.produced == s->records + s->lost + stats.malformed && !stats.malformed &&
		       stats.lost == s->lost && stats.delivered == s->records && s->records,
	       "%s: produced %llu = delivered %llu + lost %llu", what, stats.produced,
	       stats.delivered, stats.lost);
	tap_ok(!s->unsorted && stats.late == s->late,
	       "%s: sorted (%llu late, %llu forced, as flagged)", what, stats.late, stats.forced);
	tap_ok(s->ended, "%s: the stream ends", what);
}

/* Processes that come and go on all CPUs, for @ms. */
static pid_t work(unsigned int ms)
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

	if (!tap_ok(!err, "%s: open: %s", what, err ? memwatch_ctx_error(ctx) : "yes"))
		return NULL;
	return stream;
}

static void test_complete(__u32 mode)
{
	const char *what = mode == MEMWATCH_STREAM_SLOT ? "slot" : "switch";
	MEMWATCH_OPTS(memwatch_live_opts, opts, .mode = mode, .ring_pages = 512);
	const struct memwatch_stream_info *info;
	struct memwatch_stream *stream;
	struct seen s = { 0 };
	unsigned int wrong = 0, cpus = 0;
	pid_t worker;

	memset(generation, 0, sizeof(generation));
	stream = open_live(&opts, what);
	if (!stream)
		return;
	info = memwatch_stream_info(stream);
	tap_ok(info->nr_cpus && info->nr_rmids && info->period_ns && info->backend[0] &&
		       info->start_monotonic_ns && info->mode == mode && info->kernel[0],
	       "%s: %u CPUs, %u RMIDs, %s: %s", what, info->nr_cpus, info->nr_rmids, info->backend,
	       info->backend_reason);
	for (int i = 0; i < MEMWATCH_COUNTER_MAX; i++)
		wrong += (info->counter[i].status == MEMWATCH_STATUS_OK) !=
			 !info->counter[i].reason[0];
	for (int i = 0; i < MEMWATCH_RDT_MAX; i++)
		wrong += (info->rdt[i].status == MEMWATCH_STATUS_OK) != !info->rdt[i].reason[0];
	tap_ok(!wrong, "%s: what is not available has a reason: %s", what, info->counter[0].reason);

	worker = work(1500);
	read_stream(stream, &s, now_ns() + 1600000000ULL);
	waitpid(worker, NULL, 0);
	tap_ok(!memwatch_stream_stop(stream), "%s: stop", what);
	read_stream(stream, &s, 0);
	check_stream(stream, &s, what);
	tap_ok(s.dump_end_at && s.dump_count == s.existing && s.allocs + s.existing > 2,
	       "%s: it begins with the assignments (%llu, then %llu new)", what,
	       (unsigned long long)s.existing, (unsigned long long)s.allocs);
	tap_ok(!s.unknown_owner, "%s: no sample comes before its owner (%llu do)", what,
	       (unsigned long long)s.unknown_owner);
	wrong = 0;
	for (int cpu = 0; cpu < CPUS_MAX; cpu++) {
		if (!s.first_ns[cpu])
			continue;
		cpus++;
		wrong += s.run_ns[cpu] != s.last_ns[cpu] - s.first_ns[cpu];
	}
	tap_ok(cpus == info->nr_cpus && s.stopped == cpus && !wrong && !s.lost,
	       "%s: run_ns on each CPU is the time from ONLINE to STOPPED, exactly", what);
	tap_ok(!failures(stream, NULL), "%s: no helper failed", what);
	memwatch_stream_unref(stream);
}

/* The reader is a process of its own, and is stopped for a second. */
static void test_stopped(void)
{
	int report[2], status = 0;
	pid_t reader, worker;
	char line[256] = "";
	ssize_t got;

	if (pipe(report))
		return;
	reader = fork();
	if (!reader) {
		MEMWATCH_OPTS(memwatch_live_opts, opts, .mode = MEMWATCH_STREAM_SWITCH,
			      .ring_pages = 4);
		struct memwatch_stream_stats stats = { .sz = sizeof(stats) };
		struct memwatch_stream *stream;
		struct seen s = { 0 };
		int ok;

		if (memwatch_stream_open_live(ctx, &opts, &stream))
			_exit(1);
		if (write(report[1], "go", 2) != 2)
			_exit(1);
		read_stream(stream, &s, now_ns() + 2500000000ULL);
		memwatch_stream_stop(stream);
		read_stream(stream, &s, 0);
		memwatch_stream_stats(stream, &stats);
		ok = stats.produced == s.records + s.lost && s.lost && !s.unsorted && s.ended &&
		     stats.lost == s.lost;
		got = snprintf(line, sizeof(line), "produced %llu = delivered %llu + lost %llu",
			       stats.produced, stats.delivered, stats.lost);
		if (write(report[1], line, (size_t)got) != got)
			ok = 0;
		memwatch_stream_unref(stream);
		_exit(!ok);
	}
	got = read(report[0], line, 2);
	worker = work(2000);
	usleep(300000);
	kill(reader, SIGSTOP);
	usleep(1000000);
	kill(reader, SIGCONT);
	waitpid(reader, &status, 0);
	waitpid(worker, NULL, 0);
	memset(line, 0, sizeof(line));
	got = read(report[0], line, sizeof(line) - 1);
	tap_ok(!status && got > 0, "a reader that is stopped for a second: %s", line);
	close(report[0]);
	close(report[1]);
}

static void test_hotplug(void)
{
	static const char path[] = "/sys/devices/system/cpu/cpu1/online";
	MEMWATCH_OPTS(memwatch_live_opts, opts, .ring_pages = 512);
	struct memwatch_stream *stream;
	struct seen s = { 0 };
	bool ok = true;
	pid_t worker;
	int fd = open(path, O_WRONLY);

	if (fd < 0) {
		tap_skip("hotplug", "CPU 1 cannot be taken offline");
		return;
	}
	memset(generation, 0, sizeof(generation));
	stream = open_live(&opts, "hotplug");
	if (!stream)
		return;
	worker = work(3000);
	for (int i = 0; i < 3; i++) {
		read_stream(stream, &s, now_ns() + 300000000);
		ok &= pwrite(fd, "0", 1, 0) == 1;
		/* Twice with a pause in which it is seen to be gone, once without. */
		if (i < 2)
			read_stream(stream, &s, now_ns() + 300000000);
		ok &= pwrite(fd, "1", 1, 0) == 1;
		s.returned_ns = now_ns();
	}
	read_stream(stream, &s, now_ns() + 500000000);
	waitpid(worker, NULL, 0);
	tap_ok(failures(stream, "output_no_ring") && s.lost,
	       "hotplug: what found no ring is lost where that was, not at the end (%llu)",
	       (unsigned long long)s.lost);
	memwatch_stream_stop(stream);
	read_stream(stream, &s, 0);
	tap_ok(ok, "hotplug: CPU 1 went and came three times");
	check_stream(stream, &s, "hotplug");
	tap_ok(s.offline[1] == 3, "hotplug: it said so (%llu offline, %llu online)",
	       (unsigned long long)s.offline[1], (unsigned long long)s.online[1]);
	tap_ok(s.stopped >= 2 && s.last_ns[1], "hotplug: and is heard again");
	/* 10 ms to find that it is back, and the emulator takes its time */
	tap_ok(s.gap_ns && s.gap_ns < 50000000, "hotplug: soon (after %llu ms)",
	       (unsigned long long)s.gap_ns / 1000000);
	memwatch_stream_unref(stream);
	close(fd);
}

static void test_two(void)
{
	MEMWATCH_OPTS(memwatch_live_opts, opts, .ring_pages = 512);
	struct memwatch_stream *one, *two;
	struct seen s = { 0 }, t = { 0 };
	pid_t worker;

	memset(generation, 0, sizeof(generation));
	one = open_live(&opts, "first of two");
	worker = work(1500);
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
	tap_ok(!failures(one, NULL), "first of two: no helper failed");
	memwatch_stream_unref(one);
	read_stream(two, &t, now_ns() + 300000000);
	memwatch_stream_stop(two);
	read_stream(two, &t, 0);
	check_stream(two, &t, "second of two");
	tap_ok(!failures(two, NULL), "second of two: no helper failed");
	tap_ok(t.existing == t.dump_count && t.existing, "second of two: got the assignments");
	memwatch_stream_unref(two);
	waitpid(worker, NULL, 0);
}

static void test_refused(void)
{
	MEMWATCH_OPTS(memwatch_live_opts, opts, .ring_pages = 3);
	struct memwatch_stream *stream = NULL;
	struct rlimit few = { 8, 8 };
	int err, status;
	pid_t pid;

	err = memwatch_stream_open_live(ctx, &opts, &stream);
	tap_ok(err == -EINVAL && !stream, "3 pages: %s", memwatch_ctx_error(ctx));
	opts.ring_pages = 0;
	opts.flags = 1U << 30;
	err = memwatch_stream_open_live(ctx, &opts, &stream);
	tap_ok(err == -EINVAL && !stream, "an unknown flag: %s", memwatch_ctx_error(ctx));
	opts.flags = 0;
	pid = fork();
	if (!pid) {
		setrlimit(RLIMIT_NOFILE, &few);
		err = memwatch_stream_open_live(ctx, &opts, &stream);
		tap_note("8 files: %d: %s", err, memwatch_ctx_error(ctx));
		_exit(!(err == -EMFILE));
	}
	waitpid(pid, &status, 0);
	tap_ok(!status, "too few files fail and say so");
	pid = fork();
	if (!pid) {
		if (setgid(65534) || setuid(65534))
			_exit(2);
		err = memwatch_stream_open_live(ctx, &opts, &stream);
		tap_note("nobody: %d: %s", err, memwatch_ctx_error(ctx));
		_exit(!(err == -EACCES || err == -EPERM));
	}
	waitpid(pid, &status, 0);
	tap_ok(!status, "nobody may not, and is told");
	/* All of it can be taken back. */
	for (int i = 0; i < 20 && !err; i++) {
		err = memwatch_stream_open_live(ctx, &opts, &stream);
		if (!err)
			memwatch_stream_unref(stream);
	}
}

static bool module(bool load)
{
	int fd, err;

	if (!load)
		return !syscall(SYS_delete_module, "memwatch", 0);
	fd = open("memwatch.ko", O_RDONLY);
	err = fd < 0 ? -1 : (int)syscall(SYS_finit_module, fd, "", 0);
	close(fd);
	return !err;
}

int main(void)
{
	struct memwatch_stream *stream = NULL;
	int err;

	tap_start();
	if (geteuid())
		tap_skip_all("needs root");
	if (memwatch_ctx_new(NULL, &ctx))
		return 1;
	err = memwatch_stream_open_live(ctx, NULL, &stream);
	tap_ok(err == -ENOENT && !stream, "without the module: %s", memwatch_ctx_error(ctx));
	if (!tap_ok(module(true), "load the module"))
		return tap_done();
	test_complete(MEMWATCH_STREAM_SLOT);
	test_complete(MEMWATCH_STREAM_SWITCH);
	test_stopped();
	test_two();
	test_hotplug();
	test_refused();
	memwatch_ctx_unref(ctx);
	tap_ok(module(false), "nothing holds the module afterwards");
	return tap_done();
}
