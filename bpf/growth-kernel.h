/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The members of kernel types that growth.bpf.c reads. libbpf relocates each access to
 * the offset that the member has in the running kernel (CO-RE).
 */
#ifndef _MW_GROWTH_KERNEL_H
#define _MW_GROWTH_KERNEL_H

#include <linux/types.h>

#define PF_KTHREAD 0x00200000
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

struct cgroup {
	struct kernfs_node *kn;
} KERNEL;

struct css_set {
	struct cgroup *dfl_cgrp;
} KERNEL;

struct rlimit {
	__u64 rlim_cur;
} KERNEL;

struct signal_struct {
	atomic_t live;
	struct rlimit rlim[16];
} KERNEL;

struct mm_struct;

struct task_struct {
	unsigned int flags;
	int pid;
	int tgid;
	struct task_struct *group_leader;
	struct mm_struct *mm;
	__u64 start_boottime;
	__u64 self_exec_id;
	struct signal_struct *signal;
	struct css_set *cgroups;
	char comm[16];
} KERNEL;

struct mm_struct {
	unsigned long total_vm;
	unsigned long data_vm;
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

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
} KERNEL;

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} KERNEL;

#endif /* _MW_GROWTH_KERNEL_H */
