// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What does a recording cost? A machine of 16 CPUs at 1 kHz, about 34 000
 * records a second, is made up here, less regular than the null backend: ticks
 * come late by some microseconds, some processes keep their CPU and others
 * share it, counters follow the time that was run with the noise of a real
 * program. Prints one line per budget: NAME value unit budget ok|over.
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

#define CPUS	      16
#define RMIDS	      200
#define SHARED	      12 /* RMIDs that take turns on a CPU */
#define PERIOD_NS     1000000ULL
#define RING_BYTES    ((64 + 1) * 4096) /* as a live stream maps, one for each CPU */
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
	uint64_t random, records;
	uint32_t next_tgid;
	bool pmu;
};

static void die(const char *what, int err)
{
	fprintf(stderr, "recorder: %s: %s\n", what, strerror(-err));
	exit(EXIT_FAILURE);
}

static uint64_t dice(struct machine *m, uint64_t sides)
{
	m->random ^= m->random << 13;
	m->random ^= m->random >> 7;
	m->random ^= m->random << 17;
	return m->random % sides;
}

/* About 1, with a spread of @percent: the sum of dice is bell-shaped enough. */
static double noise(struct machine *m, double percent)
{
	double sum = 0;

	for (int i = 0; i < 4; i++)
		sum += (double)dice(m, 10000) / 10000 - 0.5;
	return 1 + sum * percent / 100 * 1.7;
}

static void put(struct machine *m, struct memwatch_record_header *header, uint16_t type,
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
		die("write", err);
}

static void be_born(struct machine *m, uint32_t rmid, uint64_t now)
{
	static const char *const names[] = { "sh", "cc1", "make", "sleep", "python3", "stream" };
	struct process *p = &m->process[rmid];
	struct memwatch_record_rmid r = { .rmid = rmid };

	if (p->generation) {
		r.generation = p->generation;
		r.tgid = p->tgid;
		r.reason = MEMWATCH_REASON_EXIT;
		put(m, &r.h, MEMWATCH_RECORD_RMID_FREE, sizeof(r), dice(m, CPUS), now);
	}
	p->generation++;
	p->tgid = m->next_tgid++;
	p->ghz = 2 + (double)dice(m, 15) / 10;
	p->ipc = 0.3 + (double)dice(m, 25) / 10;
	p->references = 0.001 + (double)dice(m, 200) / 10000;
	p->misses = 0.01 + (double)dice(m, 500) / 1000;
	r = (struct memwatch_record_rmid){
		.rmid = rmid,
		.generation = p->generation,
		.tgid = p->tgid,
		.parent_tgid = p->tgid - 1 - (uint32_t)dice(m, 20),
		.start_time_ns = now - 5000000,
		.alloc_time_ns = now,
		.cgroup_id = 4000 + dice(m, 8) * 31,
		.uid = 1000,
		.reason = MEMWATCH_REASON_FORK,
	};
	strcpy(r.comm, names[dice(m, 6)]);
	put(m, &r.h, MEMWATCH_RECORD_RMID_ALLOC, sizeof(r), dice(m, CPUS), now);
}

static void sample(struct machine *m, unsigned int cpu, uint64_t now, uint32_t rmid, uint64_t run)
{
	const struct process *p = &m->process[rmid];
	struct memwatch_record_sample s = {
		.rmid = rmid,
		.generation = p->generation,
		.begin_ns = m->last_ns[cpu],
		.run_ns = run,
	};

	if (m->pmu) {
		s.counter[0] = (uint64_t)((double)run * p->ghz * noise(m, 0.3));
		s.counter[1] = (uint64_t)((double)s.counter[0] * p->ipc * noise(m, 4));
		s.counter[2] = (uint64_t)((double)s.counter[1] * p->references * noise(m, 10));
		s.counter[3] = (uint64_t)((double)s.counter[2] * p->misses * noise(m, 10));
		memset(s.status, MEMWATCH_STATUS_OK, sizeof(s.status));
		s.running_ppm = 1000000;
	}
	put(m, &s.h, MEMWATCH_RECORD_SAMPLE, sizeof(s), cpu, now);
}

/* One slot of one CPU: a few are busy with one process, most with some. */
static void slot(struct machine *m, unsigned int cpu, uint64_t due, uint64_t now)
{
	struct memwatch_record_tick t = { .expected_ns = due, .period_ns = PERIOD_NS };
	uint64_t left = now - m->last_ns[cpu];
	unsigned int others = cpu < 5 || dice(m, 3) ? 0 : 1 + (unsigned int)dice(m, 3);

	for (unsigned int i = 0; i < others; i++) {
		uint64_t run = 20000 + dice(m, left / 3);

		sample(m, cpu, now, 1 + (cpu * SHARED + (uint32_t)dice(m, SHARED)) % RMIDS, run);
		left -= run;
	}
	sample(m, cpu, now, cpu < 5 || (cpu < 10 && !others) ? cpu + 1 : 0, left);
	t.produced = m->produced[cpu] + 1;
	put(m, &t.h, MEMWATCH_RECORD_TICK, sizeof(t), cpu, now);
	m->last_ns[cpu] = now;
}

static void run_period(struct machine *m, uint64_t due)
{
	uint64_t late[CPUS];
	bool done[CPUS] = { false };

	for (unsigned int cpu = 0; cpu < CPUS; cpu++)
		late[cpu] = 900 + dice(m, 1500) + (dice(m, 50) ? 0 : dice(m, 30000));
	for (unsigned int i = 0; i < CPUS; i++) {
		unsigned int next = CPUS;

		for (unsigned int cpu = 0; cpu < CPUS; cpu++) {
			if (!done[cpu] && (next == CPUS || late[cpu] < late[next]))
				next = cpu;
		}
		done[next] = true;
		slot(m, next, due, due + late[next]);
	}
	if (!dice(m, 5))
		be_born(m, 1 + (uint32_t)dice(m, RMIDS), due + PERIOD_NS / 2);
}

static void record(struct memwatch_ctx *ctx, const char *path, bool pmu, unsigned int seconds,
		   struct memwatch_recording_stats *stats)
{
	struct machine *m = calloc(1, sizeof(*m));
	MEMWATCH_OPTS(memwatch_stream_info, info, .nr_cpus = CPUS, .nr_rmids = RMIDS,
		      .backend = "emulated", .period_ns = PERIOD_NS);
	uint64_t start = 5000000000000ULL;
	int err;

	if (!m)
		die("machine", -ENOMEM);
	m->random = 88172645463325252ULL;
	m->next_tgid = 3000;
	m->pmu = pmu;
	m->process[0].ghz = 1;
	err = memwatch_recording_create(ctx, path, &info, NULL, &m->recording);
	if (err)
		die(memwatch_ctx_error(ctx), err);
	for (unsigned int cpu = 0; cpu < CPUS; cpu++)
		m->last_ns[cpu] = start;
	for (uint32_t rmid = 1; rmid <= RMIDS; rmid++)
		be_born(m, rmid, start);
	for (uint64_t tick = 1; tick <= seconds * 1000ULL; tick++)
		run_period(m, start + tick * PERIOD_NS);
	err = memwatch_recording_flush(m->recording, 0);
	if (err)
		die("flush", err);
	memwatch_recording_stats(m->recording, stats);
	err = memwatch_recording_close(m->recording);
	if (err)
		die("close", err);
	free(m);
}

static void report(const char *name, double value, const char *unit, double budget)
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
		die("VmHWM", -ENOENT);
	return kib / 1024;
}

/* In a process of its own: its peak is what is asked for. */
static void collector(const char *path, unsigned int seconds)
{
	MEMWATCH_OPTS(memwatch_recording_stats, stats);
	struct memwatch_ctx *ctx;
	char *rings;

	if (memwatch_ctx_new(NULL, &ctx))
		die("context", -ENOMEM);
	/* A live stream has its rings in memory too, and sooner or later all of them. */
	rings = mmap(NULL, (size_t)CPUS * RING_BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (rings == MAP_FAILED)
		die("rings", -errno);
	record(ctx, path, true, seconds, &stats);
	fprintf(stderr, "collector: %.0f records a second of stream\n",
		(double)stats.records / seconds);
	if (stats.records / seconds < RATE_EXPECTED)
		die("the generator is too slow a machine", -EINVAL);
	report("collector_rss_34k", peak_rss_mib(), "MiB", RSS_BUDGET);
	memwatch_ctx_unref(ctx);
}

static void bytes_per_record(const char *path, const char *name, bool pmu, unsigned int seconds)
{
	MEMWATCH_OPTS(memwatch_recording_stats, stats);
	struct memwatch_ctx *ctx;

	if (memwatch_ctx_new(NULL, &ctx))
		die("context", -ENOMEM);
	record(ctx, path, pmu, seconds, &stats);
	report(name, (double)stats.file_bytes / (double)stats.records, "bytes", BYTES_BUDGET);
	memwatch_ctx_unref(ctx);
}

static void measure(const char *path, unsigned int what, unsigned int seconds)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		die("fork", -errno);
	if (!pid) {
		if (what == 2)
			collector(path, seconds);
		else
			bytes_per_record(path,
					 what ? "recorder_bytes_per_record_counters"
					      : "recorder_bytes_per_record",
					 what, seconds);
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
	for (unsigned int what = 0; what < 3; what++)
		measure(path, what, seconds);
	return EXIT_SUCCESS;
}
