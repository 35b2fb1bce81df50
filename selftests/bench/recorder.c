// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Measures what a recording costs: bytes per record, and memory. It records a simulated
 * machine of 16 CPUs at 1 kHz, which makes about 34 000 records a second. The machine is
 * less regular than the null backend: ticks are late by some microseconds, some processes
 * have a CPU of their own and others share one, and counters follow the run time with the
 * noise of a real program. Prints one line per budget: NAME value unit budget ok|over.
 *
 *	recorder DIRECTORY [SECONDS]
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memwatch/memwatch.h>

#include "../prng.h"

#define CPUS	      16
#define RMIDS	      200
#define SHARED	      12 /* RMIDs that run on the same CPU in turn */
#define PERIOD_NS     1000000ULL
#define RING_BYTES    ((64 + 1) * 4096) /* of one CPU, as a live stream maps it */
#define BYTES_BUDGET  12.0
#define RSS_BUDGET    30.0
#define RATE_EXPECTED 34000

struct process {
	uint32_t generation, tgid;
	double ghz, ipc, references, misses; /* per cycle, instruction, reference */
};

struct machine {
	struct memwatch_recording *recording;
	struct process process[RMIDS + 1];
	uint64_t last_ns[CPUS], produced[CPUS];
	uint64_t records;
	struct prng prng;
	uint32_t next_tgid;
	bool pmu;
};

static void exit_with_error(const char *what, int err)
{
	fprintf(stderr, "recorder: %s: %s\n", what, strerror(-err));
	exit(EXIT_FAILURE);
}

static uint64_t random_below(struct machine *m, uint64_t n)
{
	return prng_below(&m->prng, n);
}

/* About 1, with a spread of @percent. The sum of four numbers is nearly normal. */
static double random_factor(struct machine *m, double percent)
{
	double sum = 0;

	for (int i = 0; i < 4; i++)
		sum += (double)random_below(m, 10000) / 10000 - 0.5;
	return 1 + sum * percent / 100 * 1.7;
}

static void record_write(struct machine *m, struct memwatch_record_header *header, uint16_t type,
			 uint16_t size, unsigned int cpu, uint64_t time_ns)
{
	int err;

	header->type = type;
	header->size = size;
	header->cpu = (uint16_t)cpu;
	header->time_ns = time_ns;
	m->produced[cpu]++;
	m->records++;
	err = memwatch_recording_write(m->recording, header);
	if (err)
		exit_with_error("cannot write a record", err);
}

/* The process that has the RMID exits, and a new one gets it. */
static void process_replace(struct machine *m, uint32_t rmid, uint64_t now)
{
	static const char *const names[] = { "sh", "cc1", "make", "sleep", "python3", "stream" };
	struct process *p = &m->process[rmid];
	struct memwatch_record_rmid r = { .rmid = rmid };

	if (p->generation) {
		r.generation = p->generation;
		r.tgid = p->tgid;
		r.reason = MEMWATCH_REASON_EXIT;
		record_write(m, &r.h, MEMWATCH_RECORD_RMID_FREE, sizeof(r), random_below(m, CPUS),
			     now);
	}
	p->generation++;
	p->tgid = m->next_tgid++;
	p->ghz = 2 + (double)random_below(m, 15) / 10;
	p->ipc = 0.3 + (double)random_below(m, 25) / 10;
	p->references = 0.001 + (double)random_below(m, 200) / 10000;
	p->misses = 0.01 + (double)random_below(m, 500) / 1000;
	r = (struct memwatch_record_rmid){
		.rmid = rmid,
		.generation = p->generation,
		.tgid = p->tgid,
		.parent_tgid = p->tgid - 1 - (uint32_t)random_below(m, 20),
		.start_time_ns = now - 5000000,
		.alloc_time_ns = now,
		.cgroup_id = 4000 + random_below(m, 8) * 31,
		.uid = 1000,
		.reason = MEMWATCH_REASON_FORK,
	};
	strcpy(r.comm, names[random_below(m, 6)]);
	record_write(m, &r.h, MEMWATCH_RECORD_RMID_ALLOC, sizeof(r), random_below(m, CPUS), now);
}

static void sample_write(struct machine *m, unsigned int cpu, uint64_t now, uint32_t rmid,
			 uint64_t run)
{
	const struct process *p = &m->process[rmid];
	struct memwatch_record_sample s = {
		.rmid = rmid,
		.generation = p->generation,
		.begin_ns = m->last_ns[cpu],
		.run_ns = run,
	};

	if (m->pmu) {
		s.counter[0] = (uint64_t)((double)run * p->ghz * random_factor(m, 0.3));
		s.counter[1] = (uint64_t)((double)s.counter[0] * p->ipc * random_factor(m, 4));
		s.counter[2] = (uint64_t)((double)s.counter[1] * p->references *
					  random_factor(m, 10));
		s.counter[3] = (uint64_t)((double)s.counter[2] * p->misses * random_factor(m, 10));
		memset(s.status, MEMWATCH_STATUS_OK, sizeof(s.status));
		s.running_ppm = 1000000;
	}
	record_write(m, &s.h, MEMWATCH_RECORD_SAMPLE, sizeof(s), cpu, now);
}

/* One slot of one CPU: on some CPUs one process runs, on most of them several. */
static void slot_write(struct machine *m, unsigned int cpu, uint64_t due, uint64_t now)
{
	struct memwatch_record_tick t = { .expected_ns = due, .period_ns = PERIOD_NS };
	uint64_t left = now - m->last_ns[cpu];
	unsigned int others = cpu < 5 || random_below(m, 3) ? 0
							    : 1 + (unsigned int)random_below(m, 3);

	for (unsigned int i = 0; i < others; i++) {
		uint64_t run = 20000 + random_below(m, left / 3);

		sample_write(m, cpu, now,
			     1 + (cpu * SHARED + (uint32_t)random_below(m, SHARED)) % RMIDS, run);
		left -= run;
	}
	sample_write(m, cpu, now, cpu < 5 || (cpu < 10 && !others) ? cpu + 1 : 0, left);
	t.produced = m->produced[cpu] + 1;
	record_write(m, &t.h, MEMWATCH_RECORD_TICK, sizeof(t), cpu, now);
	m->last_ns[cpu] = now;
}

static void period_write(struct machine *m, uint64_t due)
{
	uint64_t late[CPUS];
	bool done[CPUS] = { false };

	for (unsigned int cpu = 0; cpu < CPUS; cpu++)
		late[cpu] = 900 + random_below(m, 1500) +
			    (random_below(m, 50) ? 0 : random_below(m, 30000));
	for (unsigned int i = 0; i < CPUS; i++) {
		unsigned int next = CPUS;

		for (unsigned int cpu = 0; cpu < CPUS; cpu++) {
			if (!done[cpu] && (next == CPUS || late[cpu] < late[next]))
				next = cpu;
		}
		done[next] = true;
		slot_write(m, next, due, due + late[next]);
	}
	if (!random_below(m, 5))
		process_replace(m, 1 + (uint32_t)random_below(m, RMIDS), due + PERIOD_NS / 2);
}

static void machine_record(struct memwatch_ctx *ctx, const char *path, bool pmu,
			   unsigned int seconds, struct memwatch_recording_stats *stats)
{
	struct machine *m = calloc(1, sizeof(*m));
	MEMWATCH_OPTS(memwatch_stream_info, info, .nr_cpus = CPUS, .nr_rmids = RMIDS,
		      .backend = "emulated", .period_ns = PERIOD_NS);
	uint64_t start = 5000000000000ULL;
	int err;

	if (!m)
		exit_with_error("cannot allocate the machine", -ENOMEM);
	m->prng.state = 1;
	m->next_tgid = 3000;
	m->pmu = pmu;
	m->process[0].ghz = 1;
	err = memwatch_recording_create(ctx, path, &info, NULL, &m->recording);
	if (err)
		exit_with_error(memwatch_ctx_error(ctx), err);
	for (unsigned int cpu = 0; cpu < CPUS; cpu++)
		m->last_ns[cpu] = start;
	for (uint32_t rmid = 1; rmid <= RMIDS; rmid++)
		process_replace(m, rmid, start);
	for (uint64_t tick = 1; tick <= seconds * 1000ULL; tick++)
		period_write(m, start + tick * PERIOD_NS);
	err = memwatch_recording_flush(m->recording, 0);
	if (err)
		exit_with_error("cannot flush the recording", err);
	memwatch_recording_get_stats(m->recording, stats);
	err = memwatch_recording_close(m->recording);
	if (err)
		exit_with_error("cannot close the recording", err);
	free(m);
}

static void print_budget(const char *name, double value, const char *unit, double budget)
{
	printf("%s %.2f %s %g %s\n", name, value, unit, budget, value <= budget ? "ok" : "over");
	fflush(stdout);
}

static double peak_rss_mib(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	double kib = 0;
	char line[256];

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "VmHWM: %lf", &kib) == 1)
			break;
	}
	if (file)
		fclose(file);
	if (kib == 0)
		exit_with_error("cannot find VmHWM in /proc/self/status", -ENOENT);
	return kib / 1024;
}

/* Runs in a process of its own, because its peak memory is measured. */
static void measure_collector(const char *path, unsigned int seconds)
{
	MEMWATCH_OPTS(memwatch_recording_stats, stats);
	struct memwatch_ctx *ctx;
	char *rings;

	if (memwatch_ctx_new(NULL, &ctx))
		exit_with_error("cannot create a context", -ENOMEM);
	/* A live stream maps its rings; sooner or later all of their pages are in memory. */
	rings = mmap(NULL, (size_t)CPUS * RING_BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (rings == MAP_FAILED)
		exit_with_error("cannot map the rings", -errno);
	machine_record(ctx, path, true, seconds, &stats);
	fprintf(stderr, "collector: %.0f records a second of stream\n",
		(double)stats.records / seconds);
	if (stats.records / seconds < RATE_EXPECTED)
		exit_with_error("the simulated machine makes too few records", -EINVAL);
	print_budget("collector_rss_34k", peak_rss_mib(), "MiB", RSS_BUDGET);
	memwatch_ctx_unref(ctx);
}

static void measure_bytes(const char *path, const char *name, bool pmu, unsigned int seconds)
{
	MEMWATCH_OPTS(memwatch_recording_stats, stats);
	struct memwatch_ctx *ctx;

	if (memwatch_ctx_new(NULL, &ctx))
		exit_with_error("cannot create a context", -ENOMEM);
	machine_record(ctx, path, pmu, seconds, &stats);
	print_budget(name, (double)stats.file_bytes / (double)stats.records, "bytes", BYTES_BUDGET);
	memwatch_ctx_unref(ctx);
}

enum measurement { BYTES_WITHOUT_COUNTERS, BYTES_WITH_COUNTERS, COLLECTOR_MEMORY, MEASUREMENTS };

static void measure_in_child(const char *path, enum measurement what, unsigned int seconds)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		exit_with_error("cannot fork", -errno);
	if (!pid) {
		if (what == COLLECTOR_MEMORY)
			measure_collector(path, seconds);
		else if (what == BYTES_WITH_COUNTERS)
			measure_bytes(path, "recorder_bytes_per_record_counters", true, seconds);
		else
			measure_bytes(path, "recorder_bytes_per_record", false, seconds);
		exit(EXIT_SUCCESS);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status))
		exit(EXIT_FAILURE);
	unlink(path);
}

int main(int argc, char **argv)
{
	unsigned int seconds = argc > 2 ? (unsigned int)atoi(argv[2]) : 20;
	char path[4096];

	if (argc < 2 || !seconds) {
		fprintf(stderr, "usage: recorder DIRECTORY [SECONDS]\n");
		return 2;
	}
	snprintf(path, sizeof(path), "%s/recording", argv[1]);
	for (unsigned int what = 0; what < MEASUREMENTS; what++)
		measure_in_child(path, what, seconds);
	return EXIT_SUCCESS;
}
