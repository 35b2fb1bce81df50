// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Decodes tables of locations, as Objects/locations.md of CPython 3.11 describes them. An entry
 * begins with a byte whose highest bit is set; no other byte has it. That byte says how many
 * instructions the entry covers and of which form it is; the line is that of the entry before plus
 * a difference. Columns are not needed.
 */
#include "heap/python-lines.h"

#include <errno.h>
#include <stdbool.h>

#include "base/array.h"

/* Forms of an entry. Those below are short: the line is the same. */
#define FORM_ONE_LINE	 10U /* to 12: the line is 0 to 2 further */
#define FORM_NO_COLUMNS	 13U
#define FORM_LONG	 14U
#define FORM_NO_LOCATION 15U

#define BEGINS		 0x80U

/* A number of six bits in each byte, the lowest first; the lowest bit is the sign. */
static uint32_t signed_read(const uint8_t *at, const uint8_t *end)
{
	uint32_t value = 0;

	for (unsigned int shift = 0; at < end && shift < 32; shift += 6) {
		value |= (*at & 63U) << shift;
		if (!(*at++ & 64U))
			break;
	}
	return value & 1 ? 0 - (value >> 1) : value >> 1;
}

static int run_add(struct mw_line_runs *runs, uint32_t first, uint32_t end, uint32_t line)
{
	if (runs->count > first && runs->runs[runs->count - 1].line == line) {
		runs->runs[runs->count - 1].end = end;
		return 0;
	}
	if (mw_array_reserve(runs->runs, runs->capacity, runs->count + 1U))
		return -ENOMEM;
	runs->runs[runs->count++] = (struct mw_line_run){ .end = end, .line = line };
	return 0;
}

int mw_line_runs_add(struct mw_line_runs *runs, const uint8_t *table, size_t len,
		     uint32_t first_line)
{
	const uint8_t *at = table, *end = table + len;
	uint32_t line = first_line, instruction = 0, first = runs->count;

	while (at < end) {
		uint32_t head = *at++, form = head >> 3 & 15;

		if (!(head & BEGINS))
			continue;
		if (form >= FORM_ONE_LINE && form < FORM_NO_COLUMNS)
			line += form - FORM_ONE_LINE;
		else if (form == FORM_NO_COLUMNS || form == FORM_LONG)
			line += signed_read(at, end);
		instruction += (head & 7) + 1;
		if (run_add(runs, first, instruction,
			    form == FORM_NO_LOCATION || line > INT32_MAX ? 0 : line))
			return -ENOMEM;
	}
	return 0;
}

uint32_t mw_line_runs_find(const struct mw_line_runs *runs, uint32_t first, uint32_t end,
			   uint32_t instruction)
{
	uint32_t low = first, high = end;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (runs->runs[middle].end <= instruction)
			low = middle + 1;
		else
			high = middle;
	}
	return low < end ? runs->runs[low].line : 0;
}
