// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Captures, inside the virtual machine, what the model checker reads: the raw per-CPU
 * pages of a tracefs instance of its own, the format of every event in them, the loss
 * counters of every ring, and the tasks that existed when the capture began. It does not
 * interpret any of it.
 *
 * It prints "ready" when the events are enabled and the tasks are listed. It then reads the
 * rings until SIGTERM or SIGINT, and exits with 0 when everything is written. It does not
 * fail if events are lost: the loss counters show that, and the checker rejects the run.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_CPUS    256
#define BATCH_PAGES 64
#define MAX_PAGE    65536

static const char *const default_events[] = {
	"sched/sched_switch",
	"sched/sched_process_fork",
	"sched/sched_process_exec",
	"sched/sched_process_exit",
	"sched/sched_process_free",
	"task/task_newtask",
	"task/task_rename",
	"msr/write_msr:msr == 0xc8f",
	"memwatch/memwatch_rmid_alloc",
	"memwatch/memwatch_rmid_existing",
	"memwatch/memwatch_rmid_exec",
	"memwatch/memwatch_rmid_free",
	"memwatch/memwatch_tick",
	"memwatch/memwatch_switch",
	"memwatch/memwatch_dump_begin",
	"memwatch/memwatch_dump_end",
	"memwatch/memwatch_cpu_state",
	/* identity.sh defines these. */
	"memwatch_pass/begin",
	"memwatch_pass/end",
	NULL,
};

/* One CPU's ring, and the pages of it that are not written yet. */
struct ring {
	int cpu;
	int in;	     /* trace_pipe_raw */
	int out;     /* cpuN.raw */
	size_t used; /* bytes in batch */
	char *batch; /* BATCH_PAGES pages */
};

static char instance[256]; /* folder of our tracefs instance */
static const char *out_dir;
static size_t page_size;
static struct ring rings[MAX_CPUS];
static unsigned int nr_rings;
static volatile sig_atomic_t stopping;

static void on_signal(int number)
{
	(void)number;
	stopping = 1;
}

__attribute__((noreturn, format(printf, 1, 2))) static void exit_with_error(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "tracecap: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, ": %s\n", strerror(errno));
	exit(1);
}

/* Valid until the fourth call from now. */
__attribute__((format(printf, 1, 2))) static char *make_path(const char *format, ...)
{
	static char text[4][1024];
	static unsigned int turn;
	char *ret = text[turn++ % 4];
	va_list args;

	va_start(args, format);
	vsnprintf(ret, sizeof(text[0]), format, args);
	va_end(args);
	return ret;
}

static int try_write_file(const char *file, const char *value)
{
	int fd = open(file, O_WRONLY | O_TRUNC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = write(fd, value, strlen(value));
	close(fd);
	return n == (ssize_t)strlen(value) ? 0 : -1;
}

static void write_file(const char *file, const char *value)
{
	if (try_write_file(file, value))
		exit_with_error("cannot write '%s' to %s", value, file);
}

static void copy_file(const char *from, const char *to)
{
	char buffer[4096];
	ssize_t n;
	int in = open(from, O_RDONLY);
	int out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	if (in < 0)
		exit_with_error("%s", from);
	if (out < 0)
		exit_with_error("%s", to);
	while ((n = read(in, buffer, sizeof(buffer))) > 0)
		if (write(out, buffer, n) != n)
			exit_with_error("%s", to);
	close(in);
	close(out);
}

/*
 * Enable one event, given as SYSTEM/EVENT[:FILTER], and copy its format. Returns 0 if the
 * kernel has no such event, else 1.
 */
static int enable_event(const char *what)
{
	char name[128];
	const char *colon = strchr(what, ':');
	char *slash;

	snprintf(name, sizeof(name), "%.*s", colon ? (int)(colon - what) : (int)strlen(what), what);
	if (access(make_path("%s/events/%s", instance, name), F_OK))
		return 0;
	if (colon)
		write_file(make_path("%s/events/%s/filter", instance, name), colon + 1);
	write_file(make_path("%s/events/%s/enable", instance, name), "1");
	slash = strchr(name, '/');
	*slash = 0;
	copy_file(make_path("%s/events/%s/%s/format", instance, name, slash + 1),
		  make_path("%s/format.%s.%s", out_dir, name, slash + 1));
	return 1;
}

static void write_task(FILE *out, const char *tgid, const char *tid)
{
	char line[2048], *open_paren, *close_paren;
	unsigned long long start;
	unsigned long flags;
	FILE *in = fopen(make_path("/proc/%s/task/%s/stat", tgid, tid), "r");
	int ppid;
	char state;

	/* The task has exited since readdir(): before the capture, or as the trace shows. */
	if (!in)
		return;
	line[fread(line, 1, sizeof(line) - 1, in)] = 0;
	fclose(in);
	open_paren = strchr(line, '(');
	close_paren = strrchr(line, ')');
	if (!open_paren || !close_paren)
		return;
	*close_paren = 0;
	if (sscanf(close_paren + 2,
		   "%c %d %*d %*d %*d %*d %lu %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
		   &state, &ppid, &flags, &start) != 4)
		return;
	fprintf(out, "%s %s %d %lu %llu %c %s\n", tid, tgid, ppid, flags, start, state,
		open_paren + 1);
}

static void write_tasks(void)
{
	FILE *out = fopen(make_path("%s/tasks", out_dir), "w");
	DIR *proc = opendir("/proc");
	struct dirent *process, *task;

	if (!out || !proc)
		exit_with_error("cannot list the tasks");
	while ((process = readdir(proc))) {
		DIR *tasks;

		if (process->d_name[0] < '0' || process->d_name[0] > '9')
			continue;
		tasks = opendir(make_path("/proc/%s/task", process->d_name));
		if (!tasks)
			continue;
		while ((task = readdir(tasks)))
			if (task->d_name[0] != '.')
				write_task(out, process->d_name, task->d_name);
		closedir(tasks);
	}
	closedir(proc);
	if (fclose(out))
		exit_with_error("cannot list the tasks");
}

static void ring_flush(struct ring *ring)
{
	size_t done = 0;

	while (done < ring->used) {
		ssize_t n = write(ring->out, ring->batch + done, ring->used - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			exit_with_error("cannot write the pages of CPU %d", ring->cpu);
		done += n;
	}
	ring->used = 0;
}

/* Read up to @most pages; returns how many there were. */
static unsigned int ring_read(struct ring *ring, unsigned int most)
{
	unsigned int pages = 0;

	while (pages < most) {
		ssize_t n = read(ring->in, ring->batch + ring->used, page_size);

		if (n <= 0)
			break;
		if ((size_t)n < page_size)
			memset(ring->batch + ring->used + n, 0, page_size - n);
		ring->used += page_size;
		if (ring->used == page_size * BATCH_PAGES)
			ring_flush(ring);
		pages++;
	}
	return pages;
}

static size_t read_page_size(void)
{
	char line[256];
	size_t size = 0, offset;
	FILE *in = fopen(make_path("%s/events/header_page", instance), "r");

	/* "data" is the last field of a page, so its offset and size add up to the page. */
	if (!in)
		in = fopen(make_path("%s/../../events/header_page", instance), "r");
	if (!in)
		exit_with_error("header_page");
	while (fgets(line, sizeof(line), in)) {
		char *at = strstr(line, "char data;");

		if (at && sscanf(at, "char data; offset:%zu; size:%zu", &offset, &size) == 2)
			size += offset;
	}
	fclose(in);
	if (!size || size > MAX_PAGE)
		size = sysconf(_SC_PAGESIZE);
	return size;
}

static void rings_open(void)
{
	int cpu;

	for (cpu = 0; cpu < MAX_CPUS; cpu++) {
		struct ring *ring = &rings[nr_rings];
		char *file = make_path("%s/per_cpu/cpu%d/trace_pipe_raw", instance, cpu);

		if (access(file, F_OK))
			continue;
		ring->cpu = cpu;
		ring->in = open(file, O_RDONLY | O_NONBLOCK);
		if (ring->in < 0)
			exit_with_error("%s", file);
		ring->out = open(make_path("%s/cpu%d.raw", out_dir, cpu),
				 O_WRONLY | O_CREAT | O_TRUNC, 0644);
		ring->batch = malloc(page_size * BATCH_PAGES);
		if (ring->out < 0 || !ring->batch)
			exit_with_error("%s/cpu%d.raw", out_dir, cpu);
		nr_rings++;
	}
}

static void instance_create(const char *tracefs, const char *kb)
{
	snprintf(instance, sizeof(instance), "%s/instances/memwatch-check", tracefs);
	if (mkdir(instance, 0755) && errno != EEXIST)
		exit_with_error("%s", instance);
	write_file(make_path("%s/tracing_on", instance), "0");
	write_file(make_path("%s/trace_clock", instance), "mono");
	write_file(make_path("%s/buffer_size_kb", instance), kb);
	write_file(make_path("%s/options/overwrite", instance), "0");
	/* Not every kernel has it. */
	try_write_file(make_path("%s/buffer_percent", instance), "5");
}

/* Returns how many events were enabled. @quiet: without the module's switch records. */
static unsigned int enable_default_events(bool quiet)
{
	unsigned int i, enabled = 0;

	for (i = 0; default_events[i]; i++)
		if (!quiet || strcmp(default_events[i], "memwatch/memwatch_switch"))
			enabled += enable_event(default_events[i]);
	return enabled;
}

static void write_meta(unsigned int enabled)
{
	FILE *out = fopen(make_path("%s/meta", out_dir), "w");

	if (!out)
		exit_with_error("%s/meta", out_dir);
	fprintf(out, "page_size %zu\nevents %u\nclock mono\n", page_size, enabled);
	if (fclose(out))
		exit_with_error("%s/meta", out_dir);
}

static void read_rings_until_signal(void)
{
	while (!stopping) {
		unsigned int i, pages = 0;

		for (i = 0; i < nr_rings; i++)
			pages += ring_read(&rings[i], 256);
		/* A page that is nearly empty costs the checker as much as a full one. */
		if (pages < 16)
			poll(NULL, 0, 50);
	}
}

static void rings_close(void)
{
	unsigned int i;

	for (i = 0; i < nr_rings; i++) {
		struct ring *ring = &rings[i];

		while (ring_read(ring, 1024))
			;
		ring_flush(ring);
		copy_file(make_path("%s/per_cpu/cpu%d/stats", instance, ring->cpu),
			  make_path("%s/cpu%d.stats", out_dir, ring->cpu));
		close(ring->in);
		close(ring->out);
	}
}

/* @events: NULL-terminated; empty for the default ones. */
static void capture_events(const char *kb, bool quiet, char **events)
{
	unsigned int enabled = 0;

	instance_create("/sys/kernel/tracing", kb);
	page_size = read_page_size();
	rings_open();
	write_file(make_path("%s/tracing_on", instance), "1");
	if (!*events)
		enabled = enable_default_events(quiet);
	for (; *events; events++)
		enabled += enable_event(*events);
	write_tasks();
	write_meta(enabled);
	printf("ready\n");
	fflush(stdout);
	read_rings_until_signal();
	write_file(make_path("%s/tracing_on", instance), "0");
	rings_close();
	write_file(make_path("%s/events/enable", instance), "0");
	if (rmdir(instance))
		exit_with_error("%s", instance);
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_signal };
	const char *kb = "32768";
	bool quiet = false;
	int option;

	while ((option = getopt(argc, argv, "b:o:q")) != -1) {
		if (option == 'b')
			kb = optarg;
		else if (option == 'o')
			out_dir = optarg;
		else if (option == 'q')
			quiet = true;
		else
			out_dir = NULL;
	}
	if (!out_dir) {
		fprintf(stderr, "usage: tracecap [-b KIB_PER_CPU] [-q] -o DIRECTORY [EVENT...]\n");
		return 2;
	}
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	/* Page faults during the capture would delay the reading of the rings. */
	mlockall(MCL_CURRENT | MCL_FUTURE);
	mkdir(out_dir, 0755);
	capture_events(kb, quiet, argv + optind);
	return 0;
}
