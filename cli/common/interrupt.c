// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * One flag, set by the signals that ask to end.
 */
#include <signal.h>
#include <stddef.h>

#include "common/interrupt.h"

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	(void)number;
	interrupted = 1;
}

static void on_child(int number)
{
	(void)number;
}

void mw_interrupt_init(void)
{
	/* Only so that a wait for records ends when the command does. */
	struct sigaction child = { .sa_handler = on_child, .sa_flags = SA_NOCLDSTOP };
	/* Not SA_RESTART: a wait for records must end. */
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESETHAND };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	sigaction(SIGCHLD, &child, NULL);
}

bool mw_interrupted(void)
{
	return interrupted;
}
