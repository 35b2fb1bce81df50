/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Interned byte sequences: equal ones have the same number, so that they are compared and
 * hashed as numbers. The hash has a random seed, because the content of a file must not
 * choose the places of the index.
 */
#ifndef MW_HEAP_STRINGS_H
#define MW_HEAP_STRINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"

/**
 * struct mw_strings - the set
 * @seed: of the hash
 * @text: all sequences one behind the other, each followed by a NUL
 * @used: bytes of @text in use
 * @room: bytes of @text allocated
 * @entries: offset and length of each sequence in @text
 * @count: number of sequences
 * @capacity: of @entries
 * @index: from hash to number
 */
struct mw_strings {
	uint64_t seed;
	char *text;
	size_t used, room;
	struct mw_strings_entry {
		size_t offset, len;
	} * entries;
	uint32_t count, capacity;
	struct mw_index index;
};

/* Number 0 is the empty string. Returns 0 or -ENOMEM. */
int mw_strings_init(struct mw_strings *strings);
void mw_strings_uninit(struct mw_strings *strings);

/* Finds or adds a sequence of @len bytes. Returns 0 or -ENOMEM. */
int mw_strings_add(struct mw_strings *strings, const void *bytes, size_t len, uint32_t *ret);

/* Finds a sequence. Returns false if it is not in the set. */
bool mw_strings_find(const struct mw_strings *strings, const void *bytes, size_t len,
		     uint32_t *ret);

/* As mw_strings_add(), for text from a file: it ends before the first NUL. */
int mw_strings_add_text(struct mw_strings *strings, const void *bytes, size_t len, uint32_t *ret);

/* The sequence with this number, valid until the next one is added. */
static inline const char *mw_strings_text(const struct mw_strings *strings, uint32_t number)
{
	return strings->text + strings->entries[number].offset;
}

static inline size_t mw_strings_length(const struct mw_strings *strings, uint32_t number)
{
	return strings->entries[number].len;
}

/* The hash of @len bytes under @seed. */
uint32_t mw_strings_hash(uint64_t seed, const void *bytes, size_t len);

#endif /* MW_HEAP_STRINGS_H */
