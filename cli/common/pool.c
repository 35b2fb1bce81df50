// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The pool: a list of chunks; what is larger than a chunk gets a chunk of its own.
 */
#include "common/pool.h"

#include <stdlib.h>
#include <string.h>

struct mw_pool_chunk {
	struct mw_pool_chunk *next;
	size_t used;
	char data[16384] __attribute__((aligned(8)));
};

void *mw_pool_alloc(struct mw_pool *pool, size_t bytes)
{
	struct mw_pool_chunk *chunk = pool->chunks;
	void *data;

	bytes = (bytes + 7) & ~(size_t)7;
	if (!chunk || chunk->used + bytes > sizeof(chunk->data)) {
		size_t extra = bytes > sizeof(chunk->data) ? bytes - sizeof(chunk->data) : 0;

		chunk = malloc(sizeof(*chunk) + extra);
		if (!chunk)
			return NULL;
		chunk->next = pool->chunks;
		chunk->used = 0;
		pool->chunks = chunk;
	}
	data = chunk->data + chunk->used;
	chunk->used += bytes;
	return data;
}

char *mw_pool_copy(struct mw_pool *pool, const char *text)
{
	size_t bytes = strlen(text) + 1;
	char *copy = mw_pool_alloc(pool, bytes);

	return copy ? memcpy(copy, text, bytes) : NULL;
}

void mw_pool_free(struct mw_pool *pool)
{
	struct mw_pool_chunk *chunk = pool->chunks;

	while (chunk) {
		struct mw_pool_chunk *next = chunk->next;

		free(chunk);
		chunk = next;
	}
	pool->chunks = NULL;
}
