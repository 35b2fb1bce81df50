// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Finding the file system resctrl, see resctrl.h.
 */
#include <linux/module.h>

#include "resctrl.h"

const struct file_system_type *mw_resctrl;

/*
 * A kernel has resctrl from the start or never: it is not a module. It is looked up
 * once, because for a name that it does not know the kernel calls modprobe.
 */
void mw_resctrl_find(void)
{
	struct file_system_type *found = get_fs_type("resctrl");

	if (found)
		module_put(found->owner);
	mw_resctrl = found;
}
