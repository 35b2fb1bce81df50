/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QEMU's side of x86-hooks.h. It is compiled into QEMU and called from the lines that
 * the script "insert" adds to QEMU's own source.
 */
#include "qemu/osdep.h"
#include "cpu.h"
#include "tcg/helper-tcg.h"
#include "qemu/qemu-plugin.h"
#include "x86-hooks.h"
#include "x86-hooks-calls.h"

static const struct x86_hooks no_hooks;
static const struct x86_hooks *hooks = &no_hooks;

/* Needs no lock: QEMU installs its plugins before it creates the first vCPU. */
void qemu_plugin_set_x86_hooks(const struct x86_hooks *h)
{
	hooks = h;
}

static unsigned int cpu_index_of(CPUX86State *env)
{
	return env_cpu(env)->cpu_index;
}

void x86_hook_cpuid(CPUX86State *env, uint32_t *eax, uint32_t *ebx, uint32_t *ecx, uint32_t *edx)
{
	struct x86_hook_cpuid c = {
		.rbx = env->regs[R_EBX],
		.rdx = env->regs[R_EDX],
		.leaf = env->regs[R_EAX],
		.subleaf = env->regs[R_ECX],
		.eax = *eax,
		.ebx = *ebx,
		.ecx = *ecx,
		.edx = *edx,
	};

	if (!hooks->cpuid)
		return;
	c.tsc = cpu_get_tsc(env) + env->tsc_offset;
	hooks->cpuid(cpu_index_of(env), &c);
	*eax = c.eax;
	*ebx = c.ebx;
	*ecx = c.ecx;
	*edx = c.edx;
}

/* Raise #GP(0) if the plugin asked for it; true if the plugin handled the instruction. */
static bool apply_answer(CPUX86State *env, enum x86_hook_answer answer, uintptr_t ra)
{
	if (answer == X86_HOOK_FAULT)
		raise_exception_err_ra(env, EXCP0D_GPF, 0, ra);
	return answer == X86_HOOK_DONE;
}

static void set_edx_eax(CPUX86State *env, uint64_t value)
{
	env->regs[R_EAX] = (uint32_t)value;
	env->regs[R_EDX] = (uint32_t)(value >> 32);
}

bool x86_hook_wrmsr(CPUX86State *env, uintptr_t ra)
{
	uint64_t value = (uint32_t)env->regs[R_EAX] | (uint64_t)(uint32_t)env->regs[R_EDX] << 32;

	return hooks->wrmsr &&
	       apply_answer(env, hooks->wrmsr(cpu_index_of(env), env->regs[R_ECX], value), ra);
}

bool x86_hook_rdmsr(CPUX86State *env, uintptr_t ra)
{
	uint64_t value = 0;

	if (!hooks->rdmsr ||
	    !apply_answer(env, hooks->rdmsr(cpu_index_of(env), env->regs[R_ECX], &value), ra))
		return false;
	set_edx_eax(env, value);
	return true;
}

bool x86_hook_rdpmc(CPUX86State *env, uintptr_t ra)
{
	uint64_t value = 0;

	if (!hooks->rdpmc ||
	    !apply_answer(env, hooks->rdpmc(cpu_index_of(env), env->regs[R_ECX], &value), ra))
		return false;
	set_edx_eax(env, value);
	return true;
}

void x86_hook_cr3(CPUX86State *env, uint64_t value)
{
	if (hooks->cr3)
		hooks->cr3(cpu_index_of(env), value);
}
