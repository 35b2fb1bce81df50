/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Recording events. The functions keep errno, and do nothing while the trace is off.
 *
 * @frame is where the entry point keeps the frame pointer of its caller: what
 * __builtin_frame_address(0) is in the function to which the application has jumped.
 */
#ifndef _MW_HEAP_TRACE_WRITE_H
#define _MW_HEAP_TRACE_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mw_thread;

/* The allocation has succeeded. */
void mw_trace_allocation(struct mw_thread *thread, const void *address, size_t size,
			 const void *frame);

/*
 * The object at @address is about to be freed, or was freed by a call that began at @time, of
 * mw_trace_now(); 0: now.
 */
void mw_trace_free(struct mw_thread *thread, const void *address, uint64_t time, const void *frame);

#endif
