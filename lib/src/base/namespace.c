// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Recognises the initial namespaces by their inode numbers, see namespace.h.
 */
#include "base/namespace.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/context.h"

/* PROC_USER_INIT_INO and PROC_PID_INIT_INO of the kernel, which never change. */
static const struct initial_namespace {
	const char *path;
	const char *name;
} user_namespace = { "/proc/self/ns/user", "user:[4026531837]" },
  pid_namespace = { "/proc/self/ns/pid", "pid:[4026531836]" };

/* A kernel without namespaces has only the initial one. */
static bool is_inside(struct memwatch_ctx *ctx, const struct initial_namespace *initial)
{
	char *full, name[64];
	ssize_t len;

	if (mw_ctx_path(ctx, initial->path, &full))
		return true;
	len = readlink(full, name, sizeof(name));
	free(full);
	return len < 0 ||
	       ((size_t)len == strlen(initial->name) && !memcmp(name, initial->name, (size_t)len));
}

int mw_namespace_refine(struct memwatch_ctx *ctx, int err)
{
	if (err != -EACCES && err != -EPERM)
		return err;
	return is_inside(ctx, &user_namespace) && is_inside(ctx, &pid_namespace) ? err : -EREMOTE;
}

bool mw_namespace_has_all_pids(struct memwatch_ctx *ctx)
{
	return is_inside(ctx, &pid_namespace);
}
