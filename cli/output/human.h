/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Numbers with a unit, for tables. JSON and CSV contain the raw numbers instead.
 */
#ifndef MW_HUMAN_H
#define MW_HUMAN_H

#include <stddef.h>
#include <stdint.h>

enum mw_unit {
	MW_UNIT_NONE,	 /* 1234 */
	MW_UNIT_COUNT,	 /* 1.23 M */
	MW_UNIT_BYTES,	 /* 1.5 MiB */
	MW_UNIT_RATE,	 /* 1.5 MB/s; the prefixes are powers of 1000 */
	MW_UNIT_NS,	 /* nanoseconds as 1.23 ms */
	MW_UNIT_MOMENT,	 /* nanoseconds as 1.234 s, always with three decimals */
	MW_UNIT_RATIO,	 /* 0.93 */
	MW_UNIT_PERCENT, /* 12.3 % */
	MW_UNIT_PPM,	 /* parts per million as 0.012 % */
};

/* Format @value. Both return @buf. */
const char *mw_human_uint(uint64_t value, enum mw_unit unit, char *buf, size_t size);
const char *mw_human_double(double value, enum mw_unit unit, char *buf, size_t size);
/* The same with a plus sign if @value is positive: "+1.5 MiB". */
const char *mw_human_change(double value, enum mw_unit unit, char *buf, size_t size);

#endif
