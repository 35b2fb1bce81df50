// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Lines of access samples, see access-text.h.
 */
#include "stale/access-text.h"

#include <inttypes.h>
#include <stdio.h>

size_t mw_access_text_line(const struct mw_access_item *item, char *to)
{
	int len = 0;

	switch (item->kind) {
	case MW_ACCESS_SAMPLE:
		len = snprintf(to, MW_ACCESS_LINE_ROOM,
			       "a %" PRIu64 " %" PRIu32 " 0x%" PRIx64 " 0x%" PRIx64 "\n",
			       item->time_ns, item->tid, item->address, item->ip);
		break;
	case MW_ACCESS_LOST:
		len = snprintf(to, MW_ACCESS_LINE_ROOM,
			       "# %" PRIu64 " records of CPU %" PRIu32 " were lost before %" PRIu64
			       "\n",
			       item->lost, item->cpu, item->time_ns);
		break;
	case MW_ACCESS_THROTTLED:
		len = snprintf(to, MW_ACCESS_LINE_ROOM,
			       "# the kernel stopped sampling on CPU %" PRIu32
			       " for a tick at %" PRIu64 "\n",
			       item->cpu, item->time_ns);
		break;
	default:
		break;
	}
	return (size_t)len;
}
