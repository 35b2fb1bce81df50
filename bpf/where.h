/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Where a process takes its memory: what where.bpf.c and the library share.
 */
#ifndef _MW_WHERE_H
#define _MW_WHERE_H

#include "growth-maps.h"

/* What is copied of a stack. The function that allocates is near its end. */
#define MW_WHERE_STACK 2048U

/* The registers in the order of DWARF: 7 is the stack pointer, 16 where the code is. */
#define MW_WHERE_REGISTERS 17U
#define MW_WHERE_SP	   7
#define MW_WHERE_IP	   16

/**
 * enum mw_where_kind - what a process did when its stack was sampled
 * @MW_WHERE_TOUCHED: it touched a page that was not there
 * @MW_WHERE_ASKED: it asked the kernel for memory, by brk() or mmap()
 */
enum mw_where_kind {
	MW_WHERE_TOUCHED = 0,
	MW_WHERE_ASKED = 1,
	MW_WHERE_KINDS = 2,
};

/* How many samples of a process are kept, of each kind. Each is as likely to be kept. */
#define MW_WHERE_TOUCHED_MAX 256U
#define MW_WHERE_ASKED_MAX   64U
#define MW_WHERE_MAX	     (MW_WHERE_TOUCHED_MAX + MW_WHERE_ASKED_MAX)

/* Samples of a process and kind in each window of time; further ones are left out. */
#define MW_WHERE_WINDOW_NS  100000000ULL
#define MW_WHERE_WINDOW_MAX 5U

/**
 * struct mw_where_sample - the stack of a thread
 * @address: TOUCHED: the page
 * @weight: TOUCHED: page faults that it stands for; ASKED: bytes; 0: there is no sample here
 * @registers: of the thread
 * @bytes: how much of @stack was copied, from the stack pointer on
 * @reserved: zero
 * @stack: the end of the stack
 */
struct mw_where_sample {
	__u64 address;
	__u64 weight;
	__u64 registers[MW_WHERE_REGISTERS];
	__u32 bytes;
	__u32 reserved;
	__u8 stack[MW_WHERE_STACK];
};

/**
 * struct mw_where_process - a process whose stacks are sampled; its key is the process id
 * @start_ns: its start time, CLOCK_BOOTTIME
 * @slot: where its samples are
 * @reserved: zero
 * @seen: by kind: samples that there would have been if there was room for all
 * @window_ns: by kind: when the window of time began
 * @taken: by kind: samples in the window
 *
 * Two CPUs may write at the same time. Then a sample is lost or is of two stacks, which is rare
 * and makes no difference to what is most of all.
 */
struct mw_where_process {
	__u64 start_ns;
	__u32 slot;
	__u32 reserved;
	__u64 seen[MW_WHERE_KINDS];
	__u64 window_ns[MW_WHERE_KINDS];
	__u32 taken[MW_WHERE_KINDS];
};

#endif /* _MW_WHERE_H */
