// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The call stack that holds the growth of a process. Its profile is copied, parsed and given
 * symbols by a confined child, so that neither the profile nor the program's files, which belong
 * to the watched user, are parsed by the caller; and the caller does not wait for it.
 *
 * One profile says when each live object was allocated, but not what was live before. What leaks
 * stays: it is as old as the growth, at any age. What is replaced all the time is young. So the
 * growth of a stack is taken to be twice what is live from the first half of the time of growth.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memwatch/heap-process.h>

#include "heap/answer.h"
#include "heap/confine.h"
#include "heap/elfutils.h"
#include "heap/estimate.h"
#include "heap/model.h"
#include "heap/owner-file.h"
#include "heap/process.h"
#include "heap/symbol-find.h"
#include "base/context.h"
#include "base/timemath.h"

#define COPY_MAX    (256ULL << 20)
#define PROFILE_FDS 2

struct answer_head {
	int32_t err; /* 0 or a negative errno */
	uint32_t frames;
	struct memwatch_heap_estimate growth;
	uint64_t window_ns;
};

/**
 * struct memwatch_heap_suspect - a search for the stack that grows
 * @answer: what the child has written so far
 * @stack: the frames
 * @complete: the answer was read
 */
struct memwatch_heap_suspect {
	struct memwatch_ctx *ctx;
	struct mw_confined child;
	struct mw_answer answer;
	struct answer_head head;
	struct mw_answer_stack stack;
	bool complete;
};

/* What the child works on. */
struct search {
	struct memwatch_ctx *ctx;
	uint32_t pid;
	uint64_t since_ns;
	int64_t clock_ahead; /* of the process */
	int profile, copy;
	struct mw_modules modules;
	struct mw_confinement may;
	int *keep[PROFILE_FDS + MW_MODULES_MAX];
	struct memwatch_heap *heap;
	struct answer_head head;
	uint32_t stack;
};

/* ------------------------------------------------------------- in the child */

/* What of a stack is live from the time of growth, and from its first half. */
struct live {
	struct mw_prof_sum all, first;
};

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

static void sum_add(struct mw_prof_sum *to, const struct mw_prof_sum *sum)
{
	to->value += sum->value;
	to->variance += sum->variance;
}

/* Adds up what is live from the time of growth, by stack. */
static void sum_live(const struct mw_prof_profile *profile, int64_t begin, int64_t middle,
		     struct live *live)
{
	for (uint32_t i = 0; i < profile->nr_samples; i++) {
		const struct mw_prof_sample *sample = &profile->samples[i];

		if (!sample->count || sample->birth_ns < begin)
			continue;
		sum_add(&live[sample->stack].all, &sample->sum[MEMWATCH_HEAP_LIVE_BYTES]);
		if (sample->birth_ns < middle)
			sum_add(&live[sample->stack].first, &sample->sum[MEMWATCH_HEAP_LIVE_BYTES]);
	}
}

static struct memwatch_heap_estimate estimate_growth(const struct live *live)
{
	struct mw_prof_sum twice = { 2 * live->first.value, 4 * live->first.variance };

	return mw_estimate_sum(twice.value < live->all.value ? twice : live->all, true);
}

/* Finds the stack that grows most; @young: also if it has nothing from the first half. */
static void choose_stack(struct search *search, const struct live *live, bool young)
{
	for (uint32_t i = 0; i < search->heap->stacks.count; i++) {
		struct memwatch_heap_estimate growth = young ? mw_estimate_sum(live[i].all, true)
							     : estimate_growth(&live[i]);

		if (!(growth.value > search->head.growth.value))
			continue;
		search->head.growth = growth;
		search->stack = i;
	}
}

static int find_stack(struct search *search)
{
	const struct mw_prof_profile *profile = mw_heap_last(search->heap);
	/* On the clock of the samples. CLOCK_REALTIME may have been set since the process began. */
	uint64_t monotonic = mw_clock(CLOCK_MONOTONIC);
	uint64_t now = profile->zero_ns + monotonic + (uint64_t)search->clock_ahead;
	struct live *live = calloc(search->heap->stacks.count + 1UL, sizeof(*live));
	uint64_t begin;

	if (!live)
		return -ENOMEM;
	begin = mw_sub_sat(now, mw_sub_sat(monotonic, search->since_ns));
	begin = mw_max_u64(begin, profile->info.start_ns);
	search->head.window_ns = mw_sub_sat(now, begin);
	sum_live(profile, (int64_t)begin, (int64_t)(begin + search->head.window_ns / 2), live);
	choose_stack(search, live, false);
	/* Without anything from the first half, the growth has only just begun. */
	if (!(search->head.growth.value > 0))
		choose_stack(search, live, true);
	free(live);
	return search->head.growth.value > 0 ? 0 : -ENODATA;
}

/* Leaves only the samples of the stack that was found, and finds its symbols. */
static void resolve_stack(struct search *search)
{
	struct mw_prof_profile *profile = mw_heap_last(search->heap);
	const struct mw_symbol_finder finder = { .heap = search->heap,
						 .modules = &search->modules,
						 .maps_are_open = true,
						 .found = keep_lines,
						 .data = search->heap };
	uint32_t nr, *locations, kept = 0;
	const uint32_t *stack = mw_heap_stack(search->heap, search->stack, &nr);

	for (uint32_t i = 0; i < profile->nr_samples; i++)
		if (profile->samples[i].count && profile->samples[i].stack == search->stack)
			profile->samples[kept++] = profile->samples[i];
	profile->nr_samples = kept;
	locations = reallocarray(NULL, nr + 1UL, sizeof(*locations));
	if (!locations)
		return;
	memcpy(locations, stack, nr * sizeof(*locations));
	mw_symbols_find(&finder, locations, nr);
	free(locations);
}

static void write_answer(struct search *search, FILE *out)
{
	MEMWATCH_OPTS(memwatch_heap_view_opts, opts, .by = MEMWATCH_HEAP_BY_SITE);
	MEMWATCH_OPTS(memwatch_heap_frame, frame);
	MEMWATCH_OPTS(memwatch_heap_row, row);
	struct memwatch_heap_view *view;

	if (!search->head.err)
		search->head.err = memwatch_heap_view_new(search->heap, &opts, &view);
	if (!search->head.err && memwatch_heap_view_get_row(view, 0, &row) == 1)
		search->head.frames = row.frames < MW_ANSWER_FRAMES_MAX ? row.frames
									: MW_ANSWER_FRAMES_MAX;
	fwrite(&search->head, sizeof(search->head), 1, out);
	for (uint32_t i = 0; i < search->head.frames; i++)
		if (memwatch_heap_view_get_frame(view, 0, i, &frame) == 1)
			mw_answer_write_frame(out, &frame);
	fflush(out);
}

static int read_profile(struct search *search)
{
	MEMWATCH_OPTS(memwatch_heap_opts, opts, .max_bytes = COPY_MAX);
	int err = memwatch_heap_new(search->ctx, &opts, &search->heap), from = search->profile;

	if (!err && search->copy >= 0) {
		err = memwatch_heap_snapshot(search->ctx, search->profile, search->copy);
		from = search->copy;
	}
	if (!err && lseek(from, 0, SEEK_SET))
		err = -errno;
	if (!err)
		err = memwatch_heap_add_fd(search->heap, from, "profile");
	return err < 0 ? err : 0;
}

/* The map for perf that the process has written, if its profile and the map have one owner. */
static void open_perf_map(struct search *search)
{
	MEMWATCH_OPTS(memwatch_heap_owner, owner, .pid = search->pid);
	char *path = mw_owner_perf_map_path(search->ctx, search->pid);
	struct stat st;
	int fd = -1;

	if (path && search->profile >= 0 && !fstat(search->profile, &st)) {
		owner.uid = st.st_uid;
		owner.gid = st.st_gid;
		fd = memwatch_heap_open_perf_map(search->ctx, &owner, path);
	}
	if (fd >= 0 && !mw_modules_add(&search->modules, path, fd))
		close(fd);
	free(path);
}

/* Opens what the child can only open before it has given up its privileges. */
static void open_files(void *data)
{
	struct search *search = data;

	search->head.err = memwatch_heap_find(search->ctx, search->pid, 0, &search->profile);
	/* It had a profile, and has ended meanwhile: not as if nothing grew in it. */
	if (search->head.err == -ENODATA)
		search->head.err = -ESRCH;
	mw_modules_open(search->ctx, search->pid, &search->modules);
	open_perf_map(search);
	search->clock_ahead = mw_process_clock_ahead(search->ctx, search->pid);
	search->may.nr_keep = PROFILE_FDS + search->modules.nr;
}

static void run_search(void *data, int answer)
{
	struct search *search = data;
	FILE *out = fdopen(answer, "w");

	if (!search->head.err)
		search->head.err = read_profile(search);
	if (!search->head.err)
		search->head.err = find_stack(search);
	if (!search->head.err)
		resolve_stack(search);
	if (out)
		write_answer(search, out);
}

/* ------------------------------------------------------------- in the parent */

static int start_search(struct search *search, struct mw_confined *ret)
{
	int err = mw_confined_start(search->ctx, run_search, search, &search->may, ret);

	if (err)
		return err;
	if (fcntl(ret->answer, F_SETFL, O_NONBLOCK)) {
		mw_confined_stop(ret);
		return mw_fail(search->ctx, -EIO, "heap: no pipe");
	}
	return 0;
}

int memwatch_heap_suspect_new(struct memwatch_ctx *ctx, __u32 pid, __u64 since_ns, int copy,
			      struct memwatch_heap_suspect **ret)
{
	struct search search = { .ctx = ctx,
				 .pid = pid,
				 .since_ns = since_ns,
				 .profile = -1,
				 .copy = copy,
				 .may = { .nr_keep = PROFILE_FDS,
					  .file_bytes = copy < 0 ? 0 : COPY_MAX,
					  .prepare = open_files } };
	struct memwatch_heap_suspect *suspect;
	int err = memwatch_heap_is_profiled(ctx, pid);

	if (err < 0)
		return err;
	if (!err)
		return mw_fail(ctx, -ENODATA, "process %u has no heap profile", pid);
	suspect = calloc(1, sizeof(*suspect));
	if (!suspect)
		return mw_fail_memory(ctx, "heap profile");
	/* Without it, the call stack has addresses in place of names. */
	mw_elfutils_load(NULL);
	search.may.keep = search.keep;
	search.keep[0] = &search.profile;
	search.keep[1] = &search.copy;
	for (uint32_t i = 0; i < MW_MODULES_MAX; i++)
		search.keep[PROFILE_FDS + i] = &search.modules.fds[i];
	err = start_search(&search, &suspect->child);
	if (err) {
		free(suspect);
		return err;
	}
	suspect->ctx = memwatch_ctx_ref(ctx);
	*ret = suspect;
	return 0;
}

struct memwatch_heap_suspect *memwatch_heap_suspect_unref(struct memwatch_heap_suspect *suspect)
{
	if (!suspect)
		return NULL;
	mw_confined_stop(&suspect->child);
	mw_answer_stack_uninit(&suspect->stack);
	mw_answer_uninit(&suspect->answer);
	memwatch_ctx_unref(suspect->ctx);
	free(suspect);
	return NULL;
}

static int parse_answer(struct memwatch_heap_suspect *suspect)
{
	int err;

	if (!mw_answer_take(&suspect->answer, &suspect->head, sizeof(suspect->head)) ||
	    suspect->head.err > 0)
		return mw_fail(suspect->ctx, -EBADMSG, "the process that reads the profile failed");
	if (suspect->head.err)
		return mw_fail(suspect->ctx, suspect->head.err, "the profile: %s",
			       suspect->head.err == -ENODATA ? "nothing grows in it"
							     : strerror(-suspect->head.err));
	err = mw_answer_take_stack(&suspect->answer, suspect->head.frames, &suspect->stack);
	if (err)
		return mw_fail(suspect->ctx, err, "the answer about the profile is damaged");
	suspect->complete = true;
	return 0;
}

int memwatch_heap_suspect_poll(struct memwatch_heap_suspect *suspect,
			       struct memwatch_heap_suspect_info *ret)
{
	struct memwatch_heap_suspect_info info = { .sz = sizeof(info) };
	int err;

	if (!suspect->complete) {
		err = mw_answer_read(&suspect->answer, suspect->child.answer);
		if (err < 0)
			return mw_fail(suspect->ctx, err, "the answer about the profile: %s",
				       strerror(-err));
		if (!err)
			return 0;
		err = parse_answer(suspect);
		if (err)
			return err;
	}
	info.growth = suspect->head.growth;
	info.window_ns = suspect->head.window_ns;
	info.frames = suspect->head.frames;
	return mw_opts_export(ret, &info, sizeof(info)) ?: 1;
}

int memwatch_heap_suspect_fd(const struct memwatch_heap_suspect *suspect)
{
	return suspect->child.answer;
}

int memwatch_heap_suspect_get_frame(const struct memwatch_heap_suspect *suspect, __u32 frame,
				    struct memwatch_heap_frame *ret)
{
	if (!suspect->complete || frame >= suspect->head.frames)
		return 0;
	return mw_opts_export(ret, &suspect->stack.frames[frame], sizeof(*ret)) ?: 1;
}
