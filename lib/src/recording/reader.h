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

/* As memwatch_reader_next(); the caller may change the record. */
int mw_reader_next(struct memwatch_reader *reader, struct memwatch_record_header **ret);

/* Bytes of memory held. */
size_t mw_reader_memory(const struct memwatch_reader *reader);

#endif /* MW_READER_H */
