// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The live objects.
 */
#include "stale/objects.h"

#include <stdlib.h>

#include "base/array.h"

static int add_chunk(struct mw_objects *objects)
{
	struct mw_object *chunk;

	if (mw_array_reserve(objects->chunks, objects->capacity, objects->nr_chunks + 1))
		return -ENOMEM;
	chunk = calloc(1U << MW_OBJECTS_CHUNK_BITS, sizeof(*chunk));
	if (!chunk)
		return -ENOMEM;
	objects->chunks[objects->nr_chunks++] = chunk;
	return 0;
}

int mw_objects_new(struct mw_objects *objects, uint32_t *ret)
{
	if (objects->used > objects->live) {
		*ret = objects->unused;
		objects->unused = mw_objects_at(objects, *ret)->last_place;
	} else {
		if (objects->used == MW_OBJECT_NONE ||
		    (objects->used >> MW_OBJECTS_CHUNK_BITS == objects->nr_chunks &&
		     add_chunk(objects)))
			return -ENOMEM;
		*ret = objects->used++;
	}
	*mw_objects_at(objects, *ret) = (struct mw_object){ 0 };
	objects->live++;
	return 0;
}

void mw_objects_free(struct mw_objects *objects, uint32_t number)
{
	struct mw_object *object = mw_objects_at(objects, number);

	object->site = MW_OBJECT_NONE;
	object->last_place = objects->unused;
	objects->unused = number;
	objects->live--;
}

void mw_object_touch(struct mw_object *object, uint32_t name)
{
	struct mw_object_place *rarest = object->places;

	object->last_place = name;
	object->accesses += object->accesses < UINT32_MAX;
	for (struct mw_object_place *at = object->places; at < object->places + MW_OBJECT_PLACES;
	     at++) {
		if (at->count && at->name == name) {
			at->count += at->count < UINT32_MAX;
			return;
		}
		if (at->count < rarest->count)
			rarest = at;
	}
	*rarest = (struct mw_object_place){ .name = name, .count = 1 };
}

void mw_objects_uninit(struct mw_objects *objects)
{
	for (size_t i = 0; i < objects->nr_chunks; i++)
		free(objects->chunks[i]);
	free(objects->chunks);
	*objects = (struct mw_objects){ 0 };
}
