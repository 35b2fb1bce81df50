/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The site of an event: the innermost frames of its call stack, as a stack of the profile.
 *
 * A call stack that was met before is recognised here, in line, because nearly all were: a function
 * of its own would be a tenth of what an event costs.
 */
#ifndef _MW_HEAP_TRACE_SITE_H
#define _MW_HEAP_TRACE_SITE_H

#include <stdint.h>

#include "modules.h"
#include "trace.h"

/* The registers of the caller of an entry point. */
struct mw_trace_caller {
	uintptr_t pc, sp, fp;
};

/* What an entry point finds at its frame: the caller's frame pointer and the return address. */
static inline struct mw_trace_caller mw_trace_caller(const void *frame)
{
	const uintptr_t *words = frame;

	return (struct mw_trace_caller){ words[1], (uintptr_t)(words + 2), words[0] };
}

/*
 * Where the call stacks of a caller are that are of this depth. There may be more than one, with
 * other return addresses further up.
 */
static inline struct mw_trace_path *mw_trace_paths(struct mw_trace_writer *writer,
						   const struct mw_trace_caller *caller)
{
	uint64_t hash = (caller->pc ^ caller->sp << 20) * UINT64_C(0x9e3779b97f4a7c15);

	return writer->paths[hash >> 58];
}

_Static_assert(MW_TRACE_PATH_SETS == 64, "a set is found by six bits");

static inline bool mw_trace_path_matches(const struct mw_trace_path *path,
					 const struct mw_thread *thread,
					 const struct mw_trace_caller *caller)
{
	if (path->ra != caller->pc ||
	    path->epoch != __atomic_load_n(&mw_module_epoch, __ATOMIC_RELAXED) ||
	    caller->sp < thread->stack_low || caller->sp + path->reach > thread->stack_high)
		return false;
	if (path->frame_pointer && (intptr_t)(caller->fp - caller->sp) != path->frame_distance)
		return false;
	for (uint32_t i = 0; i < path->checks; i++) {
		uintptr_t word = *(const uintptr_t *)(caller->sp + path->check[i].offset);

		if (path->check[i].relative)
			word -= caller->sp;
		if (word != path->check[i].value)
			return false;
	}
	return true;
}

/* Unwinds the stack, looks for it in the profile, and remembers it. */
uint32_t mw_trace_site_find(struct mw_thread *thread, const void *frame)
	__attribute__((noinline, cold));

/* The index of the stack in the profile; 0 if there is no room. See trace-write.h for @frame. */
static inline uint32_t mw_trace_site(struct mw_thread *thread, const void *frame)
{
#if defined(__x86_64__)
	struct mw_trace_caller caller = mw_trace_caller(frame);
	const struct mw_trace_path *path = mw_trace_paths(thread->writer, &caller);

	for (uint32_t way = 0; way < MW_TRACE_PATH_WAYS; way++)
		if (mw_trace_path_matches(&path[way], thread, &caller))
			return path[way].site;
#endif
	return mw_trace_site_find(thread, frame);
}

#endif
