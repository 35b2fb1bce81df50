// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Symbols of the locations of a heap. A confined child finds them and writes its answer to a
 * pipe: for each location that it knows, a head and its lines, and at the end a head with the
 * location MW_PROF_NONE. A file that cannot be read is the location MW_UNREAD, with the mapping in
 * place of the number of lines. The parent does not trust the answer either: each number is
 * checked, and the text is that of any file.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "heap/confine.h"
#include "heap/elfutils.h"
#include "heap/model.h"
#include "heap/symbol-find.h"
#include "base/array.h"
#include "base/context.h"
#include "base/timemath.h"

#define DEFAULT_TIMEOUT_NS (60 * MW_NSEC_PER_SEC)
/* The child cuts longer texts off, and the parent refuses them. */
#define TEXT_MAX  8192
#define MW_UNREAD (MW_PROF_NONE - 1)

struct answer_head {
	uint32_t location;
	uint32_t lines;
};

struct answer_line {
	uint32_t number;
	uint32_t function_len;
	uint32_t file_len;
};

/* What the child works on: the locations without lines, and files that it may not open. */
struct work {
	struct memwatch_heap *heap;
	struct memwatch_heap_symbol_opts opts;
	struct mw_symbol_finder finder;
	struct mw_modules modules;
	int *keep[MW_MODULES_MAX];
	uint32_t *locations;
	uint32_t count;
	FILE *out;
};

/* ------------------------------------------------------------- in the child */

static uint32_t text_length(const char *text)
{
	return (uint32_t)strnlen(text, TEXT_MAX);
}

static void answer_location(void *data, uint32_t location, const struct mw_resolved *lines,
			    uint32_t nr)
{
	struct answer_head head = { location, nr };
	const struct work *work = data;

	fwrite(&head, sizeof(head), 1, work->out);
	for (uint32_t i = 0; i < nr; i++) {
		struct answer_line line = { lines[i].line, text_length(lines[i].function),
					    text_length(lines[i].file) };

		fwrite(&line, sizeof(line), 1, work->out);
		fwrite(lines[i].function, 1, line.function_len, work->out);
		fwrite(lines[i].file, 1, line.file_len, work->out);
	}
}

static void answer_unread(void *data, uint32_t mapping)
{
	struct answer_head head = { MW_UNREAD, mapping };
	const struct work *work = data;

	fwrite(&head, sizeof(head), 1, work->out);
}

static void resolve_all(void *data, int answer)
{
	struct answer_head end = { .location = MW_PROF_NONE };
	struct work *work = data;

	work->out = fdopen(answer, "w");
	if (!work->out)
		return;
	mw_symbols_find(&work->finder, work->locations, work->count);
	fwrite(&end, sizeof(end), 1, work->out);
	fflush(work->out);
}

/* ------------------------------------------------------------- in the parent */

/**
 * struct answer - the pipe
 * @deadline_ns: CLOCK_MONOTONIC
 */
struct answer {
	int fd;
	uint64_t deadline_ns;
	char buffer[1 << 16];
	size_t at, len;
};

/* Reads @len bytes. Returns 0, or -EBADMSG if the child ended early, or -ETIMEDOUT. */
static int answer_read(struct answer *answer, void *to, size_t len)
{
	while (len) {
		size_t part = answer->len - answer->at;

		if (!part) {
			struct pollfd fd = { .fd = answer->fd, .events = POLLIN };
			uint64_t left = mw_sub_sat(answer->deadline_ns, mw_clock(CLOCK_MONOTONIC));
			ssize_t n;

			if (!left)
				return -ETIMEDOUT;
			if (poll(&fd, 1, (int)mw_min_u64(left / 1000000 + 1, 60000)) <= 0)
				continue;
			n = read(answer->fd, answer->buffer, sizeof(answer->buffer));
			if (n < 0 && errno == EINTR)
				continue;
			if (n <= 0)
				return -EBADMSG;
			answer->at = 0;
			answer->len = (size_t)n;
			continue;
		}
		if (part > len)
			part = len;
		memcpy(to, answer->buffer + answer->at, part);
		answer->at += part;
		to = (char *)to + part;
		len -= part;
	}
	return 0;
}

static int read_text(struct memwatch_heap *heap, struct answer *answer, uint32_t len, uint32_t *ret)
{
	char text[TEXT_MAX];
	int err;

	if (len > TEXT_MAX)
		return -EBADMSG;
	err = answer_read(answer, text, len);
	return err ?: mw_strings_add_text(&heap->strings, text, len, ret);
}

static int read_line(struct memwatch_heap *heap, struct answer *answer)
{
	struct mw_prof_line line = { 0 };
	struct answer_line from;
	int err = answer_read(answer, &from, sizeof(from));

	if (!err)
		err = read_text(heap, answer, from.function_len, &line.function);
	if (!err)
		err = read_text(heap, answer, from.file_len, &line.file);
	line.number = from.number;
	return err ?: mw_heap_add_line(heap, &line);
}

static int read_location(struct memwatch_heap *heap, struct answer *answer,
			 const struct answer_head *head)
{
	uint32_t first = heap->nr_lines;
	int err = 0;

	if (head->location >= heap->nr_locations || head->lines > MW_RESOLVE_LINES ||
	    heap->locations[head->location].lines)
		return -EBADMSG;
	for (uint32_t i = 0; i < head->lines && !err; i++)
		err = read_line(heap, answer);
	if (err)
		return err;
	heap->locations[head->location].first_line = first;
	heap->locations[head->location].lines = head->lines;
	return 0;
}

static int read_unread(struct memwatch_heap *heap, uint32_t mapping)
{
	if (mapping >= heap->nr_mappings)
		return -EBADMSG;
	heap->mappings[mapping].unread = true;
	return 0;
}

static int read_answer(struct memwatch_heap *heap, struct answer *answer)
{
	struct answer_head head;
	int err;

	while (!(err = answer_read(answer, &head, sizeof(head)))) {
		if (head.location == MW_PROF_NONE)
			return 0;
		err = head.location == MW_UNREAD ? read_unread(heap, head.lines)
						 : read_location(heap, answer, &head);
		if (err)
			return err;
	}
	return err;
}

static int collect_work(struct work *work)
{
	struct memwatch_heap *heap = work->heap;

	work->locations = reallocarray(NULL, heap->nr_locations + 1UL, sizeof(*work->locations));
	if (!work->locations)
		return -ENOMEM;
	for (uint32_t i = 0; i < heap->nr_locations; i++)
		if (!heap->locations[i].lines)
			work->locations[work->count++] = i;
	return 0;
}

/* Opens the file of a mapping, or for MW_PROF_NONE the perf map. */
static void open_module(struct work *work, uint32_t mapping)
{
	bool compiled = mapping == MW_PROF_NONE;
	char *path = compiled ? mw_symbols_perf_map_path(&work->finder)
			      : mw_symbols_path(&work->finder, mapping);
	uint32_t profile = compiled ? 0 : mw_heap_mapping_profile(work->heap, mapping);
	int fd = -1;

	if (path && mw_modules_find(&work->modules, path) < 0)
		fd = work->opts.open_module(work->opts.data, profile, path);
	if (fd >= 0 && !mw_modules_add(&work->modules, path, fd))
		close(fd);
	free(path);
}

/*
 * Opens the files that the child needs, each once, also if it is absent. A program or library that
 * is not opened here, the child tries itself.
 */
static void open_modules(struct work *work)
{
	const struct memwatch_heap *heap = work->heap;
	/* By mapping; the last is for addresses in none. */
	bool *asked = work->opts.open_module ? calloc(heap->nr_mappings + 1UL, sizeof(*asked))
					     : NULL;

	for (uint32_t i = 0; asked && i < work->count; i++) {
		uint32_t mapping = heap->locations[work->locations[i]].mapping;
		bool *this = &asked[mw_min_u64(mapping, heap->nr_mappings)];

		if (!*this)
			open_module(work, mapping);
		*this = true;
	}
	free(asked);
}

static int start_work(struct work *work, struct mw_confined *child)
{
	const struct mw_confinement may = { .network = secure_getenv("DEBUGINFOD_URLS"),
					    .keep = work->keep,
					    .nr_keep = work->modules.nr };

	for (uint32_t i = 0; i < MW_MODULES_MAX; i++)
		work->keep[i] = &work->modules.fds[i];
	return mw_confined_start(work->heap->ctx, resolve_all, work, &may, child);
}

const char *memwatch_heap_unread_module(const struct memwatch_heap *heap, __u32 number)
{
	for (uint32_t i = 0; i < heap->nr_mappings; i++) {
		uint32_t earlier = 0;

		if (!heap->mappings[i].unread)
			continue;
		while (earlier < i && (!heap->mappings[earlier].unread ||
				       heap->mappings[earlier].path != heap->mappings[i].path))
			earlier++;
		if (earlier == i && !number--)
			return mw_strings_text(&heap->strings, heap->mappings[i].path);
	}
	return NULL;
}

int memwatch_heap_symbolize(struct memwatch_heap *heap,
			    const struct memwatch_heap_symbol_opts *user_opts)
{
	struct work work = { .heap = heap };
	struct mw_confined child;
	struct answer answer;
	int missing, err = mw_opts_copy(heap->ctx, &work.opts, sizeof(work.opts), user_opts);

	if (err)
		return err;
	if (collect_work(&work))
		return mw_fail_memory(heap->ctx, "symbols");
	if (!work.count) {
		free(work.locations);
		return 0;
	}
	work.finder = (struct mw_symbol_finder){ .heap = heap,
						 .sysroot = work.opts.sysroot,
						 .modules = &work.modules,
						 .maps_are_open = work.opts.open_module,
						 .found = answer_location,
						 .unread = answer_unread,
						 .data = &work };
	/* Names that are in a map of addresses are found without it too. */
	missing = mw_elfutils_load(heap->ctx);
	open_modules(&work);
	err = start_work(&work, &child);
	mw_modules_close(&work.modules);
	free(work.locations);
	if (err)
		return err;
	answer.fd = child.answer;
	answer.at = answer.len = 0;
	answer.deadline_ns = mw_add_sat(mw_clock(CLOCK_MONOTONIC),
					work.opts.timeout_ns ?: DEFAULT_TIMEOUT_NS);
	err = read_answer(heap, &answer);
	mw_confined_stop(&child);
	if (err == -ETIMEDOUT)
		return mw_fail(heap->ctx, err, "symbols: some were not found in time");
	if (err == -EBADMSG)
		return mw_fail(heap->ctx, err, "symbols: the process that reads them has failed");
	return err ? mw_fail_memory(heap->ctx, "symbols") : missing;
}
