// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Messages of libbpf, see log.h.
 */
#include "loader/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The context of the call of libbpf that this thread is in. */
static __thread struct memwatch_ctx *log_ctx;

__attribute__((format(printf, 2, 0))) static int forward_to_log(enum libbpf_print_level level,
								const char *format, va_list args)
{
	char line[400];

	if (!log_ctx || level == LIBBPF_DEBUG)
		return 0;
	vsnprintf(line, sizeof(line), format, args);
	line[strcspn(line, "\n")] = '\0';
	mw_log(log_ctx, MEMWATCH_LOG_DEBUG, "%s", line);
	return 0;
}

libbpf_print_fn_t mw_bpf_log_begin(struct memwatch_ctx *ctx)
{
	log_ctx = ctx;
	return libbpf_set_print(forward_to_log);
}

void mw_bpf_log_end(libbpf_print_fn_t before)
{
	libbpf_set_print(before);
	log_ctx = NULL;
}
