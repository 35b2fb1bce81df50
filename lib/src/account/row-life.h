/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * When what a row of a summary is about may have run: records that were lost at other times do
 * not matter for its values.
 */
#ifndef MW_ROW_LIFE_H
#define MW_ROW_LIFE_H

#include <stdint.h>

#include <memwatch/tracker.h>

/**
 * struct mw_row_life - from when to when; all 0 before it is extended
 * @begin_ns: when the first part of it began
 * @end_ns: when the latest part of it ended, MW_TIME_MAX if that is not known
 * @latest_ns: when the latest part of it began
 */
struct mw_row_life {
	uint64_t begin_ns;
	uint64_t end_ns;
	uint64_t latest_ns;
};

/* Adds a part. Its end is that of the whole if no other part has begun later. */
void mw_row_life_extend(struct mw_row_life *life, uint64_t begin_ns, uint64_t end_ns);

/* Adds an assignment of an RMID, the end of which may not be known at first. */
void mw_row_life_follow(struct mw_row_life *life, const struct memwatch_process *process);

#endif /* MW_ROW_LIFE_H */
