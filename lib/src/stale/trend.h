/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Whether the stale objects of a site become more. A table that is built once and seldom used is
 * stale as well, but it does not grow, and a leak does.
 */
#ifndef MW_STALE_TREND_H
#define MW_STALE_TREND_H

#include <stdbool.h>
#include <stdint.h>

/* The time up to which births can be seen is divided into so many parts. */
#define MW_BIRTHS_PARTS 16U

/**
 * struct mw_births - when the stale objects of a site were allocated; zero has none
 * @count: their number
 * @last: the last birth
 * @parts: bit n is set if there was a birth in part n
 */
struct mw_births {
	uint64_t count, last;
	uint32_t parts;
};

/* @horizon: objects that are younger cannot be stale yet. */
void mw_births_add(struct mw_births *births, uint64_t birth, uint64_t horizon);

/* The growth has stopped: there was none for a third of the time, which is no chance. */
bool mw_births_have_stopped(const struct mw_births *births, uint64_t horizon);

/* There were births in several parts of the time. */
bool mw_births_are_spread(const struct mw_births *births);

#endif /* MW_STALE_TREND_H */
