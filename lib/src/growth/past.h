/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * How much of a growth is whose: the signal that a state had at an earlier time.
 */
#ifndef MW_GROWTH_PAST_H
#define MW_GROWTH_PAST_H

#include "bpf/growth.h"

/*
 * The lowest signal around @when, to the precision of the bins of the history, in pages. Before
 * the first sample it is 0. @history may be NULL: then the signal has never been half a MiB above
 * its floor.
 */
__u32 mw_past_signal(const struct mw_growth *g, const struct mw_growth_history *history,
		     __u64 when);

/* What was gained since @when, in pages. */
__u32 mw_past_growth(const struct mw_growth *g, const struct mw_growth_history *history,
		     __u64 when);

#endif /* MW_GROWTH_PAST_H */
