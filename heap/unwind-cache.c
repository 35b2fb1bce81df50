/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What is known about each pc that was met in a stack.
 */
#include <string.h>

#include "unwind-cache.h"

#define CACHE_BITS  12 /* 128 KiB; real programs have some thousand pcs in sampled stacks */
#define EPOCH_SHIFT 48

struct cache_entry {
	uint64_t key; /* pc, and the lower bits of the epoch above it */
	uint64_t rule;
	uint64_t frame;
	uint64_t check;
};

static struct cache_entry unwind_cache[1u << CACHE_BITS] __attribute__((aligned(64)));

_Static_assert(sizeof(struct mw_unwind_rule) == sizeof(uint64_t), "a rule is one word");

static uint64_t key_make(uintptr_t pc, uint32_t epoch)
{
	return (uint64_t)pc ^ (uint64_t)epoch << EPOCH_SHIFT;
}

static struct cache_entry *entry_of(uintptr_t pc)
{
	return &unwind_cache[(pc * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - CACHE_BITS)];
}

bool mw_unwind_cache_find(uintptr_t pc, uint32_t epoch, struct mw_unwind_known *ret)
{
	struct cache_entry *entry = entry_of(pc);
	uint64_t key = __atomic_load_n(&entry->key, __ATOMIC_RELAXED);
	uint64_t rule = __atomic_load_n(&entry->rule, __ATOMIC_RELAXED);
	uint64_t frame = __atomic_load_n(&entry->frame, __ATOMIC_RELAXED);
	uint64_t check = __atomic_load_n(&entry->check, __ATOMIC_RELAXED);

	if (key != key_make(pc, epoch) || (key ^ rule ^ frame) != ~check)
		return false;
	memcpy(&ret->rule, &rule, sizeof(rule));
	ret->frame = frame;
	return true;
}

void mw_unwind_cache_store(uintptr_t pc, uint32_t epoch, const struct mw_unwind_known *known)
{
	struct cache_entry *entry = entry_of(pc);
	uint64_t key = key_make(pc, epoch), rule;

	memcpy(&rule, &known->rule, sizeof(rule));
	__atomic_store_n(&entry->key, key, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->rule, rule, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->frame, known->frame, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->check, ~(key ^ rule ^ known->frame), __ATOMIC_RELAXED);
}
