/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Parsers for numbers, durations and lists of CPUs on the command line. They accept
 * a text only as a whole.
 */
#ifndef MW_PARSE_H
#define MW_PARSE_H

#include <stddef.h>
#include <stdint.h>

/* Parses a decimal number. Returns 0, -EINVAL, or -ERANGE if it is too large. */
int mw_parse_uint(const char *text, uint64_t *ret);

/*
 * Parses a number of bytes, or one with the unit K, M, G or T (or KiB and so on), which are
 * powers of 1024. Returns 0, -EINVAL, or -ERANGE if it is too large.
 */
int mw_parse_bytes(const char *text, uint64_t *ret);

/*
 * Parses "250ms", "1.5s", "2m" or "100us"; a number without a unit is in seconds.
 * Returns 0, -EINVAL, or -ERANGE if the duration is too long.
 */
int mw_parse_duration(const char *text, uint64_t *ret_ns);

/* The end of an error message that begins with the refused duration. */
const char *mw_parse_duration_why(int err);

/*
 * Parses a list of CPUs such as "0-3,8" into @mask: bit N of byte N/8 is CPU N.
 * Returns the highest CPU, -EINVAL, or -ERANGE if a CPU does not fit into @mask.
 */
int mw_parse_cpus(const char *text, unsigned char *mask, size_t bytes);
/* Writes @mask as such a list. Returns @buf. */
const char *mw_format_cpus(const unsigned char *mask, size_t bytes, char *buf, size_t size);

#endif
