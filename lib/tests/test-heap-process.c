// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The profile of a running process, which is this one: it maps a file as the profiler does.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memwatch/heap-process.h>

#include "../../selftests/tap.h"
#include "heap-header.h"

static struct memwatch_ctx *ctx;
static char directory[] = "/tmp/XXXXXX";
static char path[128];

#define BYTES (MW_HEAP_CHUNKS_OFFSET + 4096)

static struct mw_heap_header *map_profile(void)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	struct mw_heap_header *header;
	struct mw_heap_chunk *chunk;
	struct mw_heap_sample *sample;

	if (fd < 0 || ftruncate(fd, BYTES))
		exit(EXIT_FAILURE);
	header = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (header == MAP_FAILED)
		exit(EXIT_FAILURE);
	heap_header_begin(header);
	header->state = MW_HEAP_STATE_DORMANT;
	header->pid = (uint32_t)getpid();
	chunk = (void *)((char *)header + MW_HEAP_DIRECTORY_OFFSET);
	*chunk = (struct mw_heap_chunk){ MW_HEAP_CHUNKS_OFFSET, MW_HEAP_CHUNK_SAMPLES, 4096 };
	sample = (void *)((char *)header + MW_HEAP_CHUNKS_OFFSET);
	sample[1].state = 4 | MW_HEAP_SAMPLE_LIVE;
	return header;
}

static void test_without_profile(void)
{
	int fd;

	tap_eq(memwatch_heap_find(ctx, (uint32_t)getpid(), 0, &fd), -ENODATA,
	       "a process may have no profile");
	tap_eq(memwatch_heap_find(ctx, 0x7ffffffe, 0, &fd), -ENOENT, "a process may not exist");
}

static bool is_answered; /* by memwatch_heap_request() */

static uint32_t wanted(uint32_t word)
{
	return word & MW_HEAP_CONTROL_MASK;
}

/* Follows requests as the profiler does. */
static void *follow(void *data)
{
	volatile struct mw_heap_header *header = data;

	while (!__atomic_load_n(&is_answered, __ATOMIC_ACQUIRE)) {
		uint32_t control = header->control;

		header->rate_bytes = header->control_rate;
		header->state = wanted(control) == MW_HEAP_CONTROL_START ? MW_HEAP_STATE_ACTIVE
									 : MW_HEAP_STATE_STOPPED;
		header->control_seen = control;
		header->trace_control_seen = header->trace_control;
		usleep(1000);
	}
	return NULL;
}

/* Returns what memwatch_heap_request() returns if it is followed. */
static int request(struct mw_heap_header *header, int fd, uint32_t control, uint64_t rate)
{
	pthread_t thread;
	int err;

	is_answered = false;
	pthread_create(&thread, NULL, follow, header);
	err = memwatch_heap_request(ctx, fd, control, rate, 10000000000);
	__atomic_store_n(&is_answered, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	return err;
}

static void test_control(struct mw_heap_header *header)
{
	int fd;

	if (!tap_eq(memwatch_heap_find(ctx, (uint32_t)getpid(), 1, &fd), 0,
		    "the profile of a process is found"))
		return;
	tap_eq(request(header, fd, MEMWATCH_HEAP_START, 4096), 0, "a process follows a request");
	tap_eq(header->rate_bytes, 4096, "a request has a rate");
	tap_eq(memwatch_heap_request(ctx, fd, MEMWATCH_HEAP_START, 1024, 20000000), -ETIMEDOUT,
	       "that a process has followed the same request before does not count");
	tap_eq(memwatch_heap_request(ctx, fd, MEMWATCH_HEAP_STOP, 0, 20000000), -ETIMEDOUT,
	       "a process that does not follow is reported");
	tap_eq(wanted(header->control), MW_HEAP_CONTROL_STOP, "the request stays");
	tap_eq(request(header, fd, MEMWATCH_HEAP_START, 0), 0,
	       "a process follows a request without a rate");
	tap_eq(header->rate_bytes, 0, "a request to start has no rate of an earlier one");
	tap_eq(memwatch_heap_request(ctx, fd, 7, 0, 0), -EINVAL, "an unknown request is refused");
	tap_eq(memwatch_heap_request(ctx, fd, 0, 0, 0), -EINVAL, "no request is refused");
	close(fd);
}

static void test_trace_control(struct mw_heap_header *header)
{
	int fd;

	memwatch_heap_find(ctx, (uint32_t)getpid(), 1, &fd);
	memwatch_heap_request(ctx, fd, MEMWATCH_HEAP_STOP, 0, 0);
	memwatch_heap_request(ctx, fd, MEMWATCH_HEAP_TRACE_START, 0, 0);
	tap_ok(wanted(header->control) == MW_HEAP_CONTROL_STOP &&
		       wanted(header->trace_control) == MW_HEAP_CONTROL_START,
	       "a request for a trace leaves one for samples that was not followed yet");
	tap_eq(request(header, fd, MEMWATCH_HEAP_TRACE_START, 0), 0,
	       "a process follows a request for a trace");
	header->trace_error = ENOSPC;
	tap_eq(request(header, fd, MEMWATCH_HEAP_TRACE_START, 0), -EIO,
	       "a trace that could not be created is reported");
	tap_str_eq(memwatch_ctx_error(ctx), "the trace cannot be created: No space left on device",
		   "the message says why");
	header->trace_error = 0;
	tap_eq(request(header, fd, MEMWATCH_HEAP_TRACE_STOP, 0), 0,
	       "a process follows a request to end a trace");
	close(fd);
}

static void test_snapshot(struct mw_heap_header *header)
{
	char *copy = malloc(BYTES);
	int fd, to = memfd_create("copy", MFD_CLOEXEC);

	memwatch_heap_find(ctx, (uint32_t)getpid(), 0, &fd);
	tap_eq(memwatch_heap_snapshot(ctx, fd, to), 0, "a profile can be copied");
	tap_eq(pread(to, copy, BYTES, 0), BYTES, "the copy has the size of the profile");
	tap_ok(!memcmp(copy, header, BYTES), "the copy has the content of the profile");
	header->magic[0] = 'x';
	tap_eq(memwatch_heap_snapshot(ctx, fd, to), -ENOMSG,
	       "a file that is no profile is refused");
	header->magic[0] = MW_HEAP_MAGIC[0];
	close(fd);
	close(to);
	free(copy);
}

/* A path may lead elsewhere by now, and a file may be gone. */
static void test_replaced(void)
{
	char other[192];
	struct stat st;
	int fd, err;

	unlink(path);
	snprintf(other, sizeof(other), "%s/other", directory);
	fd = open(other, O_RDWR | O_CREAT, 0600);
	close(fd);
	if (symlink(other, path))
		exit(EXIT_FAILURE);
	err = memwatch_heap_find(ctx, (uint32_t)getpid(), 1, &fd);
	if (err) {
		tap_ok(geteuid() != 0, "a link in place of the profile is not followed");
	} else {
		tap_ok(!fstat(fd, &st) && st.st_size == BYTES,
		       "root finds the file that is mapped, not the one at its path");
		close(fd);
	}
	unlink(other);
	unlink(path);
}

int main(void)
{
	struct mw_heap_header *header;

	tap_start();
	if (memwatch_ctx_new(NULL, &ctx) || !mkdtemp(directory))
		return EXIT_FAILURE;
	snprintf(path, sizeof(path), "%s/test.1.mwheap", directory);
	test_without_profile();
	header = map_profile();
	test_control(header);
	test_trace_control(header);
	test_snapshot(header);
	test_replaced();
	munmap(header, BYTES);
	rmdir(directory);
	memwatch_ctx_unref(ctx);
	return tap_done();
}
