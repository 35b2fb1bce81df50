/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Differences between kernels in linux/syscore_ops.h.
 */
#ifndef _MW_COMPAT_SYSCORE_H
#define _MW_COMPAT_SYSCORE_H

#include <linux/syscore_ops.h>
#include <compat/config.h>

/* The parameters of both callbacks; and an object for register_syscore(). */
#ifdef MW_HAVE_SYSCORE_DATA
#define MW_SYSCORE_PARAMETERS void *data
#define MW_DEFINE_SYSCORE(name, on_suspend, on_resume)                                             \
	static const struct syscore_ops name##_ops = { .suspend = on_suspend,                      \
						       .resume = on_resume };                      \
	static struct syscore name = { .ops = &name##_ops }
#else
#define MW_SYSCORE_PARAMETERS void
#define MW_DEFINE_SYSCORE(name, on_suspend, on_resume)                                             \
	static struct syscore_ops name = { .suspend = on_suspend, .resume = on_resume }
#define register_syscore   register_syscore_ops
#define unregister_syscore unregister_syscore_ops
#endif

#endif /* _MW_COMPAT_SYSCORE_H */
