// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The profile of a running process, which is this one: it maps a file as the profiler does.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
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

/* Follows a request as the profiler does. */
static void *follow(void *data)
{
	volatile struct mw_heap_header *header = data;

	while (header->control == MW_HEAP_CONTROL_NONE)
		usleep(1000);
	header->rate_bytes = header->control_rate;
	header->state = MW_HEAP_STATE_ACTIVE;
	header->control_seen = header->control;
	return NULL;
}

static void test_control(struct mw_heap_header *header)
{
	pthread_t thread;
	int fd;

	if (!tap_eq(memwatch_heap_find(ctx, (uint32_t)getpid(), 1, &fd), 0,
		    "the profile of a process is found"))
		return;
	pthread_create(&thread, NULL, follow, header);
	tap_eq(memwatch_heap_request(ctx, fd, MEMWATCH_HEAP_START, 4096, 10000000000), 0,
	       "a process follows a request");
	pthread_join(thread, NULL);
	tap_eq(header->rate_bytes, 4096, "a request has a rate");
	tap_eq(memwatch_heap_request(ctx, fd, MEMWATCH_HEAP_STOP, 0, 20000000), -ETIMEDOUT,
	       "a process that does not follow is reported");
	tap_eq(header->control, MW_HEAP_CONTROL_STOP, "the request stays");
	tap_eq(header->control_rate, 4096, "a request without a rate leaves it as it is");
	tap_eq(memwatch_heap_request(ctx, fd, 7, 0, 0), -EINVAL, "an unknown request is refused");
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
	test_snapshot(header);
	test_replaced();
	munmap(header, BYTES);
	rmdir(directory);
	memwatch_ctx_unref(ctx);
	return tap_done();
}
