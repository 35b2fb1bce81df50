/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The maps of the growth programs. What they contain is in growth-maps.h, which the library
 * includes too.
 */
#ifndef _MW_GROWTH_STORAGE_H
#define _MW_GROWTH_STORAGE_H

#include "growth-maps.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
} records SEC(".maps");

/* The library sets max_entries of processes and histories. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 10000);
	__type(key, struct mw_growth_key);
	__type(value, struct mw_growth_process);
} processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 10000);
	__type(key, struct mw_growth_key);
	__type(value, struct mw_growth_history);
} histories SEC(".maps");

/* What the library knows of the pages of suspects, see touch.h. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MW_GROWTH_SUSPECTS_MAX);
	__type(key, struct mw_growth_key);
	__type(value, struct mw_growth_touch);
} touches SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MW_GROWTH_PROGRAMS);
	__type(key, struct mw_growth_program);
	__type(value, struct mw_growth_reached);
} programs SEC(".maps");

/* But for the exits only on_task uses it: user space may change it between two rounds. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MW_GROWTH_OWNERS);
	__type(key, __u32);
	__type(value, struct mw_growth_owner);
} owners SEC(".maps");

/*
 * The library sets max_entries to the number of possible CPUs. Such a map begins at a
 * page, so no two CPUs share a cache line.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct mw_growth_filter);
} filters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MW_GROWTH_COUNT_MAX);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

/*
 * The copies that the detectors work on: a global function cannot take a pointer to a
 * map value, so it looks up the scratch of its CPU. The iterator is never interrupted by
 * another one on the same CPU.
 */
struct scratch {
	struct mw_growth_process process;
	struct mw_growth_history history;
	struct mw_growth_sample sample;
	struct mw_growth_bound bound;
	struct mw_growth_program program; /* of the process */
	struct mw_growth_reached reached; /* by this program */
	__u32 owner;			  /* of the task that the iterator is at */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

/* The state of on_test. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct mw_growth_test);
} test SEC(".maps");

static __noinline int count_event(__u32 what)
{
	__u64 *value = bpf_map_lookup_elem(&counts, &what);

	if (value)
		__sync_fetch_and_add(value, 1);
	return 0;
}

static __always_inline struct scratch *get_scratch(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&scratches, &zero);
}

/*
 * Recalls or remembers what the program of the process in the scratch does. Before 5.17 there may
 * be bytes of an older name behind the end of a name.
 */
static __noinline int note_program(struct scratch *s, __u32 event)
{
	struct mw_growth *g = &s->process.growth;
	struct mw_growth_reached *before;

	__builtin_memset(&s->program, 0, sizeof(s->program));
	s->program.owner = s->owner;
	bpf_probe_read_kernel_str(s->program.comm, sizeof(s->program.comm), s->process.comm);
	before = bpf_map_lookup_elem(&programs, &s->program);
	mw_growth_program_recall(g, event, before);
	if (before && mw_growth_program_settles(g, event, before)) {
		bpf_map_delete_elem(&programs, &s->program);
	} else if (mw_growth_program_reaches(g)) {
		mw_growth_program_remember(g, &s->reached);
		bpf_map_update_elem(&programs, &s->program, &s->reached, BPF_ANY);
	}
	return 0;
}

#endif /* _MW_GROWTH_STORAGE_H */
