// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The function that names a stack is the innermost one outside of the C library and of
 * allocators: they take the memory, but for somebody else. If there is none, it is the
 * innermost one.
 */
#include "where/sites.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "heap/allocator.h"

/* A row of the view, and which function names it. */
struct name {
	char *function, *module;
	uint64_t address; /* if @function is not known */
	uint32_t first, frames;
	uint64_t samples;
	double weight;
};

static bool is_library(const struct memwatch_heap_frame *frame)
{
	static const char *const modules[] = { "libc.so",   "libc-",   "ld-linux", "ld-musl",
					       "libc.musl", "libm.so", "[vdso]",   NULL };
	static const char *const python[] = { "PyMem_",		  "_PyMem_",
					      "PyObject_Malloc",  "PyObject_Calloc",
					      "PyObject_Realloc", "_PyObject_Malloc",
					      "_PyObject_Calloc", "_PyObject_Realloc",
					      "pymalloc_",	  NULL };
	const char *slash = strrchr(frame->module, '/');
	const char *module = slash ? slash + 1 : frame->module;

	for (const char *const *prefix = modules; *prefix; prefix++)
		if (!strncmp(module, *prefix, strlen(*prefix)))
			return true;
	for (const char *const *prefix = python; *prefix; prefix++)
		if (!strncmp(frame->function, *prefix, strlen(*prefix)))
			return true;
	return mw_allocator_has(frame->function, frame->module);
}

static int name_row(const struct mw_site *site, uint32_t row, struct name *ret)
{
	MEMWATCH_OPTS(memwatch_heap_frame, frame);
	MEMWATCH_OPTS(memwatch_heap_row, values);

	*ret = (struct name){ 0 };
	memwatch_heap_view_get_row(site->view, row, &values);
	ret->weight = values.flat[MEMWATCH_HEAP_LIVE_BYTES].value;
	ret->samples = values.samples;
	ret->frames = values.frames;
	while (ret->first < ret->frames &&
	       memwatch_heap_view_get_frame(site->view, row, ret->first, &frame) == 1 &&
	       is_library(&frame))
		ret->first++;
	if (ret->first == ret->frames)
		ret->first = 0;
	memwatch_heap_view_get_frame(site->view, row, ret->first, &frame);
	ret->function = strdup(frame.function);
	ret->module = strdup(frame.module);
	if (!*frame.function)
		ret->address = frame.address;
	return ret->function && ret->module ? 0 : -ENOMEM;
}

static bool is_same(const struct name *a, const struct name *b)
{
	return a->address == b->address && !strcmp(a->function, b->function) &&
	       !strcmp(a->module, b->module);
}

/* The rows are sorted, so the first of those with one name has the most. */
static void choose(const struct name *names, uint32_t nr, struct mw_site *ret)
{
	double best = 0, total = 0;

	for (uint32_t i = 0; i < nr; i++) {
		uint64_t samples = 0;
		double weight = 0;

		for (uint32_t k = 0; k < nr; k++)
			if (is_same(&names[i], &names[k])) {
				weight += names[k].weight;
				samples += names[k].samples;
			}
		total += names[i].weight;
		if (weight <= best)
			continue;
		best = weight;
		ret->row = i;
		ret->first = names[i].first;
		ret->frames = names[i].frames;
		ret->samples = (uint32_t)samples;
	}
	ret->share = total > 0 ? best / total : 0;
}

int mw_site_find(struct memwatch_heap *heap, struct mw_site *ret)
{
	MEMWATCH_OPTS(memwatch_heap_view_opts, opts, .by = MEMWATCH_HEAP_BY_SITE,
		      .metric = MEMWATCH_HEAP_LIVE_BYTES);
	MEMWATCH_OPTS(memwatch_heap_row, row);
	struct name *names;
	uint32_t nr = 0;
	int err;

	*ret = (struct mw_site){ 0 };
	err = memwatch_heap_view_new(heap, &opts, &ret->view);
	if (err)
		return err;
	while (memwatch_heap_view_get_row(ret->view, nr, &row) == 1)
		nr++;
	names = calloc(nr + 1UL, sizeof(*names));
	if (!names)
		return -ENOMEM;
	for (uint32_t i = 0; !err && i < nr; i++)
		err = name_row(ret, i, &names[i]);
	if (!err)
		choose(names, nr, ret);
	for (uint32_t i = 0; i < nr; i++) {
		free(names[i].function);
		free(names[i].module);
	}
	free(names);
	return err ? err : ret->samples ? 0 : -ENODATA;
}

void mw_site_uninit(struct mw_site *site)
{
	site->view = memwatch_heap_view_unref(site->view);
}
