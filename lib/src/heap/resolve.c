// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Finds the functions and lines of addresses in ELF files.
 */
#include "heap/resolve.h"

#include <ctype.h>
#include <fcntl.h>
#include <libiberty/demangle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "heap/elfutils.h"

/**
 * struct mw_resolver - an ELF file
 * @callbacks: how @dwfl finds files
 * @dwfl: session with one module
 * @names: demangled names of the last answer, owned
 */
struct mw_resolver {
	Dwfl_Callbacks callbacks;
	Dwfl *dwfl;
	Dwfl_Module *module;
	char *names[MW_RESOLVE_LINES];
	uint32_t nr_names;
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

/* A path in a profile may name anything; only regular files are opened for reading. */
static int open_regular(const char *path)
{
	char link[64];
	struct stat st;
	int fd, real;

	fd = open(path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return -1;
	}
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	real = open(link, O_RDONLY | O_CLOEXEC);
	close(fd);
	return real;
}

static bool build_id_matches(Dwfl_Module *module, const char *expected)
{
	const unsigned char *bits;
	GElf_Addr address;
	int len;

	if (!*expected)
		return true;
	len = dwfl_module_build_id(module, &bits, &address);
	if (len <= 0 || strlen(expected) != 2UL * (unsigned int)len)
		return false;
	for (int i = 0; i < len; i++) {
		char digits[3];

		snprintf(digits, sizeof(digits), "%02x", bits[i]);
		if (strncasecmp(digits, expected + 2 * i, 2))
			return false;
	}
	return true;
}

/* Takes over @fd if it succeeds. */
static bool report_file(struct mw_resolver *resolver, int fd, const char *path,
			const char *build_id)
{
	dwfl_report_begin(resolver->dwfl);
	/* The file is placed at its own addresses. */
	resolver->module = dwfl_report_elf(resolver->dwfl, path, path, fd, 0, true);
	dwfl_report_end(resolver->dwfl, NULL, NULL);
	return resolver->module && build_id_matches(resolver->module, build_id);
}

/* Takes over @fd. */
static struct mw_resolver *open_elf_file(int fd, const char *path, const char *build_id)
{
	struct mw_resolver *resolver;

	if (fd < 0)
		return NULL;
	resolver = calloc(1, sizeof(*resolver));
	if (!resolver) {
		close(fd);
		return NULL;
	}
	/* The debug file is found by build id and debuglink, and by debuginfod if configured. */
	resolver->callbacks = (Dwfl_Callbacks){
		.find_elf = find_no_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
		.section_address = dwfl_offline_section_address,
	};
	resolver->dwfl = dwfl_begin(&resolver->callbacks);
	if (resolver->dwfl && report_file(resolver, fd, path, build_id))
		return resolver;
	if (!resolver->module)
		close(fd);
	mw_resolver_close(resolver);
	return NULL;
}

static struct mw_resolver *open_elf(const char *path, const char *build_id)
{
	return open_elf_file(open_regular(path), path, build_id);
}

/* A file that was replaced since still has its debug file, which is found by build id. */
static struct mw_resolver *open_debug_file(const char *build_id)
{
	char path[256];

	if (strlen(build_id) < 8 || strlen(build_id) > 128)
		return NULL;
	for (const char *p = build_id; *p; p++)
		if (!isxdigit((unsigned char)*p))
			return NULL;
	snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%.2s/%s.debug", build_id,
		 build_id + 2);
	return open_elf(path, build_id);
}

struct mw_resolver *mw_resolver_open(int fd, const char *path, const char *build_id)
{
	static const char deleted[] = " (deleted)";
	struct mw_resolver *resolver = NULL;
	size_t len = strlen(path), tail = sizeof(deleted) - 1;
	char *real;

	/* A confined process cannot load it, so its parent has done so, if that is possible. */
	if (mw_elfutils_load(NULL))
		return NULL;
	if (fd >= 0) {
		resolver = open_elf_file(dup(fd), path, build_id);
		return resolver ? resolver : open_debug_file(build_id);
	}
	/* What stands at the path of a deleted file now is another file, unless ids agree. */
	if (len > tail && !strcmp(path + len - tail, deleted)) {
		real = *build_id ? strndup(path, len - tail) : NULL;
		resolver = real ? open_elf(real, build_id) : NULL;
		free(real);
	} else if (*path == '/') {
		resolver = open_elf(path, build_id);
	}
	return resolver ? resolver : open_debug_file(build_id);
}

static void free_names(struct mw_resolver *resolver)
{
	while (resolver->nr_names)
		free(resolver->names[--resolver->nr_names]);
}

void mw_resolver_close(struct mw_resolver *resolver)
{
	if (!resolver)
		return;
	free_names(resolver);
	if (resolver->dwfl)
		dwfl_end(resolver->dwfl);
	free(resolver);
}

bool mw_resolver_address(struct mw_resolver *resolver, uint64_t offset, uint64_t *ret)
{
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(resolver->module, &bias);
	GElf_Phdr header;
	size_t nr = 0;

	if (!elf || elf_getphdrnum(elf, &nr))
		return false;
	for (size_t i = 0; i < nr && i < 65536; i++) {
		if (!gelf_getphdr(elf, (int)i, &header) || header.p_type != PT_LOAD ||
		    offset < header.p_offset || offset - header.p_offset >= header.p_filesz)
			continue;
		*ret = header.p_vaddr + (offset - header.p_offset);
		return true;
	}
	return false;
}

/* C++ and Rust; other names are what they are. */
static const char *demangle(struct mw_resolver *resolver, const char *name)
{
	char *plain;

	if (!name)
		return "";
	if (strncmp(name, "_Z", 2) && strncmp(name, "_R", 2))
		return name;
	if (resolver->nr_names == MW_RESOLVE_LINES || strlen(name) > 4096)
		return name;
	plain = cplus_demangle(name, DMGL_AUTO | DMGL_PARAMS | DMGL_ANSI);
	if (!plain)
		return name;
	resolver->names[resolver->nr_names++] = plain;
	return plain;
}

/* The name for the linker tells overloaded functions apart. */
static const char *die_name(struct mw_resolver *resolver, Dwarf_Die *die)
{
	static const unsigned int names[] = { DW_AT_linkage_name, DW_AT_MIPS_linkage_name };
	Dwarf_Attribute attribute;

	for (int i = 0; i < 2; i++) {
		const char *name = dwarf_formstring(
			dwarf_attr_integrate(die, names[i], &attribute));

		if (name)
			return demangle(resolver, name);
	}
	return demangle(resolver, dwarf_diename(die));
}

static bool is_function(Dwarf_Die *die)
{
	int tag = dwarf_tag(die);

	return tag == DW_TAG_inlined_subroutine || tag == DW_TAG_subprogram;
}

/* Where an inlined function was called. */
static void call_site(Dwarf_Die *unit, Dwarf_Die *die, struct mw_resolved *line)
{
	Dwarf_Attribute attribute;
	Dwarf_Files *files;
	Dwarf_Word value;
	size_t nr;

	line->file = "";
	line->line = 0;
	if (!dwarf_formudata(dwarf_attr(die, DW_AT_call_file, &attribute), &value) &&
	    !dwarf_getsrcfiles(unit, &files, &nr) && value < nr)
		line->file = dwarf_filesrc(files, value, NULL, NULL) ?: "";
	if (!dwarf_formudata(dwarf_attr(die, DW_AT_call_line, &attribute), &value))
		line->line = (uint32_t)value;
}

/* The functions around an address, from the debug information. */
static uint32_t debug_lines(struct mw_resolver *resolver, Dwarf_Die *unit, Dwarf_Addr address,
			    struct mw_resolved next, struct mw_resolved *lines)
{
	Dwarf_Die *scopes = NULL, *around = NULL;
	int nr = dwarf_getscopes(unit, address, &scopes), nr_around = -1;
	uint32_t used = 0;

	/* The scopes of an inlined function end in its definition; these end in its caller. */
	if (nr > 0)
		nr_around = dwarf_getscopes_die(&scopes[0], &around);
	for (int i = 0; i < nr_around && used < MW_RESOLVE_LINES; i++) {
		if (!is_function(&around[i]))
			continue;
		lines[used] = next;
		lines[used++].function = die_name(resolver, &around[i]);
		if (dwarf_tag(&around[i]) == DW_TAG_subprogram)
			break;
		call_site(unit, &around[i], &next);
	}
	free(scopes);
	free(around);
	return used;
}

uint32_t mw_resolver_lines(struct mw_resolver *resolver, uint64_t address,
			   struct mw_resolved *lines)
{
	struct mw_resolved line = { "", "", 0 };
	Dwfl_Line *source = dwfl_module_getsrc(resolver->module, address);
	Dwarf_Addr bias;
	Dwarf_Die *unit = dwfl_module_addrdie(resolver->module, address, &bias);
	GElf_Off offset;
	GElf_Sym symbol;
	uint32_t used = 0;
	int number = 0;

	free_names(resolver);
	if (source) {
		line.file = dwfl_lineinfo(source, NULL, &number, NULL, NULL, NULL) ?: "";
		line.line = number > 0 ? (uint32_t)number : 0;
	}
	if (unit)
		used = debug_lines(resolver, unit, address - bias, line, lines);
	if (used)
		return used;
	line.function = demangle(resolver, dwfl_module_addrinfo(resolver->module, address, &offset,
								&symbol, NULL, NULL, NULL));
	if (!*line.function && !line.line)
		return 0;
	lines[0] = line;
	return 1;
}
