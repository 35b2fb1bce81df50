// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The parsers. They use no floating point, so that "0.1s" is exactly 100000000 ns.
 */
#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/parse.h"

/* Parses the digits at the start of @text. Returns how many there are, or -ERANGE. */
static int parse_digits(const char *text, uint64_t *value)
{
	int n = 0;

	*value = 0;
	for (; isdigit((unsigned char)text[n]); n++)
		if (__builtin_mul_overflow(*value, 10, value) ||
		    __builtin_add_overflow(*value, (uint64_t)(text[n] - '0'), value))
			return -ERANGE;
	return n;
}

int mw_parse_uint(const char *text, uint64_t *ret)
{
	uint64_t value;
	int n = parse_digits(text, &value);

	if (n < 0)
		return n;
	if (!n || text[n])
		return -EINVAL;
	*ret = value;
	return 0;
}

int mw_parse_bytes(const char *text, uint64_t *ret)
{
	static const char units[] = "KMGT";
	const char *unit;
	uint64_t value;
	int n = parse_digits(text, &value);

	if (n < 0)
		return n;
	if (!n)
		return -EINVAL;
	unit = text[n] ? strchr(units, text[n]) : NULL;
	if (text[n] && (!unit || (text[n + 1] && strcmp(text + n + 1, "iB"))))
		return -EINVAL;
	if (unit && __builtin_mul_overflow(value, 1024ULL << 10 * (unit - units), &value))
		return -ERANGE;
	*ret = value;
	return 0;
}

static int parse_unit(const char *unit, uint64_t *ret)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{ "", 1000000000ULL },	 { "s", 1000000000ULL },    { "ms", 1000000ULL },
		{ "us", 1000ULL },	 { "\302\265s", 1000ULL },  { "ns", 1ULL },
		{ "m", 60000000000ULL }, { "min", 60000000000ULL }, { "h", 3600000000000ULL },
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(unit, units[i].name))
			continue;
		*ret = units[i].ns;
		return 0;
	}
	return -EINVAL;
}

/* Scales the @n digits after the decimal point to @unit; -EINVAL if finer than 1 ns. */
static int parse_fraction(const char *text, int n, uint64_t unit, uint64_t *ret)
{
	*ret = 0;
	for (int i = 0; i < n; i++) {
		uint64_t digit = (uint64_t)(text[i] - '0');

		if (digit && unit % 10)
			return -EINVAL;
		unit /= 10;
		*ret += digit * unit;
	}
	return 0;
}

int mw_parse_duration(const char *text, uint64_t *ret_ns)
{
	uint64_t whole, fraction = 0, ignored, unit, value;
	const char *behind = NULL;
	int n, m = 0;

	n = parse_digits(text, &whole);
	if (n < 0)
		return n;
	if (text[n] == '.') {
		behind = text + n + 1;
		m = parse_digits(behind, &ignored);
		if (m < 0)
			return m;
		if (!m)
			return -EINVAL;
		n += 1 + m;
	}
	if (!n || (behind == text + 1) || parse_unit(text + n, &unit))
		return -EINVAL;
	if (behind && parse_fraction(behind, m, unit, &fraction))
		return -EINVAL;
	if (__builtin_mul_overflow(whole, unit, &value) ||
	    __builtin_add_overflow(value, fraction, &value))
		return -ERANGE;
	*ret_ns = value;
	return 0;
}

const char *mw_parse_duration_why(int err)
{
	if (err == -ERANGE)
		return "is too long";
	return "is not a duration: write a number with the unit ns, us, ms, s, m or h, such as "
	       "250ms or 1.5s";
}

static int parse_range(const char **text, uint64_t *first, uint64_t *last)
{
	int n = parse_digits(*text, first);

	if (n <= 0)
		return n ?: -EINVAL;
	*text += n;
	*last = *first;
	if (**text != '-')
		return 0;
	n = parse_digits(++*text, last);
	if (n <= 0)
		return n ?: -EINVAL;
	*text += n;
	return *last < *first ? -EINVAL : 0;
}

int mw_parse_cpus(const char *text, unsigned char *mask, size_t bytes)
{
	uint64_t first, last, highest = 0;

	memset(mask, 0, bytes);
	for (;;) {
		int err = parse_range(&text, &first, &last);

		if (err)
			return err;
		if (last >= 8 * bytes)
			return -ERANGE;
		for (uint64_t cpu = first; cpu <= last; cpu++)
			mask[cpu / 8] |= (unsigned char)(1U << cpu % 8);
		if (last > highest)
			highest = last;
		if (!*text)
			return (int)highest;
		if (*text++ != ',')
			return -EINVAL;
	}
}

const char *mw_format_cpus(const unsigned char *mask, size_t bytes, char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (size_t cpu = 0; cpu < 8 * bytes && used < size; cpu++) {
		size_t last = cpu;

		if (!(mask[cpu / 8] & 1U << cpu % 8))
			continue;
		while (last + 1 < 8 * bytes && mask[(last + 1) / 8] & 1U << (last + 1) % 8)
			last++;
		used += (size_t)snprintf(buf + used, size - used,
					 last > cpu ? "%s%zu-%zu" : "%s%zu", used ? "," : "", cpu,
					 last);
		cpu = last;
	}
	return buf;
}
