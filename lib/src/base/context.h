/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Inside of the context: error text, log, and where files are. Every failure
 * that a user can meet goes through mw_fail(), so that there is one line of
 * words for it.
 */
#ifndef MW_CONTEXT_H
#define MW_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>

#include <memwatch/ctx.h>

struct memwatch_ctx {
	unsigned int refs;
	int log_level; /* of the environment, -1 if not given */
	int user_level;
	memwatch_log_fn log_fn;
	void *log_data;
	char *root;
	char error[512];
};

#define mw_printf(fmt_arg, first) __attribute__((format(printf, fmt_arg, first)))

/* Sets the error text, logs it, and returns @err (a negative errno) to be passed on. */
int mw_fail(struct memwatch_ctx *ctx, int err, const char *fmt, ...) mw_printf(3, 4);

/* mw_fail() with -ENOMEM and "WHAT: out of memory". */
int mw_fail_memory(struct memwatch_ctx *ctx, const char *what);

void mw_log(struct memwatch_ctx *ctx, enum memwatch_log_level level, const char *fmt, ...)
	mw_printf(3, 4);

/* Root directory + @path, which starts with a slash. Caller frees with free(). */
int mw_ctx_path(struct memwatch_ctx *ctx, const char *path, char **ret);

/*
 * Completes an options structure: @to, of @size bytes, gets what the caller's
 * @from (or NULL) has, and zero for the rest. Both start with size_t sz.
 */
int mw_opts_copy(struct memwatch_ctx *ctx, void *to, size_t size, const void *from);

/* The other direction, for structures that the library fills in. */
int mw_opts_export(void *to, const void *from, size_t size);

#endif /* MW_CONTEXT_H */
