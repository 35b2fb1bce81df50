// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A program that only exits with status 0. The storm executes it tens of thousands of
 * times. It is linked with -nostdlib -static, because the start of a C library would take
 * most of its life.
 */
__attribute__((noreturn)) void _start(void);

void _start(void)
{
#if defined(__x86_64__)
	__asm__ volatile("xorl %%edi, %%edi\n\tmovl $231, %%eax\n\tsyscall" ::: "memory");
#elif defined(__aarch64__)
	__asm__ volatile("mov x0, #0\n\tmov x8, #94\n\tsvc #0" ::: "memory");
#else
#error "add the system call exit_group of this architecture"
#endif
	__builtin_unreachable();
}
