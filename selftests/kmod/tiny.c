// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The smallest program there is: it exits with status 0. The storm executes it
 * by the ten thousand, so it has no C library whose start-up would be most of
 * its life. It must stay without libc: -nostdlib -static.
 */
__attribute__((noreturn)) void _start(void);

void _start(void)
{
#if defined(__x86_64__)
	__asm__ volatile("xorl %%edi, %%edi\n\tmovl $231, %%eax\n\tsyscall" ::: "memory");
#elif defined(__aarch64__)
	__asm__ volatile("mov x0, #0\n\tmov x8, #94\n\tsvc #0" ::: "memory");
#else
#error "how does a process exit here?"
#endif
	__builtin_unreachable();
}
