// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Reads a profile that may be written meanwhile.
 *
 * What an element refers to is complete before the element is. So the kinds of elements are read
 * in the order in which they refer to each other: what is read later has all that is referred to
 * by what was read before. A new chunk may be added at any time, so the directory is read again
 * for each kind. Chunks that are added later are zero in the copy, which means that they have no
 * elements.
 */
#include "heap/live-file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "heap/profile-file.h"
#include "base/context.h"
#include "base/file-io.h"

struct live_file {
	struct memwatch_ctx *ctx;
	int fd;
	const char *name;
	uint64_t max;
	struct mw_input *copy;
};

static int read_failed(const struct live_file *file, int err)
{
	return mw_fail(file->ctx, err, "%s: %s", file->name, strerror(-err));
}

/* Reads a part of the file, which is zero behind the end. */
static int read_part(const struct live_file *file, void *to, size_t len, uint64_t offset)
{
	ssize_t n = mw_file_read_at(file->fd, to, len, offset);

	if (n < 0)
		return read_failed(file, (int)n);
	memset((char *)to + n, 0, len - (size_t)n);
	return 0;
}

/* Makes the copy as large as the file is now. */
static int copy_extend(const struct live_file *file)
{
	struct mw_input *copy = file->copy;
	struct stat st;
	size_t size;
	char *bytes;

	if (fstat(file->fd, &st))
		return read_failed(file, -errno);
	size = (size_t)st.st_size;
	if (size <= copy->len)
		return 0;
	if (size > file->max)
		return mw_fail(file->ctx, -EFBIG,
			       "%s: the file is larger than the limit of %llu bytes", file->name,
			       (unsigned long long)file->max);
	bytes = realloc(copy->bytes, size + 1);
	if (!bytes)
		return mw_fail_memory(file->ctx, file->name);
	memset(bytes + copy->len, 0, size + 1 - copy->len);
	*copy = (struct mw_input){ bytes, size };
	return 0;
}

/* The directory as it is now, and the size of the file behind it. */
static int read_directory(const struct live_file *file, struct mw_profile_file *ret)
{
	int err;

	*ret = (struct mw_profile_file){ .input = file->copy };
	err = mw_profile_file_header(ret, file->ctx);
	if (!err)
		err = read_part(file, file->copy->bytes + MW_HEAP_DIRECTORY_OFFSET,
				MW_HEAP_PAGE_BYTES, MW_HEAP_DIRECTORY_OFFSET);
	if (!err)
		err = copy_extend(file);
	return err ?: mw_profile_file_directory(ret, file->ctx);
}

/* Drops the elements of a chunk that are not the same any more; the first word is their state. */
static int drop_changed(const struct live_file *file, const struct mw_chunk_part *part,
			size_t distance)
{
	char *copy = file->copy->bytes + part->offset, *now = malloc(part->count * distance + 1);
	int err;

	if (!now)
		return mw_fail_memory(file->ctx, file->name);
	err = read_part(file, now, part->count * distance, part->offset);
	for (size_t at = 0; !err && at < part->count * distance; at += distance)
		if (memcmp(copy + at, now + at, sizeof(uint64_t)))
			memset(copy + at, 0, sizeof(uint64_t));
	free(now);
	return err;
}

static int reread_kind(const struct live_file *file, enum mw_heap_chunk_kind kind,
		       struct mw_profile_file *profile)
{
	const struct mw_chunk_array *array = &profile->arrays[kind];
	int err = read_directory(file, profile);

	for (uint32_t i = 0; !err && i < array->nr_parts; i++) {
		const struct mw_chunk_part *part = &array->parts[i];

		/* The samples are in the first copy of the file. */
		if (kind != MW_HEAP_CHUNK_SAMPLES)
			err = read_part(file, file->copy->bytes + part->offset,
					part->count * array->element_bytes, part->offset);
		if (!err && (kind == MW_HEAP_CHUNK_SAMPLES || kind == MW_HEAP_CHUNK_WATCHES))
			err = drop_changed(file, part, array->element_bytes);
	}
	return err;
}

int mw_live_file_reread(struct memwatch_ctx *ctx, int fd, const char *name, uint64_t max,
			struct mw_input *input)
{
	const struct live_file file = { ctx, fd, name, max, input };
	struct mw_profile_file *profile = malloc(sizeof(*profile));
	int err = profile ? 0 : mw_fail_memory(ctx, name);

	/* Kinds are numbered in the order in which they refer to each other. */
	for (int kind = MW_HEAP_CHUNK_SAMPLES; !err && kind < MW_PROFILE_KINDS; kind++)
		err = reread_kind(&file, kind, profile);
	free(profile);
	return err;
}
