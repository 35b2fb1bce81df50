/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Differences between kernels in linux/irq_work.h.
 */
#ifndef _MW_COMPAT_IRQ_WORK_H
#define _MW_COMPAT_IRQ_WORK_H

#include <linux/irq_work.h>
#include <compat/config.h>

#ifndef MW_HAVE_IRQ_WORK_INIT_HARD
#define IRQ_WORK_INIT_HARD(function)                                                               \
	(struct irq_work)                                                                          \
	{                                                                                          \
		.flags = ATOMIC_INIT(IRQ_WORK_HARD_IRQ), .func = (function),                       \
	}
#endif

#endif /* _MW_COMPAT_IRQ_WORK_H */
