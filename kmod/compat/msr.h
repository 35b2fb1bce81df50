/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Differences between kernels in asm/msr.h.
 */
#ifndef _MW_COMPAT_MSR_H
#define _MW_COMPAT_MSR_H

#include <asm/msr.h>
#include <compat/config.h>

#ifndef MW_HAVE_MSR_Q
#define rdmsrq(msr, value)	rdmsrl(msr, value)
#define rdmsrq_safe(msr, value) rdmsrl_safe(msr, value)
#define wrmsrq(msr, value)	wrmsrl(msr, value)
#define wrmsrq_safe(msr, value) wrmsrl_safe(msr, value)
#endif

#endif /* _MW_COMPAT_MSR_H */
