// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The signal handlers. They only set a flag.
 */
#include <signal.h>
#include <stddef.h>

#include "common/interrupt.h"

static volatile sig_atomic_t interrupted;

static void handle_termination(int number)
{
	(void)number;
	interrupted = 1;
}

static void handle_child_exit(int number)
{
	(void)number;
}

void mw_interrupt_init(void)
{
	/*
	 * The empty handler makes poll() return when the command of "record" ends. SA_RESTART does
	 * not change that, and keeps a write to a full pipe from failing when a child ends.
	 */
	struct sigaction child = { .sa_handler = handle_child_exit,
				   .sa_flags = SA_NOCLDSTOP | SA_RESTART };
	/* No SA_RESTART: the signal must interrupt a wait for records. */
	struct sigaction action = { .sa_handler = handle_termination, .sa_flags = SA_RESETHAND };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	sigaction(SIGCHLD, &child, NULL);
}

bool mw_interrupted(void)
{
	return interrupted;
}
