/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The map and the settings that groups.bpf.c and the library share.
 */
#ifndef _MW_GROUPS_MAPS_H
#define _MW_GROUPS_MAPS_H

#include <linux/types.h>

#include "growth-room.h"

/* Cgroups that are sampled. */
#define MW_GROUPS_MAX 16384U

/**
 * struct mw_group_memory - value of the map "groups", whose key is the id of a cgroup in the
 *	hierarchy of the memory controller. All in pages of the machine, each with what is below
 * @round: the round in which it was read
 * @reserved: zero
 * @parent: id of the cgroup above; 0 if that is the root
 * @room: what it has left itself, without those above
 * @anon: anonymous memory
 * @swap: memory in swap
 * @shmem: tmpfs and shared memory
 * @kernel: memory of the kernel but for reclaimable slab and sockets
 * @slab: slab that cannot be reclaimed
 * @sock: buffers of sockets
 * @pagetables: page tables
 * @lru: all memory on the lists of anonymous memory: about @anon + @shmem
 */
struct mw_group_memory {
	__u32 round;
	__u32 reserved;
	__u64 parent;
	struct mw_growth_room room;
	__u64 anon;
	__u64 swap;
	__u64 shmem;
	__u64 kernel;
	__u64 slab;
	__u64 sock;
	__u64 pagetables;
	__u64 lru;
};

/**
 * struct mw_groups_control - settings, written by the library between rounds
 * @round: number of the round; never 0
 * @page_shift: page shift of the machine
 * @swap: free swap, in pages of the machine
 * @unsure: the positions of the sums are not those that are known: only @lru, @slab and the rest
 *	of what is charged, as @kernel, are read
 * @full: counted by the program: how often in this round a cgroup did not fit
 */
struct mw_groups_control {
	__u32 round;
	__u32 page_shift;
	__u32 swap;
	__u32 unsure;
	__u32 full;
};

#endif /* _MW_GROUPS_MAPS_H */
