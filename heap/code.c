/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The table of code objects in the profile.
 *
 * A program may free a code object and have another one at the same address, so code objects are
 * compared by what they say, each time: a few hundred bytes. Where that was found before at the
 * same address is only where the comparison begins. Like that of stacks, the hash table is private
 * memory that never moves, and only its pages in use exist.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "code.h"
#include "profile.h"
#include "runtime.h"

#define ENTRIES_BITS 15 /* twice as many as code objects in the largest profile */
#define ENTRIES	     (1u << ENTRIES_BITS)
#define CODES_MAX    (ENTRIES / 2)
#define PROBES_MAX   64
#define HINTS	     4096

struct code_table {
	uint32_t by_code[HINTS]; /* index + 1 of the code object that was last at such an address */
	uint32_t by_file[HINTS]; /* the same of one with such a file */
	uint64_t entries[ENTRIES]; /* upper half: of the hash, lower half: index + 1; 0: empty */
};

static struct code_table *code_table;

static uint32_t hint_of(const void *address)
{
	return (uint32_t)((uintptr_t)address / 16 * UINT64_C(0x9e3779b97f4a7c15) >> 52) % HINTS;
}

static uint64_t bytes_hash(uint64_t hash, const uint8_t *bytes, uint32_t length)
{
	uint64_t word;

	hash ^= length;
	for (; length >= sizeof(word); bytes += sizeof(word), length -= sizeof(word)) {
		memcpy(&word, bytes, sizeof(word));
		hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	word = 0;
	memcpy(&word, bytes, length);
	hash = (hash ^ word) * UINT64_C(0xc2b2ae3d27d4eb4f);
	return hash ^ hash >> 29;
}

static uint64_t code_hash(const struct mw_code *code)
{
	uint64_t hash = bytes_hash(code->first_line, code->file, code->file_bytes);

	hash = bytes_hash(hash, code->name, code->name_bytes);
	return bytes_hash(hash, code->lines, code->lines_bytes);
}

static struct mw_heap_code *code_at(uint32_t index)
{
	return mw_profile_at(MW_HEAP_CHUNK_CODE, index * (uint64_t)sizeof(struct mw_heap_code));
}

static bool bytes_equal(uint64_t at, uint32_t stored, const uint8_t *bytes, uint32_t length)
{
	return stored == length &&
	       (!length || !memcmp(mw_profile_at(MW_HEAP_CHUNK_CODE_BYTES, at), bytes, length));
}

static bool file_equals(const struct mw_heap_code *known, const struct mw_code *code)
{
	return bytes_equal(known->file, known->file_bytes, code->file, code->file_bytes);
}

static bool code_equals(const struct mw_heap_code *known, const struct mw_code *code)
{
	return known->first_line == code->first_line &&
	       bytes_equal(known->name, known->name_bytes, code->name, code->name_bytes) &&
	       bytes_equal(known->lines, known->lines_bytes, code->lines, code->lines_bytes) &&
	       file_equals(known, code);
}

static int bytes_write(const uint8_t *bytes, uint32_t length, uint64_t *ret)
{
	int rc;

	*ret = 0;
	if (!length)
		return 0;
	rc = mw_profile_reserve(MW_HEAP_CHUNK_CODE_BYTES, &mw_profile.header->code_bytes_used,
				length, 1, ret);
	if (!rc)
		memcpy(mw_profile_at(MW_HEAP_CHUNK_CODE_BYTES, *ret), bytes, length);
	return rc;
}

/* Most code objects of a file are met after another one of the same file. */
static int file_write(const struct mw_code *code, uint32_t *hint, uint64_t *ret)
{
	if (*hint && file_equals(code_at(*hint - 1), code)) {
		*ret = code_at(*hint - 1)->file;
		return 0;
	}
	return bytes_write(code->file, code->file_bytes, ret);
}

/* Writes a new code object into the profile. Returns its index, or MW_HEAP_CODE_NONE. */
static uint32_t code_write(const struct mw_code *code)
{
	uint32_t *hint = &code_table->by_file[bytes_hash(0, code->file, code->file_bytes) % HINTS];
	struct mw_heap_header *header = mw_profile.header;
	struct mw_heap_code new = {
		.first_line = code->first_line,
		.file_bytes = code->file_bytes,
		.name_bytes = code->name_bytes,
		.lines_bytes = code->lines_bytes,
	};
	uint64_t index = 0;
	int rc = header->code_objects < CODES_MAX ? 0 : -ENOSPC;

	if (!rc)
		rc = file_write(code, hint, &new.file);
	if (!rc)
		rc = bytes_write(code->name, code->name_bytes, &new.name);
	if (!rc)
		rc = bytes_write(code->lines, code->lines_bytes, &new.lines);
	if (!rc)
		rc = mw_profile_reserve(MW_HEAP_CHUNK_CODE, &header->code_objects, 1, sizeof(new),
					&index);
	if (rc) {
		if (rc != -EAGAIN)
			mw_profile_limit(MW_HEAP_LIMIT_CODE_FULL);
		return MW_HEAP_CODE_NONE;
	}
	new.first_ns = mw_runtime_now();
	*code_at((uint32_t)index) = new;
	__atomic_store_n(&code_at((uint32_t)index)->ready, 1, __ATOMIC_RELEASE);
	*hint = (uint32_t)index + 1;
	return (uint32_t)index;
}

static uint32_t table_intern(const struct mw_code *code)
{
	uint64_t hash = code_hash(code), tag = hash & ~(uint64_t)UINT32_MAX;

	for (uint32_t probe = 0; probe < PROBES_MAX; probe++) {
		uint64_t *entry = &code_table->entries[((uint32_t)hash + probe) % ENTRIES];
		uint32_t index = (uint32_t)*entry - 1;

		if (!*entry) {
			index = code_write(code);
			if (index != MW_HEAP_CODE_NONE)
				*entry = tag | (index + 1);
			return index;
		}
		if ((*entry & ~(uint64_t)UINT32_MAX) == tag && code_equals(code_at(index), code))
			return index;
	}
	mw_profile_limit(MW_HEAP_LIMIT_CODE_FULL);
	return MW_HEAP_CODE_NONE;
}

static bool table_make(void)
{
	void *table = mmap(NULL, sizeof(*code_table), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (table == MAP_FAILED)
		return false;
	code_table = table;
	return true;
}

uint32_t mw_code_intern(const struct mw_code *code, const void *address)
{
	uint32_t index, *hint;

	if (!code_table && !table_make())
		return MW_HEAP_CODE_NONE;
	hint = &code_table->by_code[hint_of(address)];
	if (*hint && code_equals(code_at(*hint - 1), code))
		return *hint - 1;
	index = table_intern(code);
	if (index != MW_HEAP_CODE_NONE)
		*hint = index + 1;
	return index;
}

void mw_codes_clear(void)
{
	if (code_table)
		munmap(code_table, sizeof(*code_table));
	code_table = NULL;
}
