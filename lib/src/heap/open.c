// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Opens a profile: finds its format from its content and calls the reader of this format.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "heap/live-file.h"
#include "heap/memwatch-profile.h"
#include "heap/profile-format.h"
#include "heap/pprof.h"
#include "heap/text-profile.h"
#include "base/context.h"
#include "base/timemath.h"

/* @live: the same file, which its process may be writing; or -1. */
static int read_profile(struct memwatch_heap *heap, const char *name, struct mw_input *input,
			int live)
{
	struct memwatch_heap_info *info = &mw_heap_last(heap)->info;
	int err = 0;

	if (mw_memwatch_profile_is(input)) {
		info->format = MEMWATCH_HEAP_MEMWATCH;
		if (live >= 0)
			err = mw_live_file_reread(heap->ctx, live, name, heap->max_bytes, input);
		return err ?: mw_memwatch_profile_read(heap, input);
	}
	if (heap->header_only)
		return mw_fail(heap->ctx, -ENOMSG, "%s: is not a heap profile of memwatch", name);
	if (mw_text_profile_is(input, &info->format))
		return mw_text_profile_read(heap, input);
	if (mw_pprof_is(input)) {
		info->format = MEMWATCH_HEAP_PPROF;
		return mw_pprof_read(heap, input);
	}
	return mw_fail(heap->ctx, -ENOMSG,
		       "%s: is not a heap profile of memwatch, pprof, jemalloc or gperftools",
		       name);
}

int memwatch_heap_add_fd(struct memwatch_heap *heap, int fd, const char *name)
{
	struct mw_input input;
	struct stat st;
	bool again;
	int err;

	if (heap->damaged)
		return mw_fail(heap->ctx, -EBADMSG, "%s: an earlier profile was not read", name);
	err = heap->header_only
		      ? mw_input_read_head(heap->ctx, fd, name, MW_HEAP_CHUNKS_OFFSET, &input)
		      : mw_input_read(heap->ctx, fd, name, heap->max_bytes, &input);
	if (err)
		return err;
	/* A file that was uncompressed cannot be read again at the same place. */
	again = !heap->header_only && lseek(fd, 0, SEEK_CUR) == (off_t)input.len;
	err = mw_heap_add_profile(heap, name);
	if (err)
		err = mw_fail_memory(heap->ctx, name);
	else
		err = read_profile(heap, name, &input, again ? fd : -1);
	mw_input_uninit(&input);
	if (err) {
		heap->damaged = true;
		return err;
	}
	if (fstat(fd, &st))
		return (int)(heap->nr_profiles - 1);
	mw_heap_last(heap)->owner = st.st_uid;
	if (heap->header_only)
		mw_heap_last(heap)->info.file_bytes = (uint64_t)st.st_size;
	/* A format without a time was written at the time of the file. */
	if (!mw_heap_last(heap)->info.end_ns && S_ISREG(st.st_mode))
		mw_heap_last(heap)->info.end_ns = (uint64_t)st.st_mtim.tv_sec * MW_NSEC_PER_SEC +
						  (uint64_t)st.st_mtim.tv_nsec;
	return (int)(heap->nr_profiles - 1);
}

int memwatch_heap_add(struct memwatch_heap *heap, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY), err;

	if (fd < 0)
		return mw_fail(heap->ctx, -errno, "%s: %s", path, strerror(errno));
	err = memwatch_heap_add_fd(heap, fd, path);
	close(fd);
	return err;
}
