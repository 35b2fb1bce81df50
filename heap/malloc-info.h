/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What malloc_info() of the C library says.
 */
#ifndef _MW_HEAP_MALLOC_INFO_H
#define _MW_HEAP_MALLOC_INFO_H

#include <stdbool.h>

#include "profile-format.h"
#include "thread.h"

/*
 * Fills in the fields of @figures that are about the allocator. False, and nothing is changed, if
 * malloc is not the C library's or @thread has too little stack left. The thread is busy.
 */
bool mw_malloc_info_read(const struct mw_thread *thread, struct mw_heap_figures *figures);

#endif
