// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Lists of CPUs, see cpus.h.
 */
#include "base/cpus.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/context.h"

/* "3" or "0-3" */
static bool parse_range(struct mw_text range, uint64_t *first, uint64_t *last)
{
	struct mw_text number;

	if (!mw_text_take(&range, '-', &number) || !mw_text_number(number, UINT32_MAX, first))
		return false;
	*last = *first;
	if (!mw_text_take(&range, '-', &number))
		return true;
	return !range.at && mw_text_number(number, UINT32_MAX, last) && *last >= *first;
}

bool mw_cpus_parse(struct mw_text list, uint8_t *set, unsigned int nr)
{
	struct mw_text range;
	uint64_t first, last;

	memset(set, 0, nr);
	if (list.len && list.at[list.len - 1] == '\n')
		list.len--;
	if (!list.len)
		return true;
	while (mw_text_take(&list, ',', &range)) {
		if (!parse_range(range, &first, &last))
			return false;
		for (uint64_t cpu = first; cpu <= last && cpu < nr; cpu++)
			set[cpu] = 1;
	}
	return true;
}

int mw_cpus_read(struct memwatch_ctx *ctx, const char *path, uint8_t *set, unsigned int nr)
{
	char *text;
	size_t len;
	int err = mw_text_read_file(ctx, path, &text, &len);

	if (err)
		return err;
	if (!mw_cpus_parse((struct mw_text){ text, len }, set, nr))
		err = mw_fail(ctx, -EBADMSG, "%s is no list of CPUs", path);
	free(text);
	return err;
}

int mw_cpus_online(struct memwatch_ctx *ctx, uint8_t *set, unsigned int nr)
{
	return mw_cpus_read(ctx, "/sys/devices/system/cpu/online", set, nr);
}
