// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Defines the locks of lock.h.
 */
#include "lock.h"

DEFINE_MUTEX(mw_control_lock);
DEFINE_RAW_SPINLOCK(mw_lock);
