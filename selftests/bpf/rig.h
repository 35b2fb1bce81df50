/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Loads the relay and reads its rings. The reader shares no code with the library, so that
 * tests of the relay do not depend on it.
 */
#ifndef _MW_SELFTESTS_BPF_RIG_H
#define _MW_SELFTESTS_BPF_RIG_H

#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "../../bpf/relay.h"
#include "../tap.h"
#include "relay.skel.h"

union rig_record {
	struct memwatch_record_header h;
	struct memwatch_record_sample sample;
	struct memwatch_record_tick tick;
	struct memwatch_record_rmid rmid;
	struct memwatch_record_dump dump;
	struct memwatch_record_cpu cpu;
	struct memwatch_record_rdt rdt;
};

struct rig_ring {
	int fd;
	struct perf_event_mmap_page *page;
	size_t bytes;	   /* size of the data */
	uint64_t lost;	   /* records that the kernel reported as lost */
	uint64_t received; /* records that were read */
	/* the batch that is being read */
	uint32_t records; /* number of records left */
	uint64_t at, end; /* positions */
	uint64_t time_ns; /* time of its records, 0 before the first one */
};

struct rig {
	struct relay_bpf *skel;
	struct bpf_link *links[16];
	int nr_cpus;
	struct rig_ring *rings;
};

static inline int rig_perf_event(struct perf_event_attr *attr, int cpu)
{
	attr->size = sizeof(*attr);
	return syscall(SYS_perf_event_open, attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Returns 0 or a negative errno; -ENODEV if the CPU is offline. */
static inline int rig_ring_open(struct rig *rig, int cpu, size_t pages)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_BPF_OUTPUT,
		.sample_type = PERF_SAMPLE_RAW,
		.sample_period = 1,
		.watermark = 1,
		.wakeup_watermark = 1 << 12,
	};
	struct rig_ring *ring = &rig->rings[cpu];
	size_t page = sysconf(_SC_PAGESIZE);

	memset(ring, 0, sizeof(*ring));
	ring->fd = rig_perf_event(&attr, cpu);
	if (ring->fd < 0)
		return -errno;
	ring->bytes = pages * page;
	ring->page = mmap(NULL, page + ring->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd,
			  0);
	if (ring->page == MAP_FAILED)
		return -errno;
	if (bpf_map_update_elem(bpf_map__fd(rig->skel->maps.records), &cpu, &ring->fd, BPF_ANY))
		return -errno;
	return ioctl(ring->fd, PERF_EVENT_IOC_ENABLE, 0) ? -errno : 0;
}

static inline void rig_ring_close(struct rig *rig, int cpu)
{
	struct rig_ring *ring = &rig->rings[cpu];

	bpf_map_delete_elem(bpf_map__fd(rig->skel->maps.records), &cpu);
	if (ring->page && ring->page != MAP_FAILED)
		munmap(ring->page, ring->bytes + sysconf(_SC_PAGESIZE));
	if (ring->fd > 0)
		close(ring->fd);
	ring->page = NULL;
	ring->fd = -1;
}

/* Loads the programs. Returns 0 or a negative errno. */
static inline int rig_load(struct rig *rig, enum mw_relay_mode mode, uint32_t counters,
			   uint32_t nr_rmids)
{
	memset(rig, 0, sizeof(*rig));
	rig->nr_cpus = libbpf_num_possible_cpus();
	rig->rings = calloc(rig->nr_cpus, sizeof(*rig->rings));
	rig->skel = relay_bpf__open();
	if (!rig->skel || !rig->rings)
		return -ENOMEM;
	rig->skel->rodata->mode = mode;
	rig->skel->rodata->counters = counters;
	bpf_map__set_max_entries(rig->skel->maps.sums, nr_rmids + 1);
	return relay_bpf__load(rig->skel);
}

/* Opens a ring of @pages for each CPU that is online. */
static inline int rig_open_rings(struct rig *rig, size_t pages)
{
	int err = 0;

	for (int cpu = 0; !err && cpu < rig->nr_cpus; cpu++) {
		err = rig_ring_open(rig, cpu, pages);
		if (err == -ENODEV)
			err = 0;
	}
	return err;
}

static inline void rig_close_rings(struct rig *rig)
{
	for (int cpu = 0; cpu < rig->nr_cpus; cpu++)
		rig_ring_close(rig, cpu);
}

static inline int rig_open(struct rig *rig, enum mw_relay_mode mode, uint32_t counters,
			   uint32_t nr_rmids, size_t pages)
{
	int err = rig_load(rig, mode, counters, nr_rmids);

	return err || !pages ? err : rig_open_rings(rig, pages);
}

static inline int rig_map_clear(const struct bpf_map *map, int nr_cpus)
{
	/* the kernel rounds per-CPU values up to 8 */
	void *zeros = calloc(nr_cpus, (bpf_map__value_size(map) + 7) & ~7U);
	int err = zeros ? 0 : -ENOMEM;

	for (uint32_t key = 0; !err && key < bpf_map__max_entries(map); key++)
		err = bpf_map_update_elem(bpf_map__fd(map), &key, zeros, BPF_ANY);
	free(zeros);
	return err;
}

/*
 * Makes the programs, which must be detached, forget what they have counted and kept, as if they
 * had been loaded anew. Returns 0 or a negative errno.
 */
static inline int rig_reset(struct rig *rig)
{
	struct bpf_map *map;
	int err = 0;

	bpf_object__for_each_map(map, rig->skel->obj)
	{
		if (!err && bpf_map__type(map) == BPF_MAP_TYPE_PERCPU_ARRAY)
			err = rig_map_clear(map, rig->nr_cpus);
	}
	rig->skel->bss->missing_rings = 0;
	return err;
}

/* Attaches in the order of the object and detaches in reverse order, see relay.bpf.c. */
static inline int rig_attach(struct rig *rig)
{
	struct bpf_program *prog;
	int i = 0;

	bpf_object__for_each_program (prog, rig->skel->obj) {
		rig->links[i] = bpf_program__attach(prog);
		if (!rig->links[i++])
			return -errno;
	}
	return 0;
}

static inline void rig_detach(struct rig *rig)
{
	for (int i = 15; i >= 0; i--) {
		bpf_link__destroy(rig->links[i]);
		rig->links[i] = NULL;
	}
}

static inline void rig_close(struct rig *rig)
{
	rig_detach(rig);
	rig_close_rings(rig);
	relay_bpf__destroy(rig->skel);
	free(rig->rings);
	memset(rig, 0, sizeof(*rig));
}

static inline void rig_ring_copy(const struct rig_ring *ring, uint64_t from, void *to, size_t bytes)
{
	const uint8_t *data = (const uint8_t *)ring->page + sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)to)[i] = data[(from + i) & (ring->bytes - 1)];
}

/*
 * Reads the next record of the batch. Returns 1, or -1 if the batch is not valid: all records
 * must be aligned and have the same time, and the last one must end where the batch ends.
 */
static inline int rig_next_in_batch(struct rig_ring *ring, union rig_record *rec)
{
	size_t left = ring->end - ring->at;

	memset(rec, 0, sizeof(*rec));
	rig_ring_copy(ring, ring->at, rec, left < sizeof(*rec) ? left : sizeof(*rec));
	if (ring->at % 8 || left < sizeof(rec->h) || rec->h.size < sizeof(rec->h) ||
	    rec->h.size > left)
		return -1;
	ring->received++;
	if (!ring->time_ns)
		ring->time_ns = rec->h.time_ns;
	ring->at += rec->h.size;
	if (rec->h.time_ns != ring->time_ns || (!--ring->records && ring->at != ring->end))
		return -1;
	if (!ring->records)
		__atomic_store_n(&ring->page->data_tail, ring->end, __ATOMIC_RELEASE);
	return 1;
}

/* Reads the next record of the CPU: 1, 0 if there is none, or -1 if the ring is not valid. */
static inline int rig_next(struct rig *rig, int cpu, union rig_record *rec)
{
	struct rig_ring *ring = &rig->rings[cpu];
	struct perf_event_header header;
	uint64_t head, tail, lost[2];
	uint32_t before[2]; /* length of what follows, number of records */

	if (!ring->page || ring->page == MAP_FAILED)
		return 0;
	while (!ring->records) {
		head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
		tail = ring->page->data_tail;
		if (head == tail)
			return 0;
		rig_ring_copy(ring, tail, &header, sizeof(header));
		if (header.size < sizeof(header) || header.size > head - tail)
			return -1;
		if (header.type == PERF_RECORD_LOST) {
			rig_ring_copy(ring, tail + sizeof(header), lost, sizeof(lost));
			ring->lost += lost[1];
		}
		if (header.type != PERF_RECORD_SAMPLE) {
			__atomic_store_n(&ring->page->data_tail, tail + header.size,
					 __ATOMIC_RELEASE);
			continue;
		}
		rig_ring_copy(ring, tail + sizeof(header), before, sizeof(before));
		if (!before[1] || header.size != sizeof(header) + sizeof(before[0]) + before[0])
			return -1;
		ring->records = before[1];
		ring->at = tail + sizeof(header) + sizeof(before);
		ring->end = tail + header.size;
		ring->time_ns = 0;
	}
	return rig_next_in_batch(ring, rec);
}

/* The state of the relay on a CPU. */
static inline struct mw_relay_cpu rig_cpu(struct rig *rig, int cpu)
{
	struct mw_relay_cpu *all = calloc(rig->nr_cpus, sizeof(*all)), one = { 0 };
	uint32_t key = 0;

	_Static_assert(sizeof(*all) % 8 == 0, "the kernel rounds per-CPU values up to 8");
	if (all && !bpf_map_lookup_elem(bpf_map__fd(rig->skel->maps.current), &key, all))
		one = all[cpu];
	free(all);
	return one;
}

/* A failure counter, summed over all CPUs. */
static inline uint64_t rig_failures(struct rig *rig, uint32_t what)
{
	uint64_t *all = calloc(rig->nr_cpus, sizeof(*all)), sum = 0;

	if (all && !bpf_map_lookup_elem(bpf_map__fd(rig->skel->maps.failures), &what, all))
		for (int cpu = 0; cpu < rig->nr_cpus; cpu++)
			sum += all[cpu];
	free(all);
	return sum;
}

static inline uint64_t rig_failures_all(struct rig *rig)
{
	uint64_t sum = 0;

	for (uint32_t what = 0; what < MW_RELAY_FAIL_MAX; what++)
		sum += rig_failures(rig, what);
	return sum;
}

/* Prints what the verifier needed for each program: processed instructions, time, stack. */
static inline int rig_verifier_stats(void)
{
	struct relay_bpf *skel = relay_bpf__open();
	struct bpf_program *prog;
	static char log[16][1 << 16];
	int i = 0, err;

	if (!skel)
		return -ENOMEM;
	bpf_object__for_each_program (prog, skel->obj) {
		if (i < 16) {
			bpf_program__set_log_buf(prog, log[i], sizeof(log[i]));
			bpf_program__set_log_level(prog, 4);
			i++;
		}
	}
	err = relay_bpf__load(skel);
	i = 0;
	bpf_object__for_each_program (prog, skel->obj) {
		char *processed = i < 16 ? strstr(log[i], "processed ") : NULL;

		if (processed)
			processed[strcspn(processed, "(")] = '\0';
		tap_note("verifier %s: %zu instructions, %s", bpf_program__name(prog),
			 bpf_program__insn_cnt(prog), processed ? processed : "no statistics");
		i++;
	}
	relay_bpf__destroy(skel);
	return err;
}

#endif /* _MW_SELFTESTS_BPF_RIG_H */
