/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The hash of a key whose values come from a file that anybody may have written. It depends
 * on a random seed of this run, so that nobody can choose keys that collide.
 */
#ifndef MW_CLI_HASH_H
#define MW_CLI_HASH_H

#include <stdint.h>

/* All bits of the result depend on all bits of both values. */
uint64_t mw_hash_pair(uint64_t a, uint64_t b);

#endif
