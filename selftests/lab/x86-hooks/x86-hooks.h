/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the lab adds to QEMU: a plugin may answer the x86 instructions that ask
 * the processor about itself. A plugin of QEMU's own interface sees every
 * memory access and every instruction; with these hooks it also has registers
 * of its own, and so can be a device of the processor.
 *
 * Every function runs on the thread of the vCPU @cpu (its index in QEMU), in
 * the middle of the instruction. With several threads they run concurrently.
 * A member that is NULL is not asked.
 */
#ifndef LAB_X86_HOOKS_H
#define LAB_X86_HOOKS_H

#include <stdint.h>

enum x86_hook_answer {
	X86_HOOK_PASS, /* not mine: QEMU does what it always did */
	X86_HOOK_DONE,
	X86_HOOK_FAULT, /* #GP(0) */
};

/* The registers that go in, and out what QEMU would answer. */
struct x86_hook_cpuid {
	uint64_t rbx, rdx, tsc;
	uint32_t leaf, subleaf;
	uint32_t eax, ebx, ecx, edx;
};

struct x86_hooks {
	void (*cpuid)(unsigned int cpu, struct x86_hook_cpuid *c);
	enum x86_hook_answer (*rdmsr)(unsigned int cpu, uint32_t msr, uint64_t *value);
	enum x86_hook_answer (*wrmsr)(unsigned int cpu, uint32_t msr, uint64_t value);
	enum x86_hook_answer (*rdpmc)(unsigned int cpu, uint32_t index, uint64_t *value);
	/* after a write of CR3, even of the value it had */
	void (*cr3)(unsigned int cpu, uint64_t value);
};

#endif
