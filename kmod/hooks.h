/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The tracepoints of the kernel that drive the module.
 */
#ifndef _MW_HOOKS_H
#define _MW_HOOKS_H

int mw_hooks_register(void);
void mw_hooks_unregister(void);

#endif /* _MW_HOOKS_H */
