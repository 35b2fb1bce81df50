/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * 968e30006807 ("x86/cpuid: Set <asm/cpuid/api.h> as the main CPUID header"),
 * 6.16: the functions left <asm/processor.h>. Delete when the oldest supported
 * kernel is 6.16 or newer.
 */
#include <asm/cpuid/api.h>

u32 mw_probe(void);
u32 mw_probe(void)
{
	return cpuid_eax(0);
}
