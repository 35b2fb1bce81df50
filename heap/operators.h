/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * operator new and operator delete of C++, in all their forms.
 */
#ifndef _MW_HEAP_OPERATORS_H
#define _MW_HEAP_OPERATORS_H

/* Looks the next definitions up, if the program has any by now. */
void mw_operators_resolve(void);

#endif
