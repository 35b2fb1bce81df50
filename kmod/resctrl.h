/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Whether resctrl, the kernel's own user of RDT, is mounted, in any mount name space.
 * memwatch then leaves all registers of RDT alone, also with the parameter "force":
 *
 * - resctrl gives out RMIDs from the whole range, so none can be set aside for memwatch.
 * - resctrl writes EVTSEL and then reads CTR. A tick between the two, on this CPU or, on
 *   AMD, on any CPU of the domain, would make it read another counter.
 * - resctrl writes PQR_ASSOC only if it wants another value than the one that it wrote
 *   last. After a write of memwatch the CPU would keep a wrong RMID.
 */
#ifndef _MW_RESCTRL_H
#define _MW_RESCTRL_H

#include <linux/fs.h>

/* The file system; NULL, this kernel has none, or this machine no RDT. Set at load time. */
extern const struct file_system_type *mw_resctrl;

void mw_resctrl_find(void);

/*
 * Cheap enough for each tick. The superblock appears before resctrl writes its first
 * register, and disappears after the last write to PQR_ASSOC. A worker may use EVTSEL
 * longer, see rdt-ctr.h.
 */
static inline bool mw_resctrl_is_mounted(void)
{
	return mw_resctrl && !hlist_empty(&mw_resctrl->fs_supers);
}

#endif /* _MW_RESCTRL_H */
