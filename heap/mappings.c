/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Anonymous memory that the program maps itself.
 *
 * A mapping can be unmapped in parts, and by a call that names another range. So the ranges of
 * the sampled mappings are kept in a table, and munmap(), mremap() and mmap() over existing
 * mappings look for what they overlap. They claim an entry for as long as they work on it.
 */
/* Both names of mmap() are defined here, so the header must not turn one into the other. */
#undef _FILE_OFFSET_BITS

#include <stdarg.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "config.h"
#include "entry.h"
#include "mappings.h"
#include "maps.h"
#include "next.h"
#include "runtime.h"
#include "samples.h"
#include "thread.h"

/* Sampled mappings that can be live at once; further ones are lost samples. */
#define MAPPINGS_MAX 4096

/* `start` of an entry: 0: unused; otherwise an address, or this while somebody works on it. */
#define MAPPING_CLAIMED 1u

static struct mapping {
	uintptr_t start;
	uintptr_t end;
	/* While a call that overlaps it has claimed it. */
	struct mapping *next;
	uintptr_t claimed_start;
	uint64_t moving; /* see mw_record_moving() */
} mappings[MAPPINGS_MAX];

static uint32_t mappings_used; /* entries that have ever been in use */

/* The sampled mappings that a call overlaps. */
struct endings {
	uintptr_t start; /* what is unmapped */
	uintptr_t end;
	struct mapping *first;
};

static uint64_t page_round(size_t size)
{
	const size_t page = getauxval(AT_PAGESZ);

	return size > SIZE_MAX - page ? size : (size + page - 1) / page * page;
}

/* False if there is no room. */
static bool mapping_add(uintptr_t start, uint64_t size)
{
	for (uint32_t i = 0; i < MAPPINGS_MAX; i++) {
		uintptr_t expected = 0;
		uint32_t used = __atomic_load_n(&mappings_used, __ATOMIC_RELAXED);

		if (!__atomic_compare_exchange_n(&mappings[i].start, &expected, MAPPING_CLAIMED,
						 false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		while (used <= i &&
		       !__atomic_compare_exchange_n(&mappings_used, &used, i + 1, true,
						    __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			;
		mappings[i].end = start + size;
		__atomic_store_n(&mappings[i].start, start, __ATOMIC_RELEASE);
		return true;
	}
	return false;
}

/* Its end would not be seen, and it would be live for ever. */
static void mapping_lose(const void *address)
{
	struct mw_thread *thread = &mw_thread;
	bool entered = mw_thread_enter(thread, (uintptr_t)__builtin_frame_address(0));
	uint32_t slot;

	if (mw_runtime_owns_samples() && mw_sample_detach(address, &slot))
		mw_sample_detached_lose(slot);
	if (entered)
		mw_thread_leave(thread);
}

/*
 * Takes the samples of a range aside. This comes before the system call, because afterwards the
 * addresses may belong to another thread.
 */
static void endings_begin(struct endings *endings, const void *address, uint64_t size)
{
	uint32_t used = __atomic_load_n(&mappings_used, __ATOMIC_ACQUIRE);

	endings->start = (uintptr_t)address;
	endings->end = endings->start + size;
	endings->first = NULL;
	for (uint32_t i = 0; i < used; i++) {
		struct mapping *entry = &mappings[i];
		uintptr_t start = __atomic_load_n(&entry->start, __ATOMIC_ACQUIRE);

		if (start <= MAPPING_CLAIMED || start >= endings->end ||
		    entry->end <= endings->start ||
		    !__atomic_compare_exchange_n(&entry->start, &start, MAPPING_CLAIMED, false,
						 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		entry->claimed_start = start;
		entry->moving = mw_record_moving((void *)start);
		entry->next = endings->first;
		endings->first = entry;
	}
}

/* What is left of a mapping; of two parts the larger one. */
static void rest_find(const struct endings *endings, uintptr_t *start, uintptr_t *end)
{
	uintptr_t before = endings->start > *start ? endings->start - *start : 0;
	uintptr_t behind = endings->end < *end ? *end - endings->end : 0;

	if (before >= behind)
		*end = *start + before;
	else
		*start = endings->end;
}

/* @done: the range is not mapped any more. */
static void endings_end(const struct endings *endings, bool done)
{
	struct mapping *next;

	for (struct mapping *entry = endings->first; entry; entry = next) {
		uintptr_t start = entry->claimed_start, end = entry->end;

		if (done)
			rest_find(endings, &start, &end);
		if (!done || start == end)
			mw_record_moved(entry->moving, done);
		else if (!mw_record_shrunk(entry->moving, (const void *)start, end - start))
			end = start;
		next = entry->next;
		entry->end = end;
		__atomic_store_n(&entry->start, start == end ? 0 : start, __ATOMIC_RELEASE);
	}
}

/* New memory at @address, if it is due to be sampled. */
static void mapping_record(bool due, void *address, uint64_t size)
{
	if (due && address != MAP_FAILED &&
	    mw_record_allocation(MW_DUE_SAMPLE, address, size, MW_HEAP_SOURCE_MMAP, NULL) &&
	    !mapping_add((uintptr_t)address, size))
		mapping_lose(address);
}

static bool mapping_due(uint64_t size)
{
	return mw_countdown_expires(size) && mw_record_due_mapping(size) & MW_DUE_SAMPLE;
}

MW_SLOW void *mmap_slow(void *address, size_t size, int protection, int flags, int fd, off_t offset,
			const void *caller)
{
	/* Address space that is only reserved uses no memory. */
	bool due = flags & MAP_ANONYMOUS && protection != PROT_NONE &&
		   !mw_next_is_allocator(caller) && mapping_due(page_round(size));
	struct endings endings = { .first = NULL };
	void *memory;

	if ((flags & MAP_FIXED_NOREPLACE) != MAP_FIXED_NOREPLACE && flags & MAP_FIXED)
		endings_begin(&endings, address, page_round(size));
	memory = mw_next.mmap(address, size, protection, flags, fd, offset);
	endings_end(&endings, memory != MAP_FAILED);
	mapping_record(due, memory, page_round(size));
	return memory;
}

MW_EXPORT void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
	if (mw_unlikely(mw_config.mmap))
		return mmap_slow(address, size, protection, flags, fd, offset,
				 __builtin_return_address(0));
	return mw_next.mmap(address, size, protection, flags, fd, offset);
}

/* Offsets have 64 bits in both forms. */
MW_EXPORT void *mmap64(void *address, size_t size, int protection, int flags, int fd,
		       off64_t offset)
{
	if (mw_unlikely(mw_config.mmap))
		return mmap_slow(address, size, protection, flags, fd, offset,
				 __builtin_return_address(0));
	return mw_next.mmap(address, size, protection, flags, fd, offset);
}

MW_SLOW int munmap_slow(void *address, size_t size)
{
	struct endings endings;
	int rc;

	endings_begin(&endings, address, page_round(size));
	rc = mw_next.munmap(address, size);
	endings_end(&endings, !rc);
	return rc;
}

MW_EXPORT int munmap(void *address, size_t size)
{
	if (mw_unlikely(mw_config.mmap))
		return munmap_slow(address, size);
	return mw_next.munmap(address, size);
}

/*
 * A mapping that was not sampled, but is due now, may be one of a file, which does not count. The
 * kernel is asked only then.
 */
static bool moving_is_due(bool due, const struct endings *endings, const void *address)
{
	if (!due || endings->first || mw_maps_is_anonymous((uintptr_t)address))
		return due;
	mw_record_refuse();
	return false;
}

/* As with realloc(), one object ends and another one begins. */
MW_SLOW void *mremap_slow(void *address, size_t old_size, size_t size, int flags, void *target,
			  const void *caller)
{
	bool due = !mw_next_is_allocator(caller) && old_size && mapping_due(page_round(size));
	struct endings endings, replaced = { .first = NULL };
	void *memory;

	endings_begin(&endings, address, page_round(old_size));
	due = moving_is_due(due, &endings, address);
	if (flags & MREMAP_FIXED)
		endings_begin(&replaced, target, page_round(size));
	memory = mw_next.mremap(address, old_size, size, flags, target);
	endings_end(&endings, memory != MAP_FAILED);
	endings_end(&replaced, memory != MAP_FAILED);
	mapping_record(due, memory, page_round(size));
	return memory;
}

MW_EXPORT void *mremap(void *address, size_t old_size, size_t size, int flags, ...)
{
	void *target = NULL;
	va_list arguments;

	va_start(arguments, flags);
	if (flags & MREMAP_FIXED)
		target = va_arg(arguments, void *);
	va_end(arguments);
	if (mw_unlikely(mw_config.mmap))
		return mremap_slow(address, old_size, size, flags, target,
				   __builtin_return_address(0));
	return mw_next.mremap(address, old_size, size, flags, target);
}

void mw_mappings_clear(void)
{
	memset(mappings, 0, sizeof(mappings[0]) * mappings_used);
	mappings_used = 0;
}
