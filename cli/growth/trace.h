/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Writes the memory use of all processes to a trace, which "growth replay" reads.
 */
#ifndef MW_GROWTH_TRACE_H
#define MW_GROWTH_TRACE_H

#include <stdint.h>
#include <stdio.h>

#include "growth/monitor.h"

/* Writes the names of the columns. Returns 0 or a negative errno. */
int mw_trace_write_header(FILE *out);

/*
 * Writes the samples of a round, all with the same time, so that the times of a trace never
 * decrease. Adds the number of processes to *@samples. Returns 0 or a negative errno.
 */
int mw_trace_write_round(struct mw_monitor *monitor, FILE *out, uint64_t *samples);

#endif
