// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copyright (C) 2026 The memwatch authors
 *
 * A walk by whole buckets (BPF_MAP_LOOKUP_BATCH, Linux 5.6). A walk from key to key begins
 * again when the key that it stands at is deleted.
 */
#include "loader/map-walk.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "loader/libbpf.h"
#include "base/context.h"

/* Elements that one system call copies at first. */
#define BATCH 512

struct batch {
	char *keys, *values;
	uint32_t capacity;
};

static void batch_free(struct batch *batch)
{
	free(batch->keys);
	free(batch->values);
	batch->keys = batch->values = NULL;
}

static int batch_reserve(struct batch *batch, uint32_t capacity, size_t key_size, size_t value_size)
{
	batch_free(batch);
	batch->capacity = capacity;
	batch->keys = calloc(capacity, key_size);
	batch->values = calloc(capacity, value_size);
	return batch->keys && batch->values ? 0 : -ENOMEM;
}

int mw_bpf_map_walk(struct memwatch_ctx *ctx, int fd, size_t key_size, size_t value_size,
		    mw_bpf_walk_fn fn, void *userdata)
{
	uint32_t at, next = 0, *from = NULL, count;
	struct batch batch = { 0 };
	int stop = 0, err = batch_reserve(&batch, BATCH, key_size, value_size);

	while (!err && !stop) {
		count = batch.capacity;
		if (bpf_map_lookup_batch(fd, from, &next, batch.keys, batch.values, &count, NULL))
			err = -errno;
		if (err == -ENOSPC) { /* a bucket holds more elements */
			err = batch_reserve(&batch, batch.capacity * 2, key_size, value_size);
			continue;
		}
		if (err && err != -ENOENT)
			break;
		for (uint32_t i = 0; !stop && i < count; i++)
			stop = fn(userdata, batch.keys + i * key_size,
				  batch.values + i * value_size);
		at = next;
		from = &at;
	}
	batch_free(&batch);
	if (err && err != -ENOENT)
		return mw_fail(ctx, err, "cannot read a BPF map: %s", strerror(-err));
	return stop;
}
