/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Looking up an exported symbol by the hash table of its object (DT_GNU_HASH), and the libraries
 * that an object needs by their names.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "elf-symbol.h"

/* The head of the table; behind @bloom are the buckets, and behind them the chains. */
struct gnu_hash {
	uint32_t buckets;
	uint32_t first; /* symbol in the chains */
	uint32_t bloom_words;
	uint32_t bloom_shift;
	ElfW(Addr) bloom[];
};

struct symbol_tables {
	const struct gnu_hash *hash;
	const ElfW(Sym) * symbols;
	const char *names;
};

static uint32_t name_hash(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (uint8_t)*name;
	return hash;
}

/* The dynamic linker has relocated most of these addresses in place, but not those of the vDSO. */
static const void *table_at(const struct link_map *map, ElfW(Addr) address)
{
	return (const void *)(address < map->l_addr ? address + map->l_addr : address);
}

static bool tables_find(const struct link_map *map, struct symbol_tables *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (const ElfW(Dyn) *entry = map->l_ld; entry && entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == DT_GNU_HASH)
			ret->hash = table_at(map, entry->d_un.d_ptr);
		else if (entry->d_tag == DT_SYMTAB)
			ret->symbols = table_at(map, entry->d_un.d_ptr);
		else if (entry->d_tag == DT_STRTAB)
			ret->names = table_at(map, entry->d_un.d_ptr);
	}
	return ret->hash && ret->symbols && ret->names && ret->hash->buckets;
}

const ElfW(Sym) * mw_elf_symbol_entry(const struct link_map *map, const char *name)
{
	uint32_t hash = name_hash(name), number;
	struct symbol_tables tables;
	const uint32_t *buckets, *chain;

	if (!tables_find(map, &tables))
		return NULL;
	buckets = (const uint32_t *)(const void *)(tables.hash->bloom + tables.hash->bloom_words);
	number = buckets[hash % tables.hash->buckets];
	if (number < tables.hash->first)
		return NULL;
	chain = buckets + tables.hash->buckets;
	/* The lowest bit of a hash in the chain says that it is the last one. */
	do {
		const ElfW(Sym) *symbol = &tables.symbols[number];

		if ((chain[number - tables.hash->first] | 1) == (hash | 1) &&
		    symbol->st_shndx != SHN_UNDEF && !strcmp(tables.names + symbol->st_name, name))
			return symbol;
	} while (!(chain[number++ - tables.hash->first] & 1));
	return NULL;
}

const void *mw_elf_symbol(const struct link_map *map, const char *name)
{
	const ElfW(Sym) *symbol = mw_elf_symbol_entry(map, name);

	/* What the dynamic linker has chosen is not known here. */
	if (!symbol || ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC)
		return NULL;
	return (const void *)(map->l_addr + symbol->st_value);
}

struct link_map *mw_elf_object(const void *address)
{
	struct dl_find_object object;

	if (!address || _dl_find_object((void *)address, &object))
		return NULL;
	return object.dlfo_link_map;
}

const struct link_map *mw_elf_program(void)
{
	const struct link_map *map = mw_elf_object((const void *)mw_elf_program);

	while (map && map->l_prev)
		map = map->l_prev;
	return map;
}

/* The name that a library gives itself, or NULL. */
static const char *library_name(const struct link_map *map, const struct symbol_tables *tables)
{
	for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++)
		if (entry->d_tag == DT_SONAME)
			return tables->names + entry->d_un.d_val;
	return NULL;
}

static bool names_equal(const char *needed, const char *path, const char *name)
{
	const char *file = strrchr(path, '/');

	return (name && !strcmp(needed, name)) || !strcmp(needed, path) ||
	       (file && !strcmp(needed, file + 1));
}

uint32_t mw_elf_needs(const struct link_map *map, const struct link_map *library)
{
	struct symbol_tables own, others;
	uint32_t place = 0;
	const char *name;

	if (!tables_find(map, &own) || !tables_find(library, &others))
		return 0;
	name = library_name(library, &others);
	for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag != DT_NEEDED)
			continue;
		place++;
		if (names_equal(own.names + entry->d_un.d_val, library->l_name, name))
			return place;
	}
	return 0;
}
