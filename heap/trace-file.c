/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The file of a trace. As with the profile, blocks are allocated before a page is mapped, so that
 * a full disk ends the trace and not the program, and children of fork() do not inherit what is
 * mapped. The file is open only while a chunk is added.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "blocks.h"
#include "config.h"
#include "new-file.h"
#include "populate.h"
#include "profile.h"
#include "trace-file.h"

static char trace_stem[MW_NEW_FILE_PATH_MAX]; /* the name of the profile without its suffix */
static struct mw_new_file trace_file;

/* COMM.PID.mwtrace, and COMM.PID-2.mwtrace and so on for further traces of the process. */
static void file_name(char *path, size_t size, const char *stem, uint32_t n)
{
	char number[16] = "";

	if (n > 0)
		snprintf(number, sizeof(number), "-%u", n + 1);
	snprintf(path, size, "%s%s" MW_TRACE_SUFFIX, stem, number);
}

static int file_create(void)
{
	char *suffix;

	strcpy(trace_stem, mw_profile_path());
	suffix = strrchr(trace_stem, '.');
	if (suffix)
		*suffix = 0;
	return mw_new_file_create(file_name, trace_stem, &trace_file);
}

/* Maps @bytes at @offset, which are allocated. */
static int file_map(int fd, uint64_t offset, uint64_t bytes, void **ret)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);

	if (memory == MAP_FAILED)
		return -errno;
	madvise(memory, bytes, MADV_DONTFORK);
	*ret = memory;
	return 0;
}

/* Who wrote the trace, and what it needs to be read. */
static void header_identify(struct mw_trace_header *header)
{
	const struct mw_heap_header *profile = mw_profile.header;

	memcpy(header->magic, MW_TRACE_MAGIC, sizeof(header->magic));
	header->version = MW_TRACE_VERSION;
	header->header_bytes = sizeof(*header);
	header->chunk_bytes = MW_TRACE_CHUNK_BYTES;
	header->pid = profile->pid;
	header->parent_pid = profile->parent_pid;
	header->start_time_ticks = profile->start_time_ticks;
	header->pid_namespace = profile->pid_namespace;
	memcpy(header->boot_id, profile->boot_id, sizeof(header->boot_id));
	memcpy(header->comm, profile->comm, sizeof(header->comm));
	header->file_bytes_max = mw_config.trace_max;
}

static int header_write(int fd, const struct mw_trace_header *header)
{
	int rc = mw_blocks_allocate(fd, 0, MW_TRACE_CHUNKS_OFFSET);

	if (rc)
		return rc;
	if (pwrite(fd, header, sizeof(*header), 0) != sizeof(*header))
		return -EIO;
	return mw_new_file_publish(file_name, trace_stem, &trace_file);
}

int mw_trace_file_create(struct mw_trace_header *header, struct mw_trace_header **ret)
{
	int fd = file_create(), rc;
	void *memory = NULL;

	if (fd < 0)
		return fd;
	header_identify(header);
	rc = header_write(fd, header);
	if (!rc)
		rc = file_map(fd, 0, MW_TRACE_CHUNKS_OFFSET, &memory);
	if (rc)
		unlink(trace_file.path);
	close(fd);
	*ret = memory;
	return rc;
}

/*
 * The pages of more than one chunk are brought into memory at once, because a file system may take
 * as long for a fault as for ten pages that it is told of (17 us on ext4). Before Linux 5.14 they
 * come one by one. A thread may have events for a few pages only, so those of one chunk do, too.
 */
static int window_map(uint64_t offset, struct mw_trace_window *ret)
{
	uint64_t bytes = mw_trace_window_bytes(ret);
	int fd = mw_new_file_reopen(&trace_file), rc;
	void *memory = NULL;

	if (fd < 0)
		return fd;
	rc = mw_blocks_allocate(fd, offset, bytes);
	if (!rc)
		rc = file_map(fd, offset, bytes, &memory);
	close(fd);
	if (!rc && ret->chunks > 1)
		mw_populate(memory, bytes);
	ret->memory = memory;
	return rc;
}

/* How many chunks the file may have. */
static uint64_t chunks_max(const struct mw_trace_header *header)
{
	uint64_t bytes = header->file_bytes_max;

	return bytes < MW_TRACE_CHUNKS_OFFSET
		       ? 0
		       : (bytes - MW_TRACE_CHUNKS_OFFSET) / MW_TRACE_CHUNK_BYTES;
}

/* Takes up to @chunks numbers of chunks, from *@ret_first on. Returns how many; 0: there is no
 * more. */
static uint32_t chunks_take(struct mw_trace_header *header, uint32_t chunks, uint64_t *ret_first)
{
	uint64_t most = chunks_max(header), left;

	*ret_first = __atomic_load_n(&header->chunks, __ATOMIC_RELAXED);
	do {
		left = *ret_first < most ? most - *ret_first : 0;
		if (chunks > left)
			chunks = (uint32_t)left;
	} while (!__atomic_compare_exchange_n(&header->chunks, ret_first, *ret_first + chunks, true,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return chunks;
}

bool mw_trace_file_window(struct mw_trace_header *header, uint32_t chunks,
			  struct mw_trace_window *ret)
{
	uint64_t first, end, offset;
	int rc;

	*ret = (struct mw_trace_window){ .chunks = chunks_take(header, chunks, &first) };
	if (!ret->chunks) {
		__atomic_fetch_or(&header->limits, MW_TRACE_LIMIT_FILE_SIZE, __ATOMIC_RELAXED);
		return false;
	}
	offset = MW_TRACE_CHUNKS_OFFSET + first * MW_TRACE_CHUNK_BYTES;
	rc = window_map(offset, ret);
	if (rc == -ENOSPC && ret->chunks > 1) {
		/* The others are given back, unless another thread has taken more behind them. */
		end = first + ret->chunks;
		__atomic_compare_exchange_n(&header->chunks, &end, first + 1, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
		ret->chunks = 1;
		rc = window_map(offset, ret);
	}
	if (!rc)
		return true;
	__atomic_fetch_or(&header->limits, MW_TRACE_LIMIT_NO_SPACE, __ATOMIC_RELAXED);
	*ret = (struct mw_trace_window){ 0 };
	return false;
}

void mw_trace_file_release(struct mw_trace_window *window)
{
	if (window->memory)
		munmap(window->memory, mw_trace_window_bytes(window));
	*window = (struct mw_trace_window){ 0 };
}
