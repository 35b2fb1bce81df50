/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reading text that somebody else wrote: whole files, lines, and numbers that
 * are numbers from the first to the last character.
 */
#ifndef MW_TEXT_H
#define MW_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <memwatch/ctx.h>

/* A piece of text; not terminated. */
struct mw_text {
	const char *at;
	size_t len;
};

/* Reads the file at @path below the context's root; caller frees with free(). */
int mw_text_read_file(struct memwatch_ctx *ctx, const char *path, char **ret, size_t *len);

/*
 * Takes the piece up to @separator (or the end) off @rest, without it. False
 * when nothing is left. An empty piece between two separators is a piece.
 */
bool mw_text_take(struct mw_text *rest, char separator, struct mw_text *piece);

/* Does @text start with @prefix? Then it is cut off. */
bool mw_text_skip(struct mw_text *text, const char *prefix);

bool mw_text_is(struct mw_text text, const char *string);

/* Decimal, all of the text, at most @max. */
bool mw_text_number(struct mw_text text, uint64_t max, uint64_t *ret);

/* Copies into a buffer of @size bytes, NUL-terminated; false if it does not fit or holds a NUL. */
bool mw_text_copy(struct mw_text text, char *to, size_t size);

/* As mw_text_copy(), with \ooo (three octal digits) undone. */
bool mw_text_unescape(struct mw_text text, char *to, size_t size);

#endif /* MW_TEXT_H */
