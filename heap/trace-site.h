/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The site of an event: the innermost frames of its call stack, as a stack of the profile.
 */
#ifndef _MW_HEAP_TRACE_SITE_H
#define _MW_HEAP_TRACE_SITE_H

#include <stdint.h>

struct mw_thread;

/* The index of the stack in the profile; 0 if there is no room. See trace-write.h for @frame. */
uint32_t mw_trace_site(struct mw_thread *thread, const void *frame);

#endif
