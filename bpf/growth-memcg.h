/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The nearest memory limit of a cgroup and its ancestors, read in the kernel: limit, usage
 * and what would be reclaimed first. Memory that the kernel reclaims before it kills does
 * not count as used: reclaimable slab and the page cache of files, but not tmpfs and shared
 * memory, whose pages are on the anonymous LRU lists. The kernel adds up the reclaimable
 * memory every two seconds.
 */
#ifndef _MW_GROWTH_MEMCG_H
#define _MW_GROWTH_MEMCG_H

#include <linux/memwatch.h>

#include "growth-room.h"
#include "kernel.h"

/* Levels of the hierarchy that are read. */
#define MW_GROWTH_MEMCG_DEPTH 32

/* A limit of so many pages or more, 4 PiB with pages of 4 KiB, is none. */
#define MW_GROWTH_MEMCG_UNLIMITED (1ULL << 40)

/**
 * struct mw_growth_bound - the nearest limit of a cgroup, and what it was read with
 * @memcg: address of the cgroup's &struct mem_cgroup, 0 if there is none
 * @room: what the cgroup and its ancestors have left
 * @round: the round in which this was read
 * @legacy: 1 for a cgroup of version 1
 * @deep: 1 if not all ancestors were read
 */
struct mw_growth_bound {
	__u64 memcg;
	struct mw_growth_room room;
	__u32 round;
	__u32 legacy;
	__u32 deep;
};

#define MW_MEMCG_READ(to, from) bpf_probe_read_kernel((to), sizeof(*(to)), (from))

/* The value of a member of &struct mem_cgroup that counts pages. */
#define MW_MEMCG_COUNTER(memcg, member)                                                            \
	({                                                                                         \
		__u64 value_ = 0;                                                                  \
		MW_MEMCG_READ(&value_, &((struct mem_cgroup *)(memcg))->member);                   \
		value_;                                                                            \
	})

/* The address of the memory cgroup that @task belongs to, or 0. */
static __always_inline __u64 mw_growth_memcg_of(struct task_struct *task)
{
	struct css_set *cgroups = task->cgroups;
	__u64 css = 0;

	if (!bpf_core_enum_value_exists(enum cgroup_subsys_id, memory_cgrp_id) ||
	    !bpf_core_field_exists(((struct mem_cgroup *)0)->css))
		return 0;
	MW_MEMCG_READ(&css, (__u64 *)((char *)cgroups + bpf_core_field_offset(cgroups->subsys)) +
				    bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id));
	return css ? css - bpf_core_field_offset(((struct mem_cgroup *)0)->css) : 0;
}

/* Returns 1 if the memory controller is in a hierarchy of version 1. */
static __always_inline __u32 mw_growth_memcg_is_legacy(struct task_struct *task, __u64 memcg)
{
	struct cgroup_root *root = task->cgroups->dfl_cgrp->root, *own = NULL;
	struct cgroup *cgroup = NULL;

	MW_MEMCG_READ(&cgroup, &((struct mem_cgroup *)memcg)->css.cgroup);
	MW_MEMCG_READ(&own, &cgroup->root);
	return own != root;
}

/* The address of the sums of a cgroup, or 0. */
static __always_inline __u64 mw_growth_memcg_stats(__u64 memcg)
{
	struct memcg_vmstats *stats = NULL;

	if (bpf_core_field_exists(((struct mem_cgroup *)0)->vmstats)) {
		MW_MEMCG_READ(&stats, &((struct mem_cgroup *)memcg)->vmstats);
		return stats ? (__u64)stats->state : 0;
	}
	if (bpf_core_field_exists(((struct mem_cgroup___embedded *)0)->vmstats))
		return (__u64)((struct mem_cgroup___embedded *)memcg)->vmstats.state;
	if (bpf_core_field_exists(((struct mem_cgroup___array *)0)->vmstats))
		return (__u64)((struct mem_cgroup___array *)memcg)->vmstats;
	return 0;
}

static __always_inline __u64 mw_growth_memcg_sum(__u64 stats, __u64 item)
{
	__s64 value = 0;

	MW_MEMCG_READ(&value, (__s64 *)stats + item);
	/* A sum may be negative for a moment. */
	return value > 0 ? value : 0;
}

/* Pages that would be reclaimed before the cgroup is at its limit. */
static __always_inline __u64 mw_growth_memcg_reclaimable(__u64 memcg, __u32 page_shift)
{
	__u64 stats = mw_growth_memcg_stats(memcg);

	if (!stats)
		return 0;
	return mw_growth_memcg_sum(stats,
				   bpf_core_enum_value(enum node_stat_item, NR_INACTIVE_FILE)) +
	       mw_growth_memcg_sum(stats,
				   bpf_core_enum_value(enum node_stat_item, NR_ACTIVE_FILE)) +
	       (mw_growth_memcg_sum(
			stats, bpf_core_enum_value(enum node_stat_item, NR_SLAB_RECLAIMABLE_B)) >>
		(page_shift & 63));
}

static __always_inline __u64 mw_growth_memcg_sub(__u64 a, __u64 b)
{
	return a > b ? a - b : 0;
}

/* Lowers @room to what one cgroup has left, which is one of version 1 if it is @legacy. */
static __always_inline void mw_growth_memcg_read(struct mw_growth_room *room, __u64 memcg,
						 __u32 legacy, __u32 page_shift)
{
	__u64 max = MW_MEMCG_COUNTER(memcg, memory.max),
	      high = MW_MEMCG_COUNTER(memcg, memory.high);
	__u64 swap_max = MW_MEMCG_COUNTER(memcg, swap.max),
	      swap_used = MW_MEMCG_COUNTER(memcg, swap.usage.counter);
	__u64 used, files;

	if (!legacy)
		mw_growth_room_lower_swap(room, mw_growth_memcg_sub(swap_max, swap_used));
	if (max >= MW_GROWTH_MEMCG_UNLIMITED && high >= MW_GROWTH_MEMCG_UNLIMITED &&
	    (!legacy || swap_max >= MW_GROWTH_MEMCG_UNLIMITED))
		return;
	files = mw_growth_memcg_reclaimable(memcg, page_shift);
	used = mw_growth_memcg_sub(MW_MEMCG_COUNTER(memcg, memory.usage.counter), files);
	/* The counter is that of memory and swap together. */
	if (legacy && swap_max < MW_GROWTH_MEMCG_UNLIMITED)
		mw_growth_room_lower_both(room, mw_growth_memcg_sub(swap_max + files, swap_used));
	if (max < MW_GROWTH_MEMCG_UNLIMITED)
		mw_growth_room_lower(room, mw_growth_memcg_sub(max, used),
				     MEMWATCH_LIMIT_CGROUP_MAX);
	if (high < MW_GROWTH_MEMCG_UNLIMITED)
		mw_growth_room_lower(room, mw_growth_memcg_sub(high, used),
				     MEMWATCH_LIMIT_CGROUP_HIGH);
}

/* Sets @bound to what its cgroup and the ancestors have left. The machine has @swap left. */
static __always_inline void mw_growth_memcg_walk(struct mw_growth_bound *bound, __u64 swap,
						 __u32 page_shift)
{
	__u64 memcg = bound->memcg, counter;
	__u32 i;

	mw_growth_room_init(&bound->room, swap);
	bound->deep = 0;
	for (i = 0; i < MW_GROWTH_MEMCG_DEPTH; i++) {
		if (!memcg)
			return;
		mw_growth_memcg_read(&bound->room, memcg, bound->legacy, page_shift);
		counter = MW_MEMCG_COUNTER(memcg, memory.parent);
		memcg = counter ? counter - bpf_core_field_offset(((struct mem_cgroup *)0)->memory)
				: 0;
	}
	bound->deep = memcg != 0;
}

#endif /* _MW_GROWTH_MEMCG_H */
