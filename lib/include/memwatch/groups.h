/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Growth that is seen in no process: the detectors of <memwatch/growth.h> over each cgroup and
 * over the machine. A pool of workers whose processes are replaced, a tmpfs that fills, sockets
 * and objects of the kernel grow where no process does.
 *
 * CLASSES. The memory that a cgroup or the machine cannot drop is divided into classes, each of
 * which is judged by itself: anonymous and swapped memory; tmpfs and shared memory; slab that
 * cannot be reclaimed; socket buffers; page tables; all other memory of the kernel. The page
 * cache of files and reclaimable slab belong to no class.
 *
 * BLAME. A notice or an alert names the deepest cgroup that holds three quarters of the growth.
 * If a single process holds them, there is none: the process is judged by itself. If a process
 * holds half of the growth, it is named.
 */
#ifndef MEMWATCH_GROUPS_H
#define MEMWATCH_GROUPS_H

#include <stddef.h>

#include <linux/memwatch.h>
#include <memwatch/growth.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * enum memwatch_growth_class - a part of the memory of a cgroup, see CLASSES
 * @MEMWATCH_CLASS_ANON: anonymous memory of processes, swapped memory included
 * @MEMWATCH_CLASS_SHMEM: tmpfs and shared memory
 * @MEMWATCH_CLASS_KERNEL: other memory of the kernel: stacks, buffers, memory of drivers
 * @MEMWATCH_CLASS_SLAB: objects of the kernel that cannot be reclaimed
 * @MEMWATCH_CLASS_SOCK: buffers of sockets
 * @MEMWATCH_CLASS_PAGETABLES: page tables
 * @MEMWATCH_CLASSES: number of classes
 */
enum memwatch_growth_class {
	MEMWATCH_CLASS_ANON = 0,
	MEMWATCH_CLASS_SHMEM = 1,
	MEMWATCH_CLASS_KERNEL = 2,
	MEMWATCH_CLASS_SLAB = 3,
	MEMWATCH_CLASS_SOCK = 4,
	MEMWATCH_CLASS_PAGETABLES = 5,
	MEMWATCH_CLASSES = 6,
};

/**
 * struct memwatch_growth_group - a class of memory of a cgroup or of the machine
 * @sz: sizeof(struct memwatch_growth_group)
 * @kind: &enum memwatch_growth_class
 * @by_tgid: process that holds most of the growth, or 0
 * @by_comm: its name
 * @path: the cgroup, as a path below the mount point, or "/" for the machine; valid until the
 *	next sample or round
 * @key: a number that is the same as long as the cgroup is judged
 */
struct memwatch_growth_group {
	size_t sz;
	__u32 kind;
	__u32 by_tgid;
	char by_comm[MEMWATCH_GROWTH_COMM_MAX];
	const char *path;
	__u64 key;
};

/**
 * memwatch_growth_get_group - get the verdict on a class of a cgroup
 * @growth: detectors
 * @index: from 0; a class of a cgroup that never had a MiB is left out
 * @ret: filled in; @sz is set by the caller
 * @row: the verdict; @sz is set by the caller. @tgid is 0, and @comm the name of the class
 *
 * Returns: 1; 0 if there is no such index; -EINVAL; -ENOMEM.
 * Since: 0.1
 */
int memwatch_growth_get_group(struct memwatch_growth *growth, unsigned int index,
			      struct memwatch_growth_group *ret, struct memwatch_growth_row *row);

/**
 * memwatch_growth_get_group_span - get a notice or an alert of a class of a cgroup
 * @growth: detectors
 * @index: the class, as for memwatch_growth_get_group()
 * @span: from 0, in the order of their beginnings
 * @ret: filled in; @sz is set by the caller
 *
 * Returns: 1; 0 if there is no such class or no such span; -EINVAL; -ENOMEM.
 * Since: 0.1
 */
int memwatch_growth_get_group_span(struct memwatch_growth *growth, unsigned int index,
				   unsigned int span, struct memwatch_growth_span *ret);

/**
 * memwatch_growth_class_name - name of a class, as in the JSON output
 * @kind: &enum memwatch_growth_class
 *
 * Returns: "anon", "shmem", "kernel", "slab", "sock", "pagetables", or "unknown".
 * Since: 0.1
 */
const char *memwatch_growth_class_name(unsigned int kind);

#ifdef __cplusplus
}
#endif

#endif /* MEMWATCH_GROUPS_H */
