/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Walking the stack of the calling thread.
 *
 * Call frame information comes first: Debian's programs have it for every function, and have no
 * frame pointers. What it says about a pc is cached, so a step costs about as much as one along
 * frame pointers. Where there is none (JIT code), the frame pointer is used if it is plausible.
 * libgcc's unwinder is not used, because it takes locks and allocates.
 *
 * Memory is read directly inside the bounds of the thread's stack, and by a system call that
 * cannot fault elsewhere (signal stacks, coroutines).
 */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "cfi.h"
#include "cpython.h"
#include "operators.h"
#include "profile.h"
#include "thread.h"
#include "unwind-cache.h"
#include "unwind.h"

#define WORD	     sizeof(uintptr_t)
#define WINDOW_BYTES 256 /* read at once from memory that is not the thread's stack */
#define ADDRESS_MIN  4096

#if defined(__aarch64__)
/* Removes the signature of a return address: xpaclri, a nop on processors without it. */
static uintptr_t address_strip(uintptr_t address)
{
	register uintptr_t lr __asm__("x30") = address;

	__asm__("hint #7" : "+r"(lr));
	return lr;
}
#else
static uintptr_t address_strip(uintptr_t address)
{
	return address;
}
#endif

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));

struct walk {
	const struct mw_thread *thread;
	uintptr_t pc, sp, fp, ra;
	bool exact; /* pc is where the thread is, not behind a call */
	bool complete;
	uint64_t *truncated; /* the counter of the reason */
	uint32_t frames_cfi, frames_fp, misses, remote;
	uintptr_t window_at; /* 0: empty */
	uint8_t window[WINDOW_BYTES];
};

/* The end of the walk before the first frame of the thread. */
static bool walk_fail(struct walk *walk, uint64_t *counter)
{
	walk->truncated = counter;
	return false;
}

static bool window_fill(struct walk *walk, uintptr_t address)
{
	/* Not across the end of a page: the next one may not exist. */
	size_t bytes = MW_HEAP_PAGE_BYTES - address % MW_HEAP_PAGE_BYTES;
	struct iovec local, remote;

	if (bytes > WINDOW_BYTES)
		bytes = WINDOW_BYTES;
	local = (struct iovec){ walk->window, bytes };
	remote = (struct iovec){ (void *)address, bytes };
	walk->remote++;
	walk->window_at = 0;
	if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != (ssize_t)bytes)
		return false;
	walk->window_at = address;
	return true;
}

static bool word_read(void *context, uintptr_t address, uintptr_t *ret)
{
	struct walk *walk = context;

	if (address % WORD)
		return false;
	if (mw_likely(address >= walk->thread->stack_low && address < walk->thread->stack_high)) {
		*ret = *(const volatile uintptr_t *)address;
		return true;
	}
	if (!walk->window_at || address < walk->window_at ||
	    address + WORD > walk->window_at + WINDOW_BYTES ||
	    (address ^ walk->window_at) / MW_HEAP_PAGE_BYTES) {
		if (address < ADDRESS_MIN || !window_fill(walk, address))
			return false;
	}
	memcpy(ret, walk->window + (address - walk->window_at), WORD);
	return true;
}

/* The rule of a register, evaluated. */
static bool rule_apply(struct walk *walk, const struct mw_cfi_rule *rule, uintptr_t cfa,
		       uintptr_t old, uintptr_t *ret)
{
	struct mw_cfi_machine machine = {
		.fp = walk->fp,
		.sp = walk->sp,
		.ra = walk->ra,
		.pc = walk->pc,
		.read = word_read,
		.context = walk,
	};
	uintptr_t value;

	switch (rule->how) {
	case MW_CFI_SAME:
		*ret = old;
		return true;
	case MW_CFI_OFFSET:
		return word_read(walk, cfa + (uintptr_t)rule->offset, ret);
	case MW_CFI_VALUE:
		*ret = cfa + (uintptr_t)rule->offset;
		return true;
	case MW_CFI_EXPRESSION:
		return mw_cfi_evaluate(&machine, rule->expression, &cfa, &value) &&
		       word_read(walk, value, ret);
	case MW_CFI_VALUE_EXPRESSION:
		return mw_cfi_evaluate(&machine, rule->expression, &cfa, ret);
	default:
		*ret = 0;
		return true;
	}
}

static bool row_cfa(struct walk *walk, const struct mw_cfi_row *row, uintptr_t *ret)
{
	struct mw_cfi_machine machine = {
		.fp = walk->fp,
		.sp = walk->sp,
		.ra = walk->ra,
		.pc = walk->pc,
		.read = word_read,
		.context = walk,
	};

	if (row->cfa_expression)
		return mw_cfi_evaluate(&machine, row->cfa_expression, NULL, ret);
	if (row->cfa_register != MW_CFI_SP && row->cfa_register != MW_CFI_FP)
		return false;
	*ret = (row->cfa_register == MW_CFI_SP ? walk->sp : walk->fp) + (uintptr_t)row->cfa_offset;
	return true;
}

/* A step by the complete row: signal frames, realigned stacks. */
static bool step_by_row(struct walk *walk, uintptr_t lookup)
{
	struct mw_heap_unwinder *health = &mw_profile.header->unwinder;
	struct mw_module module;
	struct mw_cfi_row row;
	uintptr_t cfa, fp, sp, ra;

	if (!mw_module_find(lookup, &module) || mw_cfi_find(&module, lookup, &row) ||
	    !row_cfa(walk, &row, &cfa))
		return walk_fail(walk, &health->truncated_bad_cfi);
	if (!rule_apply(walk, &row.fp, cfa, walk->fp, &fp) ||
	    !rule_apply(walk, &row.sp, cfa, cfa, &sp) ||
	    !rule_apply(walk, &row.ra, cfa, walk->ra, &ra))
		return walk_fail(walk, &health->truncated_memory);
	walk->fp = fp;
	walk->sp = sp;
	walk->pc = walk->ra = address_strip(ra);
	return true;
}

static bool step_by_rule(struct walk *walk, const struct mw_unwind_rule *rule)
{
	struct mw_heap_unwinder *health = &mw_profile.header->unwinder;
	uintptr_t base = rule->flags & MW_RULE_CFA_FP ? walk->fp : walk->sp;
	uintptr_t cfa = base + (uintptr_t)rule->cfa_offset * WORD, fp = walk->fp, ra = walk->ra;

	/* Stacks grow down: a caller is never below what it calls. */
	if (cfa < walk->sp || (cfa == walk->sp && !walk->exact))
		return walk_fail(walk, &health->truncated_bad_cfi);
	if ((!(rule->flags & MW_RULE_RA_SAME) &&
	     !word_read(walk, cfa + (uintptr_t)((intptr_t)rule->ra_offset * (intptr_t)WORD),
			&ra)) ||
	    (rule->fp_offset &&
	     !word_read(walk, cfa + (uintptr_t)((intptr_t)rule->fp_offset * (intptr_t)WORD), &fp)))
		return walk_fail(walk, &health->truncated_memory);
	walk->fp = fp;
	walk->sp = cfa;
	walk->pc = walk->ra = address_strip(ra);
	return true;
}

/* A frame pointer points to the caller's one, with the return address behind it. */
static bool step_by_fp(struct walk *walk)
{
	struct mw_heap_unwinder *health = &mw_profile.header->unwinder;
	uintptr_t fp, ra;

	if (walk->fp < walk->sp || walk->fp % WORD ||
	    (walk->fp - walk->sp >= walk->thread->stack_high - walk->thread->stack_low) ||
	    !word_read(walk, walk->fp, &fp) || !word_read(walk, walk->fp + WORD, &ra) ||
	    (fp && fp <= walk->fp) || ra < ADDRESS_MIN || ra >> MW_HEAP_FRAME_ADDRESS_BITS)
		return walk_fail(walk, &health->truncated_no_cfi);
	walk->sp = walk->fp + 2 * WORD;
	walk->fp = fp;
	walk->pc = walk->ra = address_strip(ra);
	walk->frames_fp++;
	return true;
}

static bool offset_fits(int64_t offset)
{
	return offset % (int64_t)WORD == 0 &&
	       offset / (int64_t)WORD == (int16_t)(offset / (int64_t)WORD);
}

/* Packs a row; what does not fit is marked as complex. */
static void row_pack(const struct mw_cfi_row *row, struct mw_unwind_rule *ret)
{
	bool fits = !row->cfa_expression && row->sp.how == MW_CFI_SAME &&
		    (row->cfa_register == MW_CFI_SP || row->cfa_register == MW_CFI_FP) &&
		    row->cfa_offset >= 0 && row->cfa_offset % (int64_t)WORD == 0 &&
		    row->cfa_offset / (int64_t)WORD <= UINT16_MAX &&
		    (row->fp.how == MW_CFI_SAME ||
		     (row->fp.how == MW_CFI_OFFSET && row->fp.offset &&
		      offset_fits(row->fp.offset))) &&
		    (row->ra.how == MW_CFI_SAME ||
		     (row->ra.how == MW_CFI_OFFSET && offset_fits(row->ra.offset)));

	ret->flags = row->signal ? MW_RULE_SIGNAL : 0;
	if (row->ra.how == MW_CFI_UNDEFINED) {
		ret->flags |= MW_RULE_END;
		return;
	}
	if (!fits) {
		ret->flags |= MW_RULE_COMPLEX;
		return;
	}
	if (row->cfa_register == MW_CFI_FP)
		ret->flags |= MW_RULE_CFA_FP;
	if (row->ra.how == MW_CFI_SAME)
		ret->flags |= MW_RULE_RA_SAME;
	ret->cfa_offset = (uint16_t)(row->cfa_offset / (int64_t)WORD);
	ret->ra_offset = (int16_t)(row->ra.offset / (int64_t)WORD);
	ret->fp_offset = (int16_t)(row->fp.offset / (int64_t)WORD);
}

/* Finds out about a pc that is not in the cache. */
static void pc_resolve(uintptr_t pc, uint32_t epoch, struct mw_unwind_known *ret)
{
	struct mw_module module;
	struct mw_cfi_row row;
	int rc;

	memset(ret, 0, sizeof(*ret));
	ret->frame = pc & MW_HEAP_FRAME_ADDRESS_MASK;
	if (!mw_module_find(pc, &module)) {
		/* Not stored: JIT code moves, and this is not slow. */
		ret->rule.flags = MW_RULE_NONE;
		return;
	}
	if (module.number)
		ret->frame = (uint64_t)module.number << MW_HEAP_FRAME_ADDRESS_BITS |
			     ((pc - module.bias) & MW_HEAP_FRAME_ADDRESS_MASK);
	rc = mw_cfi_find(&module, pc, &row);
	if (rc)
		ret->rule.flags = rc == -ENOENT ? MW_RULE_NONE : MW_RULE_BAD;
	else
		row_pack(&row, &ret->rule);
	if (module.number)
		mw_unwind_cache_store(pc, epoch, ret);
}

/* Goes to the caller. False at the end of the walk. */
static bool walk_step(struct walk *walk, uintptr_t lookup, const struct mw_unwind_known *known)
{
	bool found;

	if (known->rule.flags & MW_RULE_END) {
		walk->complete = true;
		return false;
	}
	if (known->rule.flags & (MW_RULE_NONE | MW_RULE_BAD)) {
		/* The dynamic linker's entry has no CFI, and nothing above it but the arguments. */
		if (walk->thread->tid == walk->thread->pid &&
		    walk->sp >= walk->thread->stack_high) {
			walk->complete = true;
			return false;
		}
		found = step_by_fp(walk);
		if (!found && known->rule.flags & MW_RULE_BAD)
			walk->truncated = &mw_profile.header->unwinder.truncated_bad_cfi;
	} else {
		found = known->rule.flags & MW_RULE_COMPLEX ? step_by_row(walk, lookup)
							    : step_by_rule(walk, &known->rule);
		walk->frames_cfi += found;
	}
	walk->exact = known->rule.flags & MW_RULE_SIGNAL;
	if (found && !walk->pc) {
		walk->complete = true;
		return false;
	}
	return found;
}

/* Whether an instruction that calls ends at @pc, which may be any address. */
static bool call_ends_at(uintptr_t pc)
{
	uint8_t code[8];
	struct iovec local = { code, sizeof(code) }, remote = { (void *)(pc - 8), sizeof(code) };

	if (pc < ADDRESS_MIN ||
	    process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != sizeof(code))
		return false;
#if defined(__x86_64__)
	if (code[3] == 0xe8)
		return true;
	/* ff /2, with 0 to 5 bytes behind the second one */
	for (int at = 1; at < 7; at++)
		if (code[at] == 0xff && (code[at + 1] & 0x38) == 0x10)
			return true;
	return false;
#elif defined(__aarch64__)
	uint32_t word;

	memcpy(&word, code + 4, sizeof(word));
	/* bl; blr and its forms that authenticate */
	return word >> 26 == 0x25 || (word & 0xfffffc1f) == 0xd63f0000 ||
	       (word & 0xfefff800) == 0xd63f0800;
#endif
}

/*
 * Where coroutines move their stacks, what lies above a stack is not what was there when it
 * began, and the last frame is any number, another one each time. Code that was compiled at run
 * time has no call frame information either, but there is a call before its address.
 */
static bool is_stray(const struct walk *walk, const struct mw_unwind_known *known, uintptr_t pc)
{
	return !walk->complete && known->rule.flags & MW_RULE_NONE &&
	       !mw_heap_frame_module(known->frame) && !call_ends_at(pc);
}

static void health_count(const struct walk *walk, uint32_t depth)
{
	struct mw_heap_unwinder *health = &mw_profile.header->unwinder;

	mw_count(&health->stacks, 1);
	mw_count(&health->frames, depth);
	mw_count(&health->frames_cfi, walk->frames_cfi);
	if (walk->frames_fp) {
		mw_count(&health->frames_fp, walk->frames_fp);
		if (walk->frames_fp >= depth)
			mw_count(&health->stacks_fp_only, 1);
	}
	if (walk->complete) {
		mw_count(&health->stacks_complete, 1);
		if (!walk->frames_fp)
			mw_count(&health->stacks_cfi_only, 1);
	} else {
		mw_count(&health->stacks_truncated, 1);
		mw_count(walk->truncated, 1);
	}
	if (walk->misses)
		mw_count(&health->cache_misses, walk->misses);
	if (walk->remote)
		mw_count(&health->remote_reads, walk->remote);
}

static void walk_begin(struct walk *walk, const struct mw_thread *thread)
{
	memset(walk, 0, offsetof(struct walk, window));
	walk->thread = thread;
	walk->exact = true;
}

/* The registers of the function that contains this. */
#if defined(__x86_64__)
#define WALK_HERE(walk)                                                                            \
	__asm__ volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2"                      \
			 : "=&r"((walk)->pc), "=&r"((walk)->sp), "=&r"((walk)->fp))
#elif defined(__aarch64__)
#define WALK_HERE(walk)                                                                            \
	__asm__ volatile("adr %0, .\n\tmov %1, sp\n\tmov %2, x29\n\tmov %3, x30"                   \
			 : "=&r"((walk)->pc), "=&r"((walk)->sp), "=&r"((walk)->fp),                \
			   "=&r"((walk)->ra))
#endif

bool mw_unwind_is_ours(uintptr_t pc)
{
	return pc >= (uintptr_t)__ehdr_start && pc < (uintptr_t)etext;
}

uint32_t mw_unwind(const struct mw_thread *thread, uint64_t *frames, uint32_t max,
		   uint32_t *ret_flags)
{
	uint32_t epoch = __atomic_load_n(&mw_module_epoch, __ATOMIC_ACQUIRE), depth = 0;
	uint32_t native = 0;
	struct mw_cpython_walk python = { 0 };
	struct mw_unwind_known known;
	uintptr_t lookup, low;
	struct walk walk;
	bool more, exact;

	walk_begin(&walk, thread);
	WALK_HERE(&walk);
	do {
		exact = walk.exact;
		lookup = walk.pc - !exact;
		if (!mw_unwind_cache_find(lookup, epoch, &known)) {
			pc_resolve(lookup, epoch, &known);
			walk.misses++;
		}
		if (depth || !mw_unwind_is_ours(lookup)) {
			if (native == max || depth == MW_HEAP_DEPTH_MAX) {
				walk_fail(&walk, &mw_profile.header->unwinder.truncated_depth);
				break;
			}
			frames[depth++] = known.frame;
			native++;
		}
		low = walk.sp;
		more = walk_step(&walk, lookup, &known);
		if (mw_unlikely(known.rule.flags & MW_RULE_SIGNAL))
			mw_cpython_stop(&python);
		if (mw_unlikely(mw_heap_frame_module(known.frame) == mw_cpython_module) && depth)
			depth = mw_cpython_insert(&python, lookup, low, walk.sp, frames, depth,
						  MW_HEAP_DEPTH_MAX);
		if (mw_unlikely(!more && depth > 1 && !exact && is_stray(&walk, &known, walk.pc)))
			depth--;
	} while (more);
	*ret_flags = (walk.complete ? 0 : MW_HEAP_STACK_TRUNCATED) |
		     (walk.frames_fp ? MW_HEAP_STACK_FP : 0) |
		     (python.added ? MW_HEAP_STACK_CODE : 0);
	health_count(&walk, depth);
	return depth;
}

uint32_t mw_unwind_site(const struct mw_thread *thread, uint64_t *frames, uint32_t max,
			uint32_t *ret_flags)
{
	uint32_t epoch = __atomic_load_n(&mw_module_epoch, __ATOMIC_ACQUIRE), depth = 0,
		 operators = 0;
	struct mw_unwind_known known;
	struct walk walk;
	uintptr_t lookup;

	walk_begin(&walk, thread);
	WALK_HERE(&walk);
	do {
		lookup = walk.pc - !walk.exact;
		if (!mw_unwind_cache_find(lookup, epoch, &known))
			pc_resolve(lookup, epoch, &known);
		if (!depth && mw_unwind_is_ours(lookup))
			continue;
		if (depth == operators && mw_operators_contain(lookup))
			operators++;
		frames[depth++] = known.frame;
	} while (depth < max + operators && depth < MW_HEAP_DEPTH_MAX &&
		 walk_step(&walk, lookup, &known));
	*ret_flags = (walk.complete ? 0 : MW_HEAP_STACK_TRUNCATED) |
		     (walk.frames_fp ? MW_HEAP_STACK_FP : 0);
	return depth;
}
