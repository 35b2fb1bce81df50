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
#include <errno.h>
#include <string.h>

#include "modules.h"
#include "operators.h"
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
 * pointer of @at was saved, 0: it is still in the register. False if the rule is no ordinary one.
 */
static bool path_step(struct mw_trace_path *path, const struct mw_thread *thread,
		      const struct mw_trace_caller *caller, const struct mw_unwind_rule *rule,
		      struct mw_trace_caller *at, uintptr_t *saved)
{
	uintptr_t cfa;

	if (rule->flags & (uint8_t)~MW_RULE_CFA_FP)
		return false;
	cfa = (rule->flags & MW_RULE_CFA_FP ? at->fp : at->sp) + rule->cfa_offset * WORD;
	if (rule->flags & MW_RULE_CFA_FP && !*saved) {
		path->frame_pointer = true;
		path->frame_distance = (intptr_t)(caller->fp - caller->sp);
	} else if (rule->flags & MW_RULE_CFA_FP &&
		   !check_add(path, thread, caller->sp, *saved, true)) {
		return false;
	}
	if (cfa <= at->sp || !check_add(path, thread, caller->sp,
					cfa + (uintptr_t)(rule->ra_offset * (int)WORD), false))
		return false;
	at->sp = cfa;
	at->pc = path->check[path->checks - 1].value;
	if (rule->fp_offset) {
		*saved = cfa + (uintptr_t)(rule->fp_offset * (int)WORD);
		if (*saved < caller->sp || *saved + WORD > thread->stack_high)
			return false;
		at->fp = *(const uintptr_t *)*saved;
	}
	return true;
}

/*
 * Finds the frames of a site as mw_unwind_site() does, but from the caller of the entry point on,
 * by rules that are known, and notes how to recognise the stack. Returns how many there are; 0: one
 * of them has no ordinary rule, or none that is known.
 */
static uint32_t path_walk(struct mw_trace_path *path, const struct mw_thread *thread,
			  const struct mw_trace_caller *caller, uint64_t *frames,
			  uint32_t *ret_flags)
{
	struct mw_trace_caller at = *caller;
	uint32_t depth = 0, left = mw_trace.depth;
	struct mw_unwind_known known;
	bool in_operators = true;
	uintptr_t saved = 0;

	if (at.sp < thread->stack_low || at.sp + WORD > thread->stack_high ||
	    mw_unwind_is_ours(at.pc))
		return 0;
	*ret_flags = 0;
	while (at.pc) {
		if (depth == MW_HEAP_DEPTH_MAX ||
		    !mw_unwind_cache_find(at.pc - 1, path->epoch, &known))
			return 0;
		in_operators = in_operators && mw_operators_contain(at.pc - 1);
		left -= !in_operators;
		frames[depth++] = known.frame;
		if (!left) {
			*ret_flags = MW_HEAP_STACK_TRUNCATED;
			break;
		}
		if (known.rule.flags & MW_RULE_END)
			break;
		if (!path_step(path, thread, caller, &known.rule, &at, &saved))
			return 0;
	}
	return depth;
}

/* A signal handler may end in longjmp(): a place that is half written is empty, and so is @path. */
static void path_remember(struct mw_trace_writer *writer, const struct mw_trace_caller *caller,
			  const struct mw_trace_path *path)
{
	struct mw_trace_path *place = mw_trace_paths(writer, caller);

	place += writer->paths_replaced++ % MW_TRACE_PATH_WAYS;
	place->ra = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	*place = *path;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	place->ra = caller->pc;
}

#endif

static uint32_t site_find(struct mw_thread *thread, const void *frame)
{
	uint64_t frames[MW_HEAP_DEPTH_MAX];
	uint32_t flags, depth;

#if defined(__x86_64__)
	struct mw_trace_caller caller = mw_trace_caller(frame);
	struct mw_trace_path path = {
		.epoch = __atomic_load_n(&mw_module_epoch, __ATOMIC_ACQUIRE),
		.reach = WORD,
	};

	depth = path_walk(&path, thread, &caller, frames, &flags);
	if (depth) {
		path.site = mw_stack_intern(frames, depth, flags, mw_runtime_now());
		path_remember(thread->writer, &caller, &path);
		return path.site;
	}
#else
	(void)frame;
#endif
	/* Once it has been unwound, its rules are known. */
	depth = mw_unwind_site(thread, frames, mw_trace.depth, &flags);
	return mw_stack_intern(frames, depth, flags, mw_runtime_now());
}

uint32_t mw_trace_site_find(struct mw_thread *thread, const void *frame)
{
	int saved = errno;
	uint32_t site = site_find(thread, frame);

	errno = saved;
	return site;
}
