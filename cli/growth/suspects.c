// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Searches in heap profiles for what grows, and in sampled stacks for who takes memory. The
 * library parses them in child processes without privileges.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/message.h"
#include "growth/suspects.h"
#include "output/frame.h"
#include "output/human.h"

static struct mw_suspect *find_room(struct mw_suspects *suspects)
{
	for (size_t i = 0; i < MW_SUSPECTS_MAX; i++)
		if (!suspects->list[i].search && !suspects->list[i].where)
			return &suspects->list[i];
	return NULL;
}

/* Creates the file for the copy. Returns its descriptor, or -1 if there is to be none. */
static int create_copy(struct mw_suspects *suspects, uint32_t pid, struct mw_suspect *suspect)
{
	int fd;

	/* Most processes have no profile, and then no file is to be created. */
	if (!suspects->directory || suspects->copies == MW_SUSPECTS_COPIES_MAX ||
	    memwatch_heap_is_profiled(suspects->ctx, pid) != 1)
		return -1;
	snprintf(suspect->copy, sizeof(suspect->copy), "%s/%u-%lld.mwheap", suspects->directory,
		 pid, (long long)time(NULL));
	fd = open(suspect->copy, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		mw_warn(suspects->cli, "%s: %s", suspect->copy, strerror(errno));
		*suspect->copy = '\0';
		return -1;
	}
	suspects->copies++;
	return fd;
}

/* Returns whether the process has a profile that can be searched. */
static bool search_profile(struct mw_suspects *suspects, struct mw_suspect *suspect, uint32_t pid,
			   uint64_t since_ns)
{
	int fd = create_copy(suspects, pid, suspect);
	int err = memwatch_heap_suspect_new(suspects->ctx, pid, since_ns, fd, &suspect->search);

	if (fd >= 0)
		close(fd);
	if (!err)
		return true;
	suspect->search = NULL;
	mw_suspect_end(suspect);
	return false;
}

struct mw_suspect *mw_suspects_add(struct mw_suspects *suspects, struct memwatch_watch *watch,
				   const struct memwatch_record_growth *record, uint64_t since_ns)
{
	struct mw_suspect *suspect = find_room(suspects);

	if (!suspect)
		return NULL;
	*suspect = (struct mw_suspect){
		.end_ns = mw_clock_ns(CLOCK_MONOTONIC) + MW_SUSPECTS_WAIT_NS,
		.info = { .sz = sizeof(suspect->info) },
	};
	if (record->what == MEMWATCH_GROWTH_ALERTED &&
	    search_profile(suspects, suspect, record->tgid, since_ns))
		return suspect;
	if (!memwatch_watch_where(watch, record->tgid, record->start_time_ns, &suspect->where))
		return suspect;
	suspect->where = NULL;
	return NULL;
}

bool mw_suspect_is_done(struct mw_suspect *suspect, uint64_t now_ns)
{
	int rc = suspect->where ? memwatch_where_poll(suspect->where)
				: memwatch_heap_suspect_poll(suspect->search, &suspect->info);

	suspect->found = rc == 1;
	suspect->answered = rc == 1 || rc == -ENODATA;
	return rc || now_ns >= suspect->end_ns;
}

/* What the named function of a kind has first touched or asked for. Returns false if there is none.
 */
static bool append_site(const struct memwatch_where *where, unsigned int kind, const char *what,
			char *sentence, size_t size)
{
	MEMWATCH_OPTS(memwatch_where_site, site);
	struct memwatch_heap_frame frames[MW_STACK_TEXT_FRAMES];
	size_t len = strlen(sentence);
	char stack[1024];
	uint32_t nr = 0;

	if (memwatch_where_get_site(where, kind, &site) != 1)
		return false;
	for (; nr < MW_STACK_TEXT_FRAMES; nr++) {
		frames[nr].sz = sizeof(frames[nr]);
		if (memwatch_where_get_frame(where, kind, site.first + nr, &frames[nr]) != 1)
			break;
	}
	snprintf(sentence + len, size - len, "; %s %s (%.0f %%, %u of %u samples)", what,
		 mw_stack_text(frames, nr, stack, sizeof(stack)), site.share * 100, site.samples,
		 site.of_samples);
	return true;
}

static void append_where(const struct memwatch_where *where, char *sentence, size_t size)
{
	if (!append_site(where, MEMWATCH_WHERE_TOUCHED, "what it keeps is first touched by",
			 sentence, size))
		append_site(where, MEMWATCH_WHERE_ASKED, "the kernel is asked for memory by",
			    sentence, size);
}

static void append_profile(const struct mw_suspect *suspect, char *sentence, size_t size)
{
	const struct memwatch_heap_estimate *growth = &suspect->info.growth;
	struct memwatch_heap_frame frames[MW_STACK_TEXT_FRAMES];
	char stack[1024], value[32], low[32], high[32], span[32], rate[32];
	double seconds = (double)suspect->info.window_ns / 1e9;
	size_t len = strlen(sentence);
	uint32_t nr = 0;

	for (; nr < MW_STACK_TEXT_FRAMES; nr++) {
		frames[nr].sz = sizeof(frames[nr]);
		if (memwatch_heap_suspect_get_frame(suspect->search, nr, &frames[nr]) != 1)
			break;
	}
	snprintf(sentence + len, size - len,
		 "; of this, %s (%s to %s) in the last %s, at %s, are from %s",
		 mw_human_double(growth->value, MW_UNIT_BYTES, value, sizeof(value)),
		 mw_human_double(growth->low, MW_UNIT_BYTES, low, sizeof(low)),
		 mw_human_double(growth->high, MW_UNIT_BYTES, high, sizeof(high)),
		 mw_human_uint(suspect->info.window_ns, MW_UNIT_NS, span, sizeof(span)),
		 mw_human_double(seconds > 0 ? growth->value / seconds : 0, MW_UNIT_RATE, rate,
				 sizeof(rate)),
		 mw_stack_text(frames, nr, stack, sizeof(stack)));
}

void mw_suspect_append(const struct mw_suspect *suspect, char *sentence, size_t size)
{
	if (suspect->where)
		append_where(suspect->where, sentence, size);
	else
		append_profile(suspect, sentence, size);
}

static void profile_json(const struct mw_suspect *suspect, struct mw_json *json)
{
	MEMWATCH_OPTS(memwatch_heap_frame, frame);

	if (!suspect || !suspect->found || !suspect->search) {
		mw_json_null(json, "heap");
		return;
	}
	mw_json_object(json, "heap");
	mw_estimate_json(json, "growth_bytes", &suspect->info.growth);
	mw_json_double(json, "seconds", (double)suspect->info.window_ns / 1e9);
	mw_json_string(json, "copy", *suspect->copy ? suspect->copy : NULL);
	mw_json_array(json, "stack");
	for (uint32_t i = 0; memwatch_heap_suspect_get_frame(suspect->search, i, &frame) == 1;
	     i++) {
		mw_json_object(json, NULL);
		mw_frame_json(json, &frame);
		mw_json_object_end(json);
	}
	mw_json_array_end(json);
	mw_json_object_end(json);
}

static void site_json(const struct memwatch_where *where, unsigned int kind, struct mw_json *json,
		      const char *key)
{
	MEMWATCH_OPTS(memwatch_heap_frame, frame);
	MEMWATCH_OPTS(memwatch_where_site, site);

	if (memwatch_where_get_site(where, kind, &site) != 1) {
		mw_json_null(json, key);
		return;
	}
	mw_json_object(json, key);
	mw_json_double(json, "share", site.share);
	mw_json_uint(json, "samples", site.samples);
	mw_json_uint(json, "of_samples", site.of_samples);
	mw_json_uint(json, "frame", site.first);
	mw_json_array(json, "stack");
	for (uint32_t i = 0; memwatch_where_get_frame(where, kind, i, &frame) == 1; i++) {
		mw_json_object(json, NULL);
		mw_frame_json(json, &frame);
		mw_json_object_end(json);
	}
	mw_json_array_end(json);
	mw_json_object_end(json);
}

void mw_suspect_json(const struct mw_suspect *suspect, struct mw_json *json)
{
	profile_json(suspect, json);
	if (!suspect || !suspect->found || !suspect->where) {
		mw_json_null(json, "where");
		return;
	}
	mw_json_object(json, "where");
	site_json(suspect->where, MEMWATCH_WHERE_TOUCHED, json, "touched");
	site_json(suspect->where, MEMWATCH_WHERE_ASKED, json, "asked");
	mw_json_object_end(json);
}

void mw_suspect_end(struct mw_suspect *suspect)
{
	/* Without an answer, the copy may be incomplete. */
	if (*suspect->copy && !suspect->answered)
		unlink(suspect->copy);
	suspect->search = memwatch_heap_suspect_unref(suspect->search);
	suspect->where = memwatch_where_unref(suspect->where);
	*suspect->copy = '\0';
}
