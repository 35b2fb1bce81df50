/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * TAP for test programs: tap_plan(n), then one tap_ok() for each test, and
 * return tap_end() from main.
 */
#ifndef SELFTESTS_TAP_H
#define SELFTESTS_TAP_H

#include <stdarg.h>
#include <stdio.h>

static unsigned int tap_count, tap_failed, tap_planned;

static inline void tap_plan(unsigned int n)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	tap_planned = n;
	printf("TAP version 13\n1..%u\n", n);
}

__attribute__((format(printf, 2, 3))) static inline int tap_ok(int good, const char *format, ...)
{
	va_list args;

	tap_count++;
	if (!good)
		tap_failed++;
	printf("%sok %u - ", good ? "" : "not ", tap_count);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	return good;
}

__attribute__((format(printf, 1, 2))) static inline void tap_note(const char *format, ...)
{
	va_list args;

	printf("# ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

static inline int tap_end(void)
{
	return tap_failed || tap_count != tap_planned;
}

#endif /* SELFTESTS_TAP_H */
