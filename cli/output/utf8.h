/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Checks for strings that may contain any bytes, such as the names of processes.
 */
#ifndef MW_UTF8_H
#define MW_UTF8_H

#include <stddef.h>

/* The length in bytes of the character at @p, a NUL-terminated string; 0: not valid UTF-8. */
int mw_utf8_length(const unsigned char *p);

/*
 * Copies @text to @buf. Control characters and invalid bytes become \xNN, so that the
 * result is safe to print on a terminal. Returns @buf.
 */
const char *mw_utf8_printable(const char *text, char *buf, size_t size);

#endif
