/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * The live objects. They have numbers, which are used again, and their memory does not move.
 */
#ifndef MW_STALE_OBJECTS_H
#define MW_STALE_OBJECTS_H

#include <stddef.h>
#include <stdint.h>

#define MW_OBJECT_NONE	 UINT32_MAX
#define MW_OBJECT_PLACES 6

/**
 * struct mw_object - a live object
 * @start, @size: its memory
 * @birth_ns, @last_ns: time of its allocation, and of its last access or its allocation
 * @birth, @last: the same on the clock of the process, see struct mw_sim
 * @site: number of its allocation site; MW_OBJECT_NONE: this number is not in use
 * @last_place: name of the place of its last access; of a number that is not in use: the next one
 * @tid: thread that allocated it
 * @accesses: how many accesses were seen
 * @places: where, and how often; the count of an unused one is 0
 */
struct mw_object {
	uint64_t start, size;
	uint64_t birth_ns, last_ns;
	uint64_t birth, last;
	uint32_t site, last_place;
	uint32_t tid, accesses;
	struct mw_object_place {
		uint32_t name, count;
	} places[MW_OBJECT_PLACES];
};

/**
 * struct mw_objects - the objects; zero has none
 * @chunks: arrays of objects; owned
 * @nr_chunks, @capacity: number of chunks, and room for as many
 * @used: numbers from here on were never used
 * @live: number of live objects
 * @unused: first number of the list of those that are not in use, if @used > @live
 */
struct mw_objects {
	struct mw_object **chunks;
	size_t nr_chunks, capacity;
	uint32_t used, live, unused;
};

#define MW_OBJECTS_CHUNK_BITS 12

static inline struct mw_object *mw_objects_at(const struct mw_objects *objects, uint32_t number)
{
	return objects->chunks[number >> MW_OBJECTS_CHUNK_BITS] +
	       (number & ((1U << MW_OBJECTS_CHUNK_BITS) - 1));
}

/* Takes a number into use; the object is zero. Returns 0 or -ENOMEM. */
int mw_objects_new(struct mw_objects *objects, uint32_t *ret);
void mw_objects_free(struct mw_objects *objects, uint32_t number);

/* Notes an access at the place @name. The rarest place gives way to a seventh one. */
void mw_object_touch(struct mw_object *object, uint32_t name);

void mw_objects_uninit(struct mw_objects *objects);

#endif /* MW_STALE_OBJECTS_H */
