// SPDX-License-Identifier: GPL-2.0-or-later
// Copyright (C) 2026 The memwatch authors
/*
 * Runs a program in a memory cgroup of its own and records its memory, without any code
 * of memwatch: /proc/PID/status of each process of the group once a period, and the time
 * of a real OOM kill.
 *
 *	record [-l LIMIT_KB] [-s] [-t SECONDS] [-i SECONDS] [-q PERMILLE]
 *	       [-r SECONDS] [-c FILE] -k KIND -n NAME -o DIRECTORY -- COMMAND...
 *
 * -l  memory.max of the group (memory.limit_in_bytes on a machine with version 1 only)
 * -s  allow the group to swap
 * -t  end the run after this time; default 300 s
 * -i  period of the samples; default 1 s
 * -q  share of one CPU that the group gets, in thousandths
 * -r  the first process of the group leaks from this time on; without it, the run is benign
 * -c  file whose first eight bytes count what the program has leaked; without it, the
 *     leaked bytes are the growth of anonymous, shared and swapped memory since -r
 * -k  kind of the trace, see docs/evaluation.md
 * -n  name of the trace
 * -o  directory for the trace
 *
 * Writes NAME.csv, the input of `memwatchctl growth replay`, and NAME.json, the truth.
 * If the program ends by itself with an error, or a leak ends before it has two samples,
 * it fails and writes neither.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OOM_POLL_NS   20000000 /* precision of the time of the kill */
#define LEAKED_POINTS 4000

struct options {
	long long limit_kb;
	double seconds, period, onset;
	int quota_permille;
	bool swap;
	const char *counter, *kind, *name, *directory;
	char **command;
};

/* The group: a folder of the unified hierarchy, or one for each controller of version 1. */
struct group {
	bool unified;
	char memory[PATH_MAX], cpu[PATH_MAX];
};

struct memory_kb {
	char comm[32];
	long long anon, file, shmem, swap, vsz;
};

struct run {
	struct options opt;
	struct group group;
	pid_t child;
	double start, last_sample;
	FILE *csv;
	long long onset_kb;
	int points;
	struct {
		double time;
		unsigned long long bytes;
	} leaked[LEAKED_POINTS];
};

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	interrupted = number;
}

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("record: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(1);
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Writes a formatted text to a file. */
static bool write_file(const char *folder, const char *file, const char *format, ...)
{
	char path[PATH_MAX + 64], text[64];
	va_list args;
	int fd, length;
	bool good;

	va_start(args, format);
	length = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	snprintf(path, sizeof(path), "%s/%s", folder, file);
	fd = open(path, O_WRONLY);
	if (fd < 0)
		return false;
	good = write(fd, text, (size_t)length) == length;
	close(fd);
	return good;
}

static void make_group(struct group *g, const struct options *opt)
{
	char name[64];

	snprintf(name, sizeof(name), "memwatch-eval-%d", getpid());
	g->unified = access("/sys/fs/cgroup/cgroup.controllers", R_OK) == 0;
	if (g->unified) {
		write_file("/sys/fs/cgroup", "cgroup.subtree_control", "+memory +cpu");
		snprintf(g->memory, sizeof(g->memory), "/sys/fs/cgroup/%s", name);
		strcpy(g->cpu, g->memory);
	} else {
		snprintf(g->memory, sizeof(g->memory), "/sys/fs/cgroup/memory/%s", name);
		snprintf(g->cpu, sizeof(g->cpu), "/sys/fs/cgroup/cpu/%s", name);
	}
	if (mkdir(g->memory, 0755))
		die("%s: %s", g->memory, strerror(errno));
	if (opt->limit_kb &&
	    !write_file(g->memory, g->unified ? "memory.max" : "memory.limit_in_bytes", "%lld",
			opt->limit_kb * 1024))
		die("%s: cannot set the limit: is there a memory controller?", g->memory);
	if (opt->limit_kb && !opt->swap) { /* fails if the kernel has no swap controller */
		if (g->unified)
			write_file(g->memory, "memory.swap.max", "0");
		else
			write_file(g->memory, "memory.memsw.limit_in_bytes", "%lld",
				   opt->limit_kb * 1024);
	}
	if (!opt->quota_permille)
		return;
	if (!g->unified && mkdir(g->cpu, 0755))
		die("%s: %s", g->cpu, strerror(errno));
	if (g->unified ? !write_file(g->cpu, "cpu.max", "%d 100000", opt->quota_permille * 100)
		       : !write_file(g->cpu, "cpu.cfs_quota_us", "%d", opt->quota_permille * 100))
		die("%s: cannot set the CPU quota", g->cpu);
}

static FILE *open_group_file(const struct group *g, const char *file)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/%s", g->memory, file);
	return fopen(path, "r");
}

static long long read_oom_kills(const struct group *g)
{
	FILE *f = open_group_file(g, g->unified ? "memory.events" : "memory.oom_control");
	char key[64];
	long long value, kills = 0;

	if (!f)
		return 0;
	while (fscanf(f, "%63s %lld", key, &value) == 2)
		if (!strcmp(key, "oom_kill"))
			kills = value;
	fclose(f);
	return kills;
}

static void remove_group(const struct group *g)
{
	for (int try = 0; try < 100; try++) {
		FILE *f = open_group_file(g, "cgroup.procs");
		int pid;

		while (f && fscanf(f, "%d", &pid) == 1)
			kill(pid, try < 20 ? SIGTERM : SIGKILL);
		if (f)
			fclose(f);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (!g->unified)
			rmdir(g->cpu);
		if (!rmdir(g->memory))
			return;
		usleep(100000);
	}
	fprintf(stderr, "record: cannot remove %s\n", g->memory);
}

static bool read_status(int pid, struct memory_kb *m)
{
	char path[64], line[256];
	bool has_memory = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "r");
	if (!f)
		return false;
	memset(m, 0, sizeof(*m));
	while (fgets(line, sizeof(line), f)) {
		sscanf(line, "Name: %31[^\n]", m->comm);
		has_memory |= sscanf(line, "VmSize: %lld", &m->vsz) == 1;
		sscanf(line, "RssAnon: %lld", &m->anon);
		sscanf(line, "RssFile: %lld", &m->file);
		sscanf(line, "RssShmem: %lld", &m->shmem);
		sscanf(line, "VmSwap: %lld", &m->swap);
	}
	fclose(f);
	for (char *c = m->comm; *c; c++)
		if (*c == ',' || *c == ' ')
			*c = '_';
	return has_memory;
}

static void record_leaked(struct run *run, double time, const struct memory_kb *m)
{
	unsigned long long bytes = 0;
	long long held = m->anon + m->shmem + m->swap;

	if (run->opt.onset < 0 || run->points == LEAKED_POINTS)
		return;
	if (time < run->opt.onset) {
		run->onset_kb = held;
		return;
	}
	if (run->opt.counter) {
		int fd = open(run->opt.counter, O_RDONLY);

		if (fd >= 0 && read(fd, &bytes, sizeof(bytes)) != sizeof(bytes))
			bytes = 0;
		if (fd >= 0)
			close(fd);
	} else if (held > run->onset_kb) {
		bytes = (unsigned long long)(held - run->onset_kb) * 1024;
	}
	run->leaked[run->points].time = time;
	run->leaked[run->points++].bytes = bytes;
}

/* Takes one sample of each process in the group. */
static void take_samples(struct run *run)
{
	double time = now_s() - run->start;
	FILE *f = open_group_file(&run->group, "cgroup.procs");
	struct memory_kb m;
	int pid;

	while (f && fscanf(f, "%d", &pid) == 1) {
		/* Skip the copy of this program that the first process is before its exec. */
		if (!read_status(pid, &m) || !strcmp(m.comm, "record"))
			continue;
		fprintf(run->csv, "%.3f,%d,%s,%lld,%lld,%lld,%lld,%lld,%lld\n", time, pid, m.comm,
			m.anon, m.file, m.shmem, m.swap, m.vsz, run->opt.limit_kb);
		if (pid == run->child)
			record_leaked(run, time, &m);
		run->last_sample = time;
	}
	if (f)
		fclose(f);
}

static pid_t start_child(const struct run *run)
{
	pid_t child = fork();

	if (child < 0)
		die("fork: %s", strerror(errno));
	if (child)
		return child;
	if (!write_file(run->group.memory, "cgroup.procs", "%d", getpid()) ||
	    (run->opt.quota_permille &&
	     !write_file(run->group.cpu, "cgroup.procs", "%d", getpid())))
		_exit(127);
	execvp(run->opt.command[0], run->opt.command);
	fprintf(stderr, "record: %s: %s\n", run->opt.command[0], strerror(errno));
	_exit(127);
}

/*
 * Takes samples until the time is over, the first process ends, or the kernel kills a
 * process because the group has no memory left. Returns the time of the kill, or -1.
 */
static double sample_until_end(struct run *run, int *status)
{
	const struct timespec nap = { 0, OOM_POLL_NS };
	double next = run->opt.period / 2; /* after the exec */

	for (;;) {
		double time = now_s() - run->start;
		bool ended = waitpid(run->child, status, WNOHANG) == run->child;

		if (read_oom_kills(&run->group) > 0)
			return time;
		if (ended || time >= run->opt.seconds)
			return -1;
		if (interrupted)
			die("interrupted");
		if (time >= next) {
			take_samples(run);
			next += run->opt.period;
		}
		nanosleep(&nap, NULL);
	}
}

static void write_truth(const struct run *run, double oom)
{
	const struct options *opt = &run->opt;
	bool leak = opt->onset >= 0;
	double end = oom >= 0 ? oom : run->last_sample, rate = 0;
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s.json", opt->directory, opt->name);
	f = fopen(path, "w");
	if (!f)
		die("%s: %s", path, strerror(errno));
	if (leak)
		rate = (double)run->leaked[run->points - 1].bytes /
		       (run->leaked[run->points - 1].time - opt->onset);
	fprintf(f,
		"{\"schema\": 1, \"name\": \"%s\", \"class\": \"%s\", \"kind\": \"%s\", \"label\": "
		"\"%s\", ",
		opt->name, opt->name, opt->kind, leak ? "leak" : "benign");
	if (leak)
		fprintf(f,
			"\"leaker_pid\": %d, \"onset_s\": %.3f, \"rate_bytes_per_second\": %.0f, ",
			run->child, opt->onset, rate);
	else
		fprintf(f, "\"leaker_pid\": null, \"onset_s\": null, \"rate_bytes_per_second\": "
			   "null, ");
	if (oom >= 0)
		fprintf(f, "\"oom_s\": %.3f, ", oom);
	else
		fprintf(f, "\"oom_s\": null, ");
	fprintf(f, "\"end_s\": %.3f, \"cadence_s\": %g, \"limit_kb\": %lld, \"leaked_bytes\": [",
		end, opt->period, opt->limit_kb);
	for (int i = 0; i < run->points; i++)
		fprintf(f, "%s[%.3f, %llu]", i ? ", " : "", run->leaked[i].time,
			run->leaked[i].bytes);
	fprintf(f, "]}\n");
	if (fclose(f))
		die("%s: %s", path, strerror(errno));
}

static void parse_options(int argc, char **argv, struct options *opt)
{
	int c;

	*opt = (struct options){ .seconds = 300, .period = 1, .onset = -1, .directory = "." };
	while ((c = getopt(argc, argv, "+l:st:i:q:r:c:k:n:o:")) != -1) {
		switch (c) {
		case 'l':
			opt->limit_kb = atoll(optarg);
			break;
		case 's':
			opt->swap = true;
			break;
		case 't':
			opt->seconds = atof(optarg);
			break;
		case 'i':
			opt->period = atof(optarg);
			break;
		case 'q':
			opt->quota_permille = atoi(optarg);
			break;
		case 'r':
			opt->onset = atof(optarg);
			break;
		case 'c':
			opt->counter = optarg;
			break;
		case 'k':
			opt->kind = optarg;
			break;
		case 'n':
			opt->name = optarg;
			break;
		case 'o':
			opt->directory = optarg;
			break;
		default:
			exit(2);
		}
	}
	opt->command = argv + optind;
	if (optind == argc || !opt->kind || !opt->name) {
		fprintf(stderr, "record: -k KIND, -n NAME and a COMMAND are required\n");
		exit(2);
	}
}

int main(int argc, char **argv)
{
	static struct run run;
	char part[PATH_MAX], csv[PATH_MAX];
	int status = 0;
	bool failed;
	double oom;

	parse_options(argc, argv, &run.opt);
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	snprintf(csv, sizeof(csv), "%s/%s.csv", run.opt.directory, run.opt.name);
	snprintf(part, sizeof(part), "%s/%s.part", run.opt.directory, run.opt.name);
	run.csv = fopen(part, "w");
	if (!run.csv)
		die("%s: %s", part, strerror(errno));
	fprintf(run.csv, "time_s,pid,comm,anon_kb,file_kb,shmem_kb,swap_kb,vsz_kb,limit_kb\n");
	make_group(&run.group, &run.opt);
	run.start = now_s();
	run.child = start_child(&run);
	oom = sample_until_end(&run, &status);
	remove_group(&run.group);
	failed = oom < 0 && status && run.last_sample < run.opt.seconds - 2 * run.opt.period;
	if (fclose(run.csv) || failed || (run.opt.onset >= 0 && run.points < 2)) {
		unlink(part);
		die("%s: ended after %.0f s with status %#x, %d samples of the leak", run.opt.name,
		    run.last_sample, status, run.points);
	}
	write_truth(&run, oom);
	return rename(part, csv) ? 1 : 0;
}
