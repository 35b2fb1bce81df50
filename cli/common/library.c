// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The context of libmemwatch and its log messages; errors of the library with hints.
 */
#include <errno.h>
#include <string.h>

#include "common/library.h"
#include "common/message.h"

static void log_message(void *userdata, enum memwatch_log_level level, const char *message)
{
	const struct mw_cli *cli = userdata;

	/* The call that failed returns the error; the command prints it. */
	if (level == MEMWATCH_LOG_WARNING)
		mw_warn(cli, "%s", message);
	else if (level > MEMWATCH_LOG_WARNING)
		mw_print_log("%s", message);
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

const char *mw_library_explain(struct memwatch_ctx *ctx, int err)
{
	const char *text = memwatch_ctx_error(ctx);

	return *text ? text : strerror(-err);
}

int mw_module_failed(struct memwatch_ctx *ctx, int err, const char *what, const char *instead)
{
	switch (-err) {
	case ENOENT:
	case ENXIO:
		mw_error(MW_EXIT_UNSUPPORTED, what, "the kernel module memwatch is not loaded");
		mw_hint("load it with 'modprobe memwatch'; 'memwatchctl doctor' shows what is "
			"missing%s%s",
			instead ? "; " : "", instead ? instead : "");
		return MW_EXIT_UNSUPPORTED;
	case EACCES:
	case EPERM:
		mw_error(MW_EXIT_UNSUPPORTED, what, "%s", mw_library_explain(ctx, err));
		mw_hint("run memwatchctl as root; members of the group memwatch may run status and "
			"events, dump during a session, and record and top with CAP_BPF and "
			"CAP_PERFMON");
		return MW_EXIT_UNSUPPORTED;
	case EREMOTE:
		mw_error(MW_EXIT_UNSUPPORTED, what, "%s", mw_library_explain(ctx, err));
		mw_hint("run memwatchctl on the host: what it shows is about all processes of it");
		return MW_EXIT_UNSUPPORTED;
	case EBUSY:
		mw_error(MW_EXIT_FAILED, what, "%s", mw_library_explain(ctx, err));
		mw_hint("wait until the other session has ended, or leave --period out to use its "
			"period");
		return MW_EXIT_FAILED;
	case EPROTO:
		mw_error(MW_EXIT_UNSUPPORTED, what, "%s", mw_library_explain(ctx, err));
		mw_hint("install the same version of the module and of memwatchctl");
		return MW_EXIT_UNSUPPORTED;
	case ENODEV:
	case EOPNOTSUPP:
	case ENOSYS:
		mw_error(MW_EXIT_UNSUPPORTED, what, "%s", mw_library_explain(ctx, err));
		mw_hint("'memwatchctl doctor' shows what this kernel lacks");
		return MW_EXIT_UNSUPPORTED;
	default:
		return mw_error(mw_exit_of(err), what, "%s", mw_library_explain(ctx, err));
	}
}

/* As mw_library_explain(), without the path, which the library names too. */
static const char *explain_file(struct memwatch_ctx *ctx, int err, const char *path)
{
	const char *why = mw_library_explain(ctx, err);
	size_t len = strlen(path);

	return !strncmp(why, path, len) && !strncmp(why + len, ": ", 2) ? why + len + 2 : why;
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
		mw_error(MW_EXIT_FAILED, path, "is not a memwatch recording");
		mw_hint("'memwatchctl record -o FILE' makes a recording");
		return MW_EXIT_FAILED;
	case EPROTO:
		mw_error(MW_EXIT_FAILED, path, "was made by a newer version of memwatch: %s",
			 explain_file(ctx, err, path));
		return MW_EXIT_FAILED;
	case EBADMSG:
		return mw_error(MW_EXIT_FAILED, path, "is damaged: %s",
				explain_file(ctx, err, path));
	default:
		return mw_error(MW_EXIT_FAILED, path, "%s", explain_file(ctx, err, path));
	}
}
