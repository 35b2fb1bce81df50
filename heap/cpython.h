/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The frames of CPython 3.11 on the stack of the calling thread.
 */
#ifndef _MW_HEAP_CPYTHON_H
#define _MW_HEAP_CPYTHON_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

#include "thread.h"

struct mw_py_cframe;

/* What a walk along the native stack knows about the interpreter loops that it meets. */
struct mw_cpython_walk {
	const struct mw_py_cframe *loop; /* the innermost that was not met yet, or NULL */
	bool begun;
	bool added; /* frames of Python are in the stack */
};

/* The number of the module with CPython 3.11 in it, or MW_CPYTHON_NONE. */
extern uint32_t mw_cpython_module MW_HIDDEN;
#define MW_CPYTHON_NONE UINT32_MAX

/*
 * The walk has passed a frame of module mw_cpython_module with @pc, which occupies the stack from
 * @low to @high, and is frames[depth - 1]. If it is an interpreter loop, the frames of Python that
 * the loop runs are inserted before it. Returns the new depth, at most @max.
 */
uint32_t mw_cpython_insert(struct mw_cpython_walk *walk, uintptr_t pc, uintptr_t low,
			   uintptr_t high, uint64_t *frames, uint32_t depth, uint32_t max);

/* The walk has passed the frame of a signal handler: what is interrupted may be half done. */
static inline void mw_cpython_stop(struct mw_cpython_walk *walk)
{
	walk->begun = true;
	walk->loop = NULL;
}

/* A module got this number. Looks whether it has a CPython in it. */
void mw_cpython_examine(const struct link_map *map, uint32_t module);

/* After a fork. */
void mw_cpython_clear(void);

#endif
