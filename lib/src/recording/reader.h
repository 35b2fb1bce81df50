/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What the replay backend needs of a reader beyond its public functions.
 */
#ifndef MW_READER_H
#define MW_READER_H

#include <stddef.h>

#include <memwatch/recording.h>

/* Bytes of memory held. */
size_t mw_reader_memory(const struct memwatch_reader *reader);

#endif /* MW_READER_H */
