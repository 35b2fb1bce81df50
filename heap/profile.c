/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The profile file of this process.
 *
 * Disk blocks are allocated before a page is mapped, because a store to a mapped page that
 * finds no block raises SIGBUS. So a full disk ends the growth of the profile, and the program
 * does not notice it, unless the file system copies on write, as btrfs does. The file is mapped
 * with MADV_DONTFORK: a child of fork() cannot write into the profile of its parent, however it was
 * created.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "blocks.h"
#include "config.h"
#include "identity.h"
#include "isolate.h"
#include "lock.h"
#include "new-file.h"
#include "profile.h"

#define FILE_SUFFIX ".mwheap"

/*
 * Shares of the kinds in the largest file, in percent. A kind that has used up its share
 * stops growing, so that the stacks of a program cannot crowd out its samples.
 */
static const uint8_t kind_share[MW_PROFILE_KINDS] = {
	[MW_HEAP_CHUNK_SAMPLES] = 32,	[MW_HEAP_CHUNK_STACKS] = 29, [MW_HEAP_CHUNK_FRAMES] = 28,
	[MW_HEAP_CHUNK_MODULES] = 2,	[MW_HEAP_CHUNK_STRINGS] = 2, [MW_HEAP_CHUNK_CODE] = 2,
	[MW_HEAP_CHUNK_CODE_BYTES] = 5, [MW_HEAP_CHUNK_WATCHES] = 0,
};

static struct mw_heap_header header_scratch;

struct mw_profile mw_profile __attribute__((visibility("hidden"))) = { .header = &header_scratch };

static char profile_stem[MW_NEW_FILE_PATH_MAX]; /* the name without numbers and suffix */
static struct mw_new_file profile_file;

/* Maps @bytes at @offset of the file, and allocates them before if the file @has_them not yet. */
static int file_map(int fd, uint64_t offset, uint64_t bytes, bool has_them)
{
	int rc = has_them ? 0 : mw_blocks_allocate(fd, offset, bytes);

	if (rc)
		return rc;
	if (mmap(mw_profile.base + offset, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		 fd, (off_t)offset) == MAP_FAILED)
		return -errno;
	madvise(mw_profile.base + offset, bytes, MADV_DONTFORK);
	return 0;
}

static int file_reopen_map(uint64_t offset, uint64_t bytes, bool has_them)
{
	int fd = mw_new_file_reopen(&profile_file), rc;

	if (fd < 0)
		return fd;
	rc = file_map(fd, offset, bytes, has_them);
	close(fd);
	return rc;
}

/* COMM.PID.mwheap; after an exec() the same pid may already have a profile. */
static void file_name(char *path, size_t size, const char *stem, uint32_t n)
{
	char number[16] = "";

	if (n > 0)
		snprintf(number, sizeof(number), ".%u", n);
	snprintf(path, size, "%s%s" FILE_SUFFIX, stem, number);
}

static int addresses_reserve(void)
{
	uint64_t max = mw_config.max_bytes / 2;
	uint64_t most = MW_HEAP_CHUNKS_OFFSET + (uint64_t)MW_HEAP_CHUNKS_MAX * MW_HEAP_CHUNK_BYTES;
	uint64_t private = MW_CONFIG_PRIVATE_BYTES + mw_isolate_bytes();
	void *base;

	if (mw_config.max_bytes > 2 * private)
		max = mw_config.max_bytes - private;
	if (max > most)
		max = most;
	base = mmap(NULL, max, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return -errno;
	madvise(base, max, MADV_DONTFORK);
	mw_profile.base = base;
	mw_profile.file_max = max;
	return 0;
}

/* Creates the file and maps its header. */
static int file_begin(const struct mw_heap_header *identity)
{
	char comm[sizeof(identity->comm)];
	int fd, rc;

	mw_identity_file_name(comm, identity->comm);
	snprintf(profile_stem, sizeof(profile_stem), "%s/%s.%u", mw_config.directory, comm,
		 identity->pid);
	fd = mw_new_file_create(file_name, profile_stem, &profile_file);
	if (fd < 0)
		return fd;
	rc = file_map(fd, 0, MW_HEAP_CHUNKS_OFFSET, false);
	if (rc)
		unlink(profile_file.path);
	close(fd);
	return rc;
}

int mw_profile_create(uint32_t parent_pid)
{
	struct mw_heap_header identity;
	int rc;

	memset(&identity, 0, sizeof(identity));
	mw_identity_fill(&identity);
	identity.parent_pid = parent_pid;
	rc = addresses_reserve();
	if (!rc)
		rc = file_begin(&identity);
	if (rc) {
		mw_config_log(profile_file.path[0] ? profile_file.path : "cannot reserve addresses",
			      -rc);
		if (mw_profile.base)
			munmap(mw_profile.base, mw_profile.file_max);
		mw_profile.base = NULL;
		return rc;
	}
	mw_profile.file_end = MW_HEAP_CHUNKS_OFFSET;
	memcpy(mw_profile.base, &identity, sizeof(identity));
	mw_profile.header = (struct mw_heap_header *)mw_profile.base;
	mw_profile.header->file_bytes_max = mw_profile.file_max;
	return 0;
}

const char *mw_profile_path(void)
{
	return profile_file.path;
}

/* A few MB of file, no memory: room for thousands of samples and stacks. */
void mw_profile_provide(void)
{
	static const uint8_t wanted[MW_PROFILE_KINDS] = {
		[MW_HEAP_CHUNK_SAMPLES] = 2,	[MW_HEAP_CHUNK_STACKS] = 4,
		[MW_HEAP_CHUNK_FRAMES] = 4,	[MW_HEAP_CHUNK_MODULES] = 1,
		[MW_HEAP_CHUNK_STRINGS] = 1,	[MW_HEAP_CHUNK_CODE] = 1,
		[MW_HEAP_CHUNK_CODE_BYTES] = 1,
	};

	if (!mw_profile.base || !mw_lock_try(&mw_maintenance))
		return;
	for (int kind = 0; kind < MW_PROFILE_KINDS; kind++)
		while (mw_profile.chunks[kind] < wanted[kind] && !mw_profile_grow(kind))
			;
	mw_lock_end(&mw_maintenance);
}

int mw_profile_publish(void)
{
	int rc;

	memcpy(mw_profile.header->magic, MW_HEAP_MAGIC, sizeof(mw_profile.header->magic));
	rc = mw_new_file_publish(file_name, profile_stem, &profile_file);
	/*
	 * Valgrind 3.19 notes which name the file of a mapping had, and fails when it joins parts
	 * of a file with different names. So all of it is mapped under the new one.
	 */
	if (!rc)
		rc = file_reopen_map(0, mw_profile.file_end, true);
	if (rc)
		mw_config_log(profile_file.path, -rc);
	return rc;
}

/* Memory at addresses where there is none; it takes no room until it is written. */
static bool memory_fill(uint64_t offset, uint64_t bytes)
{
	return mmap(mw_profile.base + offset, bytes, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
		    0) != MAP_FAILED;
}

void mw_profile_detach(void)
{
	if (!mw_profile.base || mw_profile.detached)
		return;
	mw_profile.detached = true;
	if (memory_fill(0, mw_profile.file_max))
		return;
	/*
	 * Another thread was adding a chunk, and had not kept it out of children yet. Nobody
	 * knows of that chunk, so what matters is what is around it.
	 */
	memory_fill(0, MW_HEAP_CHUNKS_OFFSET);
	for (uint64_t at = MW_HEAP_CHUNKS_OFFSET; at < mw_profile.file_end;
	     at += MW_HEAP_CHUNK_BYTES)
		memory_fill(at, MW_HEAP_CHUNK_BYTES);
}

static void profile_clear(void)
{
	memset(&header_scratch, 0, sizeof(header_scratch));
	memset(&mw_profile, 0, sizeof(mw_profile));
	mw_profile.header = &header_scratch;
}

void mw_profile_abandon(void)
{
	unlink(profile_file.path);
	munmap(mw_profile.base, mw_profile.file_max);
	profile_clear();
}

void mw_profile_forget(void)
{
	/* The mappings were not inherited, and their addresses may be in use for something else. */
	if (mw_profile.detached)
		munmap(mw_profile.base, mw_profile.file_max);
	profile_clear();
}

static struct mw_heap_chunk *directory_entry(uint32_t n)
{
	return (struct mw_heap_chunk *)(mw_profile.base + MW_HEAP_DIRECTORY_OFFSET) + n;
}

/* Every kind may have one chunk. */
static bool share_is_used_up(enum mw_heap_chunk_kind kind)
{
	uint64_t most = (mw_profile.file_max - MW_HEAP_CHUNKS_OFFSET) / MW_HEAP_CHUNK_BYTES *
			kind_share[kind] / 100;

	return mw_profile.chunks[kind] >= (most ? most : 1);
}

int mw_profile_grow(enum mw_heap_chunk_kind kind)
{
	uint64_t offset = mw_profile.file_end;
	uint32_t n = mw_profile.chunks[kind];
	struct mw_heap_chunk *entry;
	int rc;

	if (!mw_profile.base || mw_profile.detached)
		return -EBADF;
	if (share_is_used_up(kind) || mw_profile.chunk_count == MW_HEAP_CHUNKS_MAX ||
	    offset + MW_HEAP_CHUNK_BYTES > mw_profile.file_max) {
		mw_profile_limit(MW_HEAP_LIMIT_FILE_SIZE);
		return -EFBIG;
	}
	rc = file_reopen_map(offset, MW_HEAP_CHUNK_BYTES, false);
	if (rc) {
		mw_profile_limit(MW_HEAP_LIMIT_NO_SPACE);
		return rc;
	}
	mw_profile.file_end = offset + MW_HEAP_CHUNK_BYTES;
	entry = directory_entry(mw_profile.chunk_count++);
	entry->offset = offset;
	entry->bytes = MW_HEAP_CHUNK_BYTES;
	__atomic_store_n(&entry->kind, kind, __ATOMIC_RELEASE);
	mw_profile.chunk[kind][n] = mw_profile.base + offset;
	__atomic_store_n(&mw_profile.chunks[kind], n + 1, __ATOMIC_RELEASE);
	return 0;
}

/* Makes the array long enough. Waits for a while if another thread is adding memory. */
static int array_grow(enum mw_heap_chunk_kind kind, uint64_t bytes)
{
	unsigned int waits = 0;
	int rc = 0;

	while (bytes > mw_profile_bytes(kind)) {
		if (!mw_lock_try(&mw_maintenance)) {
			if (!mw_lock_wait(&mw_maintenance, &waits))
				return -EAGAIN;
			continue;
		}
		if (bytes > mw_profile_bytes(kind))
			rc = mw_profile_grow(kind);
		mw_lock_end(&mw_maintenance);
		if (rc)
			return rc;
	}
	return 0;
}

int mw_profile_reserve(enum mw_heap_chunk_kind kind, uint64_t *used, uint64_t count, size_t size,
		       uint64_t *ret_first)
{
	const uint64_t in_chunk = MW_HEAP_CHUNK_BYTES / size;
	uint64_t old = __atomic_load_n(used, __ATOMIC_RELAXED), first;

	do {
		int rc;

		first = old;
		if (first % in_chunk + count > in_chunk)
			first += in_chunk - first % in_chunk;
		rc = array_grow(kind, (first + count) * size);
		if (rc)
			return rc;
	} while (!__atomic_compare_exchange_n(used, &old, first + count, true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	*ret_first = first;
	return 0;
}

void mw_count_double(double *sum, double by)
{
	double old, new;

	__atomic_load(sum, &old, __ATOMIC_RELAXED);
	do {
		new = old + by;
	} while (!__atomic_compare_exchange(sum, &old, &new, true, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED));
}

void mw_profile_limit(uint32_t bits)
{
	__atomic_fetch_or(&mw_profile.header->limits, bits, __ATOMIC_RELAXED);
}
