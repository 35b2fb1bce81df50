// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The header and the directory of a profile of memwatch, and the elements of its arrays.
 */
#include "heap/profile-file.h"

#include <errno.h>
#include <string.h>

#include "base/context.h"

bool mw_profile_element(const struct mw_profile_file *file, uint32_t kind, uint64_t number,
			void *to, size_t bytes)
{
	const struct mw_chunk_array *array = &file->arrays[kind];
	uint32_t low = 0, high = array->nr_parts;

	if (number >= array->count)
		return false;
	while (high - low > 1) {
		uint32_t middle = (low + high) / 2;

		if (array->parts[middle].first <= number)
			low = middle;
		else
			high = middle;
	}
	memcpy(to,
	       file->input->bytes + array->parts[low].offset +
		       (number - array->parts[low].first) * array->element_bytes,
	       bytes);
	return true;
}

const char *mw_profile_bytes(const struct mw_profile_file *file, uint32_t kind, uint64_t at,
			     uint32_t len)
{
	const struct mw_chunk_array *array = &file->arrays[kind];

	for (uint32_t i = 0; i < array->nr_parts; i++) {
		const struct mw_chunk_part *part = &array->parts[i];

		if (at >= part->first && at - part->first < part->count &&
		    len <= part->count - (at - part->first))
			return file->input->bytes + part->offset + (at - part->first);
	}
	return NULL;
}

int mw_profile_file_header(struct mw_profile_file *file, struct memwatch_ctx *ctx)
{
	struct mw_heap_header *h = &file->header;

	if (file->input->len < MW_HEAP_CHUNKS_OFFSET)
		return mw_fail(ctx, -EBADMSG, "the header is cut off");
	memcpy(h, file->input->bytes, sizeof(*h));
	if (h->version != MW_HEAP_VERSION)
		return mw_fail(ctx, -EPROTO, "its format has version %u", h->version);
	if (h->header_bytes > MW_HEAP_PAGE_BYTES)
		return mw_fail(ctx, -EBADMSG, "the size of the header is impossible");
	/* A shorter header is one of an older version; what follows it is absent. */
	if (h->header_bytes < sizeof(*h))
		memset((char *)h + h->header_bytes, 0, sizeof(*h) - h->header_bytes);
	if (h->sample_bytes < sizeof(struct mw_heap_sample) ||
	    h->stack_bytes < sizeof(struct mw_heap_stack) ||
	    h->module_bytes < sizeof(struct mw_heap_module) ||
	    (h->code_bytes && h->code_bytes < sizeof(struct mw_heap_code)))
		return mw_fail(ctx, -EBADMSG, "the size of an element is impossible");
	file->arrays[MW_HEAP_CHUNK_SAMPLES].element_bytes = h->sample_bytes;
	file->arrays[MW_HEAP_CHUNK_STACKS].element_bytes = h->stack_bytes;
	file->arrays[MW_HEAP_CHUNK_FRAMES].element_bytes = sizeof(uint64_t);
	file->arrays[MW_HEAP_CHUNK_MODULES].element_bytes = h->module_bytes;
	file->arrays[MW_HEAP_CHUNK_STRINGS].element_bytes = 1;
	file->arrays[MW_HEAP_CHUNK_CODE].element_bytes = h->code_bytes;
	file->arrays[MW_HEAP_CHUNK_CODE_BYTES].element_bytes = 1;
	file->arrays[MW_HEAP_CHUNK_WATCHES].element_bytes = sizeof(struct mw_heap_watch);
	return 0;
}

int mw_profile_file_directory(struct mw_profile_file *file, struct memwatch_ctx *ctx)
{
	uint64_t total = MW_HEAP_CHUNKS_OFFSET;

	for (uint32_t i = 0; i < MW_HEAP_CHUNKS_MAX; i++) {
		struct mw_chunk_array *array;
		struct mw_heap_chunk chunk;

		memcpy(&chunk, file->input->bytes + MW_HEAP_DIRECTORY_OFFSET + i * sizeof(chunk),
		       sizeof(chunk));
		if (chunk.kind == MW_HEAP_CHUNK_NONE)
			break;
		if (chunk.offset > file->input->len ||
		    chunk.bytes > file->input->len - chunk.offset)
			return mw_fail(ctx, -EBADMSG, "a part of the file is cut off");
		/* Chunks do not overlap, so the work is bounded by the size of the file. */
		total += chunk.bytes;
		if (chunk.offset < MW_HEAP_CHUNKS_OFFSET || total > file->input->len)
			return mw_fail(ctx, -EBADMSG, "the parts of the file overlap");
		if (chunk.kind >= MW_PROFILE_KINDS || !file->arrays[chunk.kind].element_bytes)
			continue;
		array = &file->arrays[chunk.kind];
		array->parts[array->nr_parts++] = (struct mw_chunk_part){
			.offset = chunk.offset,
			.first = array->count,
			.count = chunk.bytes / array->element_bytes,
		};
		array->count += chunk.bytes / array->element_bytes;
	}
	return 0;
}
