/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Numbers as people read them. Only tables use these; JSON and CSV carry raw
 * numbers.
 */
#ifndef MW_HUMAN_H
#define MW_HUMAN_H

#include <stddef.h>
#include <stdint.h>

enum mw_unit {
	MW_UNIT_NONE,	 /* 1234 */
	MW_UNIT_COUNT,	 /* 1.23 M */
	MW_UNIT_BYTES,	 /* 1.5 MiB */
	MW_UNIT_RATE,	 /* 1.5 MB/s: memory traffic is counted in powers of ten */
	MW_UNIT_NS,	 /* 1.23 ms */
	MW_UNIT_MOMENT,	 /* 1.234 s: nanoseconds, all with the same digits */
	MW_UNIT_RATIO,	 /* 0.93 */
	MW_UNIT_PERCENT, /* 12.3 % */
	MW_UNIT_PPM,	 /* 0.012 %: millionths, as small shares are */
};

const char *mw_human_uint(uint64_t value, enum mw_unit unit, char *buf, size_t size);
const char *mw_human_double(double value, enum mw_unit unit, char *buf, size_t size);
/* With the sign always written: "+1.5 MiB". */
const char *mw_human_change(double value, enum mw_unit unit, char *buf, size_t size);

#endif
