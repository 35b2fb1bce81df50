// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The signal handlers. They set a flag, or pass the signal on.
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "common/clock.h"
#include "common/interrupt.h"

static const int signals[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP };

#define NR_SIGNALS (sizeof(signals) / sizeof(signals[0]))

/* "timeout" sends its signal to the program and to its group: twice, but not to end it by force. */
#define AGAIN_NS 500000000

static volatile sig_atomic_t interrupted;
static volatile uint64_t interrupted_ns;
/* The process that gets the signals instead of this one, or 0. */
static volatile pid_t receiver;

void mw_interrupt_end_by(int number)
{
	signal(number, SIG_DFL);
	raise(number);
}

static void handle_termination(int number)
{
	uint64_t now = mw_clock_ns(CLOCK_MONOTONIC);

	if (!interrupted) {
		interrupted_ns = now;
		interrupted = 1;
	} else if (now - interrupted_ns >= AGAIN_NS) {
		mw_interrupt_end_by(number);
	}
}

/* The terminal sends its signals to the other process as well, as the kernel (si_code > 0). */
static void handle_for_receiver(int number, siginfo_t *info, void *context)
{
	int saved = errno;

	(void)context;
	if (receiver && info->si_code <= 0)
		kill(receiver, number);
	errno = saved;
}

static void handle_child_exit(int number)
{
	(void)number;
}

/* "nohup" has SIGHUP ignored. The shell ignores SIGINT of what it runs in the background. */
static bool is_ignored(int number)
{
	struct sigaction old;

	return number == SIGHUP && !sigaction(number, NULL, &old) && old.sa_handler == SIG_IGN;
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
	struct sigaction action = { .sa_handler = handle_termination };

	for (size_t i = 0; i < NR_SIGNALS; i++)
		if (signals[i] != SIGQUIT && !is_ignored(signals[i]))
			sigaction(signals[i], &action, NULL);
	sigaction(SIGCHLD, &child, NULL);
}

bool mw_interrupted(void)
{
	return interrupted;
}

void mw_interrupt_pass_on(pid_t pid)
{
	struct sigaction action = { .sa_sigaction = handle_for_receiver,
				    .sa_flags = SA_SIGINFO | SA_RESTART };

	receiver = pid;
	for (size_t i = 0; i < NR_SIGNALS; i++)
		if (!is_ignored(signals[i]))
			sigaction(signals[i], &action, NULL);
	if (pid && interrupted)
		kill(pid, SIGTERM);
}
