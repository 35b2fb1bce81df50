/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Text from outside: names of processes, cgroups and files, arguments, and what a
 * recording or the kernel says about a machine. Anybody may have written it, and it may
 * contain any bytes. Whatever this program prints or passes on goes through the functions
 * below, so that such a text cannot control a terminal, forge a line, or look like another
 * text.
 *
 * These characters are hidden, and an escape sequence of visible ones takes their place:
 * control characters (U+0000 to U+001F, U+007F to U+009F), line and paragraph separators,
 * and characters that have no glyph or change the order of others, such as U+202E. On a
 * terminal that does not use UTF-8, so is every character that is not ASCII, because its
 * bytes may be control characters there.
 */
#ifndef MW_ESCAPE_H
#define MW_ESCAPE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

/*
 * How a hidden character is written. A byte that is not valid UTF-8 is \xNN in the first
 * two styles, and U+FFFD in JSON, which cannot hold it.
 */
enum mw_escape_style {
	MW_ESCAPE_TERMINAL, /* \xNN, \uNNNN or \UNNNNNNNN; a backslash is \\ */
	MW_ESCAPE_CSV,	    /* the same, and a quotation mark is doubled */
	MW_ESCAPE_JSON,	    /* as a JSON string, which decodes to the text */
};

/* The longest escape sequence and a NUL: two times \uNNNN in JSON. */
#define MW_ESCAPE_MAX 13

/*
 * Writes the next character of *@text or its escape sequence to @out, without a NUL, and
 * moves *@text behind it. Returns the number of bytes; 0 at the end of the text.
 */
size_t mw_escape_next(const char **text, enum mw_escape_style style, char out[MW_ESCAPE_MAX]);

/* Writes @text for a terminal to @buf, cut before the first character that does not fit. */
const char *mw_escape(const char *text, char *buf, size_t size);

/* Writes the whole text, without quotation marks around it. */
void mw_escape_write(FILE *out, const char *text, enum mw_escape_style style);

/* Formats like printf() and writes the result for a terminal. */
void mw_escape_vprintf(FILE *out, const char *format, va_list args);

/* The same, and ends the line. @format contains no newline: it would be escaped. */
void mw_escape_line(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
