/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The context: log, last error, and root directory for the system's files.
 */
#ifndef MEMWATCH_CTX_H
#define MEMWATCH_CTX_H

#include <stdarg.h>
#include <stddef.h>

/* The version of these headers; memwatch_version() is that of the library at run time. */
#define MEMWATCH_VERSION_MAJOR 0
#define MEMWATCH_VERSION_MINOR 1
#define MEMWATCH_VERSION_PATCH 0

/* A version as one number, for comparisons in the preprocessor. */
#define MEMWATCH_VERSION_NUMBER(major, minor, patch) ((major)*1000000 + (minor)*1000 + (patch))
#define MEMWATCH_VERSION                                                                           \
	MEMWATCH_VERSION_NUMBER(MEMWATCH_VERSION_MAJOR, MEMWATCH_VERSION_MINOR,                    \
				MEMWATCH_VERSION_PATCH)

/* Of a function whose failure must not go unnoticed: data would be missing, or @ret not set. */
#if defined(__GNUC__)
#define MEMWATCH_MUST_CHECK __attribute__((__warn_unused_result__))
#else
#define MEMWATCH_MUST_CHECK
#endif

/**
 * MEMWATCH_OPTS - declare an options or statistics structure
 * @type: structure tag
 * @name: name of the variable
 *
 * Member @sz is set to the size of the structure and the others to 0. In C, further arguments are
 * designated initialisers:
 *	MEMWATCH_OPTS(memwatch_live_opts, opts, .period_ns = 1000000);
 * In C++, which has them since C++20 only, the members are assigned afterwards.
 *
 * Since: 0.1
 */
#ifdef __cplusplus
#define MEMWATCH_OPTS(type, name) struct type name = memwatch_opts<struct type>()

template <typename T> inline T memwatch_opts()
{
	T opts = T();

	opts.sz = sizeof(T);
	return opts;
}

extern "C" {
#else
#define MEMWATCH_OPTS(type, name, ...)                                                             \
	struct type name = { .sz = sizeof(struct type), ##__VA_ARGS__ }
#endif

/**
 * struct memwatch_ctx - a context
 *
 * Contexts are reference counted. Every object made from a context holds a reference.
 */
struct memwatch_ctx;

/**
 * enum memwatch_log_level - how important a message is
 * @MEMWATCH_LOG_ERROR: an operation failed
 * @MEMWATCH_LOG_WARNING: an operation continues with restrictions
 * @MEMWATCH_LOG_INFO: what was found on this system and what was chosen
 * @MEMWATCH_LOG_DEBUG: details for developers
 */
enum memwatch_log_level {
	MEMWATCH_LOG_ERROR = 0,
	MEMWATCH_LOG_WARNING = 1,
	MEMWATCH_LOG_INFO = 2,
	MEMWATCH_LOG_DEBUG = 3,
};

/**
 * memwatch_log_fn - receives log messages
 * @userdata: as given to memwatch_ctx_set_log()
 * @level: importance
 * @message: one line without a newline, valid during the call
 */
typedef void (*memwatch_log_fn)(void *userdata, enum memwatch_log_level level, const char *message);

/**
 * struct memwatch_ctx_opts - options of memwatch_ctx_new()
 * @sz: sizeof(struct memwatch_ctx_opts)
 * @root: directory that is prepended to every path below /proc, /sys and /dev that the
 *	library opens, for tests and for inspecting the files of another machine. The
 *	string is copied. Default: "", the files of this system.
 */
struct memwatch_ctx_opts {
	size_t sz;
	const char *root;
};

/**
 * memwatch_ctx_new - create a context
 * @opts: options or NULL
 * @ret: the context with one reference; caller frees with memwatch_ctx_unref()
 *
 * Returns: 0, -ENOMEM, -E2BIG for options of a newer library, or -EINVAL if their size is not set.
 * Since: 0.1
 */
int memwatch_ctx_new(const struct memwatch_ctx_opts *opts, struct memwatch_ctx **ret);

/**
 * memwatch_ctx_ref - take a reference
 * @ctx: context
 *
 * Returns: @ctx.
 * Since: 0.1
 */
struct memwatch_ctx *memwatch_ctx_ref(struct memwatch_ctx *ctx);

/**
 * memwatch_ctx_unref - drop a reference; the last one frees
 * @ctx: context or NULL
 *
 * Returns: NULL.
 * Since: 0.1
 */
struct memwatch_ctx *memwatch_ctx_unref(struct memwatch_ctx *ctx);

/**
 * memwatch_ctx_set_log - set the receiver of log messages
 * @ctx: context
 * @fn: called for each message up to @level; NULL: messages are dropped, as in a new
 *	context
 * @userdata: passed to @fn
 * @level: least important level that is passed to @fn; MEMWATCH_LOG overrides it
 *
 * Since: 0.1
 */
void memwatch_ctx_set_log(struct memwatch_ctx *ctx, memwatch_log_fn fn, void *userdata,
			  enum memwatch_log_level level);

/**
 * memwatch_ctx_error - describe the last failure
 * @ctx: context
 *
 * Returns: "" if nothing has failed yet; otherwise one line such as
 * "/proc/memwatch/status: not found: is the module loaded?", owned by the context and valid
 * until the next failure.
 * Since: 0.1
 */
const char *memwatch_ctx_error(const struct memwatch_ctx *ctx);

/**
 * memwatch_version - version of the library at run time
 *
 * Returns: "MAJOR.MINOR.PATCH".
 * Since: 0.1
 */
const char *memwatch_version(void);

#ifdef __cplusplus
}
#endif

#endif /* MEMWATCH_CTX_H */
