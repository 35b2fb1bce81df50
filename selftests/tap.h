/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * KTAP, as kselftest prints it: the plan comes first or not at all, and the last line has the
 * totals. A test that ends without tap_done() has failed, because it prints neither totals nor
 * as many results as planned.
 */
#ifndef _MW_SELFTESTS_TAP_H
#define _MW_SELFTESTS_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAP_SKIP 4

static unsigned int tap_count, tap_failed, tap_skipped, tap_planned;

static inline void tap_start(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("TAP version 13\n");
}

/* Print the plan first, if the number of results is known: a crash is then seen at once. */
static inline void tap_plan(unsigned int n)
{
	tap_start();
	tap_planned = n;
	printf("1..%u\n", n);
}

__attribute__((format(printf, 2, 3))) static inline bool tap_ok(bool ok, const char *format, ...)
{
	char title[1024], *at;
	va_list args;

	if (!ok)
		tap_failed++;
	va_start(args, format);
	vsnprintf(title, sizeof(title), format, args);
	va_end(args);
	/* In KTAP, the title ends where "#" begins a directive. */
	while ((at = strchr(title, '#')))
		*at = '_';
	printf("%s %u %s\n", ok ? "ok" : "not ok", ++tap_count, title);
	return ok;
}

/* Print where a comparison failed, and why. */
__attribute__((format(printf, 3, 4))) static inline void tap_why(const char *file, int line,
								 const char *format, ...)
{
	va_list args;

	printf("# %s:%d: ", file, line);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

/* Two integers must be equal; if not, both are printed. The title is a format. */
#define tap_eq(got, expected, ...)                                                                 \
	({                                                                                         \
		long long got_ = (long long)(got), expected_ = (long long)(expected);              \
		if (!tap_ok(got_ == expected_, __VA_ARGS__))                                       \
			tap_why(__FILE__, __LINE__, "%s is %lld (%#llx), expected %lld (%#llx)",   \
				#got, got_, got_, expected_, expected_);                           \
		got_ == expected_;                                                                 \
	})

/* Two strings must be equal; NULL equals only NULL. */
#define tap_str_eq(got, expected, ...)                                                             \
	({                                                                                         \
		const char *got_ = (got), *expected_ = (expected);                                 \
		bool same_ = got_ && expected_ ? !strcmp(got_, expected_) : got_ == expected_;     \
		if (!tap_ok(same_, __VA_ARGS__))                                                   \
			tap_why(__FILE__, __LINE__, "%s is \"%s\", expected \"%s\"", #got,         \
				got_ ?: "(null)", expected_ ?: "(null)");                          \
		same_;                                                                             \
	})

__attribute__((format(printf, 1, 2))) static inline void tap_note(const char *format, ...)
{
	va_list args;

	printf("# ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

static inline void tap_skip(const char *what, const char *why)
{
	tap_skipped++;
	printf("ok %u %s # SKIP %s\n", ++tap_count, what, why);
}

/* The whole test cannot run on this machine. Does not return. */
static inline void tap_skip_all(const char *why)
{
	printf("1..0 # SKIP %s\n", why);
	exit(TAP_SKIP);
}

static inline int tap_done(void)
{
	bool complete = !tap_planned || tap_count == tap_planned;

	printf("# Totals: pass:%u fail:%u xfail:0 xpass:0 skip:%u error:0\n",
	       tap_count - tap_failed - tap_skipped, tap_failed, tap_skipped);
	return tap_failed || !complete ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif /* _MW_SELFTESTS_TAP_H */
