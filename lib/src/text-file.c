// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Text: either it is what it must be, or it is an error.
 */
#include "text-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int read_all(int fd, char **ret, size_t *ret_bytes)
{
	size_t used = 0, max = 0;
	char *text = NULL;

	for (;;) {
		ssize_t got;

		if (used == max) {
			char *bigger = realloc(text, max ? max * 2 : 16384);

			if (!bigger) {
				free(text);
				return -ENOMEM;
			}
			max = max ? max * 2 : 16384;
			text = bigger;
		}
		got = read(fd, text + used, max - used);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 || used + (size_t)got > MW_TEXT_FILE_MAX) {
			int err = got < 0 ? -errno : -E2BIG;

			free(text);
			return err;
		}
		if (!got)
			break;
		used += (size_t)got;
	}
	*ret = text;
	*ret_bytes = used;
	return 0;
}

int mw_text_file_read(struct memwatch_ctx *ctx, const char *path, char **ret, size_t *ret_bytes)
{
	char *full;
	int fd, err;

	err = mw_ctx_path(ctx, path, &full);
	if (err)
		return err;
	fd = open(full, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		err = -errno;
		mw_fail(ctx, err, "%s: %s%s", full, strerror(-err),
			err == -ENOENT ? ": is the module loaded?" : "");
		free(full);
		return err;
	}
	err = read_all(fd, ret, ret_bytes);
	if (err)
		mw_fail(ctx, err, "%s: %s", full, strerror(-err));
	close(fd);
	free(full);
	return err;
}

bool mw_span_line(struct mw_span *text, struct mw_span *line)
{
	if (!text->len)
		return false;
	if (!mw_span_until(text, '\n', line)) {
		*line = *text;
		*text = (struct mw_span){ text->at + text->len, 0 };
	}
	return true;
}

bool mw_span_until(struct mw_span *text, char separator, struct mw_span *ret)
{
	const char *end = text->len ? memchr(text->at, separator, text->len) : NULL;

	if (!end)
		return false;
	*ret = (struct mw_span){ text->at, (size_t)(end - text->at) };
	text->len -= ret->len + 1;
	text->at = end + 1;
	return true;
}

bool mw_span_skip(struct mw_span *text, const char *prefix)
{
	size_t len = strlen(prefix);

	if (text->len < len || memcmp(text->at, prefix, len))
		return false;
	text->at += len;
	text->len -= len;
	return true;
}

bool mw_span_equals(struct mw_span text, const char *other)
{
	return mw_span_skip(&text, other) && !text.len;
}

bool mw_span_number(struct mw_span text, uint64_t max, uint64_t *ret)
{
	uint64_t value = 0;

	if (!text.len)
		return false;
	for (; text.len; text.at++, text.len--) {
		if (*text.at < '0' || *text.at > '9' ||
		    __builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*text.at - '0'), &value))
			return false;
	}
	*ret = value;
	return value <= max;
}

bool mw_span_copy(struct mw_span text, char *to, size_t size)
{
	if (text.len >= size || (text.len && memchr(text.at, '\0', text.len)))
		return false;
	if (text.len)
		memcpy(to, text.at, text.len);
	to[text.len] = '\0';
	return true;
}

static bool is_octal(struct mw_span text)
{
	return text.len >= 4 && text.at[1] >= '0' && text.at[1] <= '3' && text.at[2] >= '0' &&
	       text.at[2] <= '7' && text.at[3] >= '0' && text.at[3] <= '7';
}

bool mw_span_unescape(struct mw_span text, char *to, size_t size)
{
	size_t used = 0;

	while (text.len) {
		char c = *text.at;
		size_t step = 1;

		if (c == '\\') {
			if (!is_octal(text))
				return false;
			c = (char)((text.at[1] - '0') << 6 | (text.at[2] - '0') << 3 |
				   (text.at[3] - '0'));
			step = 4;
		}
		if (!c || used + 1 >= size)
			return false;
		to[used++] = c;
		text.at += step;
		text.len -= step;
	}
	to[used] = '\0';
	return true;
}
