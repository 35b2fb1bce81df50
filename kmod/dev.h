/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * /dev/memwatch.
 */
#ifndef _MW_DEV_H
#define _MW_DEV_H

int mw_dev_init(void);
void mw_dev_uninit(void);

#endif /* _MW_DEV_H */
