// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Unwinds copies of stacks with elfutils, which gets the registers and the memory from here.
 */
#include "where/unwind.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "heap/elfutils.h"

/* What the session calls its only thread. */
#define THREAD	    1

#define HEADERS_MAX 64

/**
 * struct mw_unwinder - a session of elfutils
 * @callbacks: how @dwfl finds files
 * @dwfl: the programs and libraries, at the addresses that they have in the process
 * @sample: what is being unwound
 * @to, @nr, @max: addresses that were found
 */
struct mw_unwinder {
	Dwfl_Callbacks callbacks;
	Dwfl *dwfl;
	const struct mw_where_sample *sample;
	uint64_t *to;
	uint32_t nr, max;
};

static int find_no_elf(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
		       char **file, Elf **elf)
{
	(void)module;
	(void)userdata;
	(void)name;
	(void)base;
	(void)file;
	(void)elf;
	return -1;
}

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread)
{
	(void)dwfl;
	if (*thread)
		return 0;
	*thread = arg;
	return THREAD;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *ret, void *arg)
{
	const struct mw_unwinder *unwinder = arg;
	const struct mw_where_sample *sample = unwinder->sample;
	uint64_t at = address - sample->registers[MW_WHERE_SP];

	(void)dwfl;
	if (sample->bytes < sizeof(*ret) || at > sample->bytes - sizeof(*ret))
		return false;
	memcpy(ret, sample->stack + at, sizeof(*ret));
	return true;
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	const struct mw_unwinder *unwinder = arg;
	Dwarf_Word registers[MW_WHERE_REGISTERS];

	for (uint32_t i = 0; i < MW_WHERE_REGISTERS; i++)
		registers[i] = unwinder->sample->registers[i];
	return dwfl_thread_state_registers(thread, 0, MW_WHERE_REGISTERS, registers);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.memory_read = read_memory,
	.set_initial_registers = set_registers,
};

static int take_frame(Dwfl_Frame *frame, void *arg)
{
	struct mw_unwinder *unwinder = arg;
	bool is_activation;
	Dwarf_Addr pc;

	if (unwinder->nr == unwinder->max || !dwfl_frame_pc(frame, &pc, &is_activation) || !pc)
		return DWARF_CB_ABORT;
	unwinder->to[unwinder->nr++] = is_activation ? pc : pc - 1;
	return DWARF_CB_OK;
}

/* What has to be added to the addresses in a file whose part at @offset is mapped at @start. */
static bool find_bias(int fd, uint64_t start, uint64_t offset, uint64_t *ret)
{
	Elf64_Phdr headers[HEADERS_MAX];
	Elf64_Ehdr head;
	size_t bytes;

	if (pread(fd, &head, sizeof(head), 0) != sizeof(head) ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG) || head.e_ident[EI_CLASS] != ELFCLASS64 ||
	    head.e_phentsize != sizeof(*headers) || head.e_phnum > HEADERS_MAX)
		return false;
	bytes = head.e_phnum * sizeof(*headers);
	if (pread(fd, headers, bytes, (off_t)head.e_phoff) != (ssize_t)bytes)
		return false;
	for (int i = 0; i < head.e_phnum; i++) {
		const Elf64_Phdr *header = &headers[i];

		/* What is mapped begins at a page. */
		if (header->p_type != PT_LOAD || offset < (header->p_offset & ~4095ULL) ||
		    offset >= header->p_offset + header->p_filesz)
			continue;
		*ret = start - (header->p_vaddr - header->p_offset + offset);
		return true;
	}
	return false;
}

static bool was_reported(const struct memwatch_heap *heap, uint32_t mapping)
{
	for (uint32_t i = 0; i < mapping; i++)
		if (heap->mappings[i].path == heap->mappings[mapping].path)
			return true;
	return false;
}

static void report_mapping(struct mw_unwinder *unwinder, const struct memwatch_heap *heap,
			   const struct mw_modules *modules, uint32_t number)
{
	const struct mw_prof_mapping *mapping = &heap->mappings[number];
	const char *path = mw_strings_text(&heap->strings, mapping->path);
	int fd = mw_modules_find(modules, path), copy;
	uint64_t bias;

	if (fd < 0 || was_reported(heap, number) ||
	    !find_bias(fd, mapping->start, mapping->offset, &bias))
		return;
	copy = dup(fd);
	if (copy >= 0 && !dwfl_report_elf(unwinder->dwfl, path, path, copy, bias, true))
		close(copy);
}

struct mw_unwinder *mw_unwinder_open(const struct memwatch_heap *heap,
				     const struct mw_modules *modules)
{
	struct mw_unwinder *unwinder;

	/* A confined process cannot load it, so its parent has done so, if that is possible. */
	if (mw_elfutils_load(NULL))
		return NULL;
	unwinder = calloc(1, sizeof(*unwinder));
	if (!unwinder)
		return NULL;
	unwinder->callbacks = (Dwfl_Callbacks){
		.find_elf = find_no_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
		.section_address = dwfl_offline_section_address,
	};
	unwinder->dwfl = dwfl_begin(&unwinder->callbacks);
	if (unwinder->dwfl) {
		dwfl_report_begin(unwinder->dwfl);
		for (uint32_t i = 0; i < heap->nr_mappings; i++)
			report_mapping(unwinder, heap, modules, i);
		dwfl_report_end(unwinder->dwfl, NULL, NULL);
	}
	if (unwinder->dwfl &&
	    dwfl_attach_state(unwinder->dwfl, NULL, THREAD, &thread_callbacks, unwinder))
		return unwinder;
	mw_unwinder_close(unwinder);
	return NULL;
}

void mw_unwinder_close(struct mw_unwinder *unwinder)
{
	if (!unwinder)
		return;
	if (unwinder->dwfl)
		dwfl_end(unwinder->dwfl);
	free(unwinder);
}

uint32_t mw_unwinder_run(struct mw_unwinder *unwinder, const struct mw_where_sample *sample,
			 uint64_t *to, uint32_t max)
{
	if (unwinder) {
		unwinder->sample = sample;
		unwinder->to = to;
		unwinder->nr = 0;
		unwinder->max = max;
		/* It fails where the copy ends, and what came before is good. */
		dwfl_getthread_frames(unwinder->dwfl, THREAD, take_frame, unwinder);
		if (unwinder->nr)
			return unwinder->nr;
	}
	to[0] = sample->registers[MW_WHERE_IP];
	return 1;
}
