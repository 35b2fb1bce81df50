/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * What malloc_info() of the C library says: unlike mallinfo2(), it has the sizes of the free
 * chunks, and with them the whole pages that malloc_trim() could return. It writes XML to a stdio
 * stream. The stream is opened when the library is loaded, because opening one takes a lock that
 * fflush() may hold for long.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "malloc-info.h"
#include "next.h"
#include "profile.h"

/* malloc_info() has a table of all sizes on the stack. */
#define STACK_NEEDED 32768

/* What malloc_trim() leaves at the beginning of a free chunk: its header. */
#define CHUNK_HEADER 48
#define CHUNK_ALIGN  16

/* The state of the reader. One thread reads at a time. */
static struct {
	FILE *stream;
	char buffer[1024];
	char line[256];
	size_t length;
	bool in_arena;
	uint64_t
		binned; /* bytes in the free chunks of this arena, the one at its top not counted */
	uint64_t free;
	struct mw_heap_figures *figures;
	bool complete;
} reader;

/* The number behind `NAME="`; 0 if there is none. */
static uint64_t attribute_read(const char *name)
{
	const char *at = strstr(reader.line, name);

	return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

static bool line_begins(const char *prefix)
{
	return !strncmp(reader.line, prefix, strlen(prefix));
}

/*
 * Chunks begin at any multiple of their alignment, so a chunk with room for a page at least has,
 * on average, its size less one page in whole pages.
 */
static void chunks_add(uint64_t count, uint64_t total)
{
	uint64_t page = mw_profile.header->system_page_bytes;
	uint64_t unusable = CHUNK_HEADER + page - CHUNK_ALIGN;

	reader.binned += total;
	if (count && total / count > unusable)
		reader.figures->trim_bytes += total - count * unusable;
}

static void arena_end(void)
{
	struct mw_heap_figures *figures = reader.figures;

	figures->fordblks += reader.free;
	if (!figures->arenas++)
		figures->keepcost = reader.free > reader.binned ? reader.free - reader.binned : 0;
	reader.in_arena = false;
}

static void arena_line(void)
{
	struct mw_heap_figures *figures = reader.figures;

	if (line_begins("  <size ") || line_begins("  <unsorted ")) {
		chunks_add(attribute_read("count=\""), attribute_read("total=\""));
	} else if (line_begins("<total ")) {
		reader.free += attribute_read("size=\"");
		figures->ordblks += attribute_read("count=\"");
		if (line_begins("<total type=\"fast\""))
			figures->fsmblks += attribute_read("size=\"");
	} else if (line_begins("<system type=\"current\"")) {
		figures->arena += attribute_read("size=\"");
	} else if (line_begins("</heap>")) {
		arena_end();
	}
}

static void line_end(void)
{
	struct mw_heap_figures *figures = reader.figures;

	if (line_begins("<heap ")) {
		reader.in_arena = true;
		reader.binned = reader.free = 0;
	} else if (reader.in_arena) {
		arena_line();
	} else if (line_begins("<total type=\"mmap\"")) {
		figures->hblks = attribute_read("count=\"");
		figures->hblkhd = attribute_read("size=\"");
	} else if (line_begins("</malloc>")) {
		reader.complete = true;
	}
}

/* Lines that are too long are cut: none of ours is. */
static ssize_t text_take(void *cookie, const char *text, size_t length)
{
	(void)cookie;
	for (size_t i = 0; reader.figures && i < length; i++) {
		if (text[i] != '\n' && reader.length < sizeof(reader.line) - 1)
			reader.line[reader.length++] = text[i];
		if (text[i] != '\n')
			continue;
		reader.line[reader.length] = 0;
		reader.length = 0;
		line_end();
	}
	return (ssize_t)length;
}

static __attribute__((constructor)) void stream_open(void)
{
	const cookie_io_functions_t functions = { .write = text_take };
	struct mw_thread *thread = &mw_thread;

	if (getauxval(AT_SECURE) || !mw_next_resolve() || !mw_next.mallinfo2 ||
	    !mw_thread_enter(thread, (uintptr_t)__builtin_frame_address(0)))
		return;
	thread->own = true;
	reader.stream = fopencookie(NULL, "w", functions);
	if (reader.stream)
		setvbuf(reader.stream, reader.buffer, _IOFBF, sizeof(reader.buffer));
	thread->own = false;
	mw_thread_leave(thread);
}

static bool stack_suffices(const struct mw_thread *thread)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	return here >= thread->stack_low && here < thread->stack_high &&
	       here - thread->stack_low >= STACK_NEEDED;
}

bool mw_malloc_info_read(const struct mw_thread *thread, struct mw_heap_figures *figures)
{
	struct mw_heap_figures found = { 0 };

	if (!reader.stream || !stack_suffices(thread))
		return false;
	reader.figures = &found;
	reader.length = 0;
	reader.in_arena = reader.complete = false;
	malloc_info(0, reader.stream);
	fflush(reader.stream);
	reader.figures = NULL;
	if (!reader.complete)
		return false;
	found.uordblks = found.arena > found.fordblks ? found.arena - found.fordblks : 0;
	*figures = found;
	return true;
}
