/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Access samples as lines of a trace, see <memwatch/stale.h>.
 */
#ifndef MW_STALE_ACCESS_TEXT_H
#define MW_STALE_ACCESS_TEXT_H

#include <stddef.h>

#include "stale/access-ring.h"

#define MW_ACCESS_LINE_ROOM 128

/*
 * Writes a line with newline to @to, which has MW_ACCESS_LINE_ROOM bytes, and returns its length.
 * A sample becomes an event "a" whose place is the address of the instruction. What is missing
 * (LOST, THROTTLED) becomes a comment. Other items have no line: the result is 0. A trace
 * has the accesses of one process, so the caller leaves out items of others. The lines of several
 * CPUs are in no order; the import sorts them.
 */
size_t mw_access_text_line(const struct mw_access_item *item, char *to);

#endif /* MW_STALE_ACCESS_TEXT_H */
