/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reads whole files into memory, uncompressed, up to a limit.
 */
#ifndef MW_HEAP_INPUT_H
#define MW_HEAP_INPUT_H

#include <stddef.h>
#include <stdint.h>

#include <memwatch/ctx.h>

/* The content of a file and a NUL behind it, owned. */
struct mw_input {
	char *bytes;
	size_t len;
};

/*
 * Reads @fd from its current position to its end, and uncompresses it if it is a gzip
 * file. Returns 0; -EFBIG if the file or its content is larger than @max; -EBADMSG if it is
 * damaged; any errno of read(); -ENOMEM.
 */
int mw_input_read(struct memwatch_ctx *ctx, int fd, const char *name, uint64_t max,
		  struct mw_input *ret);

/* Reads the first @len bytes of the regular file @fd, or as many as there are. */
int mw_input_read_head(struct memwatch_ctx *ctx, int fd, const char *name, size_t len,
		       struct mw_input *ret);
void mw_input_uninit(struct mw_input *input);

#endif /* MW_HEAP_INPUT_H */
