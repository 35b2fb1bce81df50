// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Samples the stacks of growing processes: when they touch a page that was not there, and when
 * they ask the kernel for memory. The programs are attached only while a process grows.
 *
 * One in N page faults is counted off by the kernel itself, by a software event of perf, so
 * that a page fault of any other process costs no more than this counter. The tracepoints of page
 * faults would run a program at each of them, and do not say whether the page was there in the end.
 *
 * A user's stack is copied as it is, with the registers: most programs and libraries of
 * distributions have no frame pointers, and then bpf_get_stack() returns little or leaves out the
 * function that called the allocator. The library unwinds the copy. The registers are those of
 * x86-64.
 */
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "kernel.h"
#include "where.h"

#define PAGE	      4096U
#define PROT_WRITE    2
#define MAP_ANONYMOUS 0x20
#define USER_MODE     3 /* the lower bits of the register cs */

/* As the kernel saves them (struct pt_regs). */
struct registers {
	__u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di;
	__u64 orig_ax, ip, cs, flags, sp, ss;
};

/* What the program of an event of perf gets (struct bpf_perf_event_data). */
struct fault {
	struct registers registers;
	__u64 sample_period;
	__u64 addr;
};

/* Page faults that were counted off, of all processes; the library reads it. */
__u64 faults = 0;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MW_GROWTH_SUSPECTS);
	__type(key, __u32);
	__type(value, struct mw_where_process);
} processes SEC(".maps");

/* A map of samples for each process that is followed; the library creates and removes them. */
struct samples {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MW_WHERE_MAX);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct mw_where_sample));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, MW_GROWTH_SUSPECTS);
	__type(key, __u32);
	__array(values, struct samples);
} slots SEC(".maps");

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The process that runs, if it is followed. */
static __always_inline struct mw_where_process *find_process(void)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct mw_where_process *process = bpf_map_lookup_elem(&processes, &tgid);
	struct task_struct *task, *leader = NULL;
	__u64 start = 0;

	if (!process)
		return NULL;
	task = (void *)bpf_get_current_task();
	bpf_core_read(&leader, sizeof(leader), &task->group_leader);
	bpf_core_read(&start, sizeof(start), &leader->start_boottime);
	return start == process->start_ns ? process : NULL;
}

static __always_inline int is_in_time(struct mw_where_process *process, int kind)
{
	__u64 now = bpf_ktime_get_ns();

	/* Another CPU may have begun a window since @now. */
	if ((__s64)(now - process->window_ns[kind]) >= (__s64)MW_WHERE_WINDOW_NS) {
		process->window_ns[kind] = now;
		process->taken[kind] = 0;
	}
	return process->taken[kind]++ < MW_WHERE_WINDOW_MAX;
}

/* Decides whether to keep one more sample, and where. Returns MW_WHERE_MAX if not. */
static __always_inline __u32 choose_place(struct mw_where_process *process, int kind)
{
	__u32 first = kind == MW_WHERE_TOUCHED ? 0 : MW_WHERE_TOUCHED_MAX;
	__u32 room = kind == MW_WHERE_TOUCHED ? MW_WHERE_TOUCHED_MAX : MW_WHERE_ASKED_MAX;
	__u64 n = process->seen[kind]++;

	if (n >= room)
		n = (__u64)bpf_get_prandom_u32() % (n + 1);
	return n < room ? first + (__u32)n : MW_WHERE_MAX;
}

static __always_inline struct mw_where_sample *find_place(struct mw_where_process *process,
							  int kind)
{
	__u32 slot = process->slot, place;
	void *samples;

	if (!is_in_time(process, kind))
		return NULL;
	place = choose_place(process, kind);
	if (place == MW_WHERE_MAX)
		return NULL;
	samples = bpf_map_lookup_elem(&slots, &slot);
	return samples ? bpf_map_lookup_elem(samples, &place) : NULL;
}

/* Near the beginning of a stack there may be no memory behind it: then up to the end of its page.
 */
static __always_inline void copy_stack(struct mw_where_sample *sample, __u64 sp)
{
	__u32 rest = PAGE - (sp & (PAGE - 1));

	sample->bytes = MW_WHERE_STACK;
	if (!bpf_probe_read_user(sample->stack, MW_WHERE_STACK, (void *)sp))
		return;
	sample->bytes = 0;
	if (rest < MW_WHERE_STACK &&
	    !bpf_probe_read_user(sample->stack, rest & (MW_WHERE_STACK - 1), (void *)sp))
		sample->bytes = rest;
}

static __always_inline void fill(struct mw_where_sample *sample, const struct registers *from,
				 __u64 address, __u64 weight)
{
	__u64 *to = sample->registers;

	to[0] = from->ax;
	to[1] = from->dx;
	to[2] = from->cx;
	to[3] = from->bx;
	to[4] = from->si;
	to[5] = from->di;
	to[6] = from->bp;
	to[7] = from->sp;
	to[8] = from->r8;
	to[9] = from->r9;
	to[10] = from->r10;
	to[11] = from->r11;
	to[12] = from->r12;
	to[13] = from->r13;
	to[14] = from->r14;
	to[15] = from->r15;
	to[16] = from->ip;
	sample->address = address;
	sample->weight = weight;
	copy_stack(sample, from->sp);
}

/*
 * The kernel touches memory for a process too: read() writes to its buffer. Then the registers
 * of the process are at the beginning of its kernel stack. Up to 5.14 there is no helper
 * that finds them, and such faults are left out.
 */
static __always_inline int read_registers(const struct fault *fault, struct registers *to)
{
	struct task_struct *task;

	*to = fault->registers;
	if (to->cs & USER_MODE)
		return 1;
	if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
		return 0;
	task = (void *)bpf_get_current_task_btf();
	return !bpf_probe_read_kernel(to, sizeof(*to), (void *)bpf_task_pt_regs(task));
}

SEC("perf_event")
int on_fault(struct fault *fault)
{
	struct mw_where_process *process = find_process();
	struct mw_where_sample *sample;
	struct registers registers;

	__sync_fetch_and_add(&faults, 1);
	if (!process || !read_registers(fault, &registers))
		return 0;
	sample = find_place(process, MW_WHERE_TOUCHED);
	if (sample)
		fill(sample, &registers, fault->addr, fault->sample_period);
	return 0;
}

static __always_inline int sample_call(struct mw_where_process *process,
				       const struct registers *registers, __u64 bytes)
{
	struct mw_where_sample *sample = find_place(process, MW_WHERE_ASKED);

	if (sample)
		fill(sample, registers, 0, bytes);
	return 0;
}

/* The argument of a system call's function is the registers of its caller. */
static __always_inline int read_arguments(__u64 *ctx, struct registers *to)
{
	return !bpf_probe_read_kernel(to, sizeof(*to), (void *)ctx[0]);
}

SEC("fentry/__x64_sys_brk")
int on_brk(__u64 *ctx)
{
	struct mw_where_process *process = find_process();
	struct registers registers;
	struct task_struct *task;
	struct mm_struct *mm = NULL;
	unsigned long end = 0;

	if (!process || !read_arguments(ctx, &registers))
		return 0;
	task = (void *)bpf_get_current_task();
	bpf_core_read(&mm, sizeof(mm), &task->mm);
	bpf_core_read(&end, sizeof(end), &mm->brk);
	if (registers.di <= end)
		return 0;
	return sample_call(process, &registers, registers.di - end);
}

SEC("fentry/__x64_sys_mmap")
int on_mmap(__u64 *ctx)
{
	struct mw_where_process *process = find_process();
	struct registers registers;

	if (!process || !read_arguments(ctx, &registers))
		return 0;
	/* What may not be written to is address space and no memory. */
	if (!(registers.dx & PROT_WRITE) || !(registers.r10 & MAP_ANONYMOUS) || !registers.si)
		return 0;
	return sample_call(process, &registers, registers.si);
}
