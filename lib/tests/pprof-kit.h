/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What the profiles contain that memwatch_heap_write_pprof() writes.
 */
#ifndef MW_TESTS_PPROF_KIT_H
#define MW_TESTS_PPROF_KIT_H

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memwatch/heap.h>

#include "heap/input.h"
#include "heap/pprof.h"
#include "heap/wire.h"

/* The fields of a mapping by their numbers; 0: it does not have the field. */
struct pprof_kit_mapping {
	uint64_t fields[MW_PPROF_MAPPING_HAS_INLINES + 1];
};

/* Writes profile 0 of a heap and decodes mapping @number. Returns false if there is none. */
static inline bool pprof_kit_mapping(struct memwatch_ctx *ctx, struct memwatch_heap *heap,
				     uint32_t number, struct pprof_kit_mapping *ret)
{
	int fd = memfd_create("written", MFD_CLOEXEC);
	struct mw_wire_field field, inner;
	struct mw_input input;
	struct mw_wire file;
	bool found = false;

	*ret = (struct pprof_kit_mapping){ 0 };
	if (memwatch_heap_write_pprof(heap, 0, fd) || lseek(fd, 0, SEEK_SET) ||
	    mw_input_read(ctx, fd, "written", 1 << 20, &input))
		exit(EXIT_FAILURE);
	close(fd);
	file = (struct mw_wire){ .at = (const uint8_t *)input.bytes, .len = input.len };
	while (!found && mw_wire_next(&file, &field)) {
		if (field.number != MW_PPROF_MAPPING || number--)
			continue;
		found = true;
		while (mw_wire_next(&field.bytes, &inner))
			if (inner.number <= MW_PPROF_MAPPING_HAS_INLINES)
				ret->fields[inner.number] = inner.value;
	}
	mw_input_uninit(&input);
	return found;
}

#endif /* MW_TESTS_PPROF_KIT_H */
