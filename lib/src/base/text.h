/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reads and parses text from outside of the library: whole files, pieces between
 * separators, and numbers without anything before or behind them.
 */
#ifndef MW_BASE_TEXT_H
#define MW_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memwatch/ctx.h>

/* A piece of text, not terminated by NUL. */
struct mw_text {
	const char *at;
	size_t len;
};

/*
 * Reads the file at @path below the context's root; caller frees with free(). Returns 0 or a
 * negative errno, which is that of open(2) if the file could not be opened.
 */
int mw_text_read_file(struct memwatch_ctx *ctx, const char *path, char **ret, size_t *len);

/*
 * Splits the piece up to @separator, or the end, off the start of @rest. @piece does not
 * contain the separator and may be empty. Returns false when nothing is left.
 */
bool mw_text_take(struct mw_text *rest, char separator, struct mw_text *piece);

/* If @text starts with @prefix, removes it from @text and returns true. */
bool mw_text_skip(struct mw_text *text, const char *prefix);

bool mw_text_is(struct mw_text text, const char *string);

/* Parses a decimal number of at most @max, which must be the whole text. */
bool mw_text_number(struct mw_text text, uint64_t max, uint64_t *ret);

/*
 * Copies to a buffer of @size bytes and terminates it with NUL. Returns false if the text
 * does not fit or contains a NUL.
 */
bool mw_text_copy(struct mw_text text, char *to, size_t size);

/* As mw_text_copy(); \ooo (three octal digits) becomes the character of this value. */
bool mw_text_unescape(struct mw_text text, char *to, size_t size);

#endif /* MW_BASE_TEXT_H */
