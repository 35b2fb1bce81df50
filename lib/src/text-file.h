/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Small text files of the kernel, and strict parsing of what is in them.
 */
#ifndef MW_TEXT_FILE_H
#define MW_TEXT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "context.h"

#define MW_TEXT_FILE_MAX (16U << 20)

/*
 * The whole file below the context's root, read until its end, not by the size
 * it claims. Caller frees *@ret with free(). -E2BIG above MW_TEXT_FILE_MAX.
 */
int mw_text_file_read(struct memwatch_ctx *ctx, const char *path, char **ret, size_t *ret_bytes);

/* A piece of text, not terminated. */
struct mw_span {
	const char *at;
	size_t len;
};

/* Takes a line without its newline off @text; false at the end. */
bool mw_span_line(struct mw_span *text, struct mw_span *line);

/* Takes what is before the next @separator, and the separator; false if there is none. */
bool mw_span_until(struct mw_span *text, char separator, struct mw_span *ret);

/* Takes @prefix off; false if it is not there. */
bool mw_span_skip(struct mw_span *text, const char *prefix);

bool mw_span_equals(struct mw_span text, const char *other);

/* All of it is one decimal number up to @max: no sign, no blank, no overflow. */
bool mw_span_number(struct mw_span text, uint64_t max, uint64_t *ret);

/* Copies and terminates. False if it does not fit, or holds a NUL. */
bool mw_span_copy(struct mw_span text, char *to, size_t size);

/* The same, with \ooo made characters again. */
bool mw_span_unescape(struct mw_span text, char *to, size_t size);

#endif /* MW_TEXT_FILE_H */
