/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The time to the limit, and its 95 % confidence interval.
 */
#ifndef MW_GROWTH_INTERVAL_H
#define MW_GROWTH_INTERVAL_H

#include <memwatch/growth.h>

#include "bpf/growth.h"

/* Sets slope, eta_ns, eta_low_ns and eta_high_ns. @history may be NULL. */
void mw_growth_fill_eta(struct memwatch_growth_row *row, const struct mw_growth *g,
			const struct mw_growth_history *history);

#endif /* MW_GROWTH_INTERVAL_H */
