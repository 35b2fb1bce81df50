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
#include <stdint.h>

/* The symbol that the object defines, or NULL. The object must stay loaded. */
const ElfW(Sym) * mw_elf_symbol_entry(const struct link_map *map, const char *name);

/* Its address, or NULL. */
const void *mw_elf_symbol(const struct link_map *map, const char *name);

/* The object that has this address, or NULL. */
struct link_map *mw_elf_object(const void *address);

/* The first object in the order of the dynamic linker: the program. */
const struct link_map *mw_elf_program(void);

/* Which of the libraries that @map needs @library is, from 1 on; 0: it needs another one. */
uint32_t mw_elf_needs(const struct link_map *map, const struct link_map *library);

#endif
