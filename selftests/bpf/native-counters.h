/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Tests of how the relay reads hardware counters. Software events, which the test can advance,
 * are used in place of them. Included by test_relay_native.c.
 */
#ifndef _MW_SELFTESTS_BPF_NATIVE_COUNTERS_H
#define _MW_SELFTESTS_BPF_NATIVE_COUNTERS_H

#include "native-rig.h"

/* The first counter is page faults, the second the CPU clock; the others have no event. */
static int faults_fd, clock_fd;
static uint64_t counter_now; /* the time of the next program */

static int open_counter(struct bpf_map *map, uint64_t config)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .config = config };
	int fd = rig_perf_event(&attr, cpu);

	if (fd >= 0 && bpf_map_update_elem(bpf_map__fd(map), &cpu, &fd, BPF_ANY)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* All page faults of this CPU, other processes included: an upper limit for the samples. */
static uint64_t read_faults(void)
{
	uint64_t value = 0;

	return read(faults_fd, &value, sizeof(value)) == sizeof(value) ? value : 0;
}

static void make_faults(unsigned int pages)
{
	size_t page = sysconf(_SC_PAGESIZE);
	volatile char *p = mmap(NULL, pages * page, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise((void *)p, pages * page, MADV_NOHUGEPAGE);
	for (unsigned int i = 0; i < pages; i++)
		p[i * page] = 1;
	munmap((void *)p, pages * page);
}

/* Reads the ring and returns the last samples of two owners; false if @a has none. */
static bool find_samples(uint64_t a, struct memwatch_record_sample *of_a, uint64_t b,
			 struct memwatch_record_sample *of_b)
{
	union rig_record rec;
	bool found = false;

	memset(of_a, 0, sizeof(*of_a));
	memset(of_b, 0, sizeof(*of_b));
	while (rig_next(&rig, cpu, &rec) == 1) {
		uint64_t owner = OWNER(rec.sample.rmid, rec.sample.generation);

		if (rec.h.type != MEMWATCH_RECORD_SAMPLE)
			continue;
		if (owner == b)
			*of_b = rec.sample;
		if (owner == a)
			*of_a = rec.sample;
		found |= owner == a;
	}
	return found;
}

/* Ticks @after_ns later; the sample of @owner must have this status in the first counter. */
static struct memwatch_record_sample check_tick(uint64_t after_ns, uint64_t owner, uint8_t status,
						const char *title)
{
	struct memwatch_record_sample sample, other;

	run_tick(counter_now += after_ns, owner);
	tap_ok(find_samples(owner, &sample, ~0ULL, &other), "%s: there is a sample", title);
	tap_eq(sample.status[0], status, "%s: status", title);
	return sample;
}

static void test_counter_owners(uint64_t a, uint64_t b)
{
	struct memwatch_record_sample s, t;
	uint64_t before;

	make_faults(1000);
	before = read_faults();
	run_tick(counter_now, a);
	make_faults(300);
	run_switch(counter_now += 1000, a, b);
	make_faults(5000);
	run_switch(counter_now += 1000, b, a);
	make_faults(400);
	run_tick(counter_now += 1000, a);
	before = read_faults() - before;
	find_samples(a, &s, b, &t);
	tap_ok(s.counter[0] >= 700, "the first owner is charged its page faults (%llu)",
	       s.counter[0]);
	tap_ok(t.counter[0] >= 5000, "the second owner is charged its page faults (%llu)",
	       t.counter[0]);
	tap_ok(s.counter[0] + t.counter[0] <= before,
	       "no page fault is charged twice (%llu in all)", (unsigned long long)before);
	tap_eq(s.status[0], MEMWATCH_STATUS_OK, "a counter that was always running is OK");
	tap_ok(s.counter[1] > 0, "a second counter counts independently");
	tap_eq(s.status[1], MEMWATCH_STATUS_OK, "a second counter is OK");
	tap_eq(s.running_ppm, 1000000, "counters that were always running are not scaled");
	tap_eq(s.status[2], MEMWATCH_STATUS_UNAVAILABLE,
	       "a counter without an event is unavailable");
	tap_eq(s.counter[2], 0, "a counter without an event has the value 0");
	tap_eq(s.status[3], MEMWATCH_STATUS_UNAVAILABLE,
	       "a counter that is known to be missing is unavailable");

	before = read_faults();
	run_switch(counter_now += 1000, a, b);
	make_faults(2000);
	run_tick(counter_now += 1000, b);
	before = read_faults() - before;
	find_samples(b, &t, a, &s);
	tap_ok(t.counter[0] >= 2000, "the counts of the next slot start at 0: charged (%llu)",
	       t.counter[0]);
	tap_ok(t.counter[0] <= before, "the counts of the next slot start at 0: limit (%llu)",
	       (unsigned long long)before);
	tap_ok(rig_failures(&rig, MW_RELAY_FAIL_READ + MEMWATCH_COUNTER_LLC_REFERENCES) >= 5,
	       "each attempt to read a counter without an event is counted");
	tap_eq(rig_failures(&rig, MW_RELAY_FAIL_READ + MEMWATCH_COUNTER_LLC_MISSES), 0,
	       "a counter that is known to be missing is not read");
}

/* Events that are reset, removed, added again and disabled. */
static void test_counter_failures(uint64_t owner)
{
	struct memwatch_record_sample s;
	uint64_t before;

	ioctl(faults_fd, PERF_EVENT_IOC_RESET, 0);
	s = check_tick(1000, owner, MEMWATCH_STATUS_ERROR, "a counter that went backwards");
	tap_eq(s.counter[0], 0, "a counter that went backwards: value");
	tap_eq(rig_failures(&rig, MW_RELAY_FAIL_COUNTER_BACK), 1,
	       "a counter that went backwards is counted");
	make_faults(100);
	s = check_tick(1000, owner, MEMWATCH_STATUS_OK, "a counter after it went backwards");
	tap_ok(s.counter[0] >= 100, "a counter that went backwards continues (%llu)", s.counter[0]);
	tap_ok(s.counter[0] <= read_faults(), "a counter that went backwards has a new baseline");

	bpf_map_delete_elem(bpf_map__fd(rig.skel->maps.cycles), &cpu);
	check_tick(1000, owner, MEMWATCH_STATUS_UNAVAILABLE, "an event that was removed");
	make_faults(700);
	bpf_map_update_elem(bpf_map__fd(rig.skel->maps.cycles), &cpu, &faults_fd, BPF_ANY);
	before = read_faults();
	s = check_tick(1000, owner, MEMWATCH_STATUS_FIRST, "an event that was added again");
	tap_eq(s.counter[0], 0, "the first reading of an event is no increment");
	make_faults(50);
	s = check_tick(1000, owner, MEMWATCH_STATUS_OK, "the second reading of an event");
	before = read_faults() - before;
	tap_ok(s.counter[0] >= 50, "the second reading of an event is an increment (%llu)",
	       s.counter[0]);
	tap_ok(s.counter[0] <= before, "the increment starts at the first reading (%llu)",
	       (unsigned long long)before);

	ioctl(faults_fd, PERF_EVENT_IOC_DISABLE, 0);
	run_tick(counter_now += 1000, owner);
	make_faults(50);
	check_tick(1000000, owner, MEMWATCH_STATUS_UNAVAILABLE, "an event that is disabled");
}

static void test_counters(void)
{
	const uint64_t a = OWNER(1, 1), b = OWNER(2, 1);

	if (!open_rig(MW_RELAY_SLOT, 7, 512, 8))
		return;
	counter_now = 1000000;
	faults_fd = open_counter(rig.skel->maps.cycles, PERF_COUNT_SW_PAGE_FAULTS);
	clock_fd = open_counter(rig.skel->maps.instructions, PERF_COUNT_SW_CPU_CLOCK);
	if (faults_fd < 0 || clock_fd < 0) {
		tap_skip("counters", "software events of a CPU are not permitted");
	} else {
		test_counter_owners(a, b);
		test_counter_failures(b);
	}
	close(faults_fd);
	close(clock_fd);
	rig_close(&rig);
}

#endif /* _MW_SELFTESTS_BPF_NATIVE_COUNTERS_H */
