/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The arrays of which a profile of memwatch consists. Every offset and size is checked here.
 */
#ifndef MW_HEAP_PROFILE_FILE_H
#define MW_HEAP_PROFILE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "heap/input.h"
#include "heap/profile-format.h"

#define MW_PROFILE_KINDS 9 /* enum mw_heap_chunk_kind */

/* The array of one kind of element, which is spread over chunks. */
struct mw_chunk_array {
	uint32_t element_bytes;
	uint64_t count;
	struct mw_chunk_part {
		uint64_t offset; /* in the file */
		uint64_t first;	 /* number of its first element */
		uint64_t count;
	} parts[MW_HEAP_CHUNKS_MAX];
	uint32_t nr_parts;
};

struct memwatch_ctx;

struct mw_profile_file {
	const struct mw_input *input;
	struct mw_heap_header header;
	struct mw_chunk_array arrays[MW_PROFILE_KINDS];
};

/* Both return 0, or -EPROTO or -EBADMSG after a message. */
int mw_profile_file_header(struct mw_profile_file *file, struct memwatch_ctx *ctx);
int mw_profile_file_directory(struct mw_profile_file *file, struct memwatch_ctx *ctx);

/* Copies the first @bytes bytes of an element. Returns false if it does not exist. */
bool mw_profile_element(const struct mw_profile_file *file, uint32_t kind, uint64_t number,
			void *to, size_t bytes);

/* Bytes of an array of bytes, which lie within one chunk. Returns NULL if they do not. */
const char *mw_profile_bytes(const struct mw_profile_file *file, uint32_t kind, uint64_t at,
			     uint32_t len);

#endif /* MW_HEAP_PROFILE_FILE_H */
