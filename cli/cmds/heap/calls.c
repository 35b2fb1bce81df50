// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The tree of calls, and folded stacks.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmds/heap/calls.h"
#include "common/array.h"
#include "common/message.h"
#include "text/escape.h"

static uint64_t round_value(double value)
{
	return value > 0 && value < 0x1p63 ? (uint64_t)llround(value) : 0;
}

static char *place_of(const struct memwatch_heap_frame *frame)
{
	char *place = NULL;

	if (!*frame->file)
		return strdup(frame->module);
	if (!frame->line)
		return strdup(frame->file);
	return asprintf(&place, "%s:%u", frame->file, frame->line) < 0 ? NULL : place;
}

static int add_call(struct heap_calls *calls, const struct memwatch_heap_row *row)
{
	uint32_t m = calls->metric;
	struct heap_call call = {
		.depth = row->depth,
		.base_flat = round_value(row->base_flat[m].value),
		.base_cum = round_value(row->base_cum[m].value),
	};

	/* With a base, the row has the differences. */
	call.flat = round_value(row->flat[m].value +
				(calls->has_base ? row->base_flat[m].value : 0));
	call.cum = round_value(row->cum[m].value + (calls->has_base ? row->base_cum[m].value : 0));
	/* A call without a value is left out, and so is what it calls. */
	if ((!call.cum && !call.base_cum) ||
	    call.depth > (calls->count ? calls->list[calls->count - 1].depth + 1 : 0))
		return 0;
	if (mw_array_reserve(calls->list, calls->capacity, calls->count + 1))
		return -ENOMEM;
	call.name = mw_frame_label(row->frame);
	call.place = place_of(row->frame);
	if (!call.name || !call.place) {
		free(call.name);
		free(call.place);
		return -ENOMEM;
	}
	calls->list[calls->count++] = call;
	if (call.depth > calls->max_depth)
		calls->max_depth = call.depth;
	if (!call.depth) {
		calls->total += call.cum;
		calls->base_total += call.base_cum;
	}
	return 0;
}

int heap_calls_open(struct heap_calls *calls, const struct heap_profiles *profiles, uint32_t metric,
		    const char *path)
{
	bool diff = profiles->base >= 0;
	MEMWATCH_OPTS(memwatch_heap_view_opts, opts, .by = MEMWATCH_HEAP_BY_TREE, .metric = metric,
		      .flags = diff ? MEMWATCH_HEAP_BASE : 0,
		      .base = diff ? (uint32_t)profiles->base : 0);
	MEMWATCH_OPTS(memwatch_heap_info, info);
	MEMWATCH_OPTS(memwatch_heap_row, row);
	struct memwatch_heap_view *view;
	int err = memwatch_heap_view_new(profiles->heap, &opts, &view);

	if (err)
		return heap_view_failed(profiles, err, path);
	memwatch_heap_get_info(profiles->heap, 0, &info);
	*calls = (struct heap_calls){ .metric = metric, .has_base = diff, .objects = info.objects };
	for (uint64_t i = 0; !err && memwatch_heap_view_get_row(view, i, &row) == 1; i++)
		err = add_call(calls, &row);
	memwatch_heap_view_unref(view);
	if (!err && calls->count)
		return 0;
	heap_calls_close(calls);
	if (err)
		return mw_error_errno(err, "heap export");
	return mw_error(MW_EXIT_NOTHING, "heap export", "the profile contains nothing to show");
}

void heap_calls_close(struct heap_calls *calls)
{
	for (size_t i = 0; i < calls->count; i++) {
		free(calls->list[i].name);
		free(calls->list[i].place);
	}
	free(calls->list);
}

/* A name ends at a semicolon or a blank with a number behind it, and a line at its end. */
static void write_name(const char *name, FILE *out)
{
	char buf[1024];

	mw_escape(name, buf, sizeof(buf));
	for (char *p = buf; *p; p++)
		fputc(*p == ';' ? ':' : *p, out);
}

int heap_calls_write_folded(const struct heap_calls *calls, FILE *out)
{
	const struct heap_call **path = reallocarray(NULL, calls->max_depth + 1UL, sizeof(*path));

	if (!path)
		return -ENOMEM;
	for (size_t i = 0; i < calls->count; i++) {
		const struct heap_call *call = &calls->list[i];

		path[call->depth] = call;
		if (!call->flat && !call->base_flat)
			continue;
		for (uint32_t k = 0; k <= call->depth; k++) {
			if (k)
				fputc(';', out);
			write_name(path[k]->name, out);
		}
		if (calls->has_base)
			fprintf(out, " %" PRIu64, call->base_flat);
		fprintf(out, " %" PRIu64 "\n", call->flat);
	}
	free(path);
	return 0;
}
