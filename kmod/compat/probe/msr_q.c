/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * c435e608cf59 ("x86/msr: Rename 'rdmsrl()' to 'rdmsrq()'") and 78255eb23973
 * ("x86/msr: Rename 'wrmsrl()' to 'wrmsrq()'"), 6.16. Delete when the oldest
 * supported kernel is 6.16 or newer.
 */
#include <asm/msr.h>

u64 mw_probe(void);
u64 mw_probe(void)
{
	u64 value;

	rdmsrq(0xc8f, value);
	wrmsrq(0xc8f, value);
	return value;
}
