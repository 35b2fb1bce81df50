/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * a97fbc3ee3e2 ("syscore: Pass context data to callbacks"), 6.19. Delete when the
 * oldest supported kernel is 6.19 or newer.
 */
#include <linux/syscore_ops.h>

void mw_probe(struct syscore *syscore);
void mw_probe(struct syscore *syscore)
{
	register_syscore(syscore);
}
