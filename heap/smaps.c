/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The mappings of this process, and whether they were accessed.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "smaps.h"

int mw_smaps_open(struct mw_smaps *smaps)
{
	smaps->fd = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC);
	smaps->used = smaps->at = 0;
	return smaps->fd < 0 ? -errno : 0;
}

void mw_smaps_close(struct mw_smaps *smaps)
{
	close(smaps->fd);
}

/* False at the end of the file. */
static bool buffer_fill(struct mw_smaps *smaps)
{
	ssize_t got;

	memmove(smaps->buffer, smaps->buffer + smaps->at, smaps->used - smaps->at);
	smaps->used -= smaps->at;
	smaps->at = 0;
	do
		got = read(smaps->fd, smaps->buffer + smaps->used,
			   sizeof(smaps->buffer) - smaps->used);
	while (got < 0 && errno == EINTR);
	if (got <= 0)
		return false;
	smaps->used += (size_t)got;
	return true;
}

/* The next line, which ends in 0 instead of a new line; NULL at the end. */
static const char *line_next(struct mw_smaps *smaps)
{
	char *begin, *end;

	while (!(end = memchr(smaps->buffer + smaps->at, '\n', smaps->used - smaps->at)))
		if (!buffer_fill(smaps))
			return NULL;
	begin = smaps->buffer + smaps->at;
	*end = 0;
	smaps->at = (size_t)(end - smaps->buffer) + 1;
	return begin;
}

static const char *hex_read(const char *text, uint64_t *ret)
{
	for (*ret = 0;; text++) {
		if (*text >= '0' && *text <= '9')
			*ret = *ret << 4 | (uint64_t)(*text - '0');
		else if (*text >= 'a' && *text <= 'f')
			*ret = *ret << 4 | (uint64_t)(*text - 'a' + 10);
		else
			return text;
	}
}

/* Whether the value of a field, "Name:   12 kB", is not 0. */
static bool field_is_set(const char *line)
{
	return line[strcspn(line, "123456789")] != 0;
}

static bool begins_with(const char *line, const char *name)
{
	return !strncmp(line, name, strlen(name));
}

/* The last line of a mapping has its flags. */
bool mw_smaps_next(struct mw_smaps *smaps, struct mw_smaps_mapping *ret)
{
	const char *line;

	memset(ret, 0, sizeof(*ret));
	while ((line = line_next(smaps))) {
		/* The names of all fields begin with a capital letter, and addresses do not. */
		if (*line < 'A' || *line > 'Z') {
			line = hex_read(line, &ret->start);
			hex_read(line + (*line == '-'), &ret->end);
		} else if (begins_with(line, "Referenced:")) {
			ret->is_referenced = field_is_set(line);
		} else if (begins_with(line, "Shared_")) {
			ret->is_shared |= field_is_set(line);
		} else if (begins_with(line, "VmFlags:")) {
			ret->is_followed = strstr(line, " um") || strstr(line, " uw") ||
					   strstr(line, " ui");
			return true;
		}
	}
	return false;
}
