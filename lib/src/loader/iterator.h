/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Runs BPF iterators.
 */
#ifndef MW_LOADER_ITERATOR_H
#define MW_LOADER_ITERATOR_H

#include "loader/libbpf.h"

/* Starts the iterator of @link. @what is for the message of an error. Returns a file descriptor. */
int mw_bpf_iterator_start(struct memwatch_ctx *ctx, const struct bpf_link *link, const char *what);

/*
 * Lets the iterator go on until its program has written at least @size bytes, and reads these.
 * Returns their number; 0 at the end.
 */
int mw_bpf_iterator_read(struct memwatch_ctx *ctx, int fd, void *data, size_t size,
			 const char *what);

/* Runs the iterator of @link, whose program writes no data, from its begin to its end. */
int mw_bpf_iterator_run(struct memwatch_ctx *ctx, const struct bpf_link *link, const char *what);

#endif /* MW_LOADER_ITERATOR_H */
