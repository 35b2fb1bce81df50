// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Messages of libbpf, see log.h.
 */
#include "loader/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "loader/libbpf.h"

/* The context of the call of libbpf that this thread is in. */
static __thread struct memwatch_ctx *log_ctx;

/* Protects the two below. libbpf has one print function for all threads of the process. */
static pthread_once_t lock_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock;
static unsigned int threads;		    /* how many are between begin and end */
static libbpf_print_fn_t application_print; /* what to restore when the last one leaves */

__attribute__((format(printf, 2, 0))) static int forward_to_log(enum libbpf_print_level level,
								const char *format, va_list args)
{
	libbpf_print_fn_t print;
	char line[400];

	if (!log_ctx) {
		/* Another thread of the application uses libbpf at the same time. */
		pthread_mutex_lock(&lock);
		print = application_print;
		pthread_mutex_unlock(&lock);
		return print ? print(level, format, args) : 0;
	}
	if (level == LIBBPF_DEBUG)
		return 0;
	vsnprintf(line, sizeof(line), format, args);
	line[strcspn(line, "\n")] = '\0';
	mw_log(log_ctx, MEMWATCH_LOG_DEBUG, "%s", line);
	return 0;
}

static void make_lock(void)
{
	pthread_mutex_init(&lock, NULL);
}

void mw_bpf_log_begin(struct memwatch_ctx *ctx)
{
	log_ctx = ctx;
	pthread_once(&lock_once, make_lock);
	pthread_mutex_lock(&lock);
	if (!threads++)
		application_print = libbpf_set_print(forward_to_log);
	pthread_mutex_unlock(&lock);
}

void mw_bpf_log_end(void)
{
	libbpf_print_fn_t now;

	pthread_mutex_lock(&lock);
	if (!--threads) {
		now = libbpf_set_print(application_print);
		/* The application has set another function meanwhile: that one stays. */
		if (now != forward_to_log)
			libbpf_set_print(now);
	}
	pthread_mutex_unlock(&lock);
	log_ctx = NULL;
}
