/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * /proc/memwatch. The formats are those of the uapi header.
 */
#ifndef _MW_PROC_H
#define _MW_PROC_H

int mw_proc_init(void);
void mw_proc_uninit(void);

#endif /* _MW_PROC_H */
