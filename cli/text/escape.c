// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Decodes UTF-8 as RFC 3629 defines it, so overlong forms, surrogates and code points above
 * U+10FFFF are invalid, and escapes what must not be seen as it is.
 */
#include <langinfo.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wctype.h>

#include "text/escape.h"

/*
 * The characters of Unicode that are in the categories Cc, Cf, Zl and Zp, or that have the
 * property Default_Ignorable_Code_Point, in ascending order.
 */
static const struct {
	uint32_t first, last;
} hidden_ranges[] = {
	{ 0x0000, 0x001f },   { 0x007f, 0x009f },   { 0x00ad, 0x00ad },	  { 0x034f, 0x034f },
	{ 0x0600, 0x0605 },   { 0x061c, 0x061c },   { 0x06dd, 0x06dd },	  { 0x070f, 0x070f },
	{ 0x0890, 0x0891 },   { 0x08e2, 0x08e2 },   { 0x115f, 0x1160 },	  { 0x17b4, 0x17b5 },
	{ 0x180b, 0x180f },   { 0x200b, 0x200f },   { 0x2028, 0x202e },	  { 0x2060, 0x206f },
	{ 0x3164, 0x3164 },   { 0xfe00, 0xfe0f },   { 0xfeff, 0xfeff },	  { 0xffa0, 0xffa0 },
	{ 0xfff0, 0xfffb },   { 0x110bd, 0x110bd }, { 0x110cd, 0x110cd }, { 0x13430, 0x1343f },
	{ 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff },
};

static bool is_hidden(uint32_t code)
{
	size_t i = 0;

	while (i < sizeof(hidden_ranges) / sizeof(hidden_ranges[0]) && code > hidden_ranges[i].last)
		i++;
	return i < sizeof(hidden_ranges) / sizeof(hidden_ranges[0]) &&
	       code >= hidden_ranges[i].first;
}

/* Whether the locale can print a character that is not ASCII. */
static bool terminal_shows(uint32_t code)
{
	return !strcmp(nl_langinfo(CODESET), "UTF-8") && iswprint((wint_t)code);
}

/* Decodes one character. Returns its length in bytes; 0 if it is not valid UTF-8. */
static size_t decode(const unsigned char *p, uint32_t *code)
{
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t len = p[0] < 0x80 ? 1 : p[0] < 0xc0 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;

	*code = p[0];
	if (len <= 1 || p[0] >= 0xf8)
		return p[0] < 0x80;
	*code = p[0] & (0x7fU >> len);
	for (size_t i = 1; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		*code = *code << 6 | (p[i] & 0x3f);
	}
	if (*code < smallest[len] || *code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000))
		return 0;
	return len;
}

static size_t write_visible_escape(uint32_t code, char *out)
{
	const char *format = code < 0x80 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x";

	return (size_t)snprintf(out, MW_ESCAPE_MAX, format, (unsigned int)code);
}

/* JSON escapes have four digits, so larger code points are written as surrogate pairs. */
static size_t write_json_escape(uint32_t code, char *out)
{
	if (code < 0x10000)
		return (size_t)snprintf(out, MW_ESCAPE_MAX, "\\u%04x", (unsigned int)code);
	return (size_t)snprintf(out, MW_ESCAPE_MAX, "\\u%04x\\u%04x",
				(unsigned int)(0xd7c0 + (code >> 10)),
				(unsigned int)(0xdc00 | (code & 0x3ff)));
}

size_t mw_escape_next(const char **text, enum mw_escape_style style, char out[MW_ESCAPE_MAX])
{
	const unsigned char *p = (const unsigned char *)*text;
	uint32_t code;
	size_t len;

	if (!*p)
		return 0;
	len = decode(p, &code);
	*text += len + !len;
	if (!len && style == MW_ESCAPE_JSON)
		return write_json_escape(0xfffd, out);
	if (!len)
		return (size_t)snprintf(out, MW_ESCAPE_MAX, "\\x%02x", p[0]);
	if (is_hidden(code) ||
	    (style == MW_ESCAPE_TERMINAL && code >= 0x80 && !terminal_shows(code)))
		return style == MW_ESCAPE_JSON ? write_json_escape(code, out)
					       : write_visible_escape(code, out);
	if (code == '\\' || (code == '"' && style != MW_ESCAPE_TERMINAL)) {
		out[0] = code == '"' && style == MW_ESCAPE_CSV ? '"' : '\\';
		out[1] = (char)code;
		return 2;
	}
	memcpy(out, p, len);
	return len;
}

const char *mw_escape(const char *text, char *buf, size_t size)
{
	char next[MW_ESCAPE_MAX];
	size_t used = 0, len;

	while ((len = mw_escape_next(&text, MW_ESCAPE_TERMINAL, next)) && used + len < size) {
		memcpy(buf + used, next, len);
		used += len;
	}
	buf[used] = '\0';
	return buf;
}

/* The length of the characters at the start that are the same in every style. */
static size_t count_plain(const char *text)
{
	size_t len = 0;

	while (text[len] >= ' ' && text[len] < 0x7f && text[len] != '\\' && text[len] != '"')
		len++;
	return len;
}

void mw_escape_write(FILE *out, const char *text, enum mw_escape_style style)
{
	char next[MW_ESCAPE_MAX];
	size_t len;

	do {
		len = count_plain(text);
		fwrite(text, 1, len, out);
		text += len;
		len = mw_escape_next(&text, style, next);
		fwrite(next, 1, len, out);
	} while (len);
}

void mw_escape_vprintf(FILE *out, const char *format, va_list args)
{
	char *text;

	if (vasprintf(&text, format, args) < 0) {
		fputs("(out of memory)", out);
		return;
	}
	mw_escape_write(out, text, MW_ESCAPE_TERMINAL);
	free(text);
}

void mw_escape_line(FILE *out, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	mw_escape_vprintf(out, format, args);
	va_end(args);
	fputc('\n', out);
}
