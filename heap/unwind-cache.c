/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What is known about each pc that was met in a stack. A pc has a place in a set of two, which is a
 * line of the processor's cache: two pcs of the same stack that shared one place would replace each
 * other each time, and to find a rule again takes a thousand instructions.
 */
#include <string.h>

#include "unwind-cache.h"

#define SET_BITS    11 /* 128 KiB; real programs have some thousand pcs in sampled stacks */
#define SET_WAYS    2
#define EPOCH_SHIFT 48

struct cache_entry {
	uint64_t key; /* pc, and the lower bits of the epoch above it */
	uint64_t rule;
	uint64_t frame;
	uint64_t check;
};

struct cache_set {
	struct cache_entry way[SET_WAYS]; /* the newest first */
};

static struct cache_set unwind_cache[1u << SET_BITS] __attribute__((aligned(64)));

_Static_assert(sizeof(struct mw_unwind_rule) == sizeof(uint64_t), "a rule is one word");
_Static_assert(sizeof(struct cache_set) == 64, "a set is one line");

static uint64_t key_make(uintptr_t pc, uint32_t epoch)
{
	return (uint64_t)pc ^ (uint64_t)epoch << EPOCH_SHIFT;
}

static struct cache_set *set_of(uintptr_t pc)
{
	return &unwind_cache[(pc * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - SET_BITS)];
}

/* What other threads and signal handlers write meanwhile does not fit the check. */
static bool entry_read(const struct cache_entry *entry, uint64_t key, struct mw_unwind_known *ret)
{
	uint64_t rule, frame, check;

	if (__atomic_load_n(&entry->key, __ATOMIC_RELAXED) != key)
		return false;
	rule = __atomic_load_n(&entry->rule, __ATOMIC_RELAXED);
	frame = __atomic_load_n(&entry->frame, __ATOMIC_RELAXED);
	check = __atomic_load_n(&entry->check, __ATOMIC_RELAXED);
	if ((key ^ rule ^ frame) != ~check)
		return false;
	memcpy(&ret->rule, &rule, sizeof(rule));
	ret->frame = frame;
	return true;
}

static void entry_write(struct cache_entry *entry, uint64_t key,
			const struct mw_unwind_known *known)
{
	uint64_t rule;

	memcpy(&rule, &known->rule, sizeof(rule));
	__atomic_store_n(&entry->key, key, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->rule, rule, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->frame, known->frame, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->check, ~(key ^ rule ^ known->frame), __ATOMIC_RELAXED);
}

bool mw_unwind_cache_find(uintptr_t pc, uint32_t epoch, struct mw_unwind_known *ret)
{
	const struct cache_set *set = set_of(pc);
	uint64_t key = key_make(pc, epoch);

	return entry_read(&set->way[0], key, ret) || entry_read(&set->way[1], key, ret);
}

/* The newest entry of the set becomes the older one, unless a writer is in the middle of it. */
void mw_unwind_cache_store(uintptr_t pc, uint32_t epoch, const struct mw_unwind_known *known)
{
	struct cache_set *set = set_of(pc);
	uint64_t newest = __atomic_load_n(&set->way[0].key, __ATOMIC_RELAXED);
	struct mw_unwind_known older;

	if (entry_read(&set->way[0], newest, &older))
		entry_write(&set->way[1], newest, &older);
	entry_write(&set->way[0], key_make(pc, epoch), known);
}
