/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Telling UTF-8 from arbitrary bytes: a process may call itself anything.
 */
#ifndef MW_UTF8_H
#define MW_UTF8_H

#include <stddef.h>

/* Bytes of the character at @p (NUL-terminated); 0 if it is not valid UTF-8. */
int mw_utf8_length(const unsigned char *p);

/*
 * Copies @text so that it can be shown on a terminal: control characters and
 * invalid bytes become \xNN. Returns @buf.
 */
const char *mw_utf8_printable(const char *text, char *buf, size_t size);

#endif
