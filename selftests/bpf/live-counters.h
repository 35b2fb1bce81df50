/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Hardware counters of a CPU that was offline and is idle when it is back, as a program reads
 * them first long after the library has opened them again. Included by test_live.c.
 */
#ifndef _MW_SELFTESTS_BPF_LIVE_COUNTERS_H
#define _MW_SELFTESTS_BPF_LIVE_COUNTERS_H

/* What the samples of CPU 1 say about the first counter, from a time on. */
struct counted {
	uint64_t ok, error, absent, other;
};

static void read_counters(struct memwatch_stream *stream, uint64_t until, struct counted *counted)
{
	const struct memwatch_record_header *record;

	memset(counted, 0, sizeof(*counted));
	while (now_ns() < until) {
		const struct memwatch_record_sample *sample;

		if (memwatch_stream_next(stream, &record) != 1) {
			memwatch_stream_poll(stream, 20);
			continue;
		}
		if (record->type != MEMWATCH_RECORD_SAMPLE || record->cpu != 1)
			continue;
		sample = (const struct memwatch_record_sample *)(const void *)record;
		switch (MEMWATCH_SAMPLE_STATUS(sample, 0)) {
		case MEMWATCH_STATUS_OK:
		case MEMWATCH_STATUS_MULTIPLEXED:
			counted->ok++;
			break;
		case MEMWATCH_STATUS_ERROR:
			counted->error++;
			break;
		case MEMWATCH_STATUS_UNAVAILABLE:
		case MEMWATCH_STATUS_FIRST:
			counted->absent++;
			break;
		default:
			counted->other++;
		}
	}
}

static pid_t run_on_cpu1(unsigned int ms)
{
	uint64_t end = now_ns() + ms * 1000000ULL;
	pid_t pid = fork();
	cpu_set_t set;

	if (pid)
		return pid;
	CPU_ZERO(&set);
	CPU_SET(1, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		_exit(1);
	while (now_ns() < end)
		;
	_exit(0);
}

static void test_counters_of_idle_cpu(void)
{
	MEMWATCH_OPTS(memwatch_live_opts, opts, .ring_pages = 512);
	struct memwatch_stream *stream = open_live(&opts, "an idle CPU");
	struct counted counted;
	pid_t worker;
	bool ok;

	if (!stream)
		return;
	tap_eq(memwatch_stream_get_info(stream)->counter[0].status, MEMWATCH_STATUS_OK,
	       "an idle CPU: the machine has hardware counters");
	worker = run_on_cpu1(400);
	read_counters(stream, now_ns() + 500000000, &counted);
	waitpid(worker, NULL, 0);
	tap_ok(counted.ok, "an idle CPU: its counters are read before it goes offline (%llu)",
	       (unsigned long long)counted.ok);
	ok = set_cpu1_online("0");
	read_counters(stream, now_ns() + 200000000, &counted);
	ok &= set_cpu1_online("1");
	tap_ok(ok, "an idle CPU: it is set offline and online");
	/* The library notices it at the next reading: then the CPU has stopped its ticks. */
	usleep(1000000);
	read_counters(stream, now_ns() + 100000000, &counted);
	worker = run_on_cpu1(3000);
	read_counters(stream, now_ns() + 3000000000, &counted);
	waitpid(worker, NULL, 0);
	tap_note("an idle CPU: %llu samples have a count, %llu none, %llu a part of one",
		 (unsigned long long)counted.ok, (unsigned long long)counted.absent,
		 (unsigned long long)counted.other);
	tap_eq(counted.error, 0, "an idle CPU: no count is the difference of two events");
	tap_ok(counted.ok > 100, "an idle CPU: its counters are read again");
	memwatch_stream_stop(stream);
	read_counters(stream, now_ns() + 200000000, &counted);
	memwatch_stream_unref(stream);
}

#endif /* _MW_SELFTESTS_BPF_LIVE_COUNTERS_H */
