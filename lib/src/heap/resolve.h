/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Finds the functions and lines of addresses in ELF files, with elfutils. It parses files of
 * other users, so it only runs in a confined child.
 */
#ifndef MW_HEAP_RESOLVE_H
#define MW_HEAP_RESOLVE_H

#include <stdbool.h>
#include <stdint.h>

/* More functions than this are not inlined into one. */
#define MW_RESOLVE_LINES 128

/* A line; strings are "" if unknown. */
struct mw_resolved {
	const char *function;
	const char *file;
	uint32_t line;
};

struct mw_resolver;

/*
 * Opens the ELF file @fd, or if it is -1 the file at @path, or its debug file. If @build_id, in
 * hexadecimal digits, is not
 * "", the file must have it. Returns NULL if there is no such file. Free with
 * mw_resolver_close().
 */
struct mw_resolver *mw_resolver_open(int fd, const char *path, const char *build_id);
void mw_resolver_close(struct mw_resolver *resolver);

/* From an offset in the file to an address as in the headers of the file. */
bool mw_resolver_address(struct mw_resolver *resolver, uint64_t offset, uint64_t *ret);

/*
 * Finds the lines of an address, at most MW_RESOLVE_LINES: the innermost inlined function
 * first. Returns how many there are. Strings are valid until the next call.
 */
uint32_t mw_resolver_lines(struct mw_resolver *resolver, uint64_t address,
			   struct mw_resolved *lines);

#endif /* MW_HEAP_RESOLVE_H */
