/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Ctrl-C and its relatives end a measurement; they do not lose it.
 */
#ifndef MW_INTERRUPT_H
#define MW_INTERRUPT_H

#include <stdbool.h>

/* Catches SIGINT, SIGTERM and SIGHUP. A second one kills as usual. */
void mw_interrupt_init(void);
bool mw_interrupted(void);

#endif
