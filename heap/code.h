/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The table of code objects in the profile. They are never removed.
 */
#ifndef _MW_HEAP_CODE_H
#define _MW_HEAP_CODE_H

#include <stdint.h>

/* What identifies a code object, and all that the profile keeps of it. */
struct mw_code {
	const uint8_t *file;
	const uint8_t *name;
	const uint8_t *lines;
	uint32_t file_bytes;
	uint32_t name_bytes;
	uint32_t lines_bytes;
	uint32_t first_line;
};

/*
 * The index of the code object that says what @code says; it is added if it is new.
 * MW_HEAP_CODE_NONE if there is no room. @address is where the program has it: a hint only,
 * because addresses are used again. The caller holds the GIL, so it is alone.
 */
uint32_t mw_code_intern(const struct mw_code *code, const void *address);

/* After a fork. */
void mw_codes_clear(void);

#endif
