// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The JSON format of speedscope, as its file-format-spec.ts describes it. Each call of the
 * tree is a frame of its own; speedscope adds up those of equal name and file.
 */
#include <stdlib.h>

#include "cmds/heap/speedscope.h"
#include "output/json.h"

static void write_frames(const struct heap_calls *calls, struct mw_json *json)
{
	mw_json_object(json, "shared");
	mw_json_array(json, "frames");
	for (size_t i = 0; i < calls->count; i++) {
		mw_json_row(json, NULL);
		mw_json_string(json, "name", calls->list[i].name);
		if (*calls->list[i].place)
			mw_json_string(json, "file", calls->list[i].place);
		mw_json_object_end(json);
	}
	mw_json_array_end(json);
	mw_json_object_end(json);
}

static void write_samples(const struct heap_calls *calls, struct mw_json *json)
{
	size_t *path = reallocarray(NULL, calls->max_depth + 1UL, sizeof(*path));

	mw_json_array(json, "samples");
	for (size_t i = 0; path && i < calls->count; i++) {
		const struct heap_call *call = &calls->list[i];

		path[call->depth] = i;
		if (!call->flat)
			continue;
		mw_json_array(json, NULL);
		for (uint32_t k = 0; k <= call->depth; k++)
			mw_json_uint(json, NULL, path[k]);
		mw_json_array_end(json);
	}
	mw_json_array_end(json);
	free(path);
	mw_json_array(json, "weights");
	for (size_t i = 0; i < calls->count; i++)
		if (calls->list[i].flat)
			mw_json_uint(json, NULL, calls->list[i].flat);
	mw_json_array_end(json);
}

void heap_speedscope_write(const struct heap_calls *calls, const char *name, FILE *out)
{
	struct mw_json json;

	mw_json_init(&json, out);
	mw_json_string(&json, "$schema", "https://www.speedscope.app/file-format-schema.json");
	mw_json_string(&json, "exporter", "memwatchctl");
	mw_json_string(&json, "name", name);
	mw_json_uint(&json, "activeProfileIndex", 0);
	write_frames(calls, &json);
	mw_json_array(&json, "profiles");
	mw_json_object(&json, NULL);
	mw_json_string(&json, "type", "sampled");
	mw_json_string(&json, "name", name);
	mw_json_string(&json, "unit", heap_metric_is_bytes(calls->metric) ? "bytes" : "none");
	mw_json_uint(&json, "startValue", 0);
	mw_json_uint(&json, "endValue", calls->total);
	write_samples(calls, &json);
	mw_json_object_end(&json);
	mw_json_array_end(&json);
	mw_json_finish(&json);
}
