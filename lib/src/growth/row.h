/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Converts the state of the detectors, from the host or from a BPF map, to the row of
 * the public header.
 */
#ifndef MW_GROWTH_ROW_H
#define MW_GROWTH_ROW_H

#include <memwatch/growth.h>

#include "bpf/growth.h"

/* Sets all members but @tgid, @comm, @limit and @start_time_ns. @history may be NULL. */
void mw_growth_row_fill(struct memwatch_growth_row *row, const struct mw_growth *g,
			const struct mw_growth_history *history);

/*
 * Adds what is known of the pages of the process, after mw_growth_row_fill(). The growth is then
 * that since the notice, of which the cold memory is a part.
 */
void mw_growth_row_touch(struct memwatch_growth_row *row, const struct mw_growth *g,
			 const struct mw_growth_history *history,
			 const struct mw_growth_touch *touch);

#endif /* MW_GROWTH_ROW_H */
