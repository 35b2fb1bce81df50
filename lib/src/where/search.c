// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A confined child unwinds the samples and finds their symbols, because stacks and files belong
 * to the watched user; and the caller does not wait for it.
 */
#include "where/search.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memwatch/heap-process.h>

#include "base/context.h"
#include "heap/answer.h"
#include "heap/confine.h"
#include "heap/elfutils.h"
#include "heap/owner-file.h"
#include "heap/process.h"
#include "heap/symbol-find.h"
#include "where/pages.h"
#include "where/sites.h"
#include "where/unwind.h"

/* Callers farther out are not looked for. */
#define DEPTH 24

/* What the child says about a kind of samples, before the frames. */
struct answer_site {
	uint32_t frames, first, samples, of_samples;
	double share;
};

/**
 * struct memwatch_where - a search
 * @ctx: context, a reference
 * @child: finds the answer
 * @answer: what it has written so far
 * @sites, @stacks: the answer, by kind
 * @complete: it was read
 */
struct memwatch_where {
	struct memwatch_ctx *ctx;
	struct mw_confined child;
	struct mw_answer answer;
	struct answer_site sites[MW_WHERE_KINDS];
	struct mw_answer_stack stacks[MW_WHERE_KINDS];
	bool complete;
};

/* What the child works on. */
struct job {
	struct memwatch_ctx *ctx;
	uint32_t pid;
	struct mw_where_samples *samples;
	char *maps;
	size_t maps_len;
	struct memwatch_heap_owner owner;
	uint32_t own_pid; /* as the process knows itself; 0: there is no perf map */
	struct mw_modules modules;
	struct mw_confinement may;
	int *keep[MW_MODULES_MAX];
};

/* ------------------------------------------------------------- in the child */

/* The map for perf that the process has written, opened with its own rights. */
static void open_perf_map(struct job *job)
{
	char *path = mw_owner_perf_map_path(job->ctx, job->pid), *directory = NULL, name[32];
	struct stat st;
	int fd = -1;

	snprintf(name, sizeof(name), "/proc/%u", job->pid);
	if (path && !mw_ctx_path(job->ctx, name, &directory) && !stat(directory, &st)) {
		job->owner.uid = st.st_uid;
		job->owner.gid = st.st_gid;
		fd = memwatch_heap_open_perf_map(job->ctx, &job->owner, path);
	}
	if (fd >= 0 && mw_modules_add(&job->modules, path, fd))
		sscanf(path, P_tmpdir "/perf-%u.map", &job->own_pid);
	else if (fd >= 0)
		close(fd);
	free(directory);
	free(path);
}

/* Opens what the child can only open before it has given up its privileges. */
static void open_files(void *data)
{
	struct job *job = data;
	char name[64];

	snprintf(name, sizeof(name), "/proc/%u/maps", job->pid);
	mw_text_read_file(job->ctx, name, &job->maps, &job->maps_len);
	mw_where_drop_gone(job->ctx, job->pid, job->samples->list,
			   job->samples->counts[MW_WHERE_TOUCHED]);
	mw_modules_open(job->ctx, job->pid, &job->modules);
	open_perf_map(job);
	job->may.nr_keep = job->modules.nr;
}

static int add_mappings(const struct job *job, struct memwatch_heap *heap)
{
	struct mw_text rest = { job->maps, job->maps_len }, line;
	struct mw_process_mapping found;
	unsigned long long start, end;
	uint32_t number;

	while (mw_text_take(&rest, '\n', &line)) {
		struct mw_prof_mapping mapping = { 0 };

		if (!mw_process_mapping_parse(line, &found) || found.permissions[2] != 'x' ||
		    *found.path != '/' || sscanf(found.range, "%llx-%llx", &start, &end) != 2)
			continue;
		mapping.start = start;
		mapping.end = end;
		mapping.offset = found.offset;
		if (mw_strings_add_text(&heap->strings, found.path,
					mw_process_mapping_path_len(&found), &mapping.path) ||
		    mw_heap_add_mapping(heap, &mapping, &number))
			return -ENOMEM;
	}
	mw_heap_sort_mappings(heap);
	return 0;
}

/* Finds or adds the location of an address. */
static int find_location(struct memwatch_heap *heap, uint64_t address, uint32_t *ret)
{
	struct mw_prof_location location = { .address = address };

	for (uint32_t i = 0; i < heap->nr_locations; i++)
		if (heap->locations[i].address == address) {
			*ret = i;
			return 0;
		}
	location.mapping = mw_heap_find_mapping(heap, address);
	return mw_heap_add_location(heap, &location, ret);
}

static int add_sample(struct memwatch_heap *heap, struct mw_unwinder *unwinder,
		      const struct mw_where_sample *from)
{
	struct mw_prof_sample sample = { .count = 1, .birth_ns = MW_PROF_BIRTH_UNKNOWN };
	uint32_t locations[DEPTH], nr;
	uint64_t addresses[DEPTH];
	int err = 0;

	sample.sum[MEMWATCH_HEAP_LIVE_BYTES].value = (double)from->weight;
	nr = mw_unwinder_run(unwinder, from, addresses, DEPTH);
	for (uint32_t i = 0; i < nr && !err; i++)
		err = find_location(heap, addresses[i], &locations[i]);
	if (!err)
		err = mw_heap_add_stack(heap, locations, nr, &sample.stack);
	return err ? err : mw_heap_add_sample(heap, &sample);
}

static void keep_lines(void *data, uint32_t location, const struct mw_resolved *lines, uint32_t nr)
{
	struct memwatch_heap *heap = data;
	uint32_t first = heap->nr_lines;

	for (uint32_t i = 0; i < nr; i++) {
		struct mw_prof_line line = { .number = lines[i].line };

		if (mw_strings_add_text(&heap->strings, lines[i].function,
					strnlen(lines[i].function, MW_ANSWER_TEXT_MAX),
					&line.function) ||
		    mw_strings_add_text(&heap->strings, lines[i].file,
					strnlen(lines[i].file, MW_ANSWER_TEXT_MAX), &line.file) ||
		    mw_heap_add_line(heap, &line))
			return;
	}
	heap->locations[location].first_line = first;
	heap->locations[location].lines = nr;
}

static void find_symbols(const struct job *job, struct memwatch_heap *heap)
{
	const struct mw_symbol_finder finder = { .heap = heap,
						 .modules = &job->modules,
						 .maps_are_open = true,
						 .found = keep_lines,
						 .data = heap };
	uint32_t *locations = reallocarray(NULL, heap->nr_locations + 1UL, sizeof(*locations));

	if (!locations)
		return;
	for (uint32_t i = 0; i < heap->nr_locations; i++)
		locations[i] = i;
	mw_symbols_find(&finder, locations, heap->nr_locations);
	free(locations);
}

/* Makes a profile of samples, with symbols. Returns how many of them count, or -ENOMEM. */
static int fill_heap(const struct job *job, const struct mw_where_sample *list, uint32_t nr,
		     struct memwatch_heap *heap)
{
	int err = mw_heap_add_profile(heap, "stacks"), count = 0;
	struct mw_unwinder *unwinder;

	if (err)
		return err;
	/* Of an allocator, functions without a symbol may be between those that have one. */
	mw_heap_last(heap)->info.format = MEMWATCH_HEAP_GPERFTOOLS;
	mw_heap_last(heap)->info.metrics = 1U << MEMWATCH_HEAP_LIVE_BYTES;
	mw_heap_last(heap)->info.pid = job->own_pid;
	mw_heap_last(heap)->owner = job->owner.uid;
	err = add_mappings(job, heap);
	unwinder = mw_unwinder_open(heap, &job->modules);
	for (uint32_t i = 0; i < nr && !err; i++) {
		if (!list[i].weight)
			continue;
		err = add_sample(heap, unwinder, &list[i]);
		count++;
	}
	mw_unwinder_close(unwinder);
	if (!err)
		find_symbols(job, heap);
	return err ? err : count;
}

static void write_site(const struct mw_site *site, uint32_t of_samples, FILE *out)
{
	MEMWATCH_OPTS(memwatch_heap_frame, frame);
	struct answer_site head = { .first = site->first,
				    .samples = site->samples,
				    .of_samples = of_samples,
				    .share = site->share };

	if (site->samples && site->first < MW_ANSWER_FRAMES_MAX)
		head.frames = site->frames < MW_ANSWER_FRAMES_MAX ? site->frames
								  : MW_ANSWER_FRAMES_MAX;
	fwrite(&head, sizeof(head), 1, out);
	for (uint32_t i = 0; i < head.frames; i++) {
		memwatch_heap_view_get_frame(site->view, site->row, i, &frame);
		mw_answer_write_frame(out, &frame);
	}
}

/* Returns whether there is an answer. */
static bool search_kind(const struct job *job, const struct mw_where_sample *list, uint32_t nr,
			FILE *out)
{
	struct mw_site site = { 0 };
	struct memwatch_heap *heap;
	int count;

	if (memwatch_heap_new(job->ctx, NULL, &heap))
		return false;
	count = fill_heap(job, list, nr, heap);
	if (count > 0 && mw_site_find(heap, &site))
		site.samples = 0;
	if (count >= 0)
		write_site(&site, (uint32_t)count, out);
	mw_site_uninit(&site);
	memwatch_heap_unref(heap);
	return count >= 0;
}

static void run_job(void *data, int answer)
{
	const struct job *job = data;
	const struct mw_where_samples *samples = job->samples;
	uint32_t touched = samples->counts[MW_WHERE_TOUCHED];
	FILE *out = fdopen(answer, "w");

	if (!out)
		return;
	if (search_kind(job, samples->list, touched, out))
		search_kind(job, samples->list + touched, samples->counts[MW_WHERE_ASKED], out);
	fflush(out);
}

/* ------------------------------------------------------------- in the parent */

int mw_where_search_new(struct memwatch_ctx *ctx, uint32_t pid, struct mw_where_samples *samples,
			struct memwatch_where **ret)
{
	struct job job = { .ctx = ctx,
			   .pid = pid,
			   .samples = samples,
			   .owner = { .sz = sizeof(job.owner), .pid = pid },
			   .may = { .prepare = open_files } };
	struct memwatch_where *where = calloc(1, sizeof(*where));
	int err;

	if (!where)
		return mw_fail_memory(ctx, "stacks");
	/* Without it, there are addresses in place of names. */
	mw_elfutils_load(NULL);
	job.may.keep = job.keep;
	for (uint32_t i = 0; i < MW_MODULES_MAX; i++)
		job.keep[i] = &job.modules.fds[i];
	err = mw_confined_start(ctx, run_job, &job, &job.may, &where->child);
	if (!err && fcntl(where->child.answer, F_SETFL, O_NONBLOCK)) {
		mw_confined_stop(&where->child);
		err = mw_fail(ctx, -EIO, "stacks: no pipe");
	}
	if (err) {
		free(where);
		return err;
	}
	where->ctx = memwatch_ctx_ref(ctx);
	*ret = where;
	return 0;
}

struct memwatch_where *memwatch_where_unref(struct memwatch_where *where)
{
	if (!where)
		return NULL;
	mw_confined_stop(&where->child);
	for (int i = 0; i < MW_WHERE_KINDS; i++)
		mw_answer_stack_uninit(&where->stacks[i]);
	mw_answer_uninit(&where->answer);
	memwatch_ctx_unref(where->ctx);
	free(where);
	return NULL;
}

static int parse_answer(struct memwatch_where *where)
{
	bool found = false;
	int err = 0;

	for (int i = 0; i < MW_WHERE_KINDS && !err; i++) {
		struct answer_site *site = &where->sites[i];

		err = mw_answer_take(&where->answer, site, sizeof(*site)) ? 0 : -EBADMSG;
		if (!err && site->frames && site->first >= site->frames)
			err = -EBADMSG;
		if (!err)
			err = mw_answer_take_stack(&where->answer, site->frames, &where->stacks[i]);
		found |= site->frames > 0;
	}
	if (err)
		return mw_fail(where->ctx, err, "the process that reads stacks failed");
	where->complete = found;
	return found ? 1 : mw_fail(where->ctx, -ENODATA, "no stack was sampled");
}

int memwatch_where_poll(struct memwatch_where *where)
{
	int rc = where->complete ? 1 : mw_answer_read(&where->answer, where->child.answer);

	if (rc < 0)
		return mw_fail(where->ctx, rc, "the answer about stacks: %s", strerror(-rc));
	if (!rc || where->complete)
		return rc;
	return parse_answer(where);
}

int memwatch_where_get_site(const struct memwatch_where *where, unsigned int kind,
			    struct memwatch_where_site *ret)
{
	struct memwatch_where_site out = { .sz = sizeof(out) };

	if (!where->complete || kind >= MW_WHERE_KINDS || !where->sites[kind].frames)
		return 0;
	out.frames = where->sites[kind].frames;
	out.first = where->sites[kind].first;
	out.samples = where->sites[kind].samples;
	out.of_samples = where->sites[kind].of_samples;
	out.share = where->sites[kind].share;
	return mw_opts_export(ret, &out, sizeof(out)) ?: 1;
}

int memwatch_where_get_frame(const struct memwatch_where *where, unsigned int kind, __u32 frame,
			     struct memwatch_heap_frame *ret)
{
	if (!where->complete || kind >= MW_WHERE_KINDS || frame >= where->stacks[kind].nr)
		return 0;
	return mw_opts_export(ret, &where->stacks[kind].frames[frame], sizeof(*ret)) ?: 1;
}
