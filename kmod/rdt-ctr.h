/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * One reading of one RDT counter: select it with QM_EVTSEL, then read QM_CTR.
 *
 * On AMD all CPUs of an L3 domain share one QM_EVTSEL. The lock of the domain keeps the other
 * CPUs of memwatch away, but not other software. One is resctrl after it was unmounted: once
 * a second a worker of the kernel reads the occupancy of each RMID that a group had, until
 * little is left of it. That may take for ever, and nothing tells a module about it. So
 * QM_EVTSEL is read back after QM_CTR, and if it was changed, the reading is repeated.
 *
 * That makes a reading half as long again. So it is done only in the first seconds, and for
 * some seconds after each foreign write: before a CPU begins to read, it looks whether
 * QM_EVTSEL still holds what memwatch has written last.
 */
#ifndef _MW_RDT_CTR_H
#define _MW_RDT_CTR_H

#include <linux/types.h>

/**
 * struct mw_rdt_ctr - a QM_EVTSEL that several CPUs share
 * @select: what memwatch has written last
 * @check_ns: until then each reading is checked
 * @check: whether readings are checked now
 *
 * Guarded by the lock of the domain.
 */
struct mw_rdt_ctr {
	u64 select;
	u64 check_ns;
	bool check;
};

void mw_rdt_ctr_init(struct mw_rdt_ctr *ctr);

/* On a CPU of the domain, interrupts off. */
void mw_rdt_ctr_begin(struct mw_rdt_ctr *ctr);
u64 mw_rdt_ctr_read(struct mw_rdt_ctr *ctr, u64 select);

#endif /* _MW_RDT_CTR_H */
