/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * From the state of the detectors, the host's own or that of a BPF map, to what
 * the public header says of a process.
 */
#ifndef MW_GROWTH_ROW_H
#define MW_GROWTH_ROW_H

#include <memwatch/growth.h>

#include "bpf/growth.h"

/* All but @tgid, @comm and @start_time_ns; @history may be NULL. */
void mw_growth_row_fill(struct memwatch_growth_row *row, const struct mw_growth *g,
			const struct mw_growth_history *history);

#endif /* MW_GROWTH_ROW_H */
