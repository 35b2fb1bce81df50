/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The state of the relay on this CPU, and its failure counters. Included by the programs.
 */
#ifndef _MW_RELAY_CPU_H
#define _MW_RELAY_CPU_H

#define ENOENT	   2
#define ENOSPC	   28
#define EOPNOTSUPP 95

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct mw_relay_cpu);
} current SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MW_RELAY_FAIL_MAX);
	__type(key, __u32);
	__type(value, __u64);
} failures SEC(".maps");

static __always_inline struct mw_relay_cpu *this_cpu(void)
{
	__u32 key = 0;

	return bpf_map_lookup_elem(&current, &key);
}

/* Atomic, because it is called from all contexts. */
static __noinline int count_failure(__u32 what)
{
	__u64 *count = bpf_map_lookup_elem(&failures, &what);

	if (count)
		__sync_fetch_and_add(count, 1);
	return 0;
}

#endif /* _MW_RELAY_CPU_H */
