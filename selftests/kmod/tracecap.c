// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Captures what the model checker needs, inside the virtual machine: the raw
 * per-CPU pages of a tracefs instance of its own, the format of every event in
 * it, the loss counters of every ring, and the tasks that existed when the
 * capture began. It interprets nothing.
 *
 * It prints "ready" when the events are on and the tasks are listed, drains until
 * SIGTERM or SIGINT, and exits 0 when everything is on disk. Lost events are not
 * its failure: they are in the loss counters, and the checker rejects the run.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
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
	NULL,
};

struct ring {
	int cpu;
	int in;
	int out;
	size_t used;
	char *batch;
};

static char instance[256];
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

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "tracecap: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, ": %s\n", strerror(errno));
	exit(1);
}

__attribute__((format(printf, 1, 2))) static char *path(const char *format, ...)
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

static int try_put(const char *file, const char *value)
{
	int fd = open(file, O_WRONLY | O_TRUNC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = write(fd, value, strlen(value));
	close(fd);
	return n == (ssize_t)strlen(value) ? 0 : -1;
}

static void put(const char *file, const char *value)
{
	if (try_put(file, value))
		die("cannot write '%s' to %s", value, file);
}

static void copy(const char *from, const char *to)
{
	char buffer[4096];
	ssize_t n;
	int in = open(from, O_RDONLY);
	int out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	if (in < 0)
		die("%s", from);
	if (out < 0)
		die("%s", to);
	while ((n = read(in, buffer, sizeof(buffer))) > 0)
		if (write(out, buffer, n) != n)
			die("%s", to);
	close(in);
	close(out);
}

/* Enables one event, given as SYSTEM/EVENT[:FILTER]; false if there is none. */
static int enable(const char *what)
{
	char name[128];
	const char *colon = strchr(what, ':');
	char *slash;

	snprintf(name, sizeof(name), "%.*s", colon ? (int)(colon - what) : (int)strlen(what), what);
	if (access(path("%s/events/%s", instance, name), F_OK))
		return 0;
	if (colon)
		put(path("%s/events/%s/filter", instance, name), colon + 1);
	put(path("%s/events/%s/enable", instance, name), "1");
	slash = strchr(name, '/');
	*slash = 0;
	copy(path("%s/events/%s/%s/format", instance, name, slash + 1),
	     path("%s/format.%s.%s", out_dir, name, slash + 1));
	return 1;
}

static void list_task(FILE *out, const char *tgid, const char *tid)
{
	char line[2048], *open_paren, *close_paren;
	unsigned long long start;
	unsigned long flags;
	FILE *in = fopen(path("/proc/%s/task/%s/stat", tgid, tid), "r");
	int ppid;
	char state;

	/* Gone meanwhile: then the trace has its exit, or never saw it. */
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

static void list_tasks(void)
{
	FILE *out = fopen(path("%s/tasks", out_dir), "w");
	DIR *proc = opendir("/proc");
	struct dirent *process, *task;

	if (!out || !proc)
		die("list of tasks");
	while ((process = readdir(proc))) {
		DIR *tasks;

		if (process->d_name[0] < '0' || process->d_name[0] > '9')
			continue;
		tasks = opendir(path("/proc/%s/task", process->d_name));
		if (!tasks)
			continue;
		while ((task = readdir(tasks)))
			if (task->d_name[0] != '.')
				list_task(out, process->d_name, task->d_name);
		closedir(tasks);
	}
	closedir(proc);
	if (fclose(out))
		die("list of tasks");
}

static void flush(struct ring *ring)
{
	size_t done = 0;

	while (done < ring->used) {
		ssize_t n = write(ring->out, ring->batch + done, ring->used - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			die("pages of CPU %d", ring->cpu);
		done += n;
	}
	ring->used = 0;
}

/* Takes what there is; returns pages taken. */
static unsigned int drain(struct ring *ring, unsigned int most)
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
			flush(ring);
		pages++;
	}
	return pages;
}

static size_t read_page_size(void)
{
	char line[256];
	size_t size = 0, offset;
	FILE *in = fopen(path("%s/events/header_page", instance), "r");

	/* The data field ends the page; its offset and size give the page's. */
	if (!in)
		in = fopen(path("%s/../../events/header_page", instance), "r");
	if (!in)
		die("header_page");
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

static void open_rings(void)
{
	int cpu;

	for (cpu = 0; cpu < MAX_CPUS; cpu++) {
		struct ring *ring = &rings[nr_rings];
		char *file = path("%s/per_cpu/cpu%d/trace_pipe_raw", instance, cpu);

		if (access(file, F_OK))
			continue;
		ring->cpu = cpu;
		ring->in = open(file, O_RDONLY | O_NONBLOCK);
		if (ring->in < 0)
			die("%s", file);
		ring->out = open(path("%s/cpu%d.raw", out_dir, cpu), O_WRONLY | O_CREAT | O_TRUNC,
				 0644);
		ring->batch = malloc(page_size * BATCH_PAGES);
		if (ring->out < 0 || !ring->batch)
			die("%s/cpu%d.raw", out_dir, cpu);
		nr_rings++;
	}
}

int main(int argc, char **argv)
{
	const char *tracefs = "/sys/kernel/tracing", *kb = "32768", *name = "memwatch-check";
	struct sigaction action = { .sa_handler = on_signal };
	unsigned int i, enabled = 0;
	char meta[256];
	int option, quiet = 0;

	while ((option = getopt(argc, argv, "b:o:q")) != -1) {
		if (option == 'b')
			kb = optarg;
		else if (option == 'o')
			out_dir = optarg;
		else if (option == 'q')
			quiet = 1;
		else
			out_dir = NULL;
	}
	if (!out_dir) {
		fprintf(stderr, "usage: tracecap [-b KIB_PER_CPU] [-q] -o DIRECTORY [EVENT...]\n");
		return 2;
	}
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	/* A page fault in the middle of the storm would be one more suspect. */
	mlockall(MCL_CURRENT | MCL_FUTURE);
	mkdir(out_dir, 0755);
	snprintf(instance, sizeof(instance), "%s/instances/%s", tracefs, name);
	if (mkdir(instance, 0755) && errno != EEXIST)
		die("%s", instance);
	put(path("%s/tracing_on", instance), "0");
	put(path("%s/trace_clock", instance), "mono");
	put(path("%s/buffer_size_kb", instance), kb);
	put(path("%s/options/overwrite", instance), "0");
	try_put(path("%s/buffer_percent", instance), "5");
	page_size = read_page_size();
	open_rings();
	put(path("%s/tracing_on", instance), "1");
	if (optind < argc) {
		for (; optind < argc; optind++)
			enabled += enable(argv[optind]);
	} else {
		for (i = 0; default_events[i]; i++) {
			if (quiet && (strstr(default_events[i], "_switch") &&
				      strstr(default_events[i], "memwatch/")))
				continue;
			enabled += enable(default_events[i]);
		}
	}
	list_tasks();
	snprintf(meta, sizeof(meta), "page_size %zu\nevents %u\nclock mono\n", page_size, enabled);
	i = open(path("%s/meta", out_dir), O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (write(i, meta, strlen(meta)) != (ssize_t)strlen(meta))
		die("%s/meta", out_dir);
	close(i);
	printf("ready\n");
	fflush(stdout);

	while (!stopping) {
		unsigned int pages = 0;

		for (i = 0; i < nr_rings; i++)
			pages += drain(&rings[i], 256);
		/* Nearly empty pages cost the checker time: let them fill. */
		if (pages < 16)
			poll(NULL, 0, 50);
	}
	put(path("%s/tracing_on", instance), "0");
	for (i = 0; i < nr_rings; i++) {
		while (drain(&rings[i], 1024))
			;
		flush(&rings[i]);
		copy(path("%s/per_cpu/cpu%d/stats", instance, rings[i].cpu),
		     path("%s/cpu%d.stats", out_dir, rings[i].cpu));
		close(rings[i].in);
		close(rings[i].out);
	}
	put(path("%s/events/enable", instance), "0");
	if (rmdir(instance))
		die("%s", instance);
	return 0;
}
