/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What CPUID reports about RDT monitoring, on every CPU.
 */
#ifndef _MW_RDT_PROBE_H
#define _MW_RDT_PROBE_H

#include "rdt.h"

/* Fills in @rdt, without @first_rmid and @reason. Returns NULL, or why RDT cannot be used. */
const char *mw_rdt_probe(struct mw_rdt *rdt);

/* On the CPU in question, preemption off. */
u32 mw_rdt_probe_rmids(void);
bool mw_rdt_probe_l3(u32 *id);

#endif /* _MW_RDT_PROBE_H */
