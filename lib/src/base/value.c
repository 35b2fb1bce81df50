// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Values with a status: how they are added up.
 */
#include "base/value.h"

#include "base/timemath.h"

/* From good to bad, for those that are on the scale; see the header for the others. */
static int rank_status(__u8 status)
{
	switch (status) {
	case MEMWATCH_STATUS_OK:
		return 0;
	case MEMWATCH_STATUS_MULTIPLEXED:
		return 1;
	case MEMWATCH_STATUS_ESTIMATED:
		return 2;
	case MEMWATCH_STATUS_STALE:
		return 3;
	default:
		return 4;
	}
}

__u8 memwatch_status_worst(__u8 a, __u8 b)
{
	if (a == MEMWATCH_STATUS_FIRST || a == b)
		return b;
	if (b == MEMWATCH_STATUS_FIRST)
		return a;
	/* One of them was measured, one was not: the sum is a lower bound. */
	if (a == MEMWATCH_STATUS_UNAVAILABLE)
		a = MEMWATCH_STATUS_ESTIMATED;
	if (b == MEMWATCH_STATUS_UNAVAILABLE)
		b = MEMWATCH_STATUS_ESTIMATED;
	if (rank_status(a) < rank_status(b))
		a = b;
	return rank_status(a) == 4 ? MEMWATCH_STATUS_ERROR : a;
}

bool mw_status_has_number(__u8 status)
{
	return status == MEMWATCH_STATUS_OK || status == MEMWATCH_STATUS_STALE ||
	       status == MEMWATCH_STATUS_ESTIMATED || status == MEMWATCH_STATUS_MULTIPLEXED;
}

void mw_value_mark_lower_bound(struct memwatch_value *value)
{
	if (value->status == MEMWATCH_STATUS_OK || value->status == MEMWATCH_STATUS_MULTIPLEXED)
		value->status = MEMWATCH_STATUS_ESTIMATED;
}

void memwatch_value_add(struct memwatch_value *sum, __u64 value, __u8 status)
{
	struct memwatch_value part = { .parts = 1, .status = status };

	if (mw_status_has_number(status))
		part.value = value;
	else if (status > MEMWATCH_STATUS_MULTIPLEXED)
		part.status = MEMWATCH_STATUS_ERROR;
	memwatch_value_merge(sum, &part);
}

void memwatch_value_merge(struct memwatch_value *sum, const struct memwatch_value *other)
{
	if (!other->parts)
		return;
	sum->status = sum->parts ? memwatch_status_worst(sum->status, other->status)
				 : other->status;
	sum->value = mw_add_sat(sum->value, other->value);
	if (__builtin_add_overflow(sum->parts, other->parts, &sum->parts))
		sum->parts = UINT32_MAX;
}
