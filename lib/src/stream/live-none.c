// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Replaces live.c in a library that is built without the relay.
 */
#include <errno.h>

#include <memwatch/stream.h>

#include "base/context.h"

int memwatch_stream_open_live(struct memwatch_ctx *ctx, const struct memwatch_live_opts *opts,
			      struct memwatch_stream **ret)
{
	(void)opts;
	(void)ret;
	return mw_fail(ctx, -ENOSYS, "live measurement: this library was built without the relay");
}
