// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A program that is its own sandbox, as browsers are: system calls that are not permitted raise
 * SIGSYS, and its handler answers them.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

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

static int sandbox_enter(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* sandbox BYTES: allocates where fallocate() raises SIGSYS. Fails if nobody has called it. */
int work_sandbox(char **argv)
{
	struct sigaction action = { .sa_sigaction = answer, .sa_flags = SA_SIGINFO };

	sigaction(SIGSYS, &action, NULL);
	if (sandbox_enter())
		return WORK_UNSUPPORTED;
	work_allocate(work_number(argv, 0, 1000000));
	return !answers;
}
