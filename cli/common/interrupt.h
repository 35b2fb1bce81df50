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
#include <sys/types.h>

/*
 * Catches SIGINT, SIGTERM, and SIGHUP unless it is ignored ("nohup"). Another signal half
 * a second later ends the program.
 */
void mw_interrupt_init(void);
/* Returns whether one of these signals has arrived. */
bool mw_interrupted(void);
/*
 * From now on the signals above and SIGQUIT are for the process @pid, and do not end this one,
 * which waits for it. Those that another process sends are passed on; what the terminal
 * sends, the process @pid gets anyway. If a signal has arrived already, it gets SIGTERM. With 0,
 * which must come before the process is reaped, they are discarded.
 */
void mw_interrupt_pass_on(pid_t pid);
/* Ends this process by a signal, as if it had not been caught. Call it last. */
void mw_interrupt_end_by(int number);

#endif
