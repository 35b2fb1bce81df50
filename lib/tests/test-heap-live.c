// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Profiles that are read while they are written. A thread adds frames, stacks and samples as the
 * profiler does, as fast as it can, and this one copies and reads the file meanwhile.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memwatch/heap-process.h>

#include "../../selftests/tap.h"
#include "heap-header.h"

/* Frames have large chunks, so that the stacks behind them are read much later. */
#define FRAMES_CHUNK (512U << 10)
#define CHUNK	     (64U << 10)
#define CHUNKS	     240U
#define DEPTH	     8U
#define FIRST	     1000U /* stacks before the file is read */
#define BURST	     200U  /* stacks that are added each time it is read */
#define PAUSE	     10U   /* stacks between two pauses of the writer */
#define READS	     25U
#define FRAME(n)     ((uint64_t)(n) + 1)

static struct memwatch_ctx *ctx;

/**
 * struct growing - a profile that grows
 * @file: the file, which is mapped up to its largest size
 * @bytes: its size
 * @kinds: its chunks by kind, as positions
 * @wanted: so many stacks are to be written
 * @end: nothing more is added
 */
struct growing {
	int fd;
	char *file;
	size_t bytes;
	uint32_t chunks;
	struct {
		size_t chunk[CHUNKS];
		uint32_t chunks;
		uint64_t used;
	} kinds[MW_HEAP_CHUNK_FRAMES + 1];
	uint64_t wanted;
	bool end;
};

/* Room for the next @count elements of a kind, which are in one chunk. */
static void *element_add(struct growing *g, enum mw_heap_chunk_kind kind, size_t size,
			 uint64_t count, uint64_t *ret_number)
{
	uint32_t bytes = kind == MW_HEAP_CHUNK_FRAMES ? FRAMES_CHUNK : CHUNK;
	uint64_t number = g->kinds[kind].used, in_chunk = bytes / size;
	struct mw_heap_chunk *entry;

	if (number / in_chunk == g->kinds[kind].chunks) {
		if (g->chunks == CHUNKS || ftruncate(g->fd, (off_t)(g->bytes + bytes)))
			exit(EXIT_FAILURE);
		entry = (struct mw_heap_chunk *)(g->file + MW_HEAP_DIRECTORY_OFFSET) + g->chunks++;
		entry->offset = g->bytes;
		entry->bytes = bytes;
		g->kinds[kind].chunk[g->kinds[kind].chunks++] = g->bytes;
		g->bytes += bytes;
		__atomic_store_n(&entry->kind, kind, __ATOMIC_RELEASE);
	}
	g->kinds[kind].used += count;
	*ret_number = number;
	return g->file + g->kinds[kind].chunk[number / in_chunk] + number % in_chunk * size;
}

static void stack_add(struct growing *g)
{
	uint64_t first, number, slot;
	uint64_t *frames = element_add(g, MW_HEAP_CHUNK_FRAMES, sizeof(*frames), DEPTH, &first);
	struct mw_heap_stack *stack = element_add(g, MW_HEAP_CHUNK_STACKS, sizeof(*stack), 1,
						  &number);
	struct mw_heap_sample *sample = element_add(g, MW_HEAP_CHUNK_SAMPLES, sizeof(*sample), 1,
						    &slot);

	for (uint32_t i = 0; i < DEPTH; i++)
		frames[i] = FRAME(first + i);
	stack->depth = DEPTH;
	stack->frames = first;
	__atomic_store_n(&stack->ready, 1, __ATOMIC_RELEASE);
	sample->address = FRAME(number) * 64;
	sample->size = 1;
	sample->rate = 1;
	sample->time_ns = 1;
	sample->stack = (uint32_t)number;
	__atomic_store_n(&sample->state, 4 | MW_HEAP_SAMPLE_LIVE, __ATOMIC_RELEASE);
}

static void growing_begin(struct growing *g)
{
	struct mw_heap_header *header;

	*g = (struct growing){ .fd = memfd_create("profile", MFD_CLOEXEC),
			       .bytes = MW_HEAP_CHUNKS_OFFSET };
	if (g->fd < 0 || ftruncate(g->fd, MW_HEAP_CHUNKS_OFFSET))
		exit(EXIT_FAILURE);
	g->file = mmap(NULL, MW_HEAP_CHUNKS_OFFSET + CHUNKS * FRAMES_CHUNK, PROT_READ | PROT_WRITE,
		       MAP_SHARED, g->fd, 0);
	if (g->file == MAP_FAILED)
		exit(EXIT_FAILURE);
	header = (struct mw_heap_header *)g->file;
	heap_header_begin(header);
	header->state = MW_HEAP_STATE_ACTIVE;
}

static void growing_end(struct growing *g)
{
	munmap(g->file, MW_HEAP_CHUNKS_OFFSET + CHUNKS * FRAMES_CHUNK);
	close(g->fd);
}

static void *profile_write(void *data)
{
	struct growing *g = data;

	while (!__atomic_load_n(&g->end, __ATOMIC_RELAXED)) {
		for (uint32_t n = 0; n < PAUSE; n++)
			if (g->kinds[MW_HEAP_CHUNK_STACKS].used <
			    __atomic_load_n(&g->wanted, __ATOMIC_RELAXED))
				stack_add(g);
		usleep(20);
	}
	return NULL;
}

/* Every stack has its own frames: consecutive numbers. */
static bool stacks_are_whole(struct memwatch_heap *heap)
{
	MEMWATCH_OPTS(memwatch_heap_view_opts, opts, .by = MEMWATCH_HEAP_BY_SITE);
	MEMWATCH_OPTS(memwatch_heap_frame, frame);
	MEMWATCH_OPTS(memwatch_heap_row, row);
	struct memwatch_heap_view *view;
	bool whole = true;

	if (memwatch_heap_view_new(heap, &opts, &view))
		return false;
	for (uint32_t n = 0; whole && memwatch_heap_view_get_row(view, n, &row) == 1; n++) {
		uint64_t first = 0;

		whole = row.frames == DEPTH;
		for (uint32_t i = 0; whole && i < DEPTH; i++) {
			whole = memwatch_heap_view_get_frame(view, n, i, &frame) == 1;
			if (!i)
				first = frame.address;
			whole = whole && first && frame.address == first + i;
		}
	}
	memwatch_heap_view_unref(view);
	return whole;
}

/* Reads a profile; of a copy, all samples must have been kept that had a stack. */
static bool profile_is_whole(int fd, const char *name)
{
	struct memwatch_heap *heap = NULL;
	bool whole;

	if (lseek(fd, 0, SEEK_SET) || memwatch_heap_new(ctx, NULL, &heap))
		exit(EXIT_FAILURE);
	whole = memwatch_heap_add_fd(heap, fd, name) >= 0;
	if (!whole)
		tap_note("%s: %s", name, memwatch_ctx_error(ctx));
	whole = whole && stacks_are_whole(heap);
	memwatch_heap_unref(heap);
	return whole;
}

static bool copy_is_whole(int fd)
{
	int copy = memfd_create("copy", MFD_CLOEXEC);
	bool whole = !memwatch_heap_snapshot(ctx, fd, copy) && profile_is_whole(copy, "copy");

	close(copy);
	return whole;
}

static bool live_is_whole(int fd)
{
	return profile_is_whole(fd, "profile");
}

static void test_growing(bool (*is_whole)(int fd), const char *title)
{
	struct growing growing;
	unsigned int whole = 0;
	pthread_t thread;

	growing_begin(&growing);
	for (uint32_t i = 0; i < FIRST; i++)
		stack_add(&growing);
	growing.wanted = FIRST;
	pthread_create(&thread, NULL, profile_write, &growing);
	for (uint32_t i = 0; i < READS; i++) {
		__atomic_fetch_add(&growing.wanted, BURST, __ATOMIC_RELAXED);
		whole += is_whole(growing.fd);
	}
	/* The other thread may not have run yet. */
	while (__atomic_load_n(&growing.kinds[MW_HEAP_CHUNK_STACKS].used, __ATOMIC_RELAXED) <=
	       FIRST)
		usleep(1000);
	__atomic_store_n(&growing.end, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	tap_ok(growing.kinds[MW_HEAP_CHUNK_STACKS].used > FIRST, "the profile grows (%lu stacks)",
	       (unsigned long)growing.kinds[MW_HEAP_CHUNK_STACKS].used);
	growing_end(&growing);
	tap_eq(whole, READS, "%s", title);
}

int main(void)
{
	tap_start();
	if (memwatch_ctx_new(NULL, &ctx))
		return EXIT_FAILURE;
	test_growing(copy_is_whole,
		     "in a copy of a profile that grows, every stack has its frames");
	test_growing(live_is_whole, "in a profile that grows, every stack has its frames");
	memwatch_ctx_unref(ctx);
	return tap_done();
}
