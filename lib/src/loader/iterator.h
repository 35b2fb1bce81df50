/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Runs a BPF iterator whose program writes no data.
 */
#ifndef MW_LOADER_ITERATOR_H
#define MW_LOADER_ITERATOR_H

#include "loader/libbpf.h"

/* Runs the iterator of @link from its begin to its end. @what is for the message of an error. */
int mw_bpf_iterator_run(struct memwatch_ctx *ctx, const struct bpf_link *link, const char *what);

#endif /* MW_LOADER_ITERATOR_H */
