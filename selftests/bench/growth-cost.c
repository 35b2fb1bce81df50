// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Compares the cost of the growth monitor with that of other ways to watch memory; prints
 * lines for "make bench". Measured are the CPU time of a page fault in the watched process,
 * the CPU time of the watcher, and the run time of its BPF programs as the kernel counts
 * it. Only the monitor has a budget; the figures of the others go to stderr.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <malloc.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>

#define PAIRS	9
#define RUNS	5
#define BLOCKS	10000
#define STORM_S 90
#define SHORT_S 8
#define IDLE_S	30

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t = { 0 };

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void die(const char *what)
{
	fprintf(stderr, "growth-cost: %s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

static void print_result(const char *name, double value, const char *unit, double budget)
{
	printf("%s %.4g %s %.4g %s\n", name, value, unit, budget, value <= budget ? "ok" : "over");
	fflush(stdout);
}

/* Allocates a heap that grows by a page with each block, and frees it. Returns ns per block. */
static double run_heap_storm(void)
{
	static char *blocks[BLOCKS];
	uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	for (int i = 0; i < BLOCKS; i++) {
		blocks[i] = malloc(4080);
		blocks[i][0] = 1;
	}
	for (int i = 0; i < BLOCKS; i++)
		free(blocks[i]);
	malloc_trim(0);
	return (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin) / BLOCKS;
}

/* To the process that makes page faults: a byte to @ask, then ns per block from @answer. */
static int ask[2], answer[2];

static pid_t start_storm(void)
{
	pid_t pid;
	char byte;

	if (pipe2(ask, O_CLOEXEC) || pipe2(answer, O_CLOEXEC) || (pid = fork()) < 0)
		die("storm");
	if (pid)
		return pid;
	close(ask[1]);
	while (read(ask[0], &byte, 1) == 1) {
		double ns = run_heap_storm();

		if (write(answer[1], &ns, sizeof(ns)) != sizeof(ns))
			break;
	}
	_exit(0);
}

static int compare_doubles(const void *a, const void *b)
{
	double p = *(const double *)a, q = *(const double *)b;

	return (p > q) - (p < q);
}

static pid_t start_program(char *const *argv, const char *output)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (!pid) {
		int fd = open(output, O_WRONLY | O_CREAT | O_TRUNC, 0600);

		signal(SIGINT, SIG_DFL);
		dup2(fd, 1);
		dup2(fd, 2);
		execvp(argv[0], argv);
		_exit(127);
	}
	return pid;
}

/* Ends a watcher, which has ten seconds to detach its programs. */
static void stop_program(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGINT);
	for (int i = 0; i < 100; i++) {
		if (waitpid(pid, NULL, WNOHANG))
			return;
		usleep(100000);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static pid_t start_monitor(pid_t storm)
{
	char path[256];
	char *argv[] = { path, "growth", "watch", "--alerts", NULL };

	(void)storm;
	snprintf(path, sizeof(path), "%s/cli/memwatchctl", getenv("BUILD") ?: "build");
	return start_program(argv, "/dev/null");
}

static void poll_statm(void)
{
	struct dirent *entry;
	char path[300], text[128];
	DIR *dir = opendir("/proc");

	while (dir && (entry = readdir(dir))) {
		int fd;

		if (*entry->d_name < '1' || *entry->d_name > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%s/statm", entry->d_name);
		fd = open(path, O_RDONLY);
		if (fd < 0)
			continue;
		if (read(fd, text, sizeof(text)) < 0)
			text[0] = '\0'; /* the process has exited */
		close(fd);
	}
	if (dir)
		closedir(dir);
}

/* Polls ten times a second, which would find what the monitor finds. */
static pid_t start_statm_poller(pid_t storm)
{
	pid_t pid = fork();

	(void)storm;
	if (pid)
		return pid;
	signal(SIGINT, SIG_DFL);
	for (;;) {
		poll_statm();
		usleep(100000);
	}
}

/* Attaches two instructions: the least that a program on the classic tracepoint costs. */
static pid_t start_classic(pid_t storm)
{
	const struct bpf_insn nothing[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	struct perf_event_attr attr = { .size = sizeof(attr),
					.type = PERF_TYPE_TRACEPOINT,
					.sample_period = 1 };
	int prog, event, ready[2];
	char byte;
	FILE *id;
	pid_t pid;

	(void)storm;
	if (pipe(ready) || (pid = fork()) < 0)
		die("fork");
	if (pid) {
		close(ready[1]);
		if (read(ready[0], &byte, 1) != 1)
			pid = -1;
		close(ready[0]);
		return pid;
	}
	signal(SIGINT, SIG_DFL);
	id = fopen("/sys/kernel/tracing/events/kmem/rss_stat/id", "r")
		     ?: fopen("/sys/kernel/debug/tracing/events/kmem/rss_stat/id", "r");
	if (!id || fscanf(id, "%llu", (unsigned long long *)&attr.config) != 1)
		die("tracepoint kmem:rss_stat");
	prog = bpf_prog_load(BPF_PROG_TYPE_TRACEPOINT, "classic", "GPL", nothing, 2, NULL);
	event = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, 0);
	if (prog < 0 || event < 0 || ioctl(event, PERF_EVENT_IOC_SET_BPF, prog) ||
	    ioctl(event, PERF_EVENT_IOC_ENABLE, 0) || write(ready[1], "x", 1) != 1)
		die("classic");
	for (;;)
		pause();
}

static pid_t start_memleak(pid_t storm)
{
	char pid[16], output[] = "growth-cost-XXXXXX", text[4096] = "";
	char *argv[] = { getenv("MEMLEAK"), "-p", pid, "3600", NULL };
	int fd;
	pid_t child;

	if (!argv[0] || !*argv[0])
		return -1;
	snprintf(pid, sizeof(pid), "%d", (int)storm);
	fd = mkostemp(output, O_CLOEXEC);
	child = start_program(argv, output);
	for (int i = 0; i < 300 && !strstr(text, "Attaching") && !waitpid(child, NULL, WNOHANG);
	     i++) {
		usleep(100000);
		if (pread(fd, text, sizeof(text) - 1, 0) < 0)
			break;
	}
	sleep(4); /* it prints that before it attaches */
	if (waitpid(child, NULL, WNOHANG)) {
		if (pread(fd, text, sizeof(text) - 1, 0) > 0)
			fprintf(stderr, "memleak does not run on this machine: %s\n", text);
		child = -1;
	}
	unlink(output);
	close(fd);
	return child;
}

static const struct watcher {
	const char *name;
	pid_t (*on)(pid_t storm);
	int pairs;
} watchers[] = {
	{ "growth watch", start_monitor, PAIRS },
	{ "statm poller, 10 a second", start_statm_poller, PAIRS },
	{ "classic tracepoint, empty program", start_classic, PAIRS },
	{ "bcc memleak", start_memleak, 3 },
};

static uint32_t find_newest_program(void)
{
	uint32_t id = 0, next;

	while (!bpf_prog_get_next_id(id, &next))
		id = next;
	return id;
}

/*
 * Total run time of the programs whose ids are in @span, which are those of the watcher.
 * Iterators do not count: they run in the CPU time of the process that reads them.
 */
static uint64_t read_programs_ns(const uint32_t span[2])
{
	uint32_t id = span[0];
	uint64_t sum = 0;

	while (!bpf_prog_get_next_id(id, &id) && id <= span[1]) {
		struct bpf_prog_info info = { 0 };
		uint32_t size = sizeof(info);
		int fd = bpf_prog_get_fd_by_id(id);

		if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &size) &&
		    strncmp(info.name, "on_task", 7))
			sum += info.run_time_ns;
		if (fd >= 0)
			close(fd);
	}
	return sum;
}

static uint64_t read_process_ns(pid_t pid)
{
	clockid_t clock;

	return clock_getcpuclockid(pid, &clock) ? 0 : clock_ns(clock);
}

static pid_t start_stress(int seconds)
{
	char time[16];
	char *argv[] = { "stress-ng", "--vm",	   "2",	 "--vm-bytes", "128M", "--vm-method",
			 "zero-one",  "--timeout", time, "--quiet",    NULL };

	snprintf(time, sizeof(time), "%d", seconds);
	return start_program(argv, "/dev/null");
}

/* The cost of a watcher in percent of one CPU. @events gets the part of its BPF programs. */
static double measure_cost(pid_t watcher, const uint32_t span[2], int seconds, bool storm,
			   double *events)
{
	int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	pid_t stress = storm ? start_stress(seconds) : -1;
	uint64_t begin = clock_ns(CLOCK_MONOTONIC), programs = read_programs_ns(span);
	uint64_t own = read_process_ns(watcher);
	double time;

	while (clock_ns(CLOCK_MONOTONIC) - begin < (uint64_t)seconds * 1000000000)
		usleep(100000);
	time = (double)(clock_ns(CLOCK_MONOTONIC) - begin) / 100;
	*events = (double)(read_programs_ns(span) - programs) / time;
	own = read_process_ns(watcher) - own;
	if (stress > 0)
		waitpid(stress, NULL, 0);
	close(stats);
	return (double)own / time + *events;
}

/* The median cost of a block. */
static double measure_block_ns(void)
{
	double ns[RUNS];

	for (int i = 0; i < RUNS; i++)
		if (write(ask[1], "x", 1) != 1 ||
		    read(answer[0], &ns[i], sizeof(*ns)) != sizeof(*ns))
			die("storm");
	qsort(ns, RUNS, sizeof(*ns), compare_doubles);
	return ns[RUNS / 2];
}

/* Measures pairs that follow each other, so that other load on the machine matters little. */
static double bench_faults(const struct watcher *w, pid_t storm)
{
	double off[PAIRS], on[PAIRS], ratios[PAIRS];
	pid_t pid;

	for (int i = 0; i < w->pairs; i++) {
		measure_block_ns(); /* warm up */
		off[i] = measure_block_ns();
		pid = w->on(storm);
		if (pid < 0) {
			fprintf(stderr, "%s: cannot be measured on this machine\n", w->name);
			return -1;
		}
		usleep(700000);
		measure_block_ns();
		on[i] = measure_block_ns();
		ratios[i] = on[i] / off[i];
		stop_program(pid);
	}
	qsort(off, (size_t)w->pairs, sizeof(*off), compare_doubles);
	qsort(on, (size_t)w->pairs, sizeof(*on), compare_doubles);
	qsort(ratios, (size_t)w->pairs, sizeof(*ratios), compare_doubles);
	fprintf(stderr,
		"%s: a block and its fault %.0f ns without, %.0f ns with, ratio %.3f (%d pairs)\n",
		w->name, off[w->pairs / 2], on[w->pairs / 2], ratios[w->pairs / 2], w->pairs);
	return ratios[w->pairs / 2];
}

static double bench_cost(const struct watcher *w, pid_t storm, int seconds, bool storms)
{
	uint32_t span[2] = { find_newest_program(), 0 };
	double total, events;
	pid_t pid = w->on(storm);

	usleep(1500000);
	span[1] = find_newest_program();
	total = measure_cost(pid, span, seconds, storms, &events);
	stop_program(pid);
	fprintf(stderr, "%s: %s, %d s: %.3f %% of a CPU, of it BPF %.3f\n", w->name,
		storms ? "with a storm of stress-ng --fault 1 --mmap 1" : "without a storm",
		seconds, total, events);
	return total;
}

int main(void)
{
	double mine, ratio;
	pid_t storm;

	signal(SIGINT, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	storm = start_storm();
	mine = bench_faults(&watchers[0], storm);
	print_result("growth_heap_fault_ratio", mine, "ratio", 1.07);
	print_result("growth_cpu_in_a_storm", bench_cost(&watchers[0], storm, STORM_S, true),
		     "percent", 1);
	print_result("growth_cpu_without_storm", bench_cost(&watchers[0], storm, IDLE_S, false),
		     "percent", 1);
	for (size_t i = 1; i < sizeof(watchers) / sizeof(watchers[0]); i++) {
		ratio = bench_faults(&watchers[i], storm);
		if (ratio > 0 && watchers[i].on != start_memleak)
			bench_cost(&watchers[i], storm, SHORT_S, true);
		if (ratio > 0 && watchers[i].on == start_memleak)
			print_result("growth_fault_against_memleak", mine / ratio, "ratio", 0.5);
	}
	kill(storm, SIGKILL);
	waitpid(storm, NULL, 0);
	return 0;
}
