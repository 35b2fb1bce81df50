/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Differences between kernels in asm/cpuid/api.h.
 */
#ifndef _MW_COMPAT_CPUID_H
#define _MW_COMPAT_CPUID_H

#include <asm/processor.h>
#include <compat/config.h>

#ifdef MW_HAVE_CPUID_API_HEADER
#include <asm/cpuid/api.h>
#endif

#endif /* _MW_COMPAT_CPUID_H */
