// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The JSON format of speedscope, as its file-format-spec.ts describes it. speedscope tells frames
 * apart by their numbers, so calls of equal name and place are one frame.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmds/heap/speedscope.h"
#include "output/json.h"

static int compare_frames(const struct heap_call *a, const struct heap_call *b)
{
	int order = strcmp(a->name, b->name);

	return order ? order : strcmp(a->place, b->place);
}

/* Calls of one frame are in the order of the tree. */
static int compare_calls(const void *a, const void *b, void *list)
{
	const struct heap_call *calls = list;
	size_t x = *(const size_t *)a, y = *(const size_t *)b;
	int order = compare_frames(&calls[x], &calls[y]);

	return order ? order : x < y ? -1 : x > y;
}

/*
 * Finds the number of the frame of each call. Frames are numbered in the order in which their
 * first calls are in the tree. @order has room for as many.
 */
static void number_frames(const struct heap_calls *calls, size_t *order, size_t *numbers)
{
	size_t first = 0, count = 0;

	for (size_t i = 0; i < calls->count; i++)
		order[i] = i;
	qsort_r(order, calls->count, sizeof(*order), compare_calls, calls->list);
	/* At first, the number of a call is that of the first call of its frame. */
	for (size_t i = 0; i < calls->count; i++) {
		if (compare_frames(&calls->list[order[first]], &calls->list[order[i]]))
			first = i;
		numbers[order[i]] = order[first];
	}
	for (size_t i = 0; i < calls->count; i++)
		numbers[i] = numbers[i] == i ? count++ : numbers[numbers[i]];
}

static void write_frames(const struct heap_calls *calls, const size_t *numbers,
			 struct mw_json *json)
{
	size_t count = 0;

	mw_json_object(json, "shared");
	mw_json_array(json, "frames");
	for (size_t i = 0; i < calls->count; i++) {
		if (numbers[i] < count)
			continue;
		count++;
		mw_json_row(json, NULL);
		mw_json_string(json, "name", calls->list[i].name);
		if (*calls->list[i].place)
			mw_json_string(json, "file", calls->list[i].place);
		mw_json_object_end(json);
	}
	mw_json_array_end(json);
	mw_json_object_end(json);
}

/* @path has room for the path to each call. */
static void write_samples(const struct heap_calls *calls, const size_t *numbers, size_t *path,
			  struct mw_json *json)
{
	mw_json_array(json, "samples");
	for (size_t i = 0; i < calls->count; i++) {
		const struct heap_call *call = &calls->list[i];

		path[call->depth] = numbers[i];
		if (!call->flat)
			continue;
		mw_json_array(json, NULL);
		for (uint32_t k = 0; k <= call->depth; k++)
			mw_json_uint(json, NULL, path[k]);
		mw_json_array_end(json);
	}
	mw_json_array_end(json);
	mw_json_array(json, "weights");
	for (size_t i = 0; i < calls->count; i++)
		if (calls->list[i].flat)
			mw_json_uint(json, NULL, calls->list[i].flat);
	mw_json_array_end(json);
}

int heap_speedscope_write(const struct heap_calls *calls, const char *name, FILE *out)
{
	/* A path has at most as many calls as the tree. */
	size_t *numbers = reallocarray(NULL, calls->count, sizeof(*numbers));
	size_t *scratch = reallocarray(NULL, calls->count, sizeof(*scratch));
	struct mw_json json;

	if (!numbers || !scratch) {
		free(numbers);
		free(scratch);
		return -ENOMEM;
	}
	number_frames(calls, scratch, numbers);
	mw_json_init(&json, out);
	mw_json_string(&json, "$schema", "https://www.speedscope.app/file-format-schema.json");
	mw_json_string(&json, "exporter", "memwatchctl");
	mw_json_string(&json, "name", name);
	mw_json_uint(&json, "activeProfileIndex", 0);
	write_frames(calls, numbers, &json);
	mw_json_array(&json, "profiles");
	mw_json_object(&json, NULL);
	mw_json_string(&json, "type", "sampled");
	mw_json_string(&json, "name", name);
	mw_json_string(&json, "unit", heap_metric_is_bytes(calls->metric) ? "bytes" : "none");
	mw_json_uint(&json, "startValue", 0);
	mw_json_uint(&json, "endValue", calls->total);
	write_samples(calls, numbers, scratch, &json);
	mw_json_object_end(&json);
	mw_json_array_end(&json);
	mw_json_finish(&json);
	free(numbers);
	free(scratch);
	return 0;
}
