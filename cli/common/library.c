// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The seam to libmemwatch: log messages, failures in words, and hints.
 */
#include <errno.h>
#include <string.h>

#include "common/library.h"
#include "common/message.h"

static void log_message(void *userdata, enum memwatch_log_level level, const char *message)
{
	const struct mw_cli *cli = userdata;

	/* Errors are reported when the call returns. */
	if (level == MEMWATCH_LOG_WARNING)
		mw_warn(cli, "%s", message);
	else if (level > MEMWATCH_LOG_WARNING)
		mw_note(cli, "%s", message);
}

int mw_library_new(const struct mw_cli *cli, struct memwatch_ctx **ret)
{
	MEMWATCH_OPTS(memwatch_ctx_opts, opts, .root = cli->root);
	int err = memwatch_ctx_new(&opts, ret);

	if (err)
		return mw_error_errno(err, "libmemwatch");
	memwatch_ctx_set_log(*ret, log_message, (void *)cli,
			     cli->verbose ? MEMWATCH_LOG_INFO : MEMWATCH_LOG_WARNING);
	return 0;
}

static const char *words(struct memwatch_ctx *ctx, int err)
{
	const char *text = memwatch_ctx_error(ctx);

	return *text ? text : strerror(-err);
}

int mw_module_failed(struct memwatch_ctx *ctx, int err, const char *what)
{
	switch (-err) {
	case ENOENT:
	case ENODEV:
	case ENXIO:
		mw_error(MW_EXIT_UNSUPPORTED, what, "the module memwatch is not loaded");
		mw_hint("modprobe memwatch; 'memwatchctl doctor' says what is missing");
		return MW_EXIT_UNSUPPORTED;
	case EACCES:
	case EPERM:
		mw_error(MW_EXIT_UNSUPPORTED, what, "%s", words(ctx, err));
		mw_hint("run as root, or as a member of the group memwatch with CAP_BPF and "
			"CAP_PERFMON");
		return MW_EXIT_UNSUPPORTED;
	case EBUSY:
		mw_error(MW_EXIT_FAILED, what, "%s", words(ctx, err));
		mw_hint("another session is running; it would be changed too");
		return MW_EXIT_FAILED;
	case EPROTO:
		mw_error(MW_EXIT_UNSUPPORTED, what, "%s", words(ctx, err));
		mw_hint("module and memwatchctl are of different versions; install the same");
		return MW_EXIT_UNSUPPORTED;
	case EOPNOTSUPP:
	case ENOSYS:
		mw_error(MW_EXIT_UNSUPPORTED, what, "%s", words(ctx, err));
		mw_hint("'memwatchctl doctor' says what this kernel lacks");
		return MW_EXIT_UNSUPPORTED;
	default:
		return mw_error(mw_exit_of(err), what, "%s", words(ctx, err));
	}
}

int mw_file_failed(struct memwatch_ctx *ctx, int err, const char *path)
{
	switch (-err) {
	case ENOENT:
	case EISDIR:
		return mw_error(MW_EXIT_FAILED, path, "%s", strerror(-err));
	case EACCES:
	case EPERM:
		return mw_error(MW_EXIT_UNSUPPORTED, path, "%s", strerror(-err));
	case ENOMSG:
		mw_error(MW_EXIT_FAILED, path, "is not a recording of memwatch");
		mw_hint("recordings are made with 'memwatchctl record -o FILE'");
		return MW_EXIT_FAILED;
	case EPROTO:
		mw_error(MW_EXIT_FAILED, path, "was made by a newer memwatch: %s", words(ctx, err));
		return MW_EXIT_FAILED;
	case EBADMSG:
		return mw_error(MW_EXIT_FAILED, path, "is damaged: %s", words(ctx, err));
	default:
		return mw_error(MW_EXIT_FAILED, path, "%s", words(ctx, err));
	}
}
