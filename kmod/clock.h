/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The clock of all records. It is the one that bpf_ktime_get_ns() reads, and it
 * may be read in any context.
 */
#ifndef _MW_CLOCK_H
#define _MW_CLOCK_H

#include <linux/ktime.h>

static __always_inline u64 mw_now(void)
{
	return ktime_get_mono_fast_ns();
}

/* The clock may step back a little when the kernel corrects it. */
static __always_inline u64 mw_now_since(u64 begin)
{
	u64 now = mw_now();

	return now > begin ? now - begin : 0;
}

#endif /* _MW_CLOCK_H */
