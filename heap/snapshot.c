/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Copies of the profile that the library makes itself.
 *
 * The other threads go on while a copy is made, so the order matters: samples first, then the
 * stacks they refer to, then what stacks refer to. A sample that changes while it is copied is
 * left out. A copy has its name when it is complete.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "config.h"
#include "lock.h"
#include "new-file.h"
#include "profile.h"
#include "runtime.h"
#include "snapshot.h"
#include "thread.h"

#define REUSED_AT_ONCE 256

/* A new highest live size is one that is higher by an eighth, and not more often than this. */
#define PEAK_LEAST	 (UINT64_C(1) << 20)
#define PEAK_DISTANCE_NS UINT64_C(1000000000)

static struct mw_lock snapshot_lock;

/* What makes the next one due; protected by the lock, and read without it. */
static struct {
	uint64_t allocated;
	uint64_t time_ns;
	uint64_t live;
	uint64_t live_ns; /* not earlier */
} snapshot_next;

/* An element that is reused. */
union reused {
	uint64_t state;
	struct mw_heap_sample sample;
	struct mw_heap_watch watch;
};

_Static_assert(sizeof(union reused) == sizeof(struct mw_heap_sample) &&
		       sizeof(union reused) == sizeof(struct mw_heap_watch),
	       "a chunk is an array of them");

/* Only while the lock is held. */
static union reused reused_buffer[REUSED_AT_ONCE];
static union {
	struct mw_heap_header header;
	uint8_t bytes[MW_HEAP_CHUNKS_OFFSET];
} head_buffer;

static uint64_t header_load(const uint64_t *field)
{
	return __atomic_load_n(field, __ATOMIC_RELAXED);
}

static enum mw_heap_snapshot_reason snapshot_due(uint64_t now)
{
	const struct mw_config_snapshots *config = &mw_config.snapshots;
	const struct mw_heap_header *header = mw_profile.header;
	uint64_t live = header_load(&header->live_bytes);

	if (__atomic_load_n(&header->snapshot_wanted, __ATOMIC_ACQUIRE) != header->snapshot_seen)
		return MW_HEAP_SNAPSHOT_REQUEST;
	if (config->bytes &&
	    header_load(&header->counters.allocated_bytes) >= snapshot_next.allocated)
		return MW_HEAP_SNAPSHOT_BYTES;
	if (config->interval_ns && now >= snapshot_next.time_ns)
		return MW_HEAP_SNAPSHOT_INTERVAL;
	/* The sum may be below 0 for a moment. */
	if (config->peak && (int64_t)live > 0 && live >= snapshot_next.live &&
	    now >= snapshot_next.live_ns)
		return MW_HEAP_SNAPSHOT_PEAK;
	return MW_HEAP_SNAPSHOT_NONE;
}

static void next_set(enum mw_heap_snapshot_reason reason, uint64_t now)
{
	struct mw_heap_header *header = mw_profile.header;

	if (reason == MW_HEAP_SNAPSHOT_REQUEST)
		header->snapshot_seen = __atomic_load_n(&header->snapshot_wanted, __ATOMIC_ACQUIRE);
	if (reason == MW_HEAP_SNAPSHOT_BYTES)
		snapshot_next.allocated = header_load(&header->counters.allocated_bytes) +
					  mw_config.snapshots.bytes;
	if (reason == MW_HEAP_SNAPSHOT_INTERVAL)
		snapshot_next.time_ns = now + mw_config.snapshots.interval_ns;
	if (reason == MW_HEAP_SNAPSHOT_PEAK) {
		snapshot_next.live = header_load(&header->live_bytes) / 8 * 9;
		snapshot_next.live_ns = now + PEAK_DISTANCE_NS;
	}
}

static int copy_write(int fd, const void *from, size_t bytes, uint64_t offset)
{
	const uint8_t *at = from;

	while (bytes > 0) {
		ssize_t written = pwrite(fd, at, bytes, (off_t)offset);

		if (written <= 0)
			return written < 0 ? -errno : -ENOSPC;
		at += written;
		offset += (uint64_t)written;
		bytes -= (size_t)written;
	}
	return 0;
}

/* As every reader does it: the state before and after. */
static void reused_copy(union reused *to, const union reused *from)
{
	uint64_t state = __atomic_load_n(&from->state, __ATOMIC_ACQUIRE);

	memcpy(to, from, sizeof(*to));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (__atomic_load_n(&from->state, __ATOMIC_RELAXED) != state)
		to->state = MW_HEAP_SAMPLE_FREE;
}

static int reused_write(int fd, const union reused *elements, uint64_t offset)
{
	int rc = 0;

	for (size_t done = 0; done < MW_HEAP_CHUNK_BYTES && !rc; done += sizeof(reused_buffer)) {
		for (size_t i = 0; i < REUSED_AT_ONCE; i++)
			reused_copy(&reused_buffer[i], elements++);
		rc = copy_write(fd, reused_buffer, sizeof(reused_buffer), offset + done);
	}
	return rc;
}

/* Writes all chunks of a kind; *@ret_count of them. */
static int kind_write(int fd, enum mw_heap_chunk_kind kind, uint32_t *ret_count)
{
	uint32_t count = __atomic_load_n(&mw_profile.chunks[kind], __ATOMIC_ACQUIRE);
	int rc = 0;

	for (uint32_t n = 0; n < count && !rc; n++) {
		const uint8_t *chunk = mw_profile.chunk[kind][n];
		uint64_t offset = (uint64_t)(chunk - mw_profile.base);

		if (kind == MW_HEAP_CHUNK_SAMPLES || kind == MW_HEAP_CHUNK_WATCHES)
			rc = reused_write(fd, mw_profile.chunk[kind][n], offset);
		else
			rc = copy_write(fd, chunk, MW_HEAP_CHUNK_BYTES, offset);
	}
	*ret_count = count;
	return rc;
}

/* The directory of the copy has the chunks that were copied. */
static void directory_fill(const uint32_t *counts)
{
	const uint8_t *from = mw_profile.base + MW_HEAP_DIRECTORY_OFFSET;
	uint8_t *to = head_buffer.bytes + MW_HEAP_DIRECTORY_OFFSET;
	uint32_t seen[MW_PROFILE_KINDS] = { 0 };

	memset(to, 0, MW_HEAP_PAGE_BYTES);
	for (uint32_t n = 0; n < MW_HEAP_CHUNKS_MAX; n++, from += sizeof(struct mw_heap_chunk)) {
		struct mw_heap_chunk entry;

		memcpy(&entry, from, sizeof(entry));
		if (entry.kind == MW_HEAP_CHUNK_NONE || entry.kind >= MW_PROFILE_KINDS ||
		    seen[entry.kind]++ >= counts[entry.kind])
			continue;
		memcpy(to, &entry, sizeof(entry));
		to += sizeof(entry);
	}
}

static int copy_fill(int fd, enum mw_heap_snapshot_reason reason, uint64_t now)
{
	struct mw_heap_header *header = &head_buffer.header;
	uint32_t counts[MW_PROFILE_KINDS] = { 0 };
	int rc = 0;

	memset(&head_buffer, 0, sizeof(head_buffer));
	memcpy(header, mw_profile.header, sizeof(*header));
	header->snapshot_ns = now;
	header->snapshot_reason = reason;
	header->snapshot_number = (uint32_t)header->snapshots + 1;
	/* Kinds are numbered in the order in which they refer to each other. */
	for (int kind = MW_HEAP_CHUNK_SAMPLES; kind < MW_PROFILE_KINDS && !rc; kind++)
		rc = kind_write(fd, kind, &counts[kind]);
	directory_fill(counts);
	return rc ?: copy_write(fd, &head_buffer, sizeof(head_buffer), 0);
}

/* COMM.PID-NNNN.mwheap beside the profile. */
static void copy_name(char *path, size_t size, const char *profile, uint32_t n)
{
	const char *suffix = strrchr(profile, '.');

	snprintf(path, size, "%.*s-%04u%s", (int)(suffix - profile), profile,
		 (uint32_t)mw_profile.header->snapshots + 1 + n, suffix);
}

static int copy_make(enum mw_heap_snapshot_reason reason, uint64_t now)
{
	struct mw_new_file file;
	struct rlimit limit;
	int fd, rc;

	/* Beyond this limit the kernel would send SIGXFSZ to the program. */
	if (!getrlimit(RLIMIT_FSIZE, &limit) && mw_profile.file_max > limit.rlim_cur)
		return -EFBIG;
	fd = mw_new_file_create(copy_name, mw_profile_path(), &file);
	if (fd < 0)
		return fd;
	rc = copy_fill(fd, reason, now);
	close(fd);
	if (!rc)
		rc = mw_new_file_publish(copy_name, mw_profile_path(), &file);
	if (rc)
		unlink(file.path);
	return rc;
}

/* Caller holds the lock. */
static void snapshot_take(enum mw_heap_snapshot_reason reason, uint64_t now)
{
	struct mw_heap_header *header = mw_profile.header;

	next_set(reason, now);
	if (header->snapshots >= mw_config.snapshots.max || copy_make(reason, now))
		mw_profile_limit(MW_HEAP_LIMIT_SNAPSHOTS);
	else
		__atomic_store_n(&header->snapshots, header->snapshots + 1, __ATOMIC_RELEASE);
}

void mw_snapshot_follow(void)
{
	enum mw_heap_snapshot_reason reason;
	uint64_t now = 0;

	if (mw_config.snapshots.interval_ns || mw_config.snapshots.peak)
		now = mw_runtime_now();
	if (mw_likely(snapshot_due(now) == MW_HEAP_SNAPSHOT_NONE) || !mw_lock_try(&snapshot_lock))
		return;
	/* Another thread may have taken it meanwhile. */
	reason = snapshot_due(now);
	if (reason != MW_HEAP_SNAPSHOT_NONE)
		snapshot_take(reason, mw_runtime_now());
	mw_lock_end(&snapshot_lock);
}

void mw_snapshot_exit(void)
{
	if (!mw_config.snapshots.exit || !mw_lock_try(&snapshot_lock))
		return;
	snapshot_take(MW_HEAP_SNAPSHOT_EXIT, mw_runtime_now());
	mw_lock_end(&snapshot_lock);
}

void mw_snapshot_clear(void)
{
	snapshot_lock.taken = 0;
	snapshot_next.allocated = mw_config.snapshots.bytes;
	snapshot_next.time_ns = mw_runtime_now() + mw_config.snapshots.interval_ns;
	snapshot_next.live = PEAK_LEAST;
	snapshot_next.live_ns = 0;
}
