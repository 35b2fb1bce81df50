/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Memory for the texts and lists that the cells of a table point to. It is freed all
 * at once, when the table has been printed.
 */
#ifndef MW_POOL_H
#define MW_POOL_H

#include <stddef.h>

/* A zeroed structure is an empty pool. */
struct mw_pool {
	struct mw_pool_chunk *chunks;
};

/* Aligned memory that lives as long as the pool; NULL if memory ran out. */
void *mw_pool_alloc(struct mw_pool *pool, size_t bytes);
/* A copy of @text in the pool; NULL if memory ran out. */
char *mw_pool_copy(struct mw_pool *pool, const char *text);
/* Frees all and leaves an empty pool. */
void mw_pool_free(struct mw_pool *pool);

#endif
