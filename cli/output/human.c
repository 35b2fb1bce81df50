// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Formats numbers with three significant digits and a unit.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "output/human.h"

struct scale {
	double base;
	const char *const *names;
};

static const char *const counts[] = { "", " k", " M", " G", " T", " P", " E", NULL };
static const char *const bytes[] = { " B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB", NULL };
static const char *const rates[] = { " B/s",  " kB/s", " MB/s", " GB/s",
				     " TB/s", " PB/s", " EB/s", NULL };
static const char *const times[] = { " ns", " us", " ms", " s", NULL };

static const struct scale scales[] = {
	[MW_UNIT_COUNT] = { 1000, counts },
	[MW_UNIT_BYTES] = { 1024, bytes },
	[MW_UNIT_RATE] = { 1000, rates },
	[MW_UNIT_NS] = { 1000, times },
};

static const char *format_scaled(double value, const struct scale *s, char *buf, size_t size)
{
	double magnitude = fabs(value);
	int i = 0;

	/* From 999.5 on the number would be rounded to 1000. */
	while (magnitude >= (s->base == 1024 ? 1023.5 : 999.5) && s->names[i + 1]) {
		magnitude /= s->base;
		value /= s->base;
		i++;
	}
	if (!i && value == floor(value))
		snprintf(buf, size, "%.0f%s", value, s->names[i]);
	else
		snprintf(buf, size, "%.*f%s",
			 magnitude < 9.995   ? 2
			 : magnitude < 99.95 ? 1
					     : 0,
			 value, s->names[i]);
	return buf;
}

const char *mw_human_double(double value, enum mw_unit unit, char *buf, size_t size)
{
	switch (unit) {
	case MW_UNIT_RATIO:
		snprintf(buf, size, "%.2f", value);
		return buf;
	case MW_UNIT_PERCENT:
		snprintf(buf, size, "%.1f %%", value);
		return buf;
	case MW_UNIT_PPM:
		snprintf(buf, size, "%.3g %%", value / 1e4);
		return buf;
	case MW_UNIT_MOMENT:
		snprintf(buf, size, "%.3f s", value / 1e9);
		return buf;
	case MW_UNIT_NONE:
		snprintf(buf, size, "%.6g", value);
		return buf;
	default:
		return format_scaled(value, &scales[unit], buf, size);
	}
}

const char *mw_human_uint(uint64_t value, enum mw_unit unit, char *buf, size_t size)
{
	if (unit != MW_UNIT_NONE)
		return mw_human_double((double)value, unit, buf, size);
	snprintf(buf, size, "%" PRIu64, value);
	return buf;
}

const char *mw_human_change(double value, enum mw_unit unit, char *buf, size_t size)
{
	if (value > 0) {
		buf[0] = '+';
		mw_human_double(value, unit, buf + 1, size - 1);
	} else {
		mw_human_double(value, unit, buf, size);
	}
	return buf;
}
