/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What the headers of all heap profiles that tests make by hand have in common.
 */
#ifndef HEAP_HEADER_H
#define HEAP_HEADER_H

#include <string.h>

#include "heap/profile-format.h"

/* The magic number, the version and the sizes of the records. */
static inline void heap_header_begin(struct mw_heap_header *header)
{
	memcpy(header->magic, MW_HEAP_MAGIC, 8);
	header->version = MW_HEAP_VERSION;
	header->header_bytes = sizeof(*header);
	header->sample_bytes = sizeof(struct mw_heap_sample);
	header->stack_bytes = sizeof(struct mw_heap_stack);
	header->module_bytes = sizeof(struct mw_heap_module);
	header->code_bytes = sizeof(struct mw_heap_code);
}

#endif /* HEAP_HEADER_H */
