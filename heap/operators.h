/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * operator new and operator delete of C++, in all their forms.
 */
#ifndef _MW_HEAP_OPERATORS_H
#define _MW_HEAP_OPERATORS_H

#include <stdbool.h>
#include <stdint.h>

/* Looks the next definitions up, if the program has any by now. */
void mw_operators_resolve(void);

/* Whether @pc is in a definition of operator new or operator delete that this library calls. */
bool mw_operators_contain(uintptr_t pc);

/* What may be unloaded is about to be: the libraries with these definitions stay. */
void mw_operators_keep(void);

#endif
