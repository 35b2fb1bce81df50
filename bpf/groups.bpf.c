// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reads the memory of all cgroups that have processes, and of those above them, from the sums
 * that the kernel keeps. The library has made the kernel add them up before, and judges them.
 */
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "kernel.h"
#include "groups-maps.h"
#include "growth-memcg.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct mw_groups_control control = {};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MW_GROUPS_MAX);
	__type(key, __u64);
	__type(value, struct mw_group_memory);
} groups SEC(".maps");

/**
 * struct scratch - what is read at the moment
 * @memcg: address of the &struct mem_cgroup
 * @last: that of the task before
 * @id: its id
 * @legacy: 1 for a cgroup of version 1
 * @memory: what was read
 */
struct scratch {
	__u64 memcg;
	__u64 last;
	__u64 id;
	__u64 legacy;
	struct mw_group_memory memory;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

static __always_inline struct scratch *get_scratch(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&scratches, &zero);
}

/* Sums in the kernel's array; fewer than there are items from 6.11 on. */
#define POSITIONS (bpf_core_field_size(((struct memcg_vmstats *)0)->state) / sizeof(long))

/*
 * The position of an item, which is @item itself up to 6.10. Then the array has only the items that
 * are kept, first those of nodes in an order that has not changed since (ff48c71c26aa, "memcg:
 * reduce memory for the lruvec and memcg stats"), of which @position is the place; then those of
 * memcg, which are all kept. The library compares what is read with the LRU lists.
 */
static __always_inline __u64 position_of(__u64 item, __u64 position)
{
	const __u64 swap = bpf_core_enum_value(enum memcg_stat_item, MEMCG_SWAP),
		    end = bpf_core_enum_value(enum memcg_stat_item, MEMCG_NR_STAT);

	if (!bpf_core_type_exists(struct memcg_vmstats) || POSITIONS >= end)
		return item;
	if (item >= swap)
		return POSITIONS - (end - item);
	/* The item was moved to those of nodes, behind slab. */
	if (bpf_core_enum_value_exists(enum node_stat_item, NR_PERCPU_B))
		position++;
	return position;
}

#define ITEM(stats, type, name, position)                                                          \
	(bpf_core_enum_value_exists(enum type, name)                                               \
		 ? mw_growth_memcg_sum(                                                            \
			   stats, position_of(bpf_core_enum_value(enum type, name), position))     \
		 : 0)
#define NODE_ITEM(stats, name, position) ITEM(stats, node_stat_item, name, position)
#define MEMCG_ITEM(stats, name)		 ITEM(stats, memcg_stat_item, name, 0)
/* The first items have the same numbers and positions. */
#define FIRST_ITEM(stats, name)                                                                    \
	mw_growth_memcg_sum(stats, bpf_core_enum_value(enum node_stat_item, name))

/* Reads the classes of memory in the scratch. */
__noinline int groups_read_sums(void)
{
	struct scratch *s = get_scratch();
	__u64 stats, stack;
	__u32 shift;

	if (!s)
		return 0;
	shift = control.page_shift & 31;
	stats = mw_growth_memcg_stats(s->memcg);
	if (!stats)
		return 0;
	s->memory.anon = NODE_ITEM(stats, NR_ANON_MAPPED, 14);
	s->memory.shmem = NODE_ITEM(stats, NR_SHMEM, 19);
	s->memory.swap = MEMCG_ITEM(stats, MEMCG_SWAP);
	s->memory.sock = MEMCG_ITEM(stats, MEMCG_SOCK);
	stack = NODE_ITEM(stats, NR_KERNEL_STACK_KB, 23) << 10 >> shift;
	s->memory.pagetables = NODE_ITEM(stats, NR_PAGETABLE, 24) +
			       NODE_ITEM(stats, NR_SECONDARY_PAGETABLE, 25);
	s->memory.kernel = s->memory.slab + stack + s->memory.pagetables +
			   (MEMCG_ITEM(stats, MEMCG_PERCPU_B) >> shift);
	if (bpf_core_enum_value_exists(enum memcg_stat_item, MEMCG_KMEM))
		s->memory.kernel = mw_growth_memcg_sub(MEMCG_ITEM(stats, MEMCG_KMEM),
						       FIRST_ITEM(stats, NR_SLAB_RECLAIMABLE_B) >>
							       shift);
	return 0;
}

/* Reads what is known of every kernel, and all other memory as that of the kernel. */
__noinline int groups_read_first(void)
{
	struct scratch *s = get_scratch();
	__u64 stats, other;
	__u32 shift;

	if (!s)
		return 0;
	shift = control.page_shift & 31;
	stats = mw_growth_memcg_stats(s->memcg);
	if (!stats)
		return 0;
	s->memory.lru = FIRST_ITEM(stats, NR_INACTIVE_ANON) + FIRST_ITEM(stats, NR_ACTIVE_ANON) +
			FIRST_ITEM(stats, NR_UNEVICTABLE);
	s->memory.slab = FIRST_ITEM(stats, NR_SLAB_UNRECLAIMABLE_B) >> shift;
	if (!control.unsure)
		return 0;
	s->memory.anon = s->memory.lru;
	other = s->memory.lru + FIRST_ITEM(stats, NR_INACTIVE_FILE) +
		FIRST_ITEM(stats, NR_ACTIVE_FILE) +
		(FIRST_ITEM(stats, NR_SLAB_RECLAIMABLE_B) >> shift);
	s->memory.kernel = mw_growth_memcg_sub(MW_MEMCG_COUNTER(s->memcg, memory.usage.counter),
					       other);
	return 0;
}

/* Reads the limits in the scratch. */
__noinline int groups_read_limits(void)
{
	struct scratch *s = get_scratch();

	if (!s)
		return 0;
	mw_growth_room_init(&s->memory.room, control.swap);
	mw_growth_memcg_read(&s->memory.room, s->memcg, s->legacy, control.page_shift);
	return 0;
}

/* The id of a cgroup, which is the number of its directory. */
static __always_inline __u64 memcg_id(__u64 memcg)
{
	struct cgroup *cgroup = NULL;
	struct kernfs_node *kn = NULL;
	__u64 id = 0;

	MW_MEMCG_READ(&cgroup, &((struct mem_cgroup *)memcg)->css.cgroup);
	MW_MEMCG_READ(&kn, &cgroup->kn);
	MW_MEMCG_READ(&id, &kn->id);
	return id;
}

/* The address of the cgroup above, or 0 for the root. */
static __always_inline __u64 memcg_parent(__u64 memcg)
{
	__u64 counter = MW_MEMCG_COUNTER(memcg, memory.parent);

	return counter ? counter - bpf_core_field_offset(((struct mem_cgroup *)0)->memory) : 0;
}

/* Reads the cgroup in the scratch and goes on to the one above. Returns whether there is one. */
__noinline int groups_read_one(void)
{
	struct scratch *s = get_scratch();
	struct mw_group_memory *known;
	__u64 parent, above;

	if (!s)
		return 0;
	/* All that is not in a cgroup is in the root, which the machine stands for. */
	parent = memcg_parent(s->memcg);
	if (!parent)
		return 0;
	s->id = memcg_id(s->memcg);
	known = bpf_map_lookup_elem(&groups, &s->id);
	if (known && known->round == control.round)
		return 0;
	above = memcg_parent(parent);
	__builtin_memset(&s->memory, 0, sizeof(s->memory));
	s->memory.round = control.round;
	s->memory.parent = above ? memcg_id(parent) : 0;
	groups_read_first();
	if (!control.unsure)
		groups_read_sums();
	groups_read_limits();
	if (known)
		__builtin_memcpy(known, &s->memory, sizeof(*known));
	else if (bpf_map_update_elem(&groups, &s->id, &s->memory, BPF_ANY))
		control.full++;
	s->memcg = parent;
	return 1;
}

SEC("iter/task")
int on_member(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct scratch *s = get_scratch();
	__u64 memcg;
	__u32 i;

	if (!task || !s || task->pid != task->tgid)
		return 0;
	memcg = mw_growth_memcg_of(task);
	if (!memcg || (memcg == s->last && s->memory.round == control.round))
		return 0;
	s->last = s->memcg = memcg;
	s->legacy = mw_growth_memcg_is_legacy(task, memcg);
	for (i = 0; i < MW_GROWTH_MEMCG_DEPTH; i++)
		if (!groups_read_one())
			break;
	return 0;
}
