// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A program that is its own sandbox, as browsers are: system calls that are not permitted raise
 * SIGSYS, and its handler answers them.
 */
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "heap/tests/sandbox.h"
#include "heap/tests/work.h"

static volatile unsigned int answers;

static void answer(int number, siginfo_t *info, void *argument)
{
	ucontext_t *context = argument;

	(void)number;
	(void)info;
	answers++;
#if defined(__x86_64__)
	context->uc_mcontext.gregs[REG_RAX] = -ENOSYS;
#elif defined(__aarch64__)
	context->uc_mcontext.regs[0] = (unsigned long)-ENOSYS;
#endif
}

/* sandbox BYTES: allocates where fallocate() raises SIGSYS. Fails if nobody has called it. */
int work_sandbox(char **argv)
{
	struct sigaction action = { .sa_sigaction = answer, .sa_flags = SA_SIGINFO };

	sigaction(SIGSYS, &action, NULL);
	if (!sandbox_enter(SYS_fallocate, SECCOMP_RET_TRAP))
		return WORK_UNSUPPORTED;
	work_allocate(work_number(argv, 0, 1000000));
	return !answers;
}
