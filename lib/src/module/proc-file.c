// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reading the files of the module, with errors that say what to do.
 */
#include "module/proc-file.h"

#include <errno.h>
#include <stdio.h>

#include "base/context.h"
#include "base/namespace.h"
#include "base/text.h"

/* Returns NULL if the error of the system says enough. */
static const char *explain_proc_error(int err)
{
	switch (err) {
	case ENOENT:
		return "not found: is the module loaded?";
	case EACCES:
		return "not permitted: root and members of the group memwatch may read it";
	case EPERM:
		return "not permitted: reading it needs CAP_PERFMON, CAP_SYS_ADMIN or membership "
		       "of the group memwatch";
	case EREMOTE:
		return "it can only be read on the host, not in a container";
	default:
		return NULL;
	}
}

int mw_proc_file_read(struct memwatch_ctx *ctx, const char *name, char **ret, size_t *len)
{
	const char *reason;
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/memwatch/%s", name);
	err = mw_text_read_file(ctx, path, ret, len);
	if (!err)
		return 0;
	err = mw_namespace_refine(ctx, err);
	reason = explain_proc_error(-err);
	return reason ? mw_fail(ctx, err, "%s: %s", path, reason) : err;
}
