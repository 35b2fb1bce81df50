/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reading what people type: numbers, durations, instants. Everything is
 * refused that is not understood to its last character.
 */
#ifndef MW_PARSE_H
#define MW_PARSE_H

#include <stddef.h>
#include <stdint.h>

/* A decimal number. 0 or -EINVAL or -ERANGE, as all of them. */
int mw_parse_uint(const char *text, uint64_t *ret);

/* "250ms", "1.5s", "2m", "100us"; a bare number is in seconds. */
int mw_parse_duration(const char *text, uint64_t *ret_ns);

/* Why a duration was refused, for a message. */
const char *mw_parse_duration_why(int err);

/* "0-3,8" into a bit mask, bit N of byte N/8 is CPU N. Returns the highest CPU. */
int mw_parse_cpus(const char *text, unsigned char *mask, size_t bytes);
/* And back. Returns @buf. */
const char *mw_format_cpus(const unsigned char *mask, size_t bytes, char *buf, size_t size);

#endif
