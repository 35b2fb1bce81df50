/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * One line of a trace, see <memwatch/stale.h>.
 */
#ifndef MW_STALE_EVENT_TEXT_H
#define MW_STALE_EVENT_TEXT_H

#include "base/text.h"
#include "stale/sim.h"

/* Whether a line has no event: it is empty or begins with "#". */
bool mw_event_is_comment(struct mw_text line);

/*
 * Parses a line; @event gets all but its place and sequence, @place the word for its place.
 * Returns NULL, or what is wrong with the line.
 */
const char *mw_event_parse(struct mw_text line, struct mw_event *event, struct mw_text *place);

/* Only the time, of a line that may be wrong in other ways. Returns whether it has one. */
bool mw_event_parse_time(struct mw_text line, uint64_t *time_ns);

#endif /* MW_STALE_EVENT_TEXT_H */
