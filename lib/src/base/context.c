// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The context, see context.h and <memwatch/ctx.h>.
 */
#if !defined(__LP64__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "libmemwatch needs a 64-bit little-endian target; build it without -m32"
#endif

#include "base/context.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef MEMWATCH_VERSION_STRING
#define MEMWATCH_VERSION_STRING "0.0.0"
#endif

static int read_log_level(void)
{
	static const char *const names[] = { "error", "warning", "info", "debug" };
	const char *value = secure_getenv("MEMWATCH_LOG");

	for (int i = 0; value && i < 4; i++) {
		if (!strcmp(value, names[i]))
			return i;
	}
	return -1;
}

int memwatch_ctx_new(const struct memwatch_ctx_opts *user_opts, struct memwatch_ctx **ret)
{
	struct memwatch_ctx_opts opts;
	struct memwatch_ctx *ctx;
	int err;

	err = mw_opts_copy(NULL, &opts, sizeof(opts), user_opts);
	if (err)
		return err;

	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return -ENOMEM;
	ctx->root = strdup(opts.root ? opts.root : "");
	if (!ctx->root) {
		free(ctx);
		return -ENOMEM;
	}
	ctx->refs = 1;
	ctx->log_level = read_log_level();
	*ret = ctx;
	return 0;
}

struct memwatch_ctx *memwatch_ctx_ref(struct memwatch_ctx *ctx)
{
	ctx->refs++;
	return ctx;
}

struct memwatch_ctx *memwatch_ctx_unref(struct memwatch_ctx *ctx)
{
	if (ctx && --ctx->refs == 0) {
		free(ctx->root);
		free(ctx);
	}
	return NULL;
}

void memwatch_ctx_set_log(struct memwatch_ctx *ctx, memwatch_log_fn fn, void *userdata,
			  enum memwatch_log_level level)
{
	ctx->log_fn = fn;
	ctx->log_data = userdata;
	ctx->user_level = (int)level;
}

const char *memwatch_ctx_error(const struct memwatch_ctx *ctx)
{
	return ctx->error;
}

const char *memwatch_version(void)
{
	return MEMWATCH_VERSION_STRING;
}

static bool is_logged(const struct memwatch_ctx *ctx, enum memwatch_log_level level)
{
	int limit = ctx->log_level >= 0 ? ctx->log_level : ctx->user_level;

	return ctx->log_fn && (int)level <= limit;
}

int mw_fail(struct memwatch_ctx *ctx, int err, const char *fmt, ...)
{
	int saved = errno;
	va_list args;

	va_start(args, fmt);
	vsnprintf(ctx->error, sizeof(ctx->error), fmt, args);
	va_end(args);
	if (is_logged(ctx, MEMWATCH_LOG_ERROR))
		ctx->log_fn(ctx->log_data, MEMWATCH_LOG_ERROR, ctx->error);
	errno = saved;
	return err;
}

int mw_fail_memory(struct memwatch_ctx *ctx, const char *what)
{
	return mw_fail(ctx, -ENOMEM, "%s: out of memory", what);
}

void mw_log(struct memwatch_ctx *ctx, enum memwatch_log_level level, const char *fmt, ...)
{
	char line[512];
	int saved = errno;
	va_list args;

	if (!is_logged(ctx, level))
		return;
	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	ctx->log_fn(ctx->log_data, level, line);
	errno = saved;
}

int mw_ctx_path(struct memwatch_ctx *ctx, const char *path, char **ret)
{
	size_t root = strlen(ctx->root);
	size_t len = strlen(path) + 1;
	char *full = malloc(root + len);

	if (!full)
		return mw_fail_memory(ctx, path);
	memcpy(full, ctx->root, root);
	memcpy(full + root, path, len);
	*ret = full;
	return 0;
}

int mw_opts_copy(struct memwatch_ctx *ctx, void *to, size_t size, const void *from)
{
	size_t given = 0;

	memset(to, 0, size);
	if (from)
		memcpy(&given, from, sizeof(given));
	if (from && given < sizeof(size_t)) {
		if (ctx)
			mw_fail(ctx, -EINVAL, "options: sz is not set");
		return -EINVAL;
	}
	for (size_t i = size; i < given; i++) {
		if (((const uint8_t *)from)[i]) {
			if (ctx)
				mw_fail(ctx, -E2BIG, "options: made for a newer libmemwatch");
			return -E2BIG;
		}
	}
	if (from)
		memcpy(to, from, given < size ? given : size);
	memcpy(to, &size, sizeof(size));
	return 0;
}

int mw_opts_export(void *to, const void *from, size_t size)
{
	size_t given;

	memcpy(&given, to, sizeof(given));
	if (given < sizeof(size_t))
		return -EINVAL;
	if (given > size) {
		memset((uint8_t *)to + size, 0, given - size);
	} else {
		size = given;
	}
	memcpy((uint8_t *)to + sizeof(size_t), (const uint8_t *)from + sizeof(size_t),
	       size - sizeof(size_t));
	return 0;
}
