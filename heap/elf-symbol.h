/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Looking up an exported symbol of one ELF object, without the dynamic linker: dlsym() takes its
 * locks, and allocates when it does not find anything.
 */
#ifndef _MW_HEAP_ELF_SYMBOL_H
#define _MW_HEAP_ELF_SYMBOL_H

#include <link.h>

/* The address of the symbol that the object defines, or NULL. The object must stay loaded. */
const void *mw_elf_symbol(const struct link_map *map, const char *name);

#endif
