/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * 7a9f50a05843 ("irq_work: Cleanup"), 5.11: IRQ_WORK_INIT_HARD(). Delete when
 * the oldest supported kernel is 5.11 or newer.
 */
#include <linux/irq_work.h>

struct irq_work mw_probe(void (*function)(struct irq_work *));
struct irq_work mw_probe(void (*function)(struct irq_work *))
{
	struct irq_work work = IRQ_WORK_INIT_HARD(function);

	return work;
}
