/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The context from the inside: error text, log and root directory. Every failure that a
 * user can see goes through mw_fail(), which records one line of text for it.
 */
#ifndef MW_BASE_CONTEXT_H
#define MW_BASE_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>

#include <memwatch/ctx.h>

/**
 * struct memwatch_ctx - a context
 * @refs: number of references
 * @log_level: log level from the environment, or -1
 * @user_level: log level from memwatch_ctx_set_log()
 * @log_fn: receives log messages, or NULL
 * @log_data: argument for @log_fn
 * @root: directory that is prepended to the paths of the system's files
 * @error: text of the last failure
 */
struct memwatch_ctx {
	unsigned int refs;
	int log_level;
	int user_level;
	memwatch_log_fn log_fn;
	void *log_data;
	char *root;
	char error[512];
};

#define mw_printf(fmt_arg, first) __attribute__((format(printf, fmt_arg, first)))

/* Sets the error text, logs it, and returns @err, a negative errno. */
int mw_fail(struct memwatch_ctx *ctx, int err, const char *fmt, ...) mw_printf(3, 4);

/* mw_fail() with -ENOMEM and "WHAT: out of memory". */
int mw_fail_memory(struct memwatch_ctx *ctx, const char *what);

void mw_log(struct memwatch_ctx *ctx, enum memwatch_log_level level, const char *fmt, ...)
	mw_printf(3, 4);

/* The root directory followed by @path, which starts with a slash. Caller frees with free(). */
int mw_ctx_path(struct memwatch_ctx *ctx, const char *path, char **ret);

/*
 * Copies the options structure @from of a caller, or NULL, to @to, which has @size bytes,
 * and sets what @from does not contain to zero. Both start with size_t sz. Returns 0,
 * -EINVAL if @from->sz is not set, or -E2BIG if @from has members that are not known here
 * and not zero.
 */
int mw_opts_copy(struct memwatch_ctx *ctx, void *to, size_t size, const void *from);

/*
 * Copies the structure @from of @size bytes to the caller's structure @to, up to @to->sz.
 * Returns 0, or -EINVAL if @to->sz is not set.
 */
int mw_opts_export(void *to, const void *from, size_t size);

#endif /* MW_BASE_CONTEXT_H */
