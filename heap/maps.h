/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What the kernel says about a mapping of this process. Nothing is allocated.
 */
#ifndef _MW_HEAP_MAPS_H
#define _MW_HEAP_MAPS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Is private anonymous memory mapped at @address, and more than reserved? Keeps errno, and is no
 * cancellation point.
 */
bool mw_maps_is_anonymous(uintptr_t address);

#endif
