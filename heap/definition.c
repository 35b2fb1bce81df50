/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Where the functions of C++ are defined that this library interposes.
 *
 * A library that was loaded with RTLD_LOCAL, and what it needs, is not in the scope of RTLD_NEXT:
 * a plugin with a libstdc++ of its own, for example. So the library that calls is looked at, too.
 *
 * dlsym(), dladdr() and dlopen() wait for a lock that dlopen() holds while it runs constructors,
 * and a constructor may wait for the thread that calls operator new. So all that can be found
 * without that lock is. The objects that are loaded from the start stay loaded, and so does the
 * list of them; that of the others is read in dl_iterate_phdr(), which has a lock of its own.
 * dlopen() holds that one for a moment only, but a callback of the program as long as it runs.
 */
#include <dlfcn.h>

#include "definition.h"
#include "elf-symbol.h"
#include "next.h"

static const struct link_map *own_map(void)
{
	return mw_elf_object((const void *)own_map);
}

static bool definition_in(const struct link_map *map, const char *name, struct mw_definition *ret)
{
	const ElfW(Sym) *symbol = mw_elf_symbol_entry(map, name);

	if (!symbol)
		return false;
	ret->address = (void *)(map->l_addr + symbol->st_value);
	ret->size = symbol->st_size;
	/* Only the dynamic linker knows what it has chosen; tcmalloc has some of these. */
	if (ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC) {
		ret->address = dlsym(RTLD_NEXT, name);
		ret->size = 0;
	}
	return ret->address;
}

void *mw_definition_before(const char *name)
{
	const struct link_map *own = own_map();
	struct mw_definition found;

	for (const struct link_map *map = mw_elf_program(); map != own; map = map->l_next)
		if (definition_in(map, name, &found))
			return found.address;
	return NULL;
}

bool mw_definition_at_start(const char *name, struct mw_definition *ret)
{
	ret->may_go = false;
	for (const struct link_map *map = own_map(); map && map != mw_next.last_map;) {
		map = map->l_next;
		if (map && definition_in(map, name, ret))
			return true;
	}
	return false;
}

/* The object that dl_iterate_phdr() names; as far as elf-symbol.h needs it. */
static struct link_map map_of(const struct dl_phdr_info *info)
{
	struct link_map map = { .l_addr = info->dlpi_addr, .l_name = (char *)info->dlpi_name };

	for (size_t i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			map.l_ld = (void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	return map;
}

struct search {
	const char *name;
	const struct link_map *by;
	uint32_t place; /* of the library in which it was found, 0: none */
	struct mw_definition found;
};

/* Libraries that are needed are searched in the order in which they are named. */
static int library_search(struct dl_phdr_info *info, size_t size, void *data)
{
	struct link_map map = map_of(info);
	struct search *search = data;
	struct mw_definition found;
	uint32_t place;

	(void)size;
	place = mw_elf_needs(search->by, &map);
	if (place && (!search->place || place < search->place) &&
	    definition_in(&map, search->name, &found)) {
		search->found = found;
		search->place = place;
	}
	return 0;
}

bool mw_definition_near(const char *name, const void *address, struct mw_definition *ret)
{
	struct search search = { .name = name, .by = mw_elf_object(address) };

	if (mw_definition_at_start(name, ret))
		return true;
	ret->may_go = true;
	if (!search.by || search.by == own_map())
		return false;
	if (definition_in(search.by, name, ret))
		return true;
	dl_iterate_phdr(library_search, &search);
	if (!search.place)
		return false;
	ret->address = search.found.address;
	ret->size = search.found.size;
	return true;
}

static int user_search(struct dl_phdr_info *info, size_t size, void *data)
{
	const struct link_map map = map_of(info);

	(void)size;
	return mw_elf_needs(&map, data) != 0;
}

/* A library that others need is the runtime of these, too. */
bool mw_definition_own(const char *name, const void *address, struct mw_definition *ret)
{
	struct link_map *map = mw_elf_object(address);

	if (!map || !mw_elf_symbol(map, "__cxa_throw") || mw_definition_at_start(name, ret))
		return false;
	return definition_in(map, name, ret) && !dl_iterate_phdr(user_search, map);
}

/* Libraries of C++ that are loaded may be in no scope that is known here. */
bool mw_definition_ask(const char *name, struct mw_definition *ret)
{
	static const char *const libraries[] = { "libstdc++.so.6", "libc++abi.so.1",
						 "libc++.so.1" };
	const ElfW(Sym) *symbol = NULL;
	const struct link_map *map;

	ret->address = dlsym(RTLD_NEXT, name);
	for (size_t i = 0; !ret->address && i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		void *library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);

		/* The handle is kept: what was found must stay loaded. */
		if (library)
			ret->address = dlsym(library, name);
	}
	map = mw_elf_object(ret->address);
	if (map)
		symbol = mw_elf_symbol_entry(map, name);
	ret->size = symbol && mw_elf_symbol(map, name) == ret->address ? symbol->st_size : 0;
	ret->may_go = true;
	return ret->address;
}

void mw_definition_keep(const void *address)
{
	const struct link_map *map = mw_elf_object(address);

	if (map)
		dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
}
