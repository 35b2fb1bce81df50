/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The semaphores of the probes, and whether the probes are ours to fire.
 */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf-symbol.h"
#include "lock.h"
#include "next.h"
#include "probes.h"

#define PROVIDER     "otel_memory"
#define NOTE_STAPSDT 3 /* type of the note; its owner is "stapsdt" */
#define NOTE_WORDS   3 /* addresses at its beginning, before the provider's name */

enum probes_owner {
	PROBES_UNKNOWN = 0,
	PROBES_OURS = 1,
	PROBES_ALLOCATOR = 2,
};

volatile uint16_t otel_memory_alloc_semaphore
	__attribute__((visibility("hidden"), section(".probes")));
volatile uint16_t otel_memory_free_semaphore
	__attribute__((visibility("hidden"), section(".probes")));

static uint32_t probes_owner;

/* Is one of the notes in these bytes about a probe of the provider? */
static bool notes_have_provider(const uint8_t *at, size_t bytes)
{
	while (bytes >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)(const void *)at;
		uint64_t name = ((uint64_t)note->n_namesz + 3) & ~UINT64_C(3);
		uint64_t used = sizeof(*note) + name +
				(((uint64_t)note->n_descsz + 3) & ~UINT64_C(3));
		uint64_t begin = sizeof(*note) + name + NOTE_WORDS * sizeof(uint64_t);

		if (used > bytes)
			return false;
		if (note->n_type == NOTE_STAPSDT && begin + sizeof(PROVIDER) <= used &&
		    !memcmp(at + begin, PROVIDER, sizeof(PROVIDER)))
			return true;
		at += used;
		bytes -= used;
	}
	return false;
}

static bool image_has_provider(const uint8_t *image, size_t bytes)
{
	const ElfW(Ehdr) *elf = (const ElfW(Ehdr) *)(const void *)image;
	const ElfW(Shdr) * section;

	if (bytes < sizeof(*elf) || memcmp(elf->e_ident, ELFMAG, SELFMAG) ||
	    elf->e_shentsize != sizeof(*section) || elf->e_shoff > bytes ||
	    elf->e_shnum > (bytes - elf->e_shoff) / sizeof(*section))
		return false;
	section = (const ElfW(Shdr) *)(const void *)(image + elf->e_shoff);
	for (int i = 0; i < elf->e_shnum; i++)
		if (section[i].sh_type == SHT_NOTE && section[i].sh_offset < bytes &&
		    section[i].sh_size <= bytes - section[i].sh_offset &&
		    notes_have_provider(image + section[i].sh_offset, section[i].sh_size))
			return true;
	return false;
}

static bool file_has_provider(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool has = false;
	struct stat st;
	void *image;

	if (fd < 0)
		return false;
	if (!fstat(fd, &st) && st.st_size > 0) {
		image = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (image != MAP_FAILED) {
			has = image_has_provider(image, (size_t)st.st_size);
			munmap(image, (size_t)st.st_size);
		}
	}
	close(fd);
	return has;
}

/* Found out when somebody attaches, which may never happen. */
bool mw_probes_are_ours(void)
{
	uint32_t owner = __atomic_load_n(&probes_owner, __ATOMIC_RELAXED);
	struct mw_interrupts were;
	const struct link_map *map;
	void *next_malloc;

	if (owner == PROBES_UNKNOWN) {
		memcpy(&next_malloc, &mw_next.malloc, sizeof(next_malloc));
		mw_interrupts_block(&were);
		map = mw_elf_object(next_malloc);
		owner = map && file_has_provider(map->l_name) ? PROBES_ALLOCATOR : PROBES_OURS;
		mw_interrupts_restore(&were);
		__atomic_store_n(&probes_owner, owner, __ATOMIC_RELAXED);
	}
	return owner == PROBES_OURS;
}
