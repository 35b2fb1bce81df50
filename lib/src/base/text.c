// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reading and parsing of text, see text.h.
 */
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/context.h"

/* The module writes about 100 KiB at most: 512 lines of 200 bytes. */
#define FILE_MAX  ((size_t)16 << 20)
#define READ_SIZE 16384

/* Files below /proc do not tell their size, so this reads until the end. */
static int read_whole_file(int fd, char **ret, size_t *len)
{
	size_t size = 0, used = 0;
	char *text = NULL;
	ssize_t n;
	int err;

	for (;;) {
		err = -E2BIG;
		if (used == FILE_MAX)
			goto err_free;
		err = -ENOMEM;
		if (used == size && mw_array_reserve(text, size, used + READ_SIZE))
			goto err_free;
		n = read(fd, text + used, size - used);
		if (n < 0 && errno == EINTR)
			continue;
		err = -errno;
		if (n < 0)
			goto err_free;
		if (!n)
			break;
		used += (size_t)n;
	}
	*ret = text;
	*len = used;
	return 0;

err_free:
	free(text);
	return err;
}

int mw_text_read_file(struct memwatch_ctx *ctx, const char *path, char **ret, size_t *len)
{
	char *full;
	int fd, err;

	err = mw_ctx_path(ctx, path, &full);
	if (err)
		return err;
	fd = open(full, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		err = mw_fail(ctx, -errno, "%s: %s", full, strerror(errno));
	} else {
		err = read_whole_file(fd, ret, len);
		if (err)
			mw_fail(ctx, err, "%s: %s", full, strerror(-err));
		close(fd);
	}
	free(full);
	return err;
}

bool mw_text_take(struct mw_text *rest, char separator, struct mw_text *piece)
{
	const char *end;

	if (!rest->at)
		return false;
	end = memchr(rest->at, separator, rest->len);
	piece->at = rest->at;
	if (end) {
		piece->len = (size_t)(end - rest->at);
		rest->len -= piece->len + 1;
		rest->at = end + 1;
	} else {
		piece->len = rest->len;
		rest->at = NULL;
		rest->len = 0;
	}
	return true;
}

bool mw_text_skip(struct mw_text *text, const char *prefix)
{
	size_t len = strlen(prefix);

	if (text->len < len || memcmp(text->at, prefix, len))
		return false;
	text->at += len;
	text->len -= len;
	return true;
}

bool mw_text_is(struct mw_text text, const char *string)
{
	return text.len == strlen(string) && !memcmp(text.at, string, text.len);
}

bool mw_text_number(struct mw_text text, uint64_t max, uint64_t *ret)
{
	uint64_t value = 0;

	if (!text.len)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		unsigned int digit = (unsigned char)text.at[i] - '0';

		if (digit > 9 || value > (UINT64_MAX - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	if (value > max)
		return false;
	*ret = value;
	return true;
}

bool mw_text_copy(struct mw_text text, char *to, size_t size)
{
	if (text.len >= size || memchr(text.at, 0, text.len))
		return false;
	memcpy(to, text.at, text.len);
	to[text.len] = 0;
	return true;
}

/* Parses three octal digits of a value from 1 to 255. */
static bool parse_octal(const char *at, char *ret)
{
	unsigned int value = 0;

	for (int i = 0; i < 3; i++) {
		unsigned int digit = (unsigned char)at[i] - '0';

		if (digit > 7)
			return false;
		value = value * 8 + digit;
	}
	*ret = (char)value;
	return value && value < 256;
}

bool mw_text_unescape(struct mw_text text, char *to, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < text.len; i++) {
		char c = text.at[i];

		if (c == '\\') {
			if (text.len - i < 4 || !parse_octal(text.at + i + 1, &c))
				return false;
			i += 3;
		}
		if (!c || n + 1 >= size)
			return false;
		to[n++] = c;
	}
	to[n] = 0;
	return true;
}
