/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The members of kernel types that the programs read. libbpf relocates each access to
 * the offset that the member has in the running kernel (CO-RE).
 */
#ifndef _MW_KERNEL_H
#define _MW_KERNEL_H

#include <linux/types.h>

#define PF_EXITING 0x00000004
#define PF_KTHREAD 0x00200000
#define TASK_DEAD  0x00000080
#define ENOENT	   2
#define EOPNOTSUPP 95
#define NR_MEMBERS 4 /* MM_FILEPAGES, MM_ANONPAGES, MM_SWAPENTS, MM_SHMEMPAGES */
#define RLIM_DATA  2
#define RLIM_AS	   9

#define KERNEL	   __attribute__((preserve_access_index))

typedef struct {
	int counter;
} atomic_t;

typedef struct {
	__s64 counter;
} atomic_long_t;

struct percpu_counter {
	__s64 count;
} KERNEL;

struct kernfs_node {
	__u64 id;
} KERNEL;

struct cgroup_root;

struct cgroup {
	struct kernfs_node *kn;
	struct cgroup_root *root;
} KERNEL;

struct cgroup_subsys_state {
	struct cgroup *cgroup;
} KERNEL;

enum cgroup_subsys_id {
	memory_cgrp_id = 4,
};

struct css_set {
	struct cgroup_subsys_state *subsys[16];
	struct cgroup *dfl_cgrp;
} KERNEL;

typedef struct {
	__u32 val;
} kuid_t;

struct user_namespace {
	struct user_namespace *parent;
	int level;
	kuid_t owner;
} KERNEL;

struct cred {
	kuid_t uid;
	struct user_namespace *user_ns;
} KERNEL;

struct rlimit {
	__u64 rlim_cur;
} KERNEL;

struct signal_struct {
	atomic_t live;
	struct rlimit rlim[16];
} KERNEL;

struct mm_struct;

struct rq {
	__u64 clock;
	__u64 clock_task; /* less interrupts and what the host has stolen, if that is counted */
	__u64 prev_steal_time_rq; /* with CONFIG_PARAVIRT_TIME_ACCOUNTING only */
} KERNEL;

struct cfs_rq {
	struct rq *rq;
} KERNEL;

struct sched_entity {
	struct cfs_rq *cfs_rq;
	__u64 exec_start; /* clock_task when sum_exec_runtime was updated */
	__u64 sum_exec_runtime;
	__u64 prev_sum_exec_runtime; /* the same when it was switched in */
} KERNEL;

/* The first word of a page has its flags; its type changed in 6.18. */
struct page {
	unsigned long compound_head; /* of a tail page: that of its folio, plus 1 */
	void *mapping;		     /* for anonymous memory an odd number */
	atomic_t _mapcount;	     /* page tables that map it, minus 1 */
} KERNEL;

/* From 7.1 on the word is an address, or a mask that makes that of the folio of the page's. */
struct page___info {
	unsigned long compound_info;
} KERNEL;

struct vm_struct {
	void *addr;
	struct page **pages;
} KERNEL;

enum pageflags {
	PG_referenced = 2,
	PG_active = 5,
	PG_young = 28, /* with CONFIG_PAGE_IDLE_FLAG only */
};

/* What is written into a page table where there is no memory; from 5.19 on. */
typedef unsigned long pte_marker;

struct task_struct {
	struct sched_entity se;
	unsigned int flags;
	int pid;
	int tgid;
	unsigned int __state;
	unsigned int in_execve : 1;
	struct task_struct *group_leader;
	struct task_struct *real_parent;
	struct mm_struct *mm;
	__u64 start_boottime;
	__u64 self_exec_id;
	struct signal_struct *signal;
	struct css_set *cgroups;
	const struct cred *real_cred;
	struct vm_struct *stack_vm_area; /* with CONFIG_VMAP_STACK only */
	char comm[16];
} KERNEL;

/* Up to 5.13: 2f064a59a11f ("sched: Change task_struct::state"). */
struct task_struct___old {
	long state;
} KERNEL;

enum cpuhp_state {
	CPUHP_AP_ACTIVE = 1,
};

struct kvm_steal_time {
	__u64 steal; /* for how long the host has not let the CPU run, in ns */
} KERNEL;

struct hrtimer {
	__u8 is_soft;
} KERNEL;

struct mm_struct {
	void *pgd;
	unsigned long total_vm;
	unsigned long data_vm;
	unsigned long brk;
	struct task_struct *owner; /* with CONFIG_MEMCG only */
} KERNEL;

/* The counters up to 6.1. */
struct mm_rss_stat {
	atomic_long_t count[NR_MEMBERS];
} KERNEL;

struct mm_struct___old {
	struct mm_rss_stat rss_stat;
} KERNEL;

/* The counters from 6.2 on: f1a7941243c1 ("mm: convert mm's rss stats into percpu_counter"). */
struct mm_struct___new {
	struct percpu_counter rss_stat[NR_MEMBERS];
} KERNEL;

/* All in pages. */
struct page_counter {
	atomic_long_t usage;
	unsigned long high;
	unsigned long max;
	struct page_counter *parent;
} KERNEL;

enum node_stat_item {
	NR_INACTIVE_ANON = 0,
	NR_ACTIVE_ANON = 1,
	NR_INACTIVE_FILE = 2,
	NR_ACTIVE_FILE = 3,
	NR_UNEVICTABLE = 4,
	NR_SLAB_RECLAIMABLE_B = 5,   /* in bytes */
	NR_SLAB_UNRECLAIMABLE_B = 6, /* in bytes */
	NR_ANON_MAPPED = 17,
	NR_SHMEM = 22,
	NR_KERNEL_STACK_KB = 36,
	NR_PAGETABLE = 38,	     /* from 5.11 on */
	NR_SECONDARY_PAGETABLE = 39, /* from 6.1 on */
	NR_PERCPU_B = 46,	     /* later than 7.0 */
};

enum memcg_stat_item {
	MEMCG_SWAP = 43,
	MEMCG_SOCK = 44,
	MEMCG_PERCPU_B = 45,
	MEMCG_KMEM = 47, /* from 5.18 on; all memory of the kernel, without sockets */
	MEMCG_NR_STAT = 48,
};

/*
 * Sums over the cgroup and all below it. From 6.11 on (ff48c71c26aa, "memcg: reduce memory
 * for the lruvec and memcg stats") an index is the position of the item in a list, which
 * begins with the items above in the order of their numbers.
 */
struct memcg_vmstats {
	long state[16];
} KERNEL;

struct mem_cgroup {
	struct cgroup_subsys_state css;
	struct page_counter memory;
	struct page_counter swap; /* cgroup v1: memsw, which is memory and swap together */
	struct memcg_vmstats *vmstats;
} KERNEL;

/* Up to 6.0: 410f8e82689e ("memcg: extract memcg_vmstats from struct mem_cgroup"). */
struct mem_cgroup___embedded {
	struct memcg_vmstats vmstats;
} KERNEL;

/* Up to 5.12: 2d146aa3aa84 ("mm: memcontrol: switch to rstat"). */
struct mem_cgroup___array {
	atomic_long_t vmstats[16];
} KERNEL;

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
} KERNEL;

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} KERNEL;

#endif /* _MW_KERNEL_H */
