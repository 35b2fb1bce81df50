/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The table of distinct stacks in the profile.
 *
 * The hash table that finds them is private memory with room for every stack that a profile can
 * have, so it never moves; only the pages in use exist. A stack is written completely
 * before its entry in the hash table is stored, so nobody waits for anybody: if two threads
 * meet the same new stack, one of the two copies stays unused.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "profile.h"
#include "stacks.h"

#define ENTRIES_BITS 17 /* twice as many as stacks in the largest profile */
#define ENTRIES	     (1u << ENTRIES_BITS)
#define STACKS_MAX   (ENTRIES / 2)
#define PROBES_MAX   64

/* Upper half: part of the hash, lower half: index of the stack. 0: empty; stack 0 has no entry. */
static uint64_t *stack_entries;

static uint64_t frames_hash(const uint64_t *frames, uint32_t depth, uint32_t flags)
{
	uint64_t hash = depth | (uint64_t)flags << 32;

	for (uint32_t i = 0; i < depth; i++) {
		hash = (hash ^ frames[i]) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	return hash * UINT64_C(0xc2b2ae3d27d4eb4f);
}

struct mw_heap_stack *mw_stack_at(uint32_t index)
{
	if (index * (uint64_t)sizeof(struct mw_heap_stack) >=
	    mw_profile_bytes(MW_HEAP_CHUNK_STACKS))
		return NULL;
	return mw_profile_at(MW_HEAP_CHUNK_STACKS, index * (uint64_t)sizeof(struct mw_heap_stack));
}

static bool stack_equals(uint32_t index, const uint64_t *frames, uint32_t depth, uint32_t flags)
{
	const struct mw_heap_stack *stack = mw_stack_at(index);

	return stack && stack->depth == depth && stack->flags == flags &&
	       (!depth ||
		!memcmp(mw_profile_at(MW_HEAP_CHUNK_FRAMES, stack->frames * sizeof(*frames)),
			frames, depth * sizeof(*frames)));
}

static int stack_reserve(uint64_t *ret)
{
	return mw_profile_reserve(MW_HEAP_CHUNK_STACKS, &mw_profile.header->stacks, 1,
				  sizeof(struct mw_heap_stack), ret);
}

/* Makes the hash table and stack 0. Two threads may do so at once; one of them succeeds. */
static bool table_make(void)
{
	uint64_t *entries, *expected = NULL;
	struct mw_heap_stack *overflow;
	uint64_t index;

	if (__atomic_load_n(&mw_profile.header->stacks, __ATOMIC_ACQUIRE) == 0) {
		if (stack_reserve(&index))
			return false;
		if (index == 0) {
			overflow = mw_stack_at(0);
			overflow->flags = MW_HEAP_STACK_OVERFLOW;
			__atomic_store_n(&overflow->ready, 1, __ATOMIC_RELEASE);
		}
	}
	entries = mmap(NULL, ENTRIES * sizeof(*entries), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (entries == MAP_FAILED)
		return false;
	if (!__atomic_compare_exchange_n(&stack_entries, &expected, entries, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		munmap(entries, ENTRIES * sizeof(*entries));
	return true;
}

/* Writes a new stack into the profile; 0 if there is no room. */
static uint32_t stack_write(const uint64_t *frames, uint32_t depth, uint32_t flags, uint64_t now)
{
	struct mw_heap_header *header = mw_profile.header;
	uint64_t index = 0, first = 0;
	struct mw_heap_stack *stack;
	int rc = 0;

	if (__atomic_load_n(&header->stacks, __ATOMIC_RELAXED) >= STACKS_MAX)
		rc = -ENOSPC;
	if (!rc && depth)
		rc = mw_profile_reserve(MW_HEAP_CHUNK_FRAMES, &header->frames, depth,
					sizeof(*frames), &first);
	if (!rc)
		rc = stack_reserve(&index);
	if (rc) {
		if (rc != -EAGAIN)
			mw_profile_limit(MW_HEAP_LIMIT_STACKS_FULL);
		return 0;
	}
	stack = mw_stack_at((uint32_t)index);
	if (depth)
		memcpy(mw_profile_at(MW_HEAP_CHUNK_FRAMES, first * sizeof(*frames)), frames,
		       depth * sizeof(*frames));
	stack->depth = depth;
	stack->frames = first;
	stack->flags = flags;
	stack->first_ns = now;
	__atomic_store_n(&stack->ready, 1, __ATOMIC_RELEASE);
	return (uint32_t)index;
}

uint32_t mw_stack_intern(const uint64_t *frames, uint32_t depth, uint32_t flags, uint64_t now)
{
	uint64_t hash = frames_hash(frames, depth, flags);
	uint64_t tag = hash & ~(uint64_t)UINT32_MAX, entry, *at;
	uint32_t ours = 0;

	if (!__atomic_load_n(&stack_entries, __ATOMIC_ACQUIRE) && !table_make())
		return 0;
	for (uint32_t probe = 0; probe < PROBES_MAX; probe++) {
		at = &stack_entries[((uint32_t)hash + probe) % ENTRIES];
		entry = __atomic_load_n(at, __ATOMIC_ACQUIRE);
		if (!entry) {
			if (!ours)
				ours = stack_write(frames, depth, flags, now);
			if (!ours ||
			    __atomic_compare_exchange_n(at, &entry, tag | ours, false,
							__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
				return ours;
		}
		if ((entry & ~(uint64_t)UINT32_MAX) == tag &&
		    stack_equals((uint32_t)entry, frames, depth, flags))
			return (uint32_t)entry;
	}
	mw_profile_limit(MW_HEAP_LIMIT_STACKS_FULL);
	return 0;
}

void mw_stacks_clear(void)
{
	if (stack_entries)
		munmap(stack_entries, ENTRIES * sizeof(*stack_entries));
	stack_entries = NULL;
}
