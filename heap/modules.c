/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The ELF objects of this process.
 *
 * _dl_find_object() (glibc 2.35) finds the object of an address without a lock.
 * dl_iterate_phdr() is not used, because it takes a lock: another thread holds it while a callback
 * of the program waits for something, maybe for the thread that allocates here.
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>

#include "cpython.h"
#include "modules.h"
#include "profile.h"
#include "runtime.h"

/* Modules of the profile that can be found again. More are written down more than once. */
#define KNOWN_MAX 1024

static uint32_t known_count; /* records in the profile, in the order of their numbers */

static struct mw_heap_module *record_at(uint32_t number)
{
	return mw_profile_at(MW_HEAP_CHUNK_MODULES,
			     (uint64_t)(number - 1) * sizeof(struct mw_heap_module));
}

struct build_id {
	uint32_t bytes;
	uint8_t id[MW_HEAP_BUILD_ID_MAX];
};

static void note_read(const uint8_t *note, size_t size, struct build_id *ret)
{
	while (size >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *header = (const ElfW(Nhdr) *)(const void *)note;
		size_t name = (header->n_namesz + 3) & ~3u;
		size_t used = sizeof(*header) + name + ((header->n_descsz + 3) & ~3u);

		if (used > size)
			return;
		if (header->n_type == NT_GNU_BUILD_ID && header->n_namesz == 4 &&
		    !memcmp(note + sizeof(*header), "GNU", 4) &&
		    header->n_descsz <= MW_HEAP_BUILD_ID_MAX) {
			ret->bytes = header->n_descsz;
			memcpy(ret->id, note + sizeof(*header) + name, header->n_descsz);
			return;
		}
		note += used;
		size -= used;
	}
}

/* The ELF header and the program headers are part of the first mapping of an object. */
static void build_id_read(const struct mw_module *module, struct build_id *ret)
{
	const ElfW(Ehdr) *elf = (const ElfW(Ehdr) *)module->start;
	const ElfW(Phdr) * header;

	ret->bytes = 0;
	if (memcmp(elf->e_ident, ELFMAG, SELFMAG) || elf->e_phentsize != sizeof(*header) ||
	    elf->e_phoff + (uint64_t)elf->e_phnum * sizeof(*header) > MW_HEAP_PAGE_BYTES)
		return;
	header = (const ElfW(Phdr) *)(module->start + elf->e_phoff);
	for (int i = 0; i < elf->e_phnum && !ret->bytes; i++) {
		uintptr_t address = module->bias + header[i].p_vaddr;

		if (header[i].p_type == PT_NOTE && address >= module->start &&
		    address + header[i].p_memsz <= module->end)
			note_read((const uint8_t *)address, header[i].p_memsz, ret);
	}
}

static const char *module_path(const struct link_map *map)
{
	if (map->l_name[0])
		return strstr(map->l_name, "linux-vdso") ? "[vdso]" : map->l_name;
	return mw_profile.header->exe;
}

static bool record_matches(uint32_t number, const char *path, const struct build_id *id)
{
	const struct mw_heap_module *record = record_at(number);

	if (!record->ready || record->build_id_bytes != id->bytes ||
	    memcmp(record->build_id, id->id, id->bytes) || record->path_bytes != strlen(path))
		return false;
	return !record->path_bytes ||
	       !memcmp(mw_profile_at(MW_HEAP_CHUNK_STRINGS, record->path), path, strlen(path));
}

/* Writes a new module into the profile. Caller holds no lock. Returns its number or 0. */
static uint32_t record_write(const struct mw_module *module, const char *path, bool is_exe,
			     const struct build_id *id)
{
	struct mw_heap_header *header = mw_profile.header;
	uint64_t index, string = 0, now = mw_runtime_now();
	size_t length = strlen(path);
	struct mw_heap_module *record;
	int rc;

	rc = mw_profile_reserve(MW_HEAP_CHUNK_STRINGS, &header->string_bytes, length, 1, &string);
	if (!rc)
		rc = mw_profile_reserve(MW_HEAP_CHUNK_MODULES, &header->modules, 1, sizeof(*record),
					&index);
	if (!rc && index >= MW_HEAP_FRAME_MODULE_MAX)
		rc = -ENOSPC;
	if (rc) {
		if (rc != -EAGAIN)
			mw_profile_limit(MW_HEAP_LIMIT_MODULES_FULL);
		return 0;
	}
	memcpy(mw_profile_at(MW_HEAP_CHUNK_STRINGS, string), path, length);
	record = record_at((uint32_t)index + 1);
	record->flags = is_exe ? MW_HEAP_MODULE_EXE : *path == '[' ? MW_HEAP_MODULE_VDSO : 0;
	record->bias = module->bias;
	record->start = module->start;
	record->end = module->end;
	record->first_ns = record->last_ns = now;
	record->path = string;
	record->path_bytes = (uint32_t)length;
	record->build_id_bytes = id->bytes;
	memcpy(record->build_id, id->id, id->bytes);
	__atomic_store_n(&record->ready, 1, __ATOMIC_RELEASE);
	return (uint32_t)index + 1;
}

/*
 * The number of a module: an older one, if the same file was loaded before. Two threads that meet
 * a new module at once may write it down twice, which readers see as one file with two numbers.
 */
static uint32_t module_record(const struct mw_module *module, const struct link_map *map)
{
	const char *path = module_path(map);
	struct build_id id;
	uint32_t known, number;

	build_id_read(module, &id);
	known = __atomic_load_n(&known_count, __ATOMIC_ACQUIRE);
	for (number = 1; number <= known; number++) {
		if (record_matches(number, path, &id)) {
			__atomic_store_n(&record_at(number)->last_ns, mw_runtime_now(),
					 __ATOMIC_RELAXED);
			return number;
		}
	}
	number = record_write(module, path, !map->l_name[0], &id);
	while (number > known && known < KNOWN_MAX &&
	       !__atomic_compare_exchange_n(&known_count, &known, number, true, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
	return number;
}

static uint32_t module_number(const struct mw_module *module, const struct link_map *map)
{
	uint32_t number = module_record(module, map);

	if (number)
		mw_cpython_examine(map, number);
	return number;
}

/*
 * The modules that were found last, so that the path and the build id are not compared again for
 * each new pc. An entry is only valid while the dynamic linker gives the same answer for
 * the address; the name is compared by its address, which lives as long as the object.
 */
#define RECENT_MAX 64

struct recent_module {
	uint32_t lock; /* of this entry; only tried */
	uint32_t number;
	uintptr_t start;
	uintptr_t bias;
	const char *name;
	uint32_t epoch;
};

uint32_t mw_module_epoch __attribute__((visibility("hidden"))) = 1;

static struct recent_module recent_modules[RECENT_MAX];

static struct recent_module *recent_of(uintptr_t start)
{
	return &recent_modules[(start >> 12) * UINT64_C(0x9e3779b97f4a7c15) >> 58];
}

static uint32_t recent_number(const struct mw_module *module, const struct link_map *map,
			      uint32_t epoch)
{
	struct recent_module *recent = recent_of(module->start);
	uint32_t number = 0;

	if (__atomic_exchange_n(&recent->lock, 1, __ATOMIC_ACQUIRE))
		return module_number(module, map);
	if (recent->start == module->start && recent->bias == module->bias &&
	    recent->name == map->l_name && recent->epoch == epoch)
		number = recent->number;
	if (!number) {
		number = module_number(module, map);
		recent->start = module->start;
		recent->bias = module->bias;
		recent->name = map->l_name;
		recent->epoch = epoch;
		recent->number = number;
	}
	__atomic_store_n(&recent->lock, 0, __ATOMIC_RELEASE);
	return number;
}

/*
 * If there are gaps between the segments of the program, the kernel maps them apart, and
 * _dl_find_object() finds the one with the address. Only the first one has the ELF header, and one
 * module has one number. Libraries have no gaps: the dynamic linker fills them.
 */
static void module_join(struct mw_module *module)
{
	const ElfW(Phdr) *header = (const void *)getauxval(AT_PHDR);
	unsigned long nr = getauxval(AT_PHNUM);
	uintptr_t start = UINTPTR_MAX, end = 0;

	/* What is started by calling the dynamic linker has other headers in the vector. */
	if (!header || header->p_type != PT_PHDR ||
	    module->bias + header->p_vaddr != (uintptr_t)header)
		return;
	for (unsigned long i = 0; i < nr; i++) {
		uintptr_t address = module->bias + header[i].p_vaddr;

		if (header[i].p_type != PT_LOAD)
			continue;
		if (address < start)
			start = address;
		if (address + header[i].p_memsz > end)
			end = address + header[i].p_memsz;
	}
	module->start = start & ~(uintptr_t)(MW_HEAP_PAGE_BYTES - 1);
	module->end = end;
}

bool mw_module_find(uintptr_t pc, struct mw_module *ret)
{
	uint32_t epoch = __atomic_load_n(&mw_module_epoch, __ATOMIC_ACQUIRE);
	struct dl_find_object found;

	if (_dl_find_object((void *)pc, &found))
		return false;
	ret->start = (uintptr_t)found.dlfo_map_start;
	ret->end = (uintptr_t)found.dlfo_map_end;
	ret->bias = found.dlfo_link_map->l_addr;
	if (!found.dlfo_link_map->l_name[0])
		module_join(ret);
	ret->eh_frame_hdr = (uintptr_t)found.dlfo_eh_frame;
	ret->number = recent_number(ret, found.dlfo_link_map, epoch);
	return true;
}

void mw_modules_clear(void)
{
	known_count = 0;
	memset(recent_modules, 0, sizeof(recent_modules));
	mw_module_unloaded();
}

void mw_module_unloaded(void)
{
	__atomic_fetch_add(&mw_module_epoch, 1, __ATOMIC_RELEASE);
}
