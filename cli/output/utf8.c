// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Decodes UTF-8 as RFC 3629 defines it: overlong forms, surrogates and code points
 * above U+10FFFF are invalid.
 */
#include <stdio.h>
#include <string.h>

#include "output/utf8.h"

static int is_continuation_byte(unsigned char c)
{
	return (c & 0xc0) == 0x80;
}

int mw_utf8_length(const unsigned char *p)
{
	if (p[0] < 0x80)
		return 1;
	if (p[0] >= 0xc2 && p[0] <= 0xdf)
		return is_continuation_byte(p[1]) ? 2 : 0;
	if ((p[0] & 0xf0) == 0xe0) {
		if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f))
			return 0;
		return is_continuation_byte(p[1]) && is_continuation_byte(p[2]) ? 3 : 0;
	}
	if (p[0] >= 0xf0 && p[0] <= 0xf4) {
		if ((p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
			return 0;
		return is_continuation_byte(p[1]) && is_continuation_byte(p[2]) &&
				       is_continuation_byte(p[3])
			       ? 4
			       : 0;
	}
	return 0;
}

const char *mw_utf8_printable(const char *text, char *buf, size_t size)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t used = 0;

	while (*p) {
		int len = mw_utf8_length(p);
		/* The C1 control characters are the bytes C2 80 to C2 9F. */
		int hidden = !len || *p < 0x20 || *p == 0x7f || (*p == 0xc2 && p[1] < 0xa0);
		size_t need = hidden ? 4 : (size_t)len;

		if (used + need + 1 > size)
			break;
		if (hidden) {
			snprintf(buf + used, size - used, "\\x%02x", *p);
			p++;
		} else {
			memcpy(buf + used, p, need);
			p += len;
		}
		used += need;
	}
	buf[used] = '\0';
	return buf;
}
