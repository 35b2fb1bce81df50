/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * How much may grow in a cgroup until a limit of it, or of a cgroup above it, is reached.
 *
 * What grows is charged to the cgroup and all above it, and must fit into the memory that each of
 * them has left. What does not fit is swapped out, as long as there is swap on the machine and in
 * the limit of the cgroup and of all above it (mem_cgroup_get_nr_swap_pages() of the kernel). So
 * the least memory that is left and the least swap that is left add up, wherever in the hierarchy
 * each of them is. Others below the same limit may make room by being swapped out themselves;
 * nobody can rely on that, so it is not counted.
 *
 * In version 1 a limit of swap is one for memory and swap together, and only the machine limits
 * swap alone.
 */
#ifndef _MW_GROWTH_ROOM_H
#define _MW_GROWTH_ROOM_H

#include <linux/memwatch.h>

#include "growth-math.h"

/* There is no limit. */
#define MW_GROWTH_ROOM_ENDLESS (~0ULL)

/**
 * struct mw_growth_room - what is left below limits, in pages of the machine or
 *	MW_GROWTH_ROOM_ENDLESS
 * @memory: memory
 * @swap: swap
 * @both: memory and swap together
 * @limit: &enum memwatch_limit that @memory or @both is the distance to
 * @reserved: zero
 */
struct mw_growth_room {
	__u64 memory;
	__u64 swap;
	__u64 both;
	__u32 limit;
	__u32 reserved;
};

/* No cgroup has limits, and the machine has @swap left. */
MW_INLINE void mw_growth_room_init(struct mw_growth_room *room, __u64 swap)
{
	room->memory = room->both = MW_GROWTH_ROOM_ENDLESS;
	room->swap = swap;
	room->limit = MEMWATCH_LIMIT_NONE;
	room->reserved = 0;
}

/* A cgroup of @room has @memory left below @limit. */
MW_INLINE void mw_growth_room_lower(struct mw_growth_room *room, __u64 memory, __u32 limit)
{
	if (memory >= room->memory)
		return;
	room->memory = memory;
	room->limit = limit;
}

/* A cgroup of @room has @swap left. */
MW_INLINE void mw_growth_room_lower_swap(struct mw_growth_room *room, __u64 swap)
{
	if (swap < room->swap)
		room->swap = swap;
}

/* A cgroup of @room, of version 1, has @both left. */
MW_INLINE void mw_growth_room_lower_both(struct mw_growth_room *room, __u64 both)
{
	if (both >= room->both)
		return;
	room->both = both;
	room->limit = MEMWATCH_LIMIT_CGROUP_MAX;
}

/* Lowers @room to what the cgroup above it has left. */
MW_INLINE void mw_growth_room_ascend(struct mw_growth_room *room,
				     const struct mw_growth_room *above)
{
	mw_growth_room_lower(room, above->memory, above->limit);
	mw_growth_room_lower_swap(room, above->swap);
	mw_growth_room_lower_both(room, above->both);
}

/* How much may grow. */
MW_INLINE __u64 mw_growth_room_pages(const struct mw_growth_room *room)
{
	__u64 pages = room->memory + room->swap;

	/* More than all that there can be. */
	if (pages < room->swap)
		pages = MW_GROWTH_ROOM_ENDLESS;
	return pages < room->both ? pages : room->both;
}

#endif /* _MW_GROWTH_ROOM_H */
