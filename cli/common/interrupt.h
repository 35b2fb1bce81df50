/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Signals that ask the program to end, such as Ctrl-C. A measurement then ends in the
 * regular way, and what was measured is kept.
 */
#ifndef MW_INTERRUPT_H
#define MW_INTERRUPT_H

#include <stdbool.h>

/* Catches SIGINT, SIGTERM and SIGHUP. A second signal of a kind ends the program. */
void mw_interrupt_init(void);
/* Returns whether one of these signals has arrived. */
bool mw_interrupted(void);

#endif
