/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The site of an event.
 *
 * To unwind a few frames and to look for their stack takes some hundred nanoseconds, so each
 * thread remembers call stacks. What call frame information says depends on the return addresses
 * only: if those of an earlier walk are at the same distances from the stack pointer, the same
 * walk would find them again. Where it used the frame pointer, that has to be at the same distance,
 * too. So a call stack is recognised by comparing some words of the stack, which do not depend on
 * each other.
 */
#include <string.h>

#include "modules.h"
#include "runtime.h"
#include "stacks.h"
#include "trace-site.h"
#include "trace.h"
#include "unwind-cache.h"
#include "unwind.h"

#if defined(__x86_64__)

#define WORD sizeof(uintptr_t)

/* Adds a check of the word at @address. False if there is no room, or it is not on the stack. */
static bool check_add(struct mw_trace_path *path, const struct mw_thread *thread, uintptr_t sp,
		      uintptr_t address, bool relative)
{
	uintptr_t word;

	if (path->checks == MW_TRACE_PATH_CHECKS || address < sp || address % WORD ||
	    address + WORD > thread->stack_high)
		return false;
	word = *(const uintptr_t *)address;
	path->check[path->checks].offset = (uint32_t)(address - sp);
	path->check[path->checks].relative = relative;
	path->check[path->checks].value = relative ? word - sp : word;
	path->checks++;
	if (address + WORD - sp > path->reach)
		path->reach = (uint32_t)(address + WORD - sp);
	return true;
}

/*
 * Goes to the caller of @at, and adds what proves that it is this one. @saved is where the frame
 * pointer of @at was saved, 0: it is still in the register.
 */
static bool path_step(struct mw_trace_path *path, const struct mw_thread *thread,
		      const struct mw_trace_caller *caller, struct mw_trace_caller *at,
		      uintptr_t *saved)
{
	struct mw_unwind_known known;
	uintptr_t cfa;

	if (!mw_unwind_cache_find(at->pc - 1, path->epoch, &known) ||
	    known.rule.flags & (uint8_t)~MW_RULE_CFA_FP)
		return false;
	cfa = (known.rule.flags & MW_RULE_CFA_FP ? at->fp : at->sp) + known.rule.cfa_offset * WORD;
	if (known.rule.flags & MW_RULE_CFA_FP && !*saved) {
		path->frame_pointer = true;
		path->frame_distance = (intptr_t)(caller->fp - caller->sp);
	} else if (known.rule.flags & MW_RULE_CFA_FP &&
		   !check_add(path, thread, caller->sp, *saved, true)) {
		return false;
	}
	at->sp = cfa;
	if (!check_add(path, thread, caller->sp,
		       cfa + (uintptr_t)(known.rule.ra_offset * (int)WORD), false))
		return false;
	at->pc = path->check[path->checks - 1].value;
	if (known.rule.fp_offset) {
		*saved = cfa + (uintptr_t)(known.rule.fp_offset * (int)WORD);
		if (*saved < caller->sp || *saved + WORD > thread->stack_high)
			return false;
		at->fp = *(const uintptr_t *)*saved;
	}
	return true;
}

/* Remembers the call stack of @depth frames, if it is an ordinary one. */
static void path_remember(struct mw_thread *thread, const struct mw_trace_caller *caller,
			  uint32_t depth, uint32_t site, uint32_t epoch)
{
	struct mw_trace_writer *writer = thread->writer;
	struct mw_trace_path *paths = mw_trace_paths(writer, caller), *place;
	struct mw_trace_path path = {
		.ra = caller->pc, .epoch = epoch, .site = site, .reach = WORD
	};
	struct mw_trace_caller at = *caller;
	uintptr_t saved = 0;
	uint32_t reach;

	if (caller->sp < thread->stack_low || caller->sp + WORD > thread->stack_high)
		return;
	for (uint32_t n = 1; n < depth; n++)
		if (!path_step(&path, thread, caller, &at, &saved))
			return;
	place = &paths[writer->paths_replaced++ % MW_TRACE_PATH_WAYS];
	/* A signal handler may end in longjmp(): a place that is half written is empty. */
	reach = path.reach;
	place->reach = path.reach = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	*place = path;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	place->reach = reach;
}

#endif

uint32_t mw_trace_site_find(struct mw_thread *thread, const void *frame)
{
	uint32_t epoch = __atomic_load_n(&mw_module_epoch, __ATOMIC_ACQUIRE);
	uint64_t frames[MW_HEAP_DEPTH_MAX];
	uint32_t flags, depth, site;
	bool whole;

	depth = mw_unwind_site(thread, frames, mw_trace.depth, &flags, &whole);
	site = mw_stack_intern(frames, depth, flags, mw_runtime_now());
#if defined(__x86_64__)
	struct mw_trace_caller caller = mw_trace_caller(frame);

	if (whole && !mw_unwind_is_ours(caller.pc))
		path_remember(thread, &caller, depth, site, epoch);
#else
	(void)frame;
	(void)epoch;
	(void)whole;
#endif
	return site;
}
