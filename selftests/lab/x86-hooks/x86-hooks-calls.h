/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The functions that the inserted lines call. @ra is the GETPC() of the helper. The
 * functions of type bool return true if the plugin has handled the instruction; they do
 * not return if the instruction faults.
 */
#ifndef LAB_X86_HOOKS_CALLS_H
#define LAB_X86_HOOKS_CALLS_H

#include "cpu.h"

void x86_hook_cpuid(CPUX86State *env, uint32_t *eax, uint32_t *ebx, uint32_t *ecx, uint32_t *edx);
bool x86_hook_wrmsr(CPUX86State *env, uintptr_t ra);
bool x86_hook_rdmsr(CPUX86State *env, uintptr_t ra);
bool x86_hook_rdpmc(CPUX86State *env, uintptr_t ra);
void x86_hook_cr3(CPUX86State *env, uint64_t value);

#endif
