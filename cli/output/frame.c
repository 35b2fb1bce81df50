// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * Frames of call stacks, for people and as JSON.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "output/frame.h"

const char *mw_frame_name(const struct memwatch_heap_frame *frame, char *buf, size_t size)
{
	const char *slash = strrchr(frame->module, '/');
	const char *module = slash ? slash + 1 : frame->module;

	if (*frame->function)
		return frame->function;
	if (*module && !frame->address)
		return module;
	if (*module)
		snprintf(buf, size, "%s+0x%" PRIx64, module, (uint64_t)frame->address);
	else if (frame->address)
		snprintf(buf, size, "0x%" PRIx64, (uint64_t)frame->address);
	else
		snprintf(buf, size, "(unknown)");
	return buf;
}

char *mw_frame_label(const struct memwatch_heap_frame *frame)
{
	bool is_interpreted = *frame->function && *frame->file &&
			      !strcmp(frame->module, frame->file);
	char buf[MW_FRAME_NAME_SIZE], *label;
	const char *name = mw_frame_name(frame, buf, sizeof(buf));

	if (!is_interpreted)
		return strdup(name);
	return asprintf(&label, "%s (%s)", name, frame->file) < 0 ? NULL : label;
}

/* "run (job.c:12)" */
static void write_frame(const struct memwatch_heap_frame *frame, char *buf, size_t size)
{
	const char *slash = strrchr(frame->file, '/');
	char name[MW_FRAME_NAME_SIZE];

	if (*frame->file && frame->line)
		snprintf(buf, size, "%s (%s:%u)", mw_frame_name(frame, name, sizeof(name)),
			 slash ? slash + 1 : frame->file, frame->line);
	else
		snprintf(buf, size, "%s", mw_frame_name(frame, name, sizeof(name)));
}

const char *mw_stack_text(const struct memwatch_heap_frame *frames, size_t nr, char *buf,
			  size_t size)
{
	static const char *const words[MW_STACK_TEXT_FRAMES] = { "", ", called by ", " and " };
	char text[2 * MW_FRAME_NAME_SIZE];
	size_t len = 0;

	*buf = '\0';
	for (size_t i = 0; i < nr && i < MW_STACK_TEXT_FRAMES && len < size; i++) {
		write_frame(&frames[i], text, sizeof(text));
		len += (size_t)snprintf(buf + len, size - len, "%s%s", words[i], text);
	}
	return buf;
}

static void write_text(struct mw_json *json, const char *key, const char *text)
{
	mw_json_string(json, key, *text ? text : NULL);
}

void mw_frame_json(struct mw_json *json, const struct memwatch_heap_frame *frame)
{
	write_text(json, "function", frame->function);
	write_text(json, "file", frame->file);
	if (frame->line)
		mw_json_uint(json, "line", frame->line);
	else
		mw_json_null(json, "line");
	write_text(json, "module", frame->module);
	if (frame->address)
		mw_json_uint(json, "address", frame->address);
	else
		mw_json_null(json, "address");
	mw_json_bool(json, "inlined", frame->inlined);
}

void mw_estimate_json(struct mw_json *json, const char *key,
		      const struct memwatch_heap_estimate *estimate)
{
	mw_json_row(json, key);
	/* A number that is not finite is written as null. */
	mw_json_double(json, "value", estimate->value);
	mw_json_double(json, "low", estimate->low);
	mw_json_double(json, "high", estimate->high);
	mw_json_object_end(json);
}
