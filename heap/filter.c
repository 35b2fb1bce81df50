/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The filter in front of free().
 *
 * The order with respect to the map of samples needs no barrier: the thread that frees an
 * object got its address from the thread that allocated it, by a synchronisation of the
 * program, and the counter was raised before the address was returned.
 */
#include <sys/mman.h>

#include "bootstrap.h"
#include "filter.h"

/* A counter that got here stays: the cell then passes everything, which is only slower. */
#define CELL_MAX UINT8_MAX

/* Eight cells, and a 1 in each of them. */
typedef uint64_t __attribute__((may_alias)) cell_group;
#define EACH_ONE UINT64_C(0x0101010101010101)

/* A multiple of the size of a page on every machine. */
#define CLEAR_PAGE (64u << 10)

uint8_t mw_filter[1u << MW_FILTER_BITS] __attribute__((visibility("hidden"), aligned(CLEAR_PAGE)));

static void cell_raise(uint8_t *cell)
{
	uint8_t old = __atomic_load_n(cell, __ATOMIC_RELAXED);

	while (old != CELL_MAX && !__atomic_compare_exchange_n(cell, &old, old + 1, true,
							       __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static void cell_lower(uint8_t *cell)
{
	uint8_t old = __atomic_load_n(cell, __ATOMIC_RELAXED);

	while (old != CELL_MAX && old != 0 &&
	       !__atomic_compare_exchange_n(cell, &old, old - 1, true, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED))
		;
}

void mw_filter_add(const void *address)
{
	cell_raise(&mw_filter[mw_filter_cell(address)]);
}

void mw_filter_remove(const void *address)
{
	cell_lower(&mw_filter[mw_filter_cell(address)]);
}

/* Changes all cells; eight at once where each of them has the value @from. */
static void cells_change(uint64_t from, uint64_t to, void (*change)(uint8_t *cell))
{
	for (uint32_t i = 0; i < sizeof(mw_filter); i += sizeof(uint64_t)) {
		cell_group *group = (cell_group *)&mw_filter[i];
		uint64_t old = from;

		if (__atomic_compare_exchange_n(group, &old, to, false, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			continue;
		for (uint32_t n = 0; n < sizeof(uint64_t); n++)
			change(&mw_filter[i + n]);
	}
}

void mw_filter_raise(void)
{
	cells_change(0, EACH_ONE, cell_raise);
}

void mw_filter_lower(void)
{
	cells_change(EACH_ONE, 0, cell_lower);
}

static void cells_clear(uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++)
		if (mw_filter[i])
			mw_filter[i] = 0;
}

/* The kernel replaces whole pages by zeros that take no memory. */
static void pages_clear(uint32_t first, uint32_t end)
{
	if (first < end && madvise(mw_filter + first, end - first, MADV_DONTNEED))
		cells_clear(first, end);
}

/*
 * Blocks of the bootstrap heap stay: free() would give them to the allocator otherwise. Their
 * cells are neighbours, modulo the size of the filter.
 */
void mw_filter_clear(void)
{
	const uint32_t all = sizeof(mw_filter);
	uint32_t keep = mw_filter_cell(mw_bootstrap_heap);
	uint32_t keep_end = keep + (MW_BOOTSTRAP_BYTES >> MW_FILTER_SHIFT);
	uint32_t wrapped = keep_end > all ? keep_end - all : 0;
	uint32_t page_first = (wrapped + CLEAR_PAGE - 1) / CLEAR_PAGE * CLEAR_PAGE;
	uint32_t page_last = keep / CLEAR_PAGE * CLEAR_PAGE;

	cells_clear(wrapped, page_first < keep ? page_first : keep);
	pages_clear(page_first, page_last);
	cells_clear(page_last > wrapped ? page_last : wrapped, keep);
	if (keep_end < all) {
		uint32_t next = (keep_end + CLEAR_PAGE - 1) / CLEAR_PAGE * CLEAR_PAGE;

		cells_clear(keep_end, next);
		pages_clear(next, all);
	}
}
