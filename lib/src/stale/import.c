// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The import of text traces.
 */
#include "stale/import.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/context.h"
#include "stale/event-text.h"

#define STEP_LINES 65536

int mw_import_init(struct mw_import *import, struct memwatch_ctx *ctx, struct mw_sim *sim, int fd,
		   const struct mw_sorter_place *place)
{
	struct stat st;

	*import = (struct mw_import){ .ctx = ctx, .sim = sim, .phase = MW_IMPORT_LOAD };
	mw_sorter_init(&import->sorter, ctx, place);
	if (!fstat(fd, &st) && S_ISREG(st.st_mode)) {
		import->file_bytes = (uint64_t)st.st_size;
		import->phase = MW_IMPORT_CHECK;
	}
	if (mw_lines_init(&import->lines, fd) || mw_strings_init(&import->words))
		return mw_fail_memory(ctx, "reading the trace");
	return 0;
}

void mw_import_uninit(struct mw_import *import)
{
	mw_lines_uninit(&import->lines);
	mw_strings_uninit(&import->words);
	mw_sorter_uninit(&import->sorter);
}

static int refuse_line(struct mw_import *import, const char *why)
{
	return mw_fail(import->ctx, -EBADMSG, "line %" PRIu64 " %s", import->lines.number, why);
}

/* The next line with text. Returns 1, 0 at the end, or an error with a message. */
static int next_line(struct mw_import *import, struct mw_text *line)
{
	int rc;

	do
		rc = mw_lines_next(&import->lines, line);
	while (rc == 1 && mw_event_is_comment(*line));
	if (rc == -EMSGSIZE)
		return refuse_line(import, "is longer than 4096 bytes");
	if (rc < 0)
		return mw_fail(import->ctx, rc, "cannot be read: %s", strerror(-rc));
	return rc;
}

/* The number of the word for the place of an event. */
static int intern_place(struct mw_import *import, struct mw_text word, uint32_t *ret)
{
	if (import->words.count >= MW_IMPORT_WORDS_MAX)
		return mw_fail(import->ctx, -E2BIG,
			       "line %" PRIu64
			       ": there are more than %u different sites and places",
			       import->lines.number, MW_IMPORT_WORDS_MAX);
	if (mw_strings_add(&import->words, word.at, word.len, ret))
		return mw_fail_memory(import->ctx, "reading the trace");
	return 0;
}

/* Returns 1, 0 at the end, or an error with a message. */
static int next_event(struct mw_import *import, struct mw_event *event)
{
	struct mw_text line, word = { NULL, 0 };
	const char *why;
	uint32_t known;
	int rc = next_line(import, &line);

	if (rc <= 0)
		return rc;
	why = mw_event_parse(line, event, &word);
	if (!import->lines.complete &&
	    (why || !mw_strings_find(&import->words, word.at, word.len, &known))) {
		import->cut_off = true;
		return 0;
	}
	if (why)
		return refuse_line(import, why);
	event->sequence = import->lines.number;
	rc = intern_place(import, word, &event->place);
	return rc ? rc : 1;
}

static int feed_event(struct mw_import *import, const struct mw_event *event)
{
	int err = mw_sim_feed(import->sim, event);

	if (err == -E2BIG)
		return mw_fail(import->ctx, err, "there are more than %u sites", MW_SIM_SITES_MAX);
	return err ? mw_fail_memory(import->ctx, "replaying the trace") : 0;
}

/* Goes back to the start of the file, for another phase. */
static int begin_phase(struct mw_import *import, enum mw_import_phase phase)
{
	int err = mw_lines_rewind(&import->lines);

	if (err)
		return mw_fail(import->ctx, err, "cannot be read again: %s", strerror(-err));
	import->phase = phase;
	return 1;
}

/* A line without a time will be refused when it is read. */
static int check_lines(struct mw_import *import)
{
	struct mw_text line;
	uint64_t time_ns;

	for (int i = 0; i < STEP_LINES; i++) {
		int rc = next_line(import, &line);

		if (rc < 0)
			return rc;
		if (!rc)
			return begin_phase(import, MW_IMPORT_DIRECT);
		if (!mw_event_parse_time(line, &time_ns))
			continue;
		if (time_ns < import->last_ns) {
			import->sorted = true;
			return begin_phase(import, MW_IMPORT_LOAD);
		}
		import->last_ns = time_ns;
	}
	return 1;
}

/* A file that is written to meanwhile may no longer be in order. */
static int replay_lines(struct mw_import *import)
{
	struct mw_event event;

	for (int i = 0; i < STEP_LINES; i++) {
		int rc = next_event(import, &event);

		if (!rc)
			import->phase = MW_IMPORT_DONE;
		if (rc <= 0)
			return rc;
		if (event.time_ns < import->sim->time_ns)
			return refuse_line(import, "was changed while the file was read");
		rc = feed_event(import, &event);
		if (rc)
			return rc;
	}
	return 1;
}

static int load_lines(struct mw_import *import)
{
	struct mw_event event;
	int rc;

	for (int i = 0; i < STEP_LINES; i++) {
		rc = next_event(import, &event);
		if (rc < 0)
			return rc;
		if (!rc) {
			import->phase = MW_IMPORT_MERGE;
			rc = mw_sorter_finish(&import->sorter);
			return rc ? rc : 1;
		}
		import->sorted |= event.time_ns < import->last_ns;
		import->last_ns = event.time_ns;
		rc = mw_sorter_add(&import->sorter, &event);
		if (rc)
			return rc;
	}
	return 1;
}

static int replay_sorted(struct mw_import *import)
{
	struct mw_event event;

	for (int i = 0; i < STEP_LINES; i++) {
		int rc = mw_sorter_next(&import->sorter, &event);

		if (!rc)
			import->phase = MW_IMPORT_DONE;
		if (rc <= 0)
			return rc;
		rc = feed_event(import, &event);
		if (rc)
			return rc;
	}
	return 1;
}

int mw_import_step(struct mw_import *import)
{
	switch (import->phase) {
	case MW_IMPORT_CHECK:
		return check_lines(import);
	case MW_IMPORT_DIRECT:
		return replay_lines(import);
	case MW_IMPORT_LOAD:
		return load_lines(import);
	case MW_IMPORT_MERGE:
		return replay_sorted(import);
	default:
		return 0;
	}
}

/* Looking through a file counts as a tenth of reading it. */
void mw_import_progress(const struct mw_import *import, uint64_t *done, uint64_t *all)
{
	uint64_t size = import->file_bytes, offset = import->lines.offset;

	*all = size ? size / 10 + 2 * size : 0;
	switch (import->phase) {
	case MW_IMPORT_CHECK:
		*done = offset / 10;
		break;
	case MW_IMPORT_DIRECT:
		*done = size / 10 + 2 * offset;
		break;
	case MW_IMPORT_LOAD:
		*done = size / 10 + offset;
		break;
	case MW_IMPORT_MERGE:
		*done = size / 10 + size +
			(uint64_t)((double)size * (double)import->sorter.taken /
				   (double)(import->sorter.added + 1));
		break;
	default:
		*done = *all;
	}
}
