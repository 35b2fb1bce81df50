/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The lab's extension of QEMU's plugin interface. QEMU already shows a plugin every
 * memory access and every instruction. With these hooks a plugin can also handle CPUID,
 * RDMSR, WRMSR, RDPMC and writes of CR3, and so can simulate registers of the processor.
 *
 * Every function runs in the thread of the vCPU @cpu (its index in QEMU), while that vCPU
 * executes the instruction. When QEMU runs its vCPUs in several threads, the functions
 * run concurrently. A member may be NULL; QEMU then handles the instruction itself.
 */
#ifndef LAB_X86_HOOKS_H
#define LAB_X86_HOOKS_H

#include <stdint.h>

enum x86_hook_answer {
	X86_HOOK_PASS,	/* QEMU handles the instruction */
	X86_HOOK_DONE,	/* the plugin has handled it */
	X86_HOOK_FAULT, /* it raises #GP(0) */
};

/*
 * RBX and RDX as the guest set them, its time-stamp counter, and leaf and subleaf. EAX to
 * EDX hold QEMU's own answer, which the plugin may change.
 */
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
	/* Called after each write of CR3, also if the value did not change. */
	void (*cr3)(unsigned int cpu, uint64_t value);
};

#endif
